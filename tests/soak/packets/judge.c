/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECISIONS 8192
#define SLACK_NS 1000000 /* by which a plan's times may be passed */
#define PRINTED 20u      /* of what was wrong */
#define DISCARD 9u

/* A frame that went in. */
typedef struct sent {
    int64_t t_ns, due_ns;
    uint32_t talk;
    uint16_t port[2]; /* source and destination */
    frame_labels labels;
} sent;

/* A question to the oracle: may this name be shown from now on? */
typedef struct question {
    uint32_t talk;
    uint8_t name; /* of the talk's */
    bool vote;
    int64_t t_ns, clock_ns;
} question;

struct judge {
    const world *w;
    quic_pool *pool;
    tally *sum;
    exposures *all;
    uint32_t z;
    int64_t clock_ns;
    uint32_t first, end; /* of frames, modulo 2^32 */
    uint32_t questions;
    talk talks[JUDGE_TALKS];
    sent frames[JUDGE_FRAMES];
    question asked[DECISIONS];
};

judge *judge_open(const world *w, quic_pool *pool, uint32_t z, tally *sum)
{
    judge *j = calloc(1, sizeof *j);
    if (j == NULL) {
        fputs("soak: out of memory\n", stderr);
        exit(2);
    }
    j->w = w;
    j->pool = pool;
    j->sum = sum;
    j->z = z;
    j->all = exposures_open(2 * WORLD_NAMES);
    return j;
}

void judge_close(judge *j)
{
    exposures_close(j->all);
    free(j);
}

talk *judge_new_talk(judge *j, uint32_t place)
{
    talk *t = &j->talks[place % JUDGE_TALKS];
    if (t->waiting != 0) {
        fputs("soak: too many conversations at a time\n", stderr);
        exit(2);
    }
    return t;
}

const talk *judge_talk(const judge *j, uint32_t place)
{
    return &j->talks[place];
}

/* ---- the oracle ------------------------------------------------------------------------------ */

static bool is_dns(const talk *t)
{
    return t->kind == TALK_DNS || t->kind == TALK_DNS_TCP;
}

static bool counts(const judge *j, const talk *t)
{
    return t->proven && !(is_dns(t) && j->w->engine.dns_votes == ZN_DNS_VOTES_NO);
}

/* Names of DNS may be counted apart. */
static uint32_t attribute(const judge *j, const talk *t, const talk_name *name)
{
    bool apart = is_dns(t) && j->w->engine.dns_votes == ZN_DNS_VOTES_OWN;
    return name->name + (apart ? WORLD_NAMES : 0u);
}

static void expose(judge *j, const talk *t, const talk_name *name, int64_t from_ns,
                   int64_t until_ns)
{
    int64_t longest_ns = 32 * j->w->pause_ns + j->w->engine.hold_ns + 2 * j->w->late_ns + SLACK_NS;
    if (counts(j, t) && !name->never)
        exposures_add(j->all, attribute(j, t, name), t->user, from_ns, until_ns,
                      j->clock_ns - j->w->engine.window_ns - 2 * longest_ns);
}

static bool is_shared(const judge *j, const talk *t, const talk_name *name, int64_t from_ns,
                      int64_t until_ns, bool sure)
{
    return exposures_users(j->all, attribute(j, t, name), from_ns - j->w->engine.window_ns,
                           until_ns, sure) >= j->z;
}

static void ask(judge *j, const step *s, int64_t t_ns)
{
    talk *t = &j->talks[s->talk];
    for (uint8_t i = 0; i < t->names; i++) {
        bool vote = (s->votes & 1u << i) != 0;
        if (!vote && (s->peeks & 1u << i) == 0)
            continue;
        if (vote)
            expose(j, t, &t->name[i], t_ns, t_ns);
        if (t->name[i].known_ns == INT64_MAX)
            t->name[i].known_ns = j->clock_ns;
        j->asked[j->questions++] = (question){s->talk, i, vote, t_ns, j->clock_ns};
    }
    if (s->begins)
        for (uint8_t i = 0; i < t->names; i++)
            expose(j, t, &t->name[i], t->from_ns - j->w->late_ns, t->until_ns + SLACK_NS);
}

void judge_decide(judge *j)
{
    for (uint32_t i = 0; i < j->questions; i++) {
        const question *q = &j->asked[i];
        talk *t = &j->talks[q->talk];
        talk_name *name = &t->name[q->name];
        bool sure = is_shared(j, t, name, q->t_ns, q->t_ns, true);
        if (name->allowed_ns == INT64_MAX && is_shared(j, t, name, q->t_ns, q->t_ns, false))
            name->allowed_ns = q->clock_ns;
        if (sure && name->sure_ns == INT64_MAX)
            name->sure_ns = q->clock_ns;
        if (!sure && q->vote)
            name->denied_ns = q->clock_ns;
    }
    j->questions = 0;
}

