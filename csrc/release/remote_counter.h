/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote counter, which counts the votes of all probes, as a probe sees it: the messages that query
 * it, and the queue of steps that wait for its answers.
 *
 * A step is a task that may need an answer: finish a vote, write a record, begin a period. Steps
 * are done in the order of the queue. A step is done when its own answer and the answers of all
 * earlier steps are there. A probe therefore decides like a standalone engine, but later. The
 * answer of an abandoned step counts as no.
 *
 * A vote for a name needs no answer if the probe has enough users of its own (count/own_votes.h).
 *
 * Queries gather until they are cut into messages, one message per shard. Each message carries a
 * watermark: only queries that the contract calls late may follow with an earlier time.
 */
#ifndef ZN_RELEASE_REMOTE_COUNTER_H
#define ZN_RELEASE_REMOTE_COUNTER_H

#include "count/own_votes.h"
#include "count/vote_message.h"
#include "release/record.h"
#include "util/stats.h"
#include "util/text.h"

typedef enum zn_step_kind {
    ZN_STEP_VOTE,          /* finish a vote */
    ZN_STEP_SERVER_BEFORE, /* long flow: server was no client in an epoch that ended? */
    /* Closed flow, before its ZN_STEP_RECORD: contents of the record. */
    ZN_STEP_SERVER,   /* server's address was no client? */
    ZN_STEP_HOST,     /* name by which the server was resolved is shared? */
    ZN_STEP_RESOLVER, /* resolver's address was no client and is shared? */
    ZN_STEP_RECORD,   /* write the record */
    ZN_STEP_PERIOD,   /* begin the period of the outputs that starts at t_ns */
    ZN_STEP_MINUTE    /* write the queues of minutes before t_ns */
} zn_step_kind;

typedef enum zn_answer {
    ZN_ANSWER_NONE, /* not answered yet, or no answer is needed */
    ZN_ANSWER_NO,
    ZN_ANSWER_YES,
    ZN_ANSWER_ABANDONED /* counts as no */
} zn_answer;

#define ZN_STEP_OF_NONE UINT64_MAX
#define ZN_STEP_OF_LEASE (UINT64_C(1) << 63) /* with the other bits of the attribute's id.lo */

typedef struct zn_step {
    int64_t t_ns;
    uint32_t flow, entry; /* as in zn_vote */
    uint8_t kind;         /* zn_step_kind */
    uint8_t vote;         /* zn_vote_kind, of a ZN_STEP_VOTE */
    uint8_t answer;       /* zn_answer */
    bool queried;         /* true if the step needs an answer */
} zn_step;

#define ZN_COUNT_SHARDS_MAX 256u

/* Message without an answer: the steps of its votes, in the order of the message. */
typedef struct zn_sent zn_sent;

/* State of one shard of the counter. */
typedef struct zn_remote_shard {
    zn_vote_writer writer; /* message that gathers */
    uint64_t *steps;       /* step of each vote of the message; ZN_STEP_OF_NONE: no step waits */
    uint64_t marks;        /* client marks in the message */
    uint64_t sequence;     /* sequence number of the message */
    uint64_t answered;     /* last answered message; 0: no message of this session */
    bool was_known;        /* true if the counter may know an earlier session */
    zn_text rows;          /* rows of the votes, if rows travel with votes */
    uint32_t *row_end;     /* end of each vote's row in `rows` */
    zn_sent *first, *last; /* unanswered messages */
    uint32_t sent_count;
} zn_remote_shard;

typedef struct zn_remote_counter {
    uint64_t probe, settings; /* session and digest of the settings in messages */
    uint64_t rules;
    int64_t interval_ns;
    zn_stats *stats;
    zn_step *steps;       /* a ring */
    uint64_t first, next; /* numbers of the oldest step and of the next step */
    uint64_t mask;        /* place in the ring = number & mask */
    uint64_t records;     /* steps of kind ZN_STEP_RECORD */
    zn_own_votes own;     /* table is NULL if the counter decides every vote */
    zn_remote_shard *shards;
    uint32_t *order;      /* scratch memory: order of the votes of a message */
    unsigned shard_count; /* 0: not known yet; every answer is no */
    int64_t watermark_ns; /* watermark of the last messages; ZN_VOTE_WATERMARK_END: end of input */
    int64_t cut_ns;       /* time of the last messages; INT64_MIN: there were no messages */
    zn_text ready;        /* messages to send, each after its length in four bytes */
    /* Appends a row as a line; NULL: no rows travel with votes. If it is set, `ready` has after
     * each message a length in four bytes and the rows of the message's votes, in their order. Each
     * row is u16 n and n bytes. */
    void (*write_row)(zn_text *out, const zn_release *row);
    const zn_release *row;    /* row of the next vote; NULL: the vote has no row */
    bool has_earlier_session; /* true if this is not the first session of the run */
    bool continues;           /* true if another session follows */
    bool muted;  /* true if queries are abandoned at once and only client marks are sent */
    bool failed; /* true if there was no memory for a message */
} zn_remote_counter;

