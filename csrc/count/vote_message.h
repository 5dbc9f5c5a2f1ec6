/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a probe and a counter say to each other (docs/reference/vote-messages.md): a vote message
 * holds the votes of an interval for one shard and a watermark, an answer message one bit for each
 * of those votes. Both end in a checksum under a published key, which finds accidents and is no
 * authentication.
 *
 * In a message the votes are grouped by what they are for, so that a hash is written once. Within a
 * group they stay in the order in which the probe cast them.
 */
#ifndef ZN_COUNT_VOTE_MESSAGE_H
#define ZN_COUNT_VOTE_MESSAGE_H

#include "count/vote_rules.h"
#include "util/cursor.h"

#define ZN_VOTE_HEADER_BYTES 69
#define ZN_ANSWER_HEADER_BYTES 36
#define ZN_VOTE_CHECKSUM_BYTES 8
#define ZN_VOTES_MAX (UINT32_C(1) << 20) /* in a message */
#define ZN_COUNTED_KINDS 10
/* The watermark of a probe that ends: nothing at all will follow. */
#define ZN_VOTE_WATERMARK_END INT64_MAX

typedef enum zn_counted_kind {
    ZN_COUNTED_NAME = 1,   /* counts, and is answered */
    ZN_COUNTED_PEEK,       /* asks for the count alone */
    ZN_COUNTED_CLIENT,     /* the address was a client's in the epoch of the time */
    ZN_COUNTED_ADDR,       /* as NAME, unless the address was a client's in the epoch */
    ZN_COUNTED_DNS_ADDR,   /* the same for DNS flows, counted apart */
    ZN_COUNTED_ADDR_CHECK, /* asks whether the address was no client's in this epoch or the last */
    ZN_COUNTED_ADDR_PEEK,  /* asks for the count of ADDR, unless the address was a client's */
    ZN_COUNTED_DNS_ADDR_PEEK, /* the same for DNS flows */
    ZN_COUNTED_LEASE, /* from its time on NAME and PEEK of the attribute have the answer yes; the
                         user's 40 bits say for how long, in ZN_LEASE_UNIT_NS */
    ZN_COUNTED_ONLY   /* counts as NAME, and nobody waits for an answer */
} zn_counted_kind;

typedef struct zn_counted_vote {
    int64_t t_ns;  /* >= 0 */
    uint64_t user; /* keyed hash, of which zn_vote_user40() is kept */
    zn_id id;      /* keyed hash, of which ZN_VOTE_ID_HI and all of lo are kept */
    uint8_t kind;  /* a zn_counted_kind */
} zn_counted_vote;

/* The header of both messages; an answer message has the first five members only. settings and
 * rules say together how the probe counts. */
typedef struct zn_vote_header {
    uint16_t shard;
    uint64_t probe;
    uint64_t sequence; /* from 1, one more for each message of the probe to the shard */
    uint64_t settings; /* names z, window and epochs: both sides must have the same */
    uint32_t votes;
    uint64_t rules;       /* packed zn_vote_rules: all probes must have the same */
    bool renewed;         /* the probe has another number: of the first message under this one, that
                           * came before; of the last one, that follows */
    bool marks_missing;   /* of the first message: the counter may lack clients of before it */
    int64_t watermark_ns; /* no vote for an earlier time will follow */
    int64_t base_ns;
    uint32_t groups, lease_groups; /* in all, and of the two last kinds: these come last */
    uint8_t time_bytes;
} zn_vote_header;

/* The 116 bits of an attribute's hash that decide; the others are zero in a message. */
#define ZN_VOTE_ID_LOW ((UINT64_C(1) << 44) - 1)
#define ZN_VOTE_ID_HI (UINT64_C(0xff) << 56 | ZN_VOTE_ID_LOW)

/* The 40 bits of a user's hash that decide, as a message has them, and back. */
static inline uint64_t zn_vote_user40(uint64_t user)
{
    return (user & UINT32_MAX) | user >> 56 << 32;
}

static inline uint64_t zn_vote_user_of(uint64_t user40)
{
    return (user40 & UINT32_MAX) | user40 >> 32 << 56;
}

/* Returns the checksum of the n bytes of a message before it. */
uint64_t zn_vote_checksum(const uint8_t *message, size_t n);

/* ---- writing ---- */

typedef struct zn_vote_cast {
    int64_t t_ns;
    uint64_t user40;
    uint32_t next; /* vote of the same group, plus one */
} zn_vote_cast;

typedef struct zn_vote_group {
    zn_id id;
    uint32_t first, last, count, slot;
    uint8_t kind;
} zn_vote_group;

/* Collects the votes of a message. */
typedef struct zn_vote_writer {
    zn_vote_cast *vote;
    zn_vote_group *group;
    uint32_t *slot; /* group plus one by hash, 0: none */
    uint32_t votes, groups, lease_groups, max_votes, mask;
    int64_t first_ns, last_ns;
} zn_vote_writer;

/* Makes a writer of messages of up to max_votes (1 .. ZN_VOTES_MAX) votes. Returns 0, or a negative
 * zn_err with *err filled; zn_vote_writer_fini accepts what is left. */
int zn_vote_writer_init(zn_vote_writer *w, uint32_t max_votes, zn_error *err);
void zn_vote_writer_fini(zn_vote_writer *w);
/* Adds a vote, whose kind and time are valid; false when the message is full. */
bool zn_vote_writer_add(zn_vote_writer *w, const zn_counted_vote *vote);
/* Returns the most bytes that zn_vote_writer_finish may need. */
size_t zn_vote_writer_bytes(const zn_vote_writer *w);
/*
 * Writes the message to `out`, forgets its votes and returns its bytes. Of *header it takes shard,
 * probe, sequence, settings, rules and watermark. order[k], unless order is NULL, is the number of
 * the vote, in the order in which they were added, that became the message's k-th: the one that the
 * k-th answer is for.
 */
size_t zn_vote_writer_finish(zn_vote_writer *w, const zn_vote_header *header, uint8_t *out,
                             uint32_t *order);

/* ---- reading ---- */

/* Reads the header of a vote message after the checksum. Returns 0, or -ZN_ERR_FORMAT with *err
 * filled; the message may have as many votes as the header says. */
int zn_vote_header_read(zn_vote_header *header, zn_span message, zn_error *err);
/* Writes the header->votes votes of a message to `out`. Returns 0, or -ZN_ERR_FORMAT with *err
 * filled. */
int zn_votes_read(zn_counted_vote *out, const zn_vote_header *header, zn_span message,
                  zn_error *err);

/* ---- answers ---- */

/* Returns the bytes of an answer message for so many votes. */
size_t zn_answers_bytes(uint32_t votes);
/* Writes an answer message of zn_answers_bytes(header->votes) bytes. Bit i % 8 of bits[i / 8] is
 * the answer to vote i; bits after the last are zero. */
void zn_answers_write(const zn_vote_header *header, const uint8_t *bits, uint8_t *out);
/* Reads an answer message; *bits borrows it. Returns 0, or -ZN_ERR_FORMAT with *err filled. */
int zn_answers_read(zn_vote_header *header, zn_span *bits, zn_span message, zn_error *err);

#endif
