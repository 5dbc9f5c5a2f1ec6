/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a probe asks the counter of all probes, and what waits for its answers.
 *
 * A step is a thing to do that may need an answer: a vote to finish, a record to write, a period to
 * end. Steps are done strictly in the order in which they were put here, each when its own answer
 * and all before it are there, so that a probe does what it would do by itself, only later. A step
 * that is given up is done as if its answer were no.
 *
 * Votes for names that the probe's own users suffice for need no answer (count/own_votes.h).
 *
 * Questions gather until they are cut into messages, one a shard. A message carries a watermark: no
 * question older than it follows, but for those that the contract calls late.
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
    ZN_STEP_SERVER_BEFORE, /* of a long flow: was its server a client in an epoch that ended? */
    /* Of a flow that has closed, before its ZN_STEP_RECORD: what its record may show. */
    ZN_STEP_SERVER,   /* its server's address: was it no client? */
    ZN_STEP_HOST,     /* the name by which it was resolved: is it shared? */
    ZN_STEP_RESOLVER, /* the resolver's address: was it no client, and is it shared? */
    ZN_STEP_RECORD,   /* write its record */
    ZN_STEP_PERIOD,   /* begin the period of the outputs that starts at t_ns */
    ZN_STEP_MINUTE    /* write what waited for the end of minutes before t_ns */
} zn_step_kind;

typedef enum zn_answer {
    ZN_ANSWER_NONE, /* not yet, or none is needed */
    ZN_ANSWER_NO,
    ZN_ANSWER_YES,
    ZN_ANSWER_ABANDONED /* counts as no */
} zn_answer;

#define ZN_STEP_OF_NONE UINT64_MAX
#define ZN_STEP_OF_LEASE (UINT64_C(1) << 63) /* beside the other bits of its attribute's id.lo */

typedef struct zn_step {
    int64_t t_ns;
    uint32_t flow, entry; /* as in zn_vote */
    uint8_t kind;         /* zn_step_kind */
    uint8_t vote;         /* zn_vote_kind, of a ZN_STEP_VOTE */
    uint8_t answer;       /* zn_answer */
    bool asked;           /* it needs an answer */
} zn_step;

#define ZN_COUNT_SHARDS_MAX 256u

/* A message whose answer is due: the steps of its votes, in the order of the message. */
typedef struct zn_sent zn_sent;

/* What goes to one shard of the counter. */
typedef struct zn_remote_shard {
    zn_vote_writer writer; /* of the message that gathers */
    uint64_t *steps;       /* the step of each of its votes; ZN_STEP_OF_NONE: nobody waits */
    uint64_t marks;        /* of clients, among them */
    uint64_t sequence;     /* of that message */
    uint64_t answered;     /* the last one with an answer; 0: none of this number of the probe */
    bool was_known;        /* the counter knew a number before this one, or may have */
    zn_text rows;          /* of its votes, where rows go with them */
    uint32_t *row_end;     /* of each vote: where its row ends there */
    zn_sent *first, *last; /* its unanswered messages */
    uint32_t sent_count;
} zn_remote_shard;

typedef struct zn_remote_counter {
    uint64_t probe, settings; /* as messages have them */
    uint64_t rules;
    int64_t interval_ns;
    zn_stats *stats;
    zn_step *steps;       /* a ring */
    uint64_t first, next; /* numbers of steps: the oldest one, and the one to come */
    uint64_t mask;        /* of a number: its place in the ring */
    uint64_t records;     /* ZN_STEP_RECORD among the steps */
    zn_own_votes own;     /* its table is NULL: the counter decides every vote */
    zn_remote_shard *shards;
    uint32_t *order;      /* of the votes of a message: scratch memory */
    unsigned shard_count; /* 0: not known yet, and all answers are no */
    int64_t watermark_ns; /* of the last messages; ZN_VOTE_WATERMARK_END: they were the last */
    int64_t cut_ns;       /* the clock at the time; INT64_MIN: there were none */
    zn_text ready;        /* messages to be sent, each after its length in four bytes */
    /* Appends a row as a line; NULL: no rows go with votes. With it, `ready` has after each message
     * as many bytes of rows, after their length: of each of its votes, in its order, u16 n and n
     * bytes. */
    void (*write_row)(zn_text *out, const zn_release *row);
    const zn_release *row; /* of the vote that is asked about next; NULL: it has none */
    bool renewed;          /* this is not the probe's first number */
    bool goes_on;          /* another one follows */
    bool muted;  /* the answers to votes and questions are given up, and nothing is sent */
    bool failed; /* no memory for a message */
} zn_remote_counter;