/* Makes an empty queue for `most` steps, a power of two; probe, settings, rules, interval_ns and
 * stats are set, the rest is zero. Returns 0, or a negative zn_err with *err filled. */
int zn_remote_counter_init(zn_remote_counter *c, uint64_t most, zn_error *err);
void zn_remote_counter_fini(zn_remote_counter *c);
size_t zn_remote_counter_memory(const zn_remote_counter *c);
/* Uses `table` to decide votes for which the probe has enough users of its own, if z allows leases.
 * Nothing else may use the table. Returns 0, or a negative zn_err with *err filled. */
int zn_remote_counter_use_leases(zn_remote_counter *c, zn_ztable *table, uint32_t z,
                                 int64_t window_ns, zn_error *err);
/* Sets the number of shards, a power of two, once and before the first query. Returns 0, or a
 * negative zn_err with *err filled. */
int zn_remote_counter_begin(zn_remote_counter *c, unsigned shards, zn_error *err);

/* Returns the number of free places in the queue. */
static inline uint64_t zn_remote_counter_space(const zn_remote_counter *c)
{
    return c->mask + 1 - (c->next - c->first);
}

/* Puts a step into the queue, which has room for it. */
void zn_remote_counter_put(zn_remote_counter *c, zn_step step);
void zn_remote_counter_query(zn_remote_counter *c, zn_step step, zn_counted_kind kind, zn_id id,
                             uint64_t user);
/* Puts a vote for a name. Queries the counter if the probe has too few users of its own. */
void zn_remote_counter_vote(zn_remote_counter *c, zn_step step, zn_id id, uint64_t user);
/* Puts a step that asks whether z users share a name. Queries the counter if the probe has too few
 * users of its own. */
void zn_remote_counter_peek(zn_remote_counter *c, zn_step step, zn_id id);
/* Sends a vote once more, with another identity and without an answer. kind: ZN_COUNTED_ONLY for a
 * name, or the kind of a vote for an address. */
void zn_remote_counter_count(zn_remote_counter *c, zn_counted_kind kind,
                             const zn_observation *vote);
/* Reports a client at t_ns to the counter. */
void zn_remote_counter_mark(zn_remote_counter *c, int64_t t_ns, zn_id id);

/* Returns true if an interval has passed since the last messages. */
bool zn_remote_counter_is_due(const zn_remote_counter *c, int64_t now_ns);
/* Makes a message of the gathered queries for each shard, at now_ns of the clock. Watermarks never
 * go back. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_remote_counter_cut(zn_remote_counter *c, int64_t now_ns, int64_t watermark_ns,
                          zn_error *err);
/*
 * Ends this session, whose watermarks are later than now_ns, with the gathered queries and marks.
 * Then begins a new session at now_ns. No step may wait for an answer. Returns 0, or
 * -ZN_ERR_CAPACITY with *err filled.
 *
 * The first message of the new session reports that client marks may be missing: the counter has
 * marks for wrong times, and has refused or not read other marks.
 */
int zn_remote_counter_renew(zn_remote_counter *c, uint64_t probe, int64_t now_ns, zn_error *err);
/*
 * Abandons all messages without an answer and all steps that wait, because the counter has been
 * away for so long that too many client marks are queued. Leases end. Then begins a new session,
 * unless the last messages of the input were made. The first message of the new session is ready at
 * once. It reports that client marks may be missing, and its watermark now_ns is not before any of
 * them. The counter treats the previous session as a lost probe. Returns 0, or -ZN_ERR_CAPACITY
 * with *err filled.
 */
int zn_remote_counter_abandon(zn_remote_counter *c, uint64_t probe, int64_t now_ns, zn_error *err);
/* Takes an answer message. Returns 0, or -ZN_ERR_FORMAT with *err filled if it is no answer to a
 * message of this session. Drops answers to abandoned steps. */
int zn_remote_counter_answer(zn_remote_counter *c, zn_span message, zn_error *err);

/* Returns the oldest step, or NULL if there is no step or its answer is missing. */
const zn_step *zn_remote_counter_next(const zn_remote_counter *c);
/* Removes the oldest step, which is done. */
void zn_remote_counter_done(zn_remote_counter *c);
/* Abandons the steps from before t_ns whose answers are missing. */
void zn_remote_counter_stop_waiting(zn_remote_counter *c, int64_t t_ns);
/* Returns the time of the oldest step that waits for an answer, or INT64_MAX if no step waits. */
int64_t zn_remote_counter_waits_since(const zn_remote_counter *c);

#endif