/* Returns whether the oracle let the name out by due_ns. */
static bool may_show(const judge *j, const talk *t, const talk_name *name, int64_t due_ns)
{
    if (name->never)
        return false;
    if (t->loose)
        return is_shared(j, t, name, t->from_ns - j->w->late_ns,
                         due_ns < t->until_ns ? due_ns : t->until_ns + SLACK_NS, false);
    return name->allowed_ns <= due_ns;
}

/* Returns whether the message's name has to be shown, as far as that is known. */
static bool must_show(const judge *j, const talk *t, const talk_message *m, int64_t due_ns)
{
    if (j->w->order != WORLD_IN_ORDER || j->w->engine.hold_bytes == 0 || t->loose || !t->proven ||
        m->whole_ns > m->first_due_ns) /* not proven: it is over when it closes */
        return false;
    for (uint8_t i = 0; i < t->names; i++) {
        const talk_name *name = &t->name[i];
        if (name->never || (name->known_ns <= due_ns &&
                            (name->sure_ns > m->first_due_ns || name->denied_ns <= due_ns)))
            return false;
    }
    return true;
}

/* ---- frames that go in ----------------------------------------------------------------------- */

static bool is_datagram(const talk *t)
{
    return t->kind == TALK_DNS;
}

void judge_goes_in(judge *j, const step *s, int64_t t_ns, const frame_labels *labels)
{
    talk *t = &j->talks[s->talk];
    sent *f = &j->frames[j->end % JUDGE_FRAMES];
    bool from_client = s->kind != STEP_SYN_ACK && s->kind != STEP_SERVER &&
                       s->kind != STEP_ANSWER && s->kind != STEP_QUIC_ANSWER;
    if (j->end - j->first >= JUDGE_FRAMES || j->questions + 2 * TALK_NAMES > DECISIONS) {
        fputs("soak: too many frames at a time\n", stderr);
        exit(2);
    }
    j->end++;
    j->sum->frames++;
    if (t_ns > j->clock_ns)
        j->clock_ns = t_ns;
    *f = (sent){t_ns,
                j->clock_ns + j->w->engine.hold_ns,
                s->talk,
                {from_client ? t->client_port : t->server_port,
                 from_client ? t->server_port : t->client_port},
                *labels};
    for (uint8_t i = 0; i < t->messages; i++) {
        talk_message *m = &t->message[i];
        if ((labels->touched & 1u << i) != 0 && m->first_due_ns == INT64_MAX)
            m->first_due_ns = f->due_ns;
        if ((s->whole & 1u << i) != 0 && m->whole_ns == INT64_MAX)
            m->whole_ns = j->clock_ns;
    }
    ask(j, s, t_ns);
}

/* ---- packets that leave ---------------------------------------------------------------------- */

/* The payload of a packet that left, and the ports before it; false: none can be found. */
static bool find_payload(const zn_frame *p, uint16_t port[2], zn_span *payload)
{
    uint32_t at = 14, end, protocol;
    const uint8_t *ip = p->data + at;
    if (p->captured < at + 20)
        return false;
    if (ip[0] >> 4 == 4) {
        protocol = ip[9];
        end = at + ((uint32_t)ip[2] << 8 | ip[3]);
        at += (uint32_t)(ip[0] & 15) * 4;
    } else {
        protocol = ip[6];
        end = at + 40 + ((uint32_t)ip[4] << 8 | ip[5]);
        at += 40;
    }
    if (end > p->captured || at + (protocol == 6 ? 20 : 8) > end)
        return false;
    for (unsigned i = 0; i < 2; i++)
        port[i] = (uint16_t)(p->data[at + 2 * i] << 8 | p->data[at + 2 * i + 1]);
    at += protocol == 6 ? (uint32_t)(p->data[at + 12] >> 4) * 4 : 8;
    *payload = (zn_span){p->data + at, end - at};
    return at <= end;
}

static void wrong(const judge *j, const sent *f, const talk_name *name, const char *what)
{
    const talk *t = &j->talks[f->talk];
    if (j->sum->wrong++ >= PRINTED)
        return;
    fprintf(
        stderr,
        "wrong: %s, round seed %llu, talk %u kind %u order %d z %u hold %lld exact %d tunnel %u "
        "names %u loose %d proven %d t %lld due %lld allowed %lld from %lld window %lld\n",
        what, (unsigned long long)j->w->seed, f->talk, t->kind, (int)j->w->order, j->w->engine.z,
        (long long)j->w->engine.hold_ns, j->w->engine.exact, t->tunnel, t->names, t->loose,
        t->proven, (long long)f->t_ns, (long long)f->due_ns,
        name == NULL ? 0LL : (long long)name->allowed_ns, (long long)t->from_ns,
        (long long)j->w->engine.window_ns);
}

