/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/local_counter.h"

#include "util/arena.h"
#include "util/text.h"

#define MESSAGES_MOST 16u /* messages of a probe that a step takes */
#define SESSIONS 2u       /* present and previous session of a probe */

typedef struct local_probe {
    zn_vote_ring votes, answers;
    uint64_t session[SESSIONS]; /* the present session first; 0: none */
    int64_t watermark_ns;       /* of the last message; 0: there was no message */
} local_probe;

/* Result of taking messages in one step. */
typedef struct step_result {
    uint32_t taken;     /* messages */
    bool refused;       /* true if the shard had no space for a message */
    bool refused_last;  /* true if it was a message of the probe that is furthest behind */
    bool refused_first; /* true if it was the first message of a probe */
} step_result;

struct zn_local_counter {
    zn_vote_shard *shard;
    zn_text message; /* scratch memory for a message */
    zn_text answer;  /* answer that waits for space in its ring; may be empty */
    size_t n;
    local_probe probe[];
};

int zn_local_counter_open(zn_local_counter **out, zn_vote_shard *shard, const zn_vote_ring *votes,
                          const zn_vote_ring *answers, size_t n, zn_error *err)
{
    zn_local_counter *c = zn_heap_alloc(sizeof *c + n * sizeof c->probe[0]);
    *out = c;
    if (c == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the counter of the shards");
    c->shard = shard;
    c->n = n;
    for (size_t i = 0; i < n; i++)
        c->probe[i] = (local_probe){.votes = votes[i], .answers = answers[i]};
    return 0;
}

void zn_local_counter_close(zn_local_counter *c)
{
    if (c == NULL)
        return;
    zn_text_fini(&c->message);
    zn_text_fini(&c->answer);
    zn_heap_free(c);
}

bool zn_local_counter_has_sent(const zn_local_counter *c, size_t i)
{
    return c->probe[i].session[0] != 0;
}

/* ---- messages ---- */

static void note_message(local_probe *p, const zn_vote_header *header)
{
    if (header->probe != p->session[0] && header->probe != p->session[1]) {
        p->session[1] = p->session[0];
        p->session[0] = header->probe;
    }
    if (header->probe == p->session[0])
        p->watermark_ns = header->watermark_ns;
}

/* Returns true if no other probe that has sent a message is further behind. */
static bool is_last(const zn_local_counter *c, const local_probe *p)
{
    for (size_t i = 0; i < c->n; i++)
        if (zn_local_counter_has_sent(c, i) && c->probe[i].watermark_ns < p->watermark_ns)
            return false;
    return true;
}

/* Copies the next message to c->message. Returns its length, 0 without a message, or a negative
 * zn_err with *err filled. */
static int64_t read_message(zn_local_counter *c, const zn_vote_ring *ring, zn_error *err)
{
    size_t n;
    char *to;
    int rc = zn_vote_ring_next(ring, &n, err);
    if (rc != 0 || n == 0)
        return rc;
    c->message.n = 0;
    to = zn_text_reserve(&c->message, n);
    if (to == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a message of votes");
    zn_vote_ring_read(ring, (uint8_t *)to, n);
    return (int64_t)n;
}

/* Takes some messages of a probe. A message that has no space in the shard stays in its ring until
 * votes are decided. */
static int take_messages(zn_local_counter *c, local_probe *p, step_result *result, zn_error *err)
{
    for (unsigned i = 0; i < MESSAGES_MOST; i++) {
        int64_t n = read_message(c, &p->votes, err);
        zn_span message = {(const uint8_t *)c->message.bytes, (size_t)n};
        zn_vote_header header;
        bool taken;
        int rc;
        if (n <= 0)
            return (int)n;
        rc = zn_vote_header_read(&header, message, err);
        if (rc == 0)
            rc = zn_vote_shard_put(c->shard, message, 0, &taken, err);
        if (rc == -ZN_ERR_CAPACITY) {
            result->refused = true;
            result->refused_last |= p->session[0] != 0 && is_last(c, p);
            result->refused_first |= p->session[0] == 0;
            return 0;
        }
        if (rc != 0)
            return rc;
        note_message(p, &header);
        zn_vote_ring_remove(&p->votes, (size_t)n);
        result->taken++;
    }
    return 0;
}

/* ---- answers ---- */

/* Returns the place of the probe with a session; c->n if the session is forgotten. */
static size_t place_of(const zn_local_counter *c, uint64_t session)
{
    size_t i = 0;
    while (i < c->n && c->probe[i].session[0] != session && c->probe[i].session[1] != session)
        i++;
    return i;
}

/* Puts c->answer into its ring; false if the ring has no space now. */
static bool put_answer(zn_local_counter *c, uint64_t *answered, zn_error *err)
{
    zn_span message = {(const uint8_t *)c->answer.bytes, c->answer.n}, bits;
    zn_vote_header header;
    size_t to =
        zn_answers_read(&header, &bits, message, err) == 0 ? place_of(c, header.probe) : c->n;
    if (to != c->n) {
        if (!zn_vote_ring_put(&c->probe[to].answers, message))
            return false;
        *answered |= UINT64_C(1) << to % 64;
    }
    c->answer.n = 0;
    return true;
}

/* Puts the answers that are ready into the rings. Stops at an answer whose ring is full, because
 * its probe reads it soon. */
static int put_answers(zn_local_counter *c, uint64_t *answered, zn_error *err)
{
    for (;;) {
        size_t n;
        char *to;
        if (c->answer.n != 0 && !put_answer(c, answered, err))
            return 0;
        n = zn_vote_shard_answer_bytes(c->shard);
        if (n == 0)
            return 0;
        to = zn_text_reserve(&c->answer, n);
        if (to == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for answers to votes");
        zn_vote_shard_take_answer(c->shard, (uint8_t *)to);
        c->answer.n = n;
    }
}

int zn_local_counter_step(zn_local_counter *c, uint32_t expected, bool *more, uint64_t *answered,
                          zn_error *err)
{
    uint64_t pending = zn_vote_shard_pending(c->shard);
    step_result result = {0};
    bool moves, begun;
    int rc = 0;
    *more = false;
    *answered = 0;
    for (size_t i = 0; i < c->n && rc == 0; i++)
        rc = take_messages(c, &c->probe[i], &result, err);
    if (rc != 0)
        return rc;
    begun = zn_vote_shard_begin(c->shard, expected);
    if (begun)
        zn_vote_shard_decide(c->shard, zn_vote_shard_watermark(c->shard));
    moves = result.taken != 0 || zn_vote_shard_pending(c->shard) != pending;
    if (!moves && (begun ? result.refused_last : result.refused_first))
        return -ZN_ERR_CAPACITY; /* no other probe can make space */
    rc = put_answers(c, answered, err);
    *more = result.taken != 0 || (result.refused && moves);
    return rc;
}
