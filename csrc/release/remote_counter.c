/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/remote_counter.h"

#include "util/arena.h"

#define MESSAGE_VOTES (UINT32_C(1) << 16) /* maximum per message; then a new message begins */
#define LENGTH_BYTES 4
#define ROW_LENGTH_BYTES 2
#define LEASES_MOST (UINT32_C(1) << 18)
#define MUTED_INTERVALS 10 /* intervals between two messages while muted */
#define SENT_MOST 4096u    /* unanswered messages that are kept per shard: an hour of messages */

struct zn_sent {
    zn_sent *after;
    uint64_t sequence;
    uint64_t marks; /* client marks, with the marks of earlier messages that are not kept */
    uint32_t n;
    uint64_t step[];
};

int zn_remote_counter_init(zn_remote_counter *c, uint64_t most, zn_error *err)
{
    c->mask = most - 1;
    c->watermark_ns = 0;
    c->cut_ns = INT64_MIN;
    c->steps = zn_block_alloc(most * sizeof *c->steps);
    c->order = zn_block_alloc(MESSAGE_VOTES * sizeof *c->order);
    return c->steps != NULL && c->order != NULL
               ? 0
               : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for what waits for answers");
}

/* Removes the oldest unanswered message of a shard. */
static void forget_first(zn_remote_shard *shard)
{
    zn_sent *sent = shard->first;
    shard->first = sent->after;
    if (shard->first == NULL)
        shard->last = NULL;
    shard->sent_count--;
    zn_heap_free(sent);
}

void zn_remote_counter_fini(zn_remote_counter *c)
{
    for (unsigned i = 0; i < c->shard_count; i++) {
        zn_remote_shard *shard = &c->shards[i];
        while (shard->first != NULL)
            forget_first(shard);
        zn_vote_writer_fini(&shard->writer);
        zn_block_free(shard->steps, MESSAGE_VOTES * sizeof *shard->steps);
        zn_block_free(shard->row_end, MESSAGE_VOTES * sizeof *shard->row_end);
        zn_text_fini(&shard->rows);
    }
    zn_own_votes_fini(&c->own);
    zn_heap_free(c->shards);
    zn_block_free(c->order, MESSAGE_VOTES * sizeof *c->order);
    zn_text_fini(&c->ready);
    if (c->steps != NULL)
        zn_block_free(c->steps, (c->mask + 1) * sizeof *c->steps);
    memset(c, 0, sizeof *c);
}

size_t zn_remote_counter_memory(const zn_remote_counter *c)
{
    uint64_t touched = c->next <= c->mask ? c->next : c->mask + 1;
    return c->steps == NULL
               ? 0
               : touched * sizeof *c->steps + c->ready.cap + zn_own_votes_memory(&c->own);
}

