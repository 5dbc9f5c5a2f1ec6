/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter of one shard: it takes the vote messages of many probes and decides on their votes as
 * one z-table over all of them would, in the order (time, probe, sequence, place in the message).
 *
 * Each message has a watermark: no vote for an earlier time will follow from its probe. A vote is
 * decided when the watermarks of all probes that are present have passed its time. A probe is
 * present from its first message with a watermark that is not behind what is decided already, or so
 * little that the others can wait for it (max_lag_ns), until it ends or is forgotten. The time
 * up to which votes are decided never goes back. A vote for a time that is decided already is late:
 * the table judges it at its true time, which can only suppress.
 *
 * A lease (kind LEASE) has the votes for its attribute released while it lasts, whatever the table
 * says; they count all the same.
 *
 * All probes must have the same rules of who a user is and which votes count: the shard takes those
 * of the first message as its own, and keeps them as long as it knows anything.
 *
 * A message is taken whole or not at all. One that was taken before is a duplicate and has no
 * effect; one that would leave a gap is rejected, so a probe can always send again what is not
 * answered.
 */
#ifndef ZN_COUNT_VOTE_SHARD_H
#define ZN_COUNT_VOTE_SHARD_H

#include "count/vote_message.h"
#include "util/text.h"

typedef struct zn_vote_shard zn_vote_shard;

typedef struct zn_vote_shard_config {
    zn_ztable_config table;
    uint64_t settings;    /* which the probes' messages must have */
    int64_t rotate_ns;    /* length of an epoch of client addresses; 0: there is one */
    int64_t max_ahead_ns; /* a message that is further ahead of the others is rejected; 0: none */
    int64_t max_lag_ns;   /* a probe that joins is waited for if it is no further behind than this;
                              what it sends for times that are decided is late all the same */
    uint32_t max_clients; /* addresses of clients in an epoch */
    uint32_t max_pending; /* votes and messages that wait for their decision */
    uint32_t max_probes;
    uint32_t max_leases; /* in force at once; more are refused */
    uint16_t shard;
    bool keep_releases; /* for zn_vote_shard_releases */
} zn_vote_shard_config;

/* Counts since the shard was opened, beside those of its table. */
typedef struct zn_vote_shard_stats {
    uint64_t messages, votes;  /* taken */
    uint64_t decided;          /* votes */
    uint64_t late;             /* of those, for a time that was decided already */
    uint64_t client_addresses; /* votes for addresses that were, or may have been, a client's */
    uint64_t duplicates;       /* messages that were taken before */
    uint64_t gaps;             /* messages rejected: one before them is missing, */
    uint64_t too_early;        /* too far ahead of the other probes, */
    uint64_t no_room;          /* too much is pending, */
    uint64_t malformed;        /* damaged, or for another shard, other settings or other rules */
    uint64_t leases;           /* taken, */
    uint64_t leases_refused;   /* or with the answer no: too many, or it reaches too far */
    uint64_t probe_gone;       /* times a probe was forgotten that had not ended */
} zn_vote_shard_stats;

typedef enum zn_vote_probe_state {
    ZN_PROBE_JOINING, /* its watermark is too far behind what is decided */
    ZN_PROBE_PRESENT, /* waited for; with ZN_VOTE_WATERMARK_END no longer */
    ZN_PROBE_GONE
} zn_vote_probe_state;

typedef struct zn_vote_probe {
    uint64_t id, sequence; /* of the last message */
    int64_t watermark_ns;  /* largest so far */
    int64_t gone_epoch;    /* marks of clients up to it may be missing, until it comes back */
    zn_vote_probe_state state;
} zn_vote_probe;

/* Fills *config: z and window as given, and limits for a shard of usual size. */
void zn_vote_shard_config_init(zn_vote_shard_config *config, uint32_t z, int64_t window_ns);
/* Opens a shard that knows nothing. Returns 0, or a negative zn_err with *err filled and *out
 * NULL. */
int zn_vote_shard_open(zn_vote_shard **out, const zn_vote_shard_config *config, zn_error *err);
/* Frees the shard. NULL is fine. */
void zn_vote_shard_close(zn_vote_shard *s);

/*
 * Takes a vote message. now_ns: the wall clock where it says how far probes can be, else 0. Returns
 * 0 with *taken false for a duplicate; or, with nothing done, -ZN_ERR_FORMAT for a message that is
 * damaged, not for this shard, of other rules, out of sequence or too far ahead, and
 * -ZN_ERR_CAPACITY when too much is pending: the probe may send it again.
 */
int zn_vote_shard_put(zn_vote_shard *s, zn_span message, int64_t now_ns, bool *taken,
                      zn_error *err);
/* Has the shard take no message of other rules, as if one of these had come; nothing where it has
 * rules. */
void zn_vote_shard_set_rules(zn_vote_shard *s, uint64_t rules);
/* Returns the rules of the probes, packed; ZN_VOTE_RULES_NONE before the first one. */
uint64_t zn_vote_shard_rules(const zn_vote_shard *s);
/* Returns the time up to which votes can be decided; ZN_VOTE_WATERMARK_END when all probes have
 * ended. */
int64_t zn_vote_shard_watermark(const zn_vote_shard *s);
/* Decides on every pending vote for a time before before_ns; ZN_VOTE_WATERMARK_END: on all. */
void zn_vote_shard_decide(zn_vote_shard *s, int64_t before_ns);
/* Returns the bytes of the next answer message, 0 when there is none. */
size_t zn_vote_shard_answer_bytes(const zn_vote_shard *s);
/* Writes the next answer message and forgets it. */
void zn_vote_shard_take_answer(zn_vote_shard *s, uint8_t *out);
/* Returns the leases in force. */
size_t zn_vote_shard_leases(const zn_vote_shard *s);
/* Returns the n votes of kinds NAME, ADDR and DNS_ADDR that were released since
 * zn_vote_shard_clear_releases. */
const zn_counted_vote *zn_vote_shard_releases(const zn_vote_shard *s, size_t *n);
void zn_vote_shard_clear_releases(zn_vote_shard *s);

/* Stops waiting for a probe until it comes back; false when it is not known. What it tells of
 * clients is missing up to now, also where it was gone before and a message of it could not be
 * taken. */
bool zn_vote_shard_forget_probe(zn_vote_shard *s, uint64_t probe);
const zn_vote_probe *zn_vote_shard_probes(const zn_vote_shard *s, size_t *n);

const zn_vote_shard_config *zn_vote_shard_get_config(const zn_vote_shard *s);
const zn_ztable *zn_vote_shard_table(const zn_vote_shard *s);
zn_vote_shard_stats zn_vote_shard_get_stats(const zn_vote_shard *s);
/* Votes that wait for their decision, each message counted as one more. */
uint64_t zn_vote_shard_pending(const zn_vote_shard *s);
/* Bytes of memory touched, at most. */
size_t zn_vote_shard_memory(const zn_vote_shard *s);

/*
 * Appends to `out` all that the shard knows. Answers and releases have to be taken before. Returns
 * 0, or a negative zn_err with *err filled.
 */
int zn_vote_shard_dump(const zn_vote_shard *s, zn_text *out, zn_error *err);
/* Opens the shard that a dump is of, and checks all that it reads. Returns 0, or with *out NULL
 * -ZN_ERR_FORMAT for a damaged dump or one of another version, and -ZN_ERR_CAPACITY. */
int zn_vote_shard_load(zn_vote_shard **out, zn_span dump, zn_error *err);

#endif