/* Makes an empty queue for `most` steps, a power of two; probe, settings, rules, interval_ns and
 * stats are set, the rest is zero. Returns 0, or a negative zn_err with *err filled. */
int zn_remote_counter_init(zn_remote_counter *c, uint64_t most, zn_error *err);
void zn_remote_counter_fini(zn_remote_counter *c);
size_t zn_remote_counter_memory(const zn_remote_counter *c);
/* Has votes that own users suffice for be decided by `table`, which nobody else uses, if z allows
 * leases. Returns 0, or a negative zn_err with *err filled. */
int zn_remote_counter_use_leases(zn_remote_counter *c, zn_ztable *table, uint32_t z,
                                 int64_t window_ns, zn_error *err);
/* Sets the number of shards, a power of two, once and before anything is asked. Returns 0, or a
 * negative zn_err with *err filled. */
int zn_remote_counter_begin(zn_remote_counter *c, unsigned shards, zn_error *err);

/* Returns how many steps find room. */
static inline uint64_t zn_remote_counter_space(const zn_remote_counter *c)
{
    return c->mask + 1 - (c->next - c->first);
}

/* Put a step, for which there is room, to be done in its turn; with a question, when that is
 * answered. */
void zn_remote_counter_put(zn_remote_counter *c, zn_step step);
void zn_remote_counter_query(zn_remote_counter *c, zn_step step, zn_counted_kind kind, zn_id id,
                             uint64_t user);
/* Puts a vote for a name, whose question is asked if the probe's own users do not suffice. */
void zn_remote_counter_vote(zn_remote_counter *c, zn_step step, zn_id id, uint64_t user);
/* Puts the question how many share a name, in the same way. */
void zn_remote_counter_peek(zn_remote_counter *c, zn_step step, zn_id id);
/* Has the counter count a vote once more, under another identity and without an answer. kind: ONLY,
 * of a name, or that of a vote for an address. */
void zn_remote_counter_count(zn_remote_counter *c, zn_counted_kind kind,
                             const zn_observation *vote);
/* Tells the counter of a client at t_ns. */
void zn_remote_counter_mark(zn_remote_counter *c, int64_t t_ns, zn_id id);

/* Returns whether an interval has passed since the last messages. */
bool zn_remote_counter_is_due(const zn_remote_counter *c, int64_t now_ns);
/* Makes a message for each shard of what is to be asked, at now_ns of the clock. Watermarks never
 * go back. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_remote_counter_cut(zn_remote_counter *c, int64_t now_ns, int64_t watermark_ns,
                          zn_error *err);
/*
 * Ends this probe's number, whose watermarks have gone beyond now_ns, with what was to be asked and
 * told, and begins another one, under which time is where it is. No step may wait for an answer.
 * Returns 0, or -ZN_ERR_CAPACITY with *err filled.
 *
 * The first message of the next one says that marks of clients may be missing: the counter has some
 * for the times that were wrong, and has refused or not read others.
 */
int zn_remote_counter_renew(zn_remote_counter *c, uint64_t probe, int64_t now_ns, zn_error *err);
/*
 * Gives up all messages that have no answer, as a counter that is away for long would be told of
 * too many clients, and what waits for the answers. Then begins another number, whose first message
 * is ready at once and says that marks may be missing: its watermark, that of now_ns, is not before
 * any of them. To the counter the number before is a probe that is gone. Leases end; after the last
 * messages of all, no number follows. Returns 0, or -ZN_ERR_CAPACITY with *err filled.
 */
int zn_remote_counter_abandon(zn_remote_counter *c, uint64_t probe, int64_t now_ns, zn_error *err);
/* Takes an answer message. Returns 0, or -ZN_ERR_FORMAT with *err filled when it is none, or not to
 * a message of this probe. An answer to what was given up comes too late, and is dropped. */
int zn_remote_counter_answer(zn_remote_counter *c, zn_span message, zn_error *err);

/* Returns the next step, if it can be done; NULL otherwise. */
const zn_step *zn_remote_counter_next(const zn_remote_counter *c);
/* Removes that step: it is done. */
void zn_remote_counter_done(zn_remote_counter *c);
/* Gives up the answers to all steps from before t_ns that are still missing. */
void zn_remote_counter_stop_waiting(zn_remote_counter *c, int64_t t_ns);
/* Returns the time of the oldest step that waits for an answer; INT64_MAX: none does. */
int64_t zn_remote_counter_waits_since(const zn_remote_counter *c);

#endif
