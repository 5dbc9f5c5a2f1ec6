/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter of one shard. It takes the vote messages of many probes and decides on their votes as one
 * z-table over all votes would, in the order (time, session, sequence, place in the message).
 *
 * Each message has a watermark: no vote for an earlier time will follow from its session. A vote is
 * decided when the watermarks of all present sessions have passed its time. A session is present
 * from its first message whose watermark is at most max_lag_ns behind the decided time, until it
 * ends or is forgotten. The decided time never goes back. A vote for a decided time is late: the
 * table judges it at its true time, which can only suppress.
 *
 * While a lease (kind LEASE) lasts, the votes for its attribute are released, regardless of the
 * table. The table counts these votes, too.
 *
 * All probes must have equal rules. The shard takes the rules of the first message and keeps them.
 *
 * A message is taken completely or not at all. A message that was taken before is a duplicate and
 * has no effect. A message behind a gap is rejected. So a probe can always repeat its unanswered
 * messages.
 */
#ifndef ZN_COUNT_VOTE_SHARD_H
#define ZN_COUNT_VOTE_SHARD_H

#include "count/membership.h"

typedef struct zn_vote_shard zn_vote_shard;

typedef struct zn_vote_shard_config {
    zn_ztable_config table;
    uint64_t settings;    /* digest of settings that all messages must have */
    int64_t rotate_ns;    /* length of an epoch of client addresses; 0: there is one epoch */
    int64_t max_ahead_ns; /* largest lead of a message over the other probes; 0: no limit */
    int64_t max_lag_ns;   /* largest lag of a joining session for which decisions wait; its votes
                              for decided times are late in any case */
    uint32_t max_clients; /* addresses of clients in an epoch */
    uint32_t max_pending; /* votes and messages that wait for their decision */
    uint32_t max_probes;  /* sessions that are known at once */
    uint32_t max_leases;  /* leases in force at once; further leases are refused */
    uint16_t shard;
    bool keep_releases; /* true to fill zn_vote_shard_releases */
} zn_vote_shard_config;

/* Counts since the shard was opened. Its table has counts of its own. */
typedef struct zn_vote_shard_stats {
    uint64_t messages, votes;  /* messages and votes that were taken */
    uint64_t decided;          /* decided votes */
    uint64_t late;             /* decided votes for a time that was decided before */
    uint64_t client_addresses; /* votes for addresses that were, or may have been, a client's */
    uint64_t duplicates;       /* messages that were taken before */
    uint64_t gaps;             /* rejected messages behind a missing message */
    uint64_t too_early;        /* rejected messages too far ahead of the other probes */
    uint64_t no_room;          /* rejected messages because too many votes are pending */
    uint64_t malformed;        /* damaged messages, or of another shard, settings or rules */
    uint64_t leases;           /* accepted leases */
    uint64_t leases_refused;   /* leases that reached too far, or were too many */
    uint64_t probe_gone;       /* sessions that were forgotten before their end */
} zn_vote_shard_stats;

/* Fills *config: z and window as given, and limits for a shard of usual size. */
void zn_vote_shard_config_init(zn_vote_shard_config *config, uint32_t z, int64_t window_ns);
/* Opens an empty shard. Returns 0, or a negative zn_err with *err filled and *out
 * NULL. */
int zn_vote_shard_open(zn_vote_shard **out, const zn_vote_shard_config *config, zn_error *err);
/* Frees the shard. NULL is fine. */
void zn_vote_shard_close(zn_vote_shard *s);

/*
 * Takes a vote message. now_ns: wall clock that limits the times of a message, or 0. Returns 0,
 * with *taken false for a duplicate. Otherwise it changes nothing and returns -ZN_ERR_FORMAT for a
 * message that is damaged, for another shard, of other rules, behind a gap or too far ahead, and
 * -ZN_ERR_CAPACITY if too many votes are pending: the probe may send the message again.
 */
int zn_vote_shard_put(zn_vote_shard *s, zn_span message, int64_t now_ns, bool *taken,
                      zn_error *err);
