/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENTS 24
#define FIRST_PORT 6000        /* above the ports of local protocols */
#define QUIC_PIECES_BYTES 1000 /* of a hello, in one datagram with all that is around them */

typedef struct planner {
    const world *w;
    dice *d;
    talk *t;
    steps *out;
    uint32_t place;
    int64_t at_ns;
    uint8_t voted; /* names so far */
    uint8_t whole; /* messages so far */
    bool joined;   /* nobody saw where the stream begins: any segment may begin a message */
} planner;

static step *add_step(planner *p, step_kind kind)
{
    steps *out = p->out;
    step *s;
    if (out->n == out->room) {
        out->room = out->room != 0 ? 2 * out->room : 1024;
        out->at = realloc(out->at, out->room * sizeof *out->at);
        if (out->at == NULL) {
            fputs("soak: out of memory\n", stderr);
            exit(2);
        }
    }
    s = &out->at[out->n++];
    *s = (step){.at_ns = p->at_ns, .talk = p->place, .kind = (uint8_t)kind};
    p->t->waiting++;
    return s;
}

static void wait(planner *p)
{
    uint32_t chance = dice_below(p->d, 10);
    int64_t most_ns = chance < 6   ? p->w->gap_ns / 8
                      : chance < 9 ? p->w->pause_ns / 4
                                   : p->w->pause_ns;
    p->at_ns += 1 + dice_up_to(p->d, most_ns);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Some names are much more likely, and which ones changes with time. */
static uint16_t draw_name(planner *p, uint64_t number)
{
    uint32_t names = p->w->names, most = 1 + dice_below(p->d, names);
    return (uint16_t)((number / (4 * names) + dice_below(p->d, most)) % names);
}

/* Returns which of the talk's names it is; a new one may be added. */
static uint8_t take_name(planner *p, uint16_t name)
{
    talk *t = p->t;
    for (uint8_t i = 0; i < t->names; i++)
        if (t->name[i].name == name)
            return i;
    t->name[t->names] = (talk_name){.name = name,
                                    .never = p->w->name_kind[name] != WORLD_NAME_PLAIN,
                                    .known_ns = INT64_MAX,
                                    .allowed_ns = INT64_MAX,
                                    .sure_ns = INT64_MAX,
                                    .denied_ns = INT64_MAX};
    return t->names++;
}

static void add_message(planner *p, message_form form, uint8_t name)
{
    talk *t = p->t;
    const talk_message *before = t->messages != 0 ? &t->message[t->messages - 1] : NULL;
    uint32_t start = before == NULL ? 0 : before->start + message_bytes(before->form);
    t->message[t->messages++] = (talk_message){.form = (uint8_t)form,
                                               .name = name,
                                               .start = start,
                                               .whole_ns = INT64_MAX,
                                               .first_due_ns = INT64_MAX};
}

/* ---- TCP: messages and pieces ---------------------------------------------------------------- */

static void lay_tls(planner *p, uint64_t number)
{
    static const message_form hellos[] = {FORM_HELLO, FORM_HELLO, FORM_HELLO_PADDED,
                                          FORM_HELLO_LARGE};
    message_form form = hellos[dice_below(p->d, 4)];
    uint8_t first = take_name(p, draw_name(p, number));
    add_message(p, form, first);
    if (dice_percent(p->d, 15)) { /* after a HelloRetryRequest */
        uint8_t again = first;
        if (dice_percent(p->d, 30))
            again = take_name(p, draw_name(p, number));
        if (again != first && !p->joined) /* else it may be the first that is read */
            p->t->name[again].never = true;
        if (dice_percent(p->d, 50))
            add_message(p, FORM_CHANGE_CIPHER, first);
        add_message(p, form == FORM_HELLO_LARGE ? FORM_HELLO : form, again);
    }
    if (dice_percent(p->d, 30))
        add_message(p, FORM_APPLICATION_DATA, first);
}

static void lay_several(planner *p, uint64_t number, message_form form, message_form other)
{
    uint32_t n = dice_percent(p->d, 55) ? 1 : 2 + dice_below(p->d, 2);
    for (uint32_t i = 0; i < n; i++)
        add_message(p, dice_percent(p->d, 80) ? form : other, take_name(p, draw_name(p, number)));
}

static uint32_t stream_bytes(const talk *t)
{
    const talk_message *last = &t->message[t->messages - 1];
    return last->start + message_bytes(last->form);
}

/* A place to cut: anywhere, or in the name of a message. */
static uint32_t draw_cut(planner *p, uint32_t n)
{
    const talk_message *m = &p->t->message[dice_below(p->d, p->t->messages)];
    uint32_t at = 1 + dice_below(p->d, n - 1);
    if (message_label(m->form) != 0 && dice_percent(p->d, 50))
        at = m->start + message_label(m->form) + dice_below(p->d, WORLD_LABEL + 1);
    return at < n ? at : n - 1;
}

/* Cuts n bytes at `cuts` random places, at some of them twice, which makes one. */
static void cut_stream(planner *p, uint32_t n, uint32_t cuts)
{
    talk *t = p->t;
    t->cut[0] = 0;
    t->pieces = 0;
    for (uint32_t i = 0; i < cuts; i++) {
        uint16_t at = (uint16_t)draw_cut(p, n);
        uint32_t place = t->pieces;
        while (place > 0 && t->cut[place] > at)
            place--;
        if (t->cut[place] == at)
            continue;
        memmove(t->cut + place + 2, t->cut + place + 1, (t->pieces - place) * sizeof *t->cut);
        t->cut[place + 1] = at;
        t->pieces++;
    }
    t->cut[++t->pieces] = (uint16_t)n;
}

/* ---- TCP: segments --------------------------------------------------------------------------- */

typedef struct segment {
    uint8_t first, end; /* pieces */
    uint16_t spoiled;
} segment;

static void insert(segment *list, uint32_t *n, uint32_t at, segment s)
{
    memmove(list + at + 1, list + at, (*n - at) * sizeof *list);
    list[at] = s;
    ++*n;
}

static segment draw_range(planner *p)
{
    uint32_t first = dice_below(p->d, p->t->pieces);
    uint32_t end = first + 1 + dice_below(p->d, p->t->pieces - first);
    return (segment){(uint8_t)first, (uint8_t)end, 0};
}

/* The client's segments, in the order in which they come. */
static uint32_t draw_segments(planner *p, segment *list)
{
    talk *t = p->t;
    dice *d = p->d;
    uint32_t n = 0;
    for (uint8_t at = 0; at < t->pieces;) {
        uint8_t end = (uint8_t)(at + 1 + (dice_percent(d, 30) ? dice_below(d, 3) : 0));
        end = end < t->pieces ? end : t->pieces;
        list[n++] = (segment){at, end, 0};
        at = end;
    }
    if (n > 1 && dice_percent(d, 25))
        for (uint32_t i = n - 1; i > 0; i--) {
            uint32_t with = dice_percent(d, 50) ? i - 1 : dice_below(d, i + 1);
            segment swapped = list[i];
            list[i] = list[with];
            list[with] = swapped;
        }
    if (n > 1 && dice_percent(d, 3)) { /* one was never captured */
        uint32_t lost = dice_below(d, n--);
        memmove(list + lost, list + lost + 1, (n - lost) * sizeof *list);
        t->loose = true;
    }
    for (uint32_t extra = dice_percent(d, 30) ? 1 + dice_below(d, 2) : 0; extra > 0; extra--) {
        segment s = draw_range(p);
        if (dice_percent(d, 25)) { /* a copy that differs */
            uint32_t bytes = (uint32_t)(t->cut[s.end] - t->cut[s.first]);
            s.spoiled = (uint16_t)(1 + dice_below(d, bytes));
            t->loose = true;
        }
        insert(list, &n, dice_below(d, n + 1), s);
    }
    return n;
}

/* Takes note of the messages whose bytes are all there with this step. */
static void complete(planner *p, step *s, uint32_t covered)
{
    talk *t = p->t;
    uint32_t end = t->cut[__builtin_ctz(~covered)];
    for (uint8_t i = 0; i < t->messages; i++) {
        const talk_message *m = &t->message[i];
        uint8_t bit = (uint8_t)(1u << m->name);
        if (m->start + message_bytes(m->form) > end)
            break;
        if ((p->whole & 1u << i) != 0)
            continue;
        s->whole |= (uint8_t)(1u << i);
        if (message_label(m->form) == 0 || t->loose || t->name[m->name].never ||
            (t->kind == TALK_TLS && i != 0)) /* a second hello asks nothing */
            continue;
        if (!t->proven)
            s->peeks |= bit;
        else
            s->votes |= bit & (uint8_t)~p->voted;
    }
    p->voted |= s->votes;
    p->whole |= s->whole;
}

static void say_as_server(planner *p, message_form form)
{
    step *s = add_step(p, STEP_SERVER);
    s->message = (uint8_t)form;
    s->from = p->t->server_said;
    p->t->server_said += message_bytes(form);
    wait(p);
}

static void answer(planner *p)
{
    static const message_form forms[] = {[TALK_DNS_TCP] = FORM_DNS_TCP_ANSWER,
                                         [TALK_HTTP] = FORM_RESPONSE,
                                         [TALK_TLS] = FORM_SERVER_HELLO};
    bool retry = p->t->kind == TALK_TLS && p->t->messages > 1 && p->t->server_said == 0;
    say_as_server(p, retry ? FORM_HELLO_RETRY : forms[p->t->kind]);
}

static void say_segments(planner *p)
{
    segment list[SEGMENTS];
    talk *t = p->t;
    uint32_t n = draw_segments(p, list), covered = 0;
    bool begun = false;
    for (uint32_t i = 0; i < n; i++) {
        step *s = add_step(p, STEP_BYTES);
        s->from = t->cut[list[i].first];
        s->to = t->cut[list[i].end];
        s->spoiled = list[i].spoiled;
        covered |= (UINT32_C(1) << list[i].end) - (UINT32_C(1) << list[i].first);
        complete(p, s, covered);
        s->begins = t->loose && !begun;
        begun = true;
        wait(p);
        if (dice_percent(p->d, 15))
            answer(p);
    }
}

/* ---- TCP: the connection --------------------------------------------------------------------- */

typedef enum handshake {
    HANDSHAKE_WHOLE,
    HANDSHAKE_LATE, /* the server's part was captured behind the client's data */
    HANDSHAKE_NO_SYN,
    HANDSHAKE_NO_ANSWER,
    HANDSHAKE_WRONG_ACK, /* as of a client that does not see the answer */
    HANDSHAKE_NONE
} handshake;

static handshake draw_handshake(planner *p)
{
    uint32_t chance = dice_below(p->d, 100);
    if (chance < 80)
        return HANDSHAKE_WHOLE;
    return (handshake)(1 + chance % 5);
}

static void shake_hands(planner *p, handshake how)
{
    talk *t = p->t;
    t->proven = how <= HANDSHAKE_LATE;
    /* Times that are too far back may end a flow, and its rest is read as a joined one's is. */
    t->loose = how == HANDSHAKE_LATE || p->joined || p->w->order == WORLD_TOO_LATE;
    t->wrong_ack = how == HANDSHAKE_WRONG_ACK;
    if (how != HANDSHAKE_NO_SYN && how != HANDSHAKE_NONE) {
        (void)add_step(p, STEP_SYN);
        wait(p);
    }
    if (how == HANDSHAKE_WHOLE || how == HANDSHAKE_NO_SYN || how == HANDSHAKE_WRONG_ACK) {
        (void)add_step(p, STEP_SYN_ACK);
        wait(p);
    }
    if (how != HANDSHAKE_LATE && dice_percent(p->d, 50)) {
        (void)add_step(p, STEP_ACK);
        wait(p);
    }
}

static void close_connection(planner *p, handshake how)
{
    if (how == HANDSHAKE_LATE) {
        (void)add_step(p, STEP_SYN_ACK);
        wait(p);
        (void)add_step(p, STEP_ACK);
        wait(p);
    }
    if (p->t->kind == TALK_TLS && dice_percent(p->d, 30))
        say_as_server(p, FORM_APPLICATION_DATA);
    if (dice_percent(p->d, 60))
        (void)add_step(p, dice_percent(p->d, 50) ? STEP_RST : STEP_FIN);
}

static void plan_tcp(planner *p, uint64_t number)
{
    static const uint8_t most_cuts[] = {0, 0, 1, 1, 2, 3, 6, TALK_PIECES - 1};
    handshake how = draw_handshake(p);
    p->joined = how == HANDSHAKE_NO_SYN || how == HANDSHAKE_NONE;
    if (p->t->kind == TALK_TLS)
        lay_tls(p, number);
    else if (p->t->kind == TALK_HTTP)
        lay_several(p, number, FORM_REQUEST, FORM_REQUEST_LONG);
    else
        lay_several(p, number, FORM_DNS_TCP, FORM_DNS_TCP);
    cut_stream(p, stream_bytes(p->t), most_cuts[dice_below(p->d, sizeof most_cuts)]);
    shake_hands(p, how);
    say_segments(p);
    close_connection(p, how);
}

/* ---- UDP ------------------------------------------------------------------------------------- */

static void answer_query(planner *p, uint8_t message, uint8_t asked)
{
    const talk_message *m = &p->t->message[message];
    uint8_t bit = (uint8_t)(1u << m->name);
    step *s = add_step(p, STEP_ANSWER);
    s->message = message;
    if (dice_percent(p->d, 6))
        s->spoiled = 1; /* another id: it answers nothing */
    else if ((asked & bit) != 0 && !p->t->name[m->name].never)
        s->votes = bit & (uint8_t)~p->voted;
    p->voted |= s->votes;
    if ((asked & bit) == 0 &&
        s->spoiled == 0) { /* up to 1 s before its query it is evidence, too */
        p->t->loose = true;
        s->begins = true;
    }
    wait(p);
}

static void plan_dns(planner *p, uint64_t number)
{
    talk *t = p->t;
    uint32_t n = dice_percent(p->d, 75) ? 1 : 2 + dice_below(p->d, 2);
    uint8_t asked = 0; /* names */
    t->proven = true;
    for (uint8_t i = 0; i < n; i++) {
        uint32_t copies = dice_percent(p->d, 12) ? 2 : 1;
        add_message(p, FORM_DNS, take_name(p, draw_name(p, number)));
        if (dice_percent(p->d, 3))
            answer_query(p, i, asked);
        while (copies-- > 0) {
            step *s = add_step(p, STEP_QUERY);
            s->message = i;
            s->whole = (uint8_t)(1u << i);
            if (!t->name[t->message[i].name].never)
                s->peeks = (uint8_t)(1u << t->message[i].name);
            wait(p);
        }
        asked |= (uint8_t)(1u << t->message[i].name);
        if (dice_percent(p->d, 70))
            answer_query(p, i, asked);
    }
    if (dice_percent(p->d, 15))
        answer_query(p, (uint8_t)dice_below(p->d, n), asked);
}

static void add_initial(planner *p, uint32_t pieces, uint32_t *covered)
{
    step *s = add_step(p, STEP_INITIAL);
    s->from = pieces;
    s->to = (uint32_t)dice_roll(p->d);
    *covered |= pieces;
    complete(p, s, *covered);
    s->peeks |= s->votes; /* the evidence comes later */
    p->voted &= (uint8_t)~s->votes;
    s->votes = 0;
    wait(p);
}

/* Returns which of these pieces fit into a datagram together. */
static uint32_t fit(const talk *t, uint32_t pieces)
{
    uint32_t bytes = 0, fitting = 0;
    for (uint32_t i = 0; i < t->pieces; i++) {
        uint32_t n = (uint32_t)(t->cut[i + 1] - t->cut[i]);
        if ((pieces & UINT32_C(1) << i) == 0 || bytes + n > QUIC_PIECES_BYTES)
            continue;
        fitting |= UINT32_C(1) << i;
        bytes += n;
    }
    return fitting;
}

/* Sends the hello, some of it first, but for a piece that fits into no datagram. */
static void say_hello(planner *p)
{
    uint32_t all = (UINT32_C(1) << p->t->pieces) - 1, covered = 0;
    uint32_t now = fit(p->t, (uint32_t)dice_roll(p->d) & all);
    if (now == 0 || dice_percent(p->d, 70))
        now = fit(p->t, all);
    while (now != 0) {
        add_initial(p, now, &covered);
        if (dice_percent(p->d, 8))
            add_initial(p, now, &covered);
        now = fit(p->t, all & ~covered);
    }
}

static void plan_quic(planner *p, uint64_t number)
{
    talk *t = p->t;
    bool large = dice_percent(p->d, 30);
    t->quic = (uint8_t)dice_below(p->d, TALK_QUIC_POOL);
    t->proven = true;
    add_message(p, large ? FORM_BARE_HELLO_LARGE : FORM_BARE_HELLO,
                take_name(p, draw_name(p, number)));
    cut_stream(p, stream_bytes(t), large ? 5 : dice_below(p->d, 4));
    say_hello(p);
    if (dice_percent(p->d, 20))
        return;
    (void)add_step(p, STEP_QUIC_ANSWER);
    wait(p);
    if (dice_percent(p->d, 80)) {
        step *s = add_step(p, STEP_QUIC_PROOF);
        if (p->whole != 0 && !t->name[0].never)
            s->votes = 1;
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static talk_kind draw_kind(dice *d)
{
    uint32_t chance = dice_below(d, 100);
    return chance < 45   ? TALK_DNS
           : chance < 53 ? TALK_DNS_TCP
           : chance < 72 ? TALK_HTTP
           : chance < 98 ? TALK_TLS
                         : TALK_QUIC;
}

static void draw_ends(planner *p, uint64_t number)
{
    static const uint16_t ports[] = {[TALK_DNS] = 53,
                                     [TALK_DNS_TCP] = 53,
                                     [TALK_HTTP] = 80,
                                     [TALK_TLS] = 443,
                                     [TALK_QUIC] = 443};
    talk *t = p->t;
    t->kind = (uint8_t)draw_kind(p->d);
    t->user = (uint8_t)dice_below(p->d, p->w->users);
    t->host = (uint32_t)dice_roll(p->d);
    t->client_port = (uint16_t)(FIRST_PORT + number % 50000);
    t->server = (uint32_t)(number / 50000 * 64 + dice_below(p->d, 64));
    t->server_port = ports[t->kind];
    if ((t->kind == TALK_TLS || t->kind == TALK_HTTP) && dice_percent(p->d, 10))
        t->server_port = 5000;
    if (dice_percent(p->d, 40))
        t->tunnel = (uint8_t)dice_below(p->d, TUNNELS);
    t->outer =
        p->w->outer_users && t->tunnel >= TUNNEL_GRE && t->user % 2 == 0 && dice_percent(p->d, 50);
    t->upper = dice_percent(p->d, 10);
}

void talk_plan(talk *t, uint32_t place, uint64_t number, const world *w, dice *d, int64_t at_ns,
               steps *out)
{
    planner p = {.w = w, .d = d, .t = t, .out = out, .place = place, .at_ns = at_ns};
    memset(t, 0, sizeof *t);
    draw_ends(&p, number);
    t->from_ns = at_ns;
    if (t->kind == TALK_DNS)
        plan_dns(&p, number);
    else if (t->kind == TALK_QUIC)
        plan_quic(&p, number);
    else
        plan_tcp(&p, number);
    t->until_ns = p.at_ns;
}