int zn_remote_counter_begin(zn_remote_counter *c, unsigned shards, zn_error *err)
{
    int rc = 0;
    if (shards == 0 || shards > ZN_COUNT_SHARDS_MAX || (shards & (shards - 1)) != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "a counter has 1 to %u shards, a power of two, not %u", ZN_COUNT_SHARDS_MAX,
                       shards);
    if (c->shard_count != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the number of shards is set already");
    c->shards = zn_heap_alloc(shards * sizeof *c->shards);
    if (c->shards == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for votes");
    c->shard_count = shards;
    for (unsigned i = 0; i < shards && rc == 0; i++) {
        zn_remote_shard *shard = &c->shards[i];
        shard->sequence = 1;
        shard->steps = zn_block_alloc(MESSAGE_VOTES * sizeof *shard->steps);
        shard->row_end = zn_block_alloc(MESSAGE_VOTES * sizeof *shard->row_end);
        rc = shard->steps == NULL || shard->row_end == NULL
                 ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for votes")
                 : zn_vote_writer_init(&shard->writer, MESSAGE_VOTES, err);
    }
    return rc;
}

/* ---- messages ---- */

/* Keeps the step of each vote of a message. */
static bool note_sent(zn_remote_counter *c, zn_remote_shard *shard, uint32_t n)
{
    zn_sent *sent = zn_heap_alloc(sizeof *sent + n * sizeof sent->step[0]);
    if (sent == NULL)
        return false;
    sent->sequence = shard->sequence;
    sent->marks = shard->marks;
    sent->n = n;
    for (uint32_t i = 0; i < n; i++)
        sent->step[i] = shard->steps[c->order[i]];
    if (shard->last == NULL)
        shard->first = sent;
    else
        shard->last->after = sent;
    shard->last = sent;
    shard->sent_count++;
    shard->marks = 0;
    return true;
}

/* Bounds the number of unanswered messages that are kept. */
static void bound_sent(zn_remote_shard *shard)
{
    uint64_t marks;
    if (shard->sent_count < SENT_MOST)
        return;
    marks = shard->first->marks;
    forget_first(shard);
    shard->first->marks += marks;
}

/* Appends the rows of the last message, in the order of its votes. */
static void put_rows(zn_remote_counter *c, zn_remote_shard *shard, uint32_t votes)
{
    size_t most = LENGTH_BYTES + votes * ROW_LENGTH_BYTES + shard->rows.n;
    uint8_t *begin = (uint8_t *)zn_text_reserve(&c->ready, most), *at;
    if (begin == NULL || shard->rows.failed) {
        c->failed = true;
        return;
    }
    at = begin + LENGTH_BYTES;
    for (uint32_t i = 0; i < votes; i++) {
        uint32_t vote = c->order[i];
        size_t from = vote == 0 ? 0 : shard->row_end[vote - 1], n = shard->row_end[vote] - from;
        if (n != 0)
            n--; /* the end of the line */
        at = zn_le_put(at, n, ROW_LENGTH_BYTES);
        if (n != 0)
            memcpy(at, shard->rows.bytes + from, n);
        at += n;
    }
    (void)zn_le_put(begin, (uint64_t)(at - begin) - LENGTH_BYTES, LENGTH_BYTES);
    c->ready.n += (size_t)(at - begin);
    shard->rows.n = 0;
}

/* Makes the message of a shard. If there is no memory, the message is lost and c->failed is set. */
static void cut_shard(zn_remote_counter *c, unsigned number)
{
    zn_remote_shard *shard = &c->shards[number];
    zn_vote_header header = {.shard = (uint16_t)number,
                             .probe = c->probe,
                             .sequence = shard->sequence,
                             .settings = c->settings,
                             .rules = c->rules,
                             .watermark_ns = c->watermark_ns};
    uint32_t votes = shard->writer.votes;
    bool ends = c->watermark_ns == ZN_VOTE_WATERMARK_END;
    size_t most = zn_vote_writer_bytes(&shard->writer), n;
    uint8_t *at = (uint8_t *)zn_text_reserve(&c->ready, LENGTH_BYTES + most);
    bound_sent(shard);
    if (at == NULL) {
        c->failed = true;
        return;
    }
    header.marks_missing = c->has_earlier_session && shard->sequence == 1;
    header.new_session = ends ? c->continues : header.marks_missing && shard->was_known;
    n = zn_vote_writer_finish(&shard->writer, &header, at + LENGTH_BYTES, c->order);
    (void)zn_le_put(at, n, LENGTH_BYTES);
    c->ready.n += LENGTH_BYTES + n;
    c->failed |= !note_sent(c, shard, votes);
    if (c->write_row != NULL)
        put_rows(c, shard, votes);
    shard->sequence++;
}

bool zn_remote_counter_is_due(const zn_remote_counter *c, int64_t now_ns)
{
    int64_t interval_ns = c->muted ? MUTED_INTERVALS * c->interval_ns : c->interval_ns;
    if (c->shard_count == 0 || c->watermark_ns == ZN_VOTE_WATERMARK_END)
        return false;
    return c->cut_ns == INT64_MIN || now_ns < c->cut_ns || now_ns - c->cut_ns >= interval_ns;
}

int zn_remote_counter_cut(zn_remote_counter *c, int64_t now_ns, int64_t watermark_ns, zn_error *err)
{
    c->cut_ns = now_ns;
    if (watermark_ns > c->watermark_ns)
        c->watermark_ns = watermark_ns;
    zn_own_votes_advance(&c->own, c->watermark_ns);
    for (unsigned i = 0; i < c->shard_count; i++)
        cut_shard(c, i);
    return !c->failed ? 0 : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a message of votes");
}

/* Begins a new session, in which answers to earlier messages mean nothing. */
static void begin_session(zn_remote_counter *c, uint64_t probe)
{
    for (unsigned i = 0; i < c->shard_count; i++) {
        zn_remote_shard *shard = &c->shards[i];
        while (shard->first != NULL)
            forget_first(shard);
        shard->sequence = 1;
        shard->was_known |= shard->answered != 0;
        shard->answered = 0;
    }
    c->probe = probe;
    c->has_earlier_session = true;
}

int zn_remote_counter_renew(zn_remote_counter *c, uint64_t probe, int64_t now_ns, zn_error *err)
{
    int rc;
    c->continues = true;
    rc = zn_remote_counter_cut(c, now_ns, ZN_VOTE_WATERMARK_END, err);
    c->continues = false;
    begin_session(c, probe);
    c->watermark_ns = 0;
    c->cut_ns = INT64_MIN;
    return rc;
}

/* Returns the number of client marks that a shard may not have counted. A shard counts messages in
 * order. */
static uint64_t marks_unanswered(const zn_remote_shard *shard)
{
    uint64_t marks = 0;
    for (const zn_sent *sent = shard->first; sent != NULL; sent = sent->after)
        if (sent->sequence > shard->answered)
            marks += sent->marks;
    return marks;
}

int zn_remote_counter_abandon(zn_remote_counter *c, uint64_t probe, int64_t now_ns, zn_error *err)
{
    zn_remote_counter_stop_waiting(c, INT64_MAX);
    c->ready.n = 0;
    for (unsigned i = 0; i < c->shard_count; i++) {
        c->stats->n[ZN_STAT_MARKS_DROPPED] += marks_unanswered(&c->shards[i]);
        c->shards[i].was_known = true; /* the shard may have counted messages without an answer */
    }
    if (c->watermark_ns == ZN_VOTE_WATERMARK_END)
        return 0;
    begin_session(c, probe);
    if (now_ns > c->watermark_ns)
        c->watermark_ns = now_ns; /* watermark of the first message, even if leases fill it */
    zn_own_votes_advance(&c->own, ZN_VOTE_WATERMARK_END);
    return zn_remote_counter_cut(c, now_ns, c->watermark_ns, err);
}

/* Puts a vote into the message of its shard. */
static void add_vote(zn_remote_counter *c, const zn_counted_vote *vote, uint64_t step)
{
    unsigned number = (unsigned)((vote->id.hi >> 32) * c->shard_count >> 32);
    zn_remote_shard *shard = &c->shards[number];
    if (shard->writer.votes == MESSAGE_VOTES)
        cut_shard(c, number);
    if (c->failed) /* the message may still be full */
        return;
    shard->steps[shard->writer.votes] = step;
    if (c->write_row != NULL) {
        if (c->row != NULL)
            c->write_row(&shard->rows, c->row);
        shard->row_end[shard->writer.votes] = (uint32_t)shard->rows.n;
    }
    c->failed |= !zn_vote_writer_add(&shard->writer, vote);
    shard->marks += vote->kind == ZN_COUNTED_CLIENT;
    c->stats->n[ZN_STAT_QUESTIONS]++;
}

/* Sends a vote that needs no answer. */
static void send_without_answer(void *to, const zn_counted_vote *vote)
{
    zn_remote_counter *c = to;
    uint64_t step =
        vote->kind == ZN_COUNTED_LEASE ? vote->id.lo | ZN_STEP_OF_LEASE : ZN_STEP_OF_NONE;
    if (c->shard_count != 0)
        add_vote(c, vote, step);
}

int zn_remote_counter_use_leases(zn_remote_counter *c, zn_ztable *table, uint32_t z,
                                 int64_t window_ns, zn_error *err)
{
    if (z > ZN_LEASE_Z_MAX)
        return 0;
    c->own = (zn_own_votes){
        .table = table, .z = z, .window_ns = window_ns, .tell = send_without_answer, .to = c};
    return zn_own_votes_init(&c->own, LEASES_MOST, err);
}

/* Sets the answers to the votes of a message. Missing bits count as no. */
static void take_bits(zn_remote_counter *c, const zn_sent *sent, zn_span bits)
{
    for (uint32_t i = 0; i < sent->n; i++) {
        uint64_t number = sent->step[i];
        zn_step *step = &c->steps[number & c->mask];
        bool yes = i / 8 < bits.n && (bits.p[i / 8] >> i % 8 & 1) != 0;
        if (number == ZN_STEP_OF_NONE)
            continue;
        if (number >= ZN_STEP_OF_LEASE) {
            if (!yes)
                zn_own_votes_refused(&c->own, number);
            continue;
        }
        if (number >= c->first && step->answer == ZN_ANSWER_NONE)
            step->answer = yes ? ZN_ANSWER_YES : ZN_ANSWER_NO;
        else
            c->stats->n[ZN_STAT_ANSWERS_LATE]++;
    }
}

/* Removes and returns the message with a sequence number, or NULL if it is no longer kept. */
static zn_sent *take_sent(zn_remote_shard *shard, uint64_t sequence)
{
    zn_sent *before = NULL, *sent = shard->first;
    for (; sent != NULL && sent->sequence != sequence; sent = sent->after)
        before = sent;
    if (sent == NULL)
        return NULL;
    if (before == NULL)
        shard->first = sent->after;
    else
        before->after = sent->after;
    if (shard->last == sent)
        shard->last = before;
    shard->sent_count--;
    return sent;
}

int zn_remote_counter_answer(zn_remote_counter *c, zn_span message, zn_error *err)
{
    zn_remote_shard *shard;
    zn_vote_header header;
    zn_span bits;
    zn_sent *sent;
    int rc = zn_answers_read(&header, &bits, message, err);
    if (rc != 0)
        return rc;
    if (header.probe != c->probe || header.settings != c->settings ||
        header.shard >= c->shard_count || header.sequence == 0 ||
        header.sequence >= c->shards[header.shard].sequence)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "the counter answers what this probe did not ask");
    shard = &c->shards[header.shard];
    if (header.sequence > shard->answered)
        shard->answered = header.sequence;
    sent = take_sent(shard, header.sequence);
    if (sent == NULL) {
        c->stats->n[ZN_STAT_ANSWERS_LATE] += header.votes;
        return 0;
    }
    if (header.votes == sent->n)
        take_bits(c, sent, bits);
    else if (header.votes < sent->n) /* the shard did not count them */
        take_bits(c, sent, (zn_span){NULL, 0});
    else
        rc = zn_fail(err, ZN_ERR_FORMAT, 0, "the counter answers what this probe did not ask");
    zn_heap_free(sent);
    return rc;
}

/* ---- steps ---- */

static zn_step *step_at(const zn_remote_counter *c, uint64_t number)
{
    return &c->steps[number & c->mask];
}

void zn_remote_counter_put(zn_remote_counter *c, zn_step step)
{
    ZN_ASSERT(zn_remote_counter_space(c) != 0);
    c->records += step.kind == ZN_STEP_RECORD;
    *step_at(c, c->next++) = step;
}

void zn_remote_counter_query(zn_remote_counter *c, zn_step step, zn_counted_kind kind, zn_id id,
                             uint64_t user)
{
    zn_counted_vote vote = {.t_ns = step.t_ns, .user = user, .id = id, .kind = (uint8_t)kind};
    step.queried = c->shard_count != 0;
    if (step.queried && !c->muted) {
        add_vote(c, &vote, c->next);
    } else {
        step.answer = ZN_ANSWER_ABANDONED;
        c->stats->n[ZN_STAT_QUESTIONS]++;
        c->stats->n[ZN_STAT_QUESTIONS_UNANSWERED]++;
    }
    zn_remote_counter_put(c, step);
}

/* Puts a step whose answer is yes. */
static void put_yes(zn_remote_counter *c, zn_step step)
{
    step.answer = ZN_ANSWER_YES;
    zn_remote_counter_put(c, step);
}

void zn_remote_counter_vote(zn_remote_counter *c, zn_step step, zn_id id, uint64_t user)
{
    zn_observation vote = {step.t_ns, user, id};
    if (c->own.table != NULL && c->shard_count != 0 && zn_own_votes_observe(&c->own, &vote))
        put_yes(c, step);
    else
        zn_remote_counter_query(c, step, ZN_COUNTED_NAME, id, user);
}

void zn_remote_counter_peek(zn_remote_counter *c, zn_step step, zn_id id)
{
    if (c->own.table != NULL && zn_own_votes_share(&c->own, id, step.t_ns))
        put_yes(c, step);
    else
        zn_remote_counter_query(c, step, ZN_COUNTED_PEEK, id, 0);
}

void zn_remote_counter_count(zn_remote_counter *c, zn_counted_kind kind, const zn_observation *vote)
{
    zn_counted_vote counted = {
        .t_ns = vote->t_ns, .user = vote->user, .id = vote->attribute, .kind = (uint8_t)kind};
    if (c->shard_count == 0)
        return;
    /* leases count votes of all identities, also if no step waits for them */
    if (kind == ZN_COUNTED_ONLY && c->own.table != NULL && zn_own_votes_observe(&c->own, vote))
        return;
    if (!c->muted)
        add_vote(c, &counted, ZN_STEP_OF_NONE);
}

void zn_remote_counter_mark(zn_remote_counter *c, int64_t t_ns, zn_id id)
{
    zn_counted_vote mark = {.t_ns = t_ns, .id = id, .kind = ZN_COUNTED_CLIENT};
    if (c->shard_count != 0)
        add_vote(c, &mark, ZN_STEP_OF_NONE);
}

/* Returns true if a step waits for its answer. */
static bool waits(const zn_step *step)
{
    return step->queried && step->answer == ZN_ANSWER_NONE;
}

const zn_step *zn_remote_counter_next(const zn_remote_counter *c)
{
    const zn_step *step = step_at(c, c->first);
    return c->first == c->next || waits(step) ? NULL : step;
}

void zn_remote_counter_done(zn_remote_counter *c)
{
    c->records -= step_at(c, c->first)->kind == ZN_STEP_RECORD;
    c->first++;
}

void zn_remote_counter_stop_waiting(zn_remote_counter *c, int64_t t_ns)
{
    for (uint64_t n = c->first; n != c->next && step_at(c, n)->t_ns < t_ns; n++) {
        zn_step *step = step_at(c, n);
        if (!waits(step))
            continue;
        step->answer = ZN_ANSWER_ABANDONED;
        c->stats->n[ZN_STAT_QUESTIONS_UNANSWERED]++;
    }
}

int64_t zn_remote_counter_waits_since(const zn_remote_counter *c)
{
    const zn_step *step = step_at(c, c->first);
    return c->first != c->next && waits(step) ? step->t_ns : INT64_MAX;
}