/* Judges the label that text begins with, if it does. */
static void judge_text(judge *j, const sent *f, const uint8_t *text)
{
    const talk *t = &j->talks[f->talk];
    int n = world_find(j->w, text);
    if (n < 0)
        return;
    for (uint8_t i = 0; i < t->names; i++)
        if (t->name[i].name == n) {
            if (!may_show(j, t, &t->name[i], f->due_ns))
                wrong(j, f, &t->name[i], "a label");
            return;
        }
    wrong(j, f, NULL, "the label of another conversation");
}

/* Searches bytes for whole labels, wherever they are: by their second letter, which is rare. */
static void search(judge *j, const sent *f, zn_span in)
{
    const uint8_t *at = in.p + 1, *end = in.p + in.n - WORLD_LABEL + 2;
    if (in.n < WORLD_LABEL)
        return;
    while ((at = memchr(at, 'q', (size_t)(end - at))) != NULL) {
        if (at[-1] == 'z')
            judge_text(j, f, at - 1);
        at++;
    }
}

/* Judges the places where labels were. Returns whether any letter is there. */
static bool judge_part(judge *j, const sent *f, const frame_part *part, zn_span in)
{
    talk *t = &j->talks[f->talk];
    const talk_message *m = &t->message[part->message];
    int64_t due_ns = is_datagram(t) || f->port[0] == t->server_port ? f->due_ns : m->first_due_ns;
    bool shown = false;
    if (in.n < (size_t)part->at + part->n)
        return false;
    for (uint8_t i = 0; i < part->n; i++)
        shown |= world_is_label_letter(in.p[part->at + i]);
    if (shown && !may_show(j, t, &t->name[m->name], due_ns))
        wrong(j, f, &t->name[m->name], "a part");
    return shown;
}

static void count_part(judge *j, const sent *f, const frame_part *part, bool shown)
{
    talk *t = &j->talks[f->talk];
    talk_message m = t->message[part->message];
    bool must;
    if (is_datagram(t))
        m.first_due_ns = f->due_ns;
    must = f->port[0] != t->server_port && must_show(j, t, &m, f->due_ns);
    j->sum->shown += shown;
    j->sum->shown_in[t->kind] += shown;
    j->sum->expected += must;
    j->sum->missed += must && !shown;
}

static void judge_packet(judge *j, const sent *f, zn_span payload)
{
    zn_span in = payload;
    if (f->labels.sealed && !quic_pool_unseal(j->pool, j->talks[f->talk].quic, payload, &in)) {
        j->sum->strange++;
        return;
    }
    for (uint8_t i = 0; i < f->labels.n; i++)
        count_part(j, f, &f->labels.part[i], judge_part(j, f, &f->labels.part[i], in));
    search(j, f, in);
    if (f->labels.sealed)
        search(j, f, payload);
}

static void take_first(judge *j)
{
    sent *f = &j->frames[j->first++ % JUDGE_FRAMES];
    j->talks[f->talk].waiting--;
}

/* The frame did not leave. */
static void pass_first(judge *j)
{
    const sent *f = &j->frames[j->first % JUDGE_FRAMES];
    for (uint8_t i = 0; i < f->labels.n; i++)
        count_part(j, f, &f->labels.part[i], false);
    take_first(j);
}

/* Returns whether a packet that left may be of a frame that went in. Where masked packets leave,
 * too, the client, or who is taken for it, has another port, and 9 stands for an uncommon one of
 * the server. */
static bool may_be_of(const judge *j, const sent *f, const zn_frame *packet, const uint16_t port[2])
{
    bool same[2], hidden = port[0] == DISCARD || port[1] == DISCARD;
    for (unsigned i = 0; i < 2; i++)
        same[i] = port[i] == f->port[i];
    if (f->t_ns != packet->t_ns)
        return false;
    return (same[0] && same[1]) || (j->w->engine.exact && (same[0] || same[1] || hidden));
}

void judge_left(judge *j, const zn_frame *packet)
{
    uint16_t port[2];
    zn_span payload;
    j->sum->left++;
    if (!find_payload(packet, port, &payload)) {
        j->sum->strange++;
        return;
    }
    while (j->first != j->end) {
        const sent *f = &j->frames[j->first % JUDGE_FRAMES];
        if (may_be_of(j, f, packet, port)) {
            judge_packet(j, f, payload);
            take_first(j);
            return;
        }
        pass_first(j);
    }
    j->sum->strange++;
}

void judge_none_left(judge *j, bool all)
{
    while (j->first != j->end) {
        const sent *f = &j->frames[j->first % JUDGE_FRAMES];
        if (!all && f->due_ns >= j->clock_ns)
            break;
        pass_first(j);
    }
}
