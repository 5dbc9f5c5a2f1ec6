/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of a probe, and a counter that answers in any way: out of order, twice, too short, too
 * long, for other messages, or with bytes of the input. Each byte of the input is an action, mostly
 * with operands after it. Steps must be done in their order. A step is a yes only if an answer to
 * its own message said so.
 */
#include "release/remote_counter.h"

#include <stdlib.h>

#define STEPS 64u
#define MESSAGES 256u
#define QUERIES_MAX 4096u

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

/* Message of the remote counter, and the numbers of the steps of its votes. */
typedef struct message {
    zn_vote_header header;
    uint64_t *steps;
} message;

typedef struct harness {
    zn_remote_counter counter;
    zn_stats stats;
    message messages[MESSAGES];
    unsigned count;
    bool yes[QUERIES_MAX]; /* by the step's number */
} harness;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static uint8_t next_byte(bytes *in)
{
    return in->at == in->end ? 0 : *in->at++;
}

/* Takes the messages that are ready. */
static void take_messages(harness *h)
{
    zn_span left = {(const uint8_t *)h->counter.ready.bytes, h->counter.ready.n};
    while (left.n != 0) {
        message *m = &h->messages[h->count];
        size_t n = (size_t)zn_le_get(left.p, 4);
        zn_span one = {left.p + 4, n};
        zn_counted_vote *votes;
        require(n + 4 <= left.n && zn_vote_header_read(&m->header, one, NULL) == 0);
        votes = malloc((m->header.votes + (size_t)1) * sizeof *votes);
        m->steps = malloc((m->header.votes + (size_t)1) * sizeof *m->steps);
        require(votes != NULL && m->steps != NULL);
        require(zn_votes_read(votes, &m->header, one, NULL) == 0);
        for (uint32_t i = 0; i < m->header.votes; i++)
            m->steps[i] = votes[i].id.lo;
        free(votes);
        h->count++;
        left = (zn_span){left.p + 4 + n, left.n - 4 - n};
    }
    h->counter.ready.n = 0;
}

static void ask(harness *h, bytes *in)
{
    zn_step step = {.t_ns = next_byte(in), .kind = ZN_STEP_VOTE};
    zn_id id = {.lo = h->counter.next, .hi = (uint64_t)next_byte(in) << 56};
    if (zn_remote_counter_space(&h->counter) != 0 && h->counter.next < QUERIES_MAX)
        zn_remote_counter_query(&h->counter, step, ZN_COUNTED_NAME, id, next_byte(in));
}

/* Tells of a client, and of a vote that needs no answer. */
static void mark(harness *h, bytes *in)
{
    int64_t t_ns = next_byte(in);
    zn_id id = {.lo = QUERIES_MAX, .hi = (uint64_t)next_byte(in) << 56};
    zn_observation vote = {t_ns, 0, id};
    zn_remote_counter_mark(&h->counter, t_ns, id);
    zn_remote_counter_count(&h->counter, ZN_COUNTED_ONLY, &vote);
}

static void cut(harness *h, bytes *in)
{
    if (h->count + h->counter.shard_count > MESSAGES)
        return;
    require(zn_remote_counter_cut(&h->counter, next_byte(in), next_byte(in), NULL) == 0);
    take_messages(h);
}

/* Answers a message; an odd `how` spoils the answer's header. */
static void answer(harness *h, bytes *in)
{
    uint8_t how = next_byte(in), bits[QUERIES_MAX / 8] = {0}, out[QUERIES_MAX];
    const message *m = &h->messages[h->count == 0 ? 0 : next_byte(in) % h->count];
    zn_vote_header header = m->header;
    if (h->count == 0)
        return;
    if ((how & 1) != 0) {
        header.votes = (header.votes + next_byte(in)) % 1024;
        header.shard = (uint16_t)(header.shard + (how >> 1 & 1));
        header.probe += how >> 2 & 1;
        header.settings += how >> 3 & 1;
        header.sequence += (uint64_t)(int64_t)(how >> 4 & 3) - 1;
    }
    if (header.votes >= QUERIES_MAX)
        return;
    for (uint32_t i = 0; i < (header.votes + 7) / 8; i++)
        bits[i] = next_byte(in);
    zn_answers_write(&header, bits, out);
    /* whichever message that is an answer to, if its length is right */
    for (unsigned n = 0; n < h->count; n++) {
        const message *of = &h->messages[n];
        if (of->header.probe == header.probe && of->header.shard == header.shard &&
            of->header.sequence == header.sequence && of->header.votes == header.votes)
            for (uint32_t i = 0; i < header.votes; i++)
                if (of->steps[i] < QUERIES_MAX)
                    h->yes[of->steps[i]] |= (bits[i / 8] >> i % 8 & 1) != 0;
    }
    (void)zn_remote_counter_answer(&h->counter, (zn_span){out, zn_answers_bytes(header.votes)},
                                   NULL);
}

