/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a shard's counter; only count/vote_shard*.c may see it. */
#ifndef ZN_COUNT_VOTE_SHARD_INTERNAL_H
#define ZN_COUNT_VOTE_SHARD_INTERNAL_H

#include "count/vote_clients.h"
#include "count/vote_leases.h"
#include "count/vote_shard.h"

#define ZN_SHARD_BATCH 256 /* votes that the table decides on together */

/* Vote that waits, and its place in its message. */
typedef struct zn_pending_vote {
    int64_t t_ns;
    uint64_t user;
    zn_id id;
    uint32_t index;
    uint8_t kind;
} zn_pending_vote;

/* Message with votes that wait. */
typedef struct zn_pending {
    zn_vote_header header;
    uint32_t next;         /* the first vote that waits */
    zn_pending_vote *vote; /* in the order of their times, then of their places */
    uint8_t *bits;         /* answers so far */
} zn_pending;

/* Batch of votes for the table. */
typedef struct zn_shard_batch {
    size_t n;
    zn_observation o[ZN_SHARD_BATCH];
    zn_pending *message[ZN_SHARD_BATCH];
    const zn_pending_vote *vote[ZN_SHARD_BATCH];
    bool leased[ZN_SHARD_BATCH]; /* true if a lease releases the vote */
} zn_shard_batch;

struct zn_vote_shard {
    zn_vote_shard_config config;
    uint64_t rules; /* rules of all probes; ZN_VOTE_RULES_NONE before the first message */
    zn_ztable *table;
    zn_vote_clients clients;
    zn_leases leases;
    zn_membership members;
    /* Arrays of messages, each with space for all messages: waiting messages, a heap of the
     * messages that a decision reads, and messages whose answers are ready. */
    zn_pending **pending, **heap, **ready;
    size_t pending_count, ready_count, ready_taken, message_cap;
    uint64_t pending_votes;
    zn_counted_vote *decoded; /* votes of one message */
    uint32_t *order;          /* their order, and scratch memory of equal size */
    size_t decoded_bytes, order_bytes;
    zn_counted_vote *release;
    size_t releases, release_bytes;
    int64_t decided_ns; /* votes for earlier times are late */
    int64_t newest_ns;  /* time of any vote or watermark so far */
    zn_vote_shard_stats stats;
    zn_shard_batch batch;
};

/* Makes a message with space for header->votes votes. Returns NULL if memory is out. */
zn_pending *zn_pending_make(const zn_vote_header *header);
/* Makes space for a further message and its votes. Returns 0, or -ZN_ERR_CAPACITY with *err
 * filled. */
int zn_shard_reserve(zn_vote_shard *s, uint32_t votes, zn_error *err);
/* Adds a message for which space was made. */
void zn_shard_append(zn_vote_shard *s, zn_pending *message);
/* Updates the last epoch of which marks of clients may be missing. */
void zn_shard_note_gone(zn_vote_shard *s);

#endif