/* Takes a message as zn_vote_shard_put does, but of its votes the marks of clients alone: without
 * them, a client could be shown as a server by another probe. */
int zn_vote_shard_put_marks(zn_vote_shard *s, zn_span message, bool *taken, zn_error *err);
/* Sets the rules, as a first message would. Does nothing if the shard has rules. */
void zn_vote_shard_set_rules(zn_vote_shard *s, uint64_t rules);
/* Returns the packed rules of the probes; ZN_VOTE_RULES_NONE before the first message. */
uint64_t zn_vote_shard_rules(const zn_vote_shard *s);
/* Returns the time up to which votes can be decided; ZN_VOTE_WATERMARK_END if all present sessions
 * have ended. */
int64_t zn_vote_shard_watermark(const zn_vote_shard *s);
/* Decides on every pending vote for a time before before_ns. ZN_VOTE_WATERMARK_END decides on all.
 */
void zn_vote_shard_decide(zn_vote_shard *s, int64_t before_ns);
/* Returns the size of the next answer message, 0 if no answer is ready. */
size_t zn_vote_shard_answer_bytes(const zn_vote_shard *s);
/* Writes the next answer message and forgets it. */
void zn_vote_shard_take_answer(zn_vote_shard *s, uint8_t *out);
/* Returns the number of leases in force. */
size_t zn_vote_shard_leases(const zn_vote_shard *s);
/* Returns the n votes of kinds NAME, ADDR and DNS_ADDR that were released since
 * zn_vote_shard_clear_releases. */
const zn_counted_vote *zn_vote_shard_releases(const zn_vote_shard *s, size_t *n);
void zn_vote_shard_clear_releases(zn_vote_shard *s);

/* Stops waiting for a session until it comes back; false if the session is unknown. Its marks of
 * clients are missing up to now, even if it was gone before and a message of it was not taken. */
bool zn_vote_shard_forget_probe(zn_vote_shard *s, uint64_t session);
/* Returns true since the first call at which none of the expected probes was missing. */
bool zn_vote_shard_begin(zn_vote_shard *s, uint32_t expected);
/* Counts sessions as probes of their own until none of the expected probes is missing. */
void zn_vote_shard_expect_no_more(zn_vote_shard *s, uint32_t expected);
/* Adds a session to the refused or to the abandoned sessions. */
void zn_vote_shard_refuse(zn_vote_shard *s, uint64_t session);
void zn_vote_shard_abandon(zn_vote_shard *s, uint64_t session);
/* Returns the standing of a message with this header. last: sequence of its session's last message
 * that is about to be taken, or 0 if the shard took all earlier messages. */
zn_standing zn_vote_shard_standing(const zn_vote_shard *s, const zn_vote_header *h, uint64_t last);
const zn_membership *zn_vote_shard_membership(const zn_vote_shard *s);

const zn_vote_shard_config *zn_vote_shard_get_config(const zn_vote_shard *s);
const zn_ztable *zn_vote_shard_table(const zn_vote_shard *s);
zn_vote_shard_stats zn_vote_shard_get_stats(const zn_vote_shard *s);
/* Returns the number of votes and messages that wait for their decision. */
uint64_t zn_vote_shard_pending(const zn_vote_shard *s);
/* Returns the bytes of touched memory, at most. */
size_t zn_vote_shard_memory(const zn_vote_shard *s);

/* Appends the state of the shard to `out`. Answers and releases have to be taken before. Returns 0,
 * or a negative zn_err with *err filled. */
int zn_vote_shard_dump(const zn_vote_shard *s, zn_text *out, zn_error *err);
/* Opens a shard from a dump, and checks all that it reads. Returns 0, or with *out NULL
 * -ZN_ERR_CAPACITY, or -ZN_ERR_FORMAT for a damaged dump or a dump of another version. */
int zn_vote_shard_load(zn_vote_shard **out, zn_span dump, zn_error *err);

#endif