/* Answers with bytes of the input, behind a right checksum. */
static void answer_bytes(harness *h, bytes *in)
{
    uint8_t text[256 + ZN_VOTE_CHECKSUM_BYTES];
    size_t n = next_byte(in);
    for (size_t i = 0; i < n; i++)
        text[i] = next_byte(in);
    (void)zn_le_put(text + n, zn_vote_checksum(text, n), ZN_VOTE_CHECKSUM_BYTES);
    (void)zn_remote_counter_answer(&h->counter, (zn_span){text, n + ZN_VOTE_CHECKSUM_BYTES}, NULL);
}

static void do_steps(harness *h)
{
    const zn_step *step;
    while ((step = zn_remote_counter_next(&h->counter)) != NULL) {
        require(step->answer != ZN_ANSWER_YES || h->yes[h->counter.first]);
        require(!step->queried || step->answer != ZN_ANSWER_NONE);
        zn_remote_counter_done(&h->counter);
    }
}

/* Abandons all steps that wait, and begins a new session. */
static void renew(harness *h)
{
    uint64_t probe = h->counter.probe;
    if (h->count + h->counter.shard_count > MESSAGES)
        return;
    zn_remote_counter_stop_waiting(&h->counter, INT64_MAX);
    do_steps(h);
    require(zn_remote_counter_renew(&h->counter, probe + 1, 0, NULL) == 0);
    take_messages(h);
    require(h->messages[h->count - 1].header.probe == probe &&
            h->messages[h->count - 1].header.watermark_ns == ZN_VOTE_WATERMARK_END);
    require(zn_remote_counter_is_due(&h->counter, 0));
}

/* Gives up all messages, too: the first ones of the next number say so. */
static void abandon(harness *h, bytes *in)
{
    uint64_t probe = h->counter.probe + 1;
    unsigned first = h->count;
    int64_t now_ns = next_byte(in);
    if (h->count + h->counter.shard_count > MESSAGES)
        return;
    require(zn_remote_counter_abandon(&h->counter, probe, now_ns, NULL) == 0);
    require(zn_remote_counter_waits_since(&h->counter) == INT64_MAX);
    take_messages(h);
    require(h->count == first + h->counter.shard_count);
    for (unsigned n = first; n < h->count; n++) {
        const zn_vote_header *header = &h->messages[n].header;
        require(header->probe == probe && header->sequence == 1);
        require(header->marks_missing && header->new_session && header->watermark_ns >= now_ns);
    }
}

static void act(harness *h, bytes *in)
{
    uint8_t how;
    switch (next_byte(in) % 8) {
    case 0:
    case 1:
        ask(h, in);
        break;
    case 2:
        mark(h, in);
        break;
    case 3:
        cut(h, in);
        break;
    case 4:
        answer(h, in);
        break;
    case 5:
        answer_bytes(h, in);
        break;
    case 6:
        do_steps(h);
        break;
    default:
        how = next_byte(in);
        if (how == UINT8_MAX) {
            renew(h);
            break;
        }
        if (how == UINT8_MAX - 1) {
            abandon(h, in);
            break;
        }
        h->counter.muted = how % 8 == 0;
        zn_remote_counter_stop_waiting(&h->counter, next_byte(in));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    harness *h = calloc(1, sizeof *h);
    bytes in = {data, data + size};
    if (h == NULL)
        return 0;
    h->counter.probe = 7;
    h->counter.settings = 9;
    h->counter.rules = zn_vote_rules_pack(&(zn_vote_rules){32, 56, false, 0, false, 7});
    h->counter.interval_ns = 1;
    h->counter.stats = &h->stats;
    require(zn_remote_counter_init(&h->counter, STEPS, NULL) == 0);
    require(zn_remote_counter_begin(&h->counter, 1u << next_byte(&in) % 3, NULL) == 0);
    while (in.at != in.end)
        act(h, &in);
    zn_remote_counter_stop_waiting(&h->counter, INT64_MAX);
    do_steps(h);
    require(h->counter.first == h->counter.next &&
            zn_remote_counter_waits_since(&h->counter) == INT64_MAX);
    for (unsigned n = 0; n < h->count; n++)
        free(h->messages[n].steps);
    zn_remote_counter_fini(&h->counter);
    free(h);
    return 0;
}
