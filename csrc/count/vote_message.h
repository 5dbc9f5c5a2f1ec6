/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between a probe and a counter (docs/reference/vote-messages.md). A vote message holds
 * the votes of an interval for one shard, and a watermark. An answer message holds one bit for each
 * of these votes. Both end in a checksum under a published key, which finds accidents and is no
 * authentication.
 *
 * A message groups the votes by attribute and kind, so that a hash is written once. Within a group
 * the votes stay in the order in which the probe cast them.
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
/* Watermark of the last message of a session. */
#define ZN_VOTE_WATERMARK_END INT64_MAX

typedef enum zn_counted_kind {
    ZN_COUNTED_NAME = 1,   /* counts a user of a name, and is answered */
    ZN_COUNTED_PEEK,       /* queries the count of a name */
    ZN_COUNTED_CLIENT,     /* marks the address as a client's in the epoch of the time */
    ZN_COUNTED_ADDR,       /* counts as NAME does, unless the address was a client's in the epoch */
    ZN_COUNTED_DNS_ADDR,   /* counts an address of DNS flows as ADDR does, in a count of its own */
    ZN_COUNTED_ADDR_CHECK, /* queries that the address was no client's in this or the last epoch */
    ZN_COUNTED_ADDR_PEEK,  /* queries the count of ADDR, unless the address was a client's */
    ZN_COUNTED_DNS_ADDR_PEEK, /* queries the count of DNS_ADDR */
    ZN_COUNTED_LEASE, /* answers NAME and PEEK of the attribute with yes from its time on, for the
                         user's 40 bits times ZN_LEASE_UNIT_NS */
    ZN_COUNTED_ONLY   /* counts as NAME does, without an answer */
} zn_counted_kind;

/* Names of the kinds as Python and the documents have them; [0] is NULL. */
extern const char *const zn_counted_kind_names[ZN_COUNTED_KINDS + 1];

/* Returns true if a vote of the kind counts its user. */
static inline bool zn_counted_kind_counts(uint8_t kind)
{
    return kind == ZN_COUNTED_NAME || kind == ZN_COUNTED_ADDR || kind == ZN_COUNTED_DNS_ADDR ||
           kind == ZN_COUNTED_ONLY;
}

typedef struct zn_counted_vote {
    int64_t t_ns;  /* >= 0 */
    uint64_t user; /* keyed hash, of which zn_vote_user40() is kept */
    zn_id id;      /* keyed hash, of which ZN_VOTE_ID_HI and all of lo are kept */
    uint8_t kind;  /* a zn_counted_kind */
} zn_counted_vote;

/* Header of both messages. An answer message has the first five members only. */
typedef struct zn_vote_header {
    uint16_t shard;
    uint64_t probe;
    uint64_t sequence; /* number of the message from the session to the shard, from 1 */
    uint64_t settings; /* digest of z, window and epochs, equal at both sides */
    uint32_t votes;
    uint64_t rules;       /* packed zn_vote_rules, equal at all probes */
    bool new_session;     /* true in a first message if the session replaces a previous session, and
                           * in a last message if a new session replaces it */
    bool marks_missing;   /* true in a first message if the counter may lack earlier clients */
    int64_t watermark_ns; /* no vote for an earlier time will follow */
    int64_t base_ns;
    uint32_t groups, lease_groups; /* all groups; groups of the two last kinds, which come last */
    uint8_t time_bytes;
} zn_vote_header;

/* Bits of an attribute's hash that a message holds, 116 with lo. A z-table decides by 112 of
 * them. */
#define ZN_VOTE_ID_LOW ((UINT64_C(1) << 44) - 1)
#define ZN_VOTE_ID_HI (UINT64_C(0xff) << 56 | ZN_VOTE_ID_LOW)

/* Return the 40 bits of a user's hash that decide, as a message has them, and the reverse. */
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
/* Adds a vote, whose kind and time are valid; false if the message is full. */
bool zn_vote_writer_add(zn_vote_writer *w, const zn_counted_vote *vote);
/* Returns the largest number of bytes that zn_vote_writer_finish may need. */
size_t zn_vote_writer_bytes(const zn_vote_writer *w);
/*
 * Writes the message to `out`, forgets its votes and returns its size. It takes shard, probe,
 * sequence, settings, rules and watermark from *header. Unless order is NULL, order[k] is the
 * number, in the order of addition, of the vote that became the message's k-th vote and has the
 * k-th answer.
 */
size_t zn_vote_writer_finish(zn_vote_writer *w, const zn_vote_header *header, uint8_t *out,
                             uint32_t *order);

/* ---- reading ---- */

/* Checks the checksum of a vote message and reads its header. Returns 0, or -ZN_ERR_FORMAT with
 * *err filled. The message has space for header->votes votes. */
int zn_vote_header_read(zn_vote_header *header, zn_span message, zn_error *err);
/* Writes the header->votes votes of a message to `out`. Returns 0, or -ZN_ERR_FORMAT with *err
 * filled. */
int zn_votes_read(zn_counted_vote *out, const zn_vote_header *header, zn_span message,
                  zn_error *err);

/* ---- answers ---- */

/* Returns the size of an answer message for this number of votes. */
size_t zn_answers_bytes(uint32_t votes);
/* Writes an answer message of zn_answers_bytes(header->votes) bytes. Bit i % 8 of bits[i / 8] is
 * the answer to vote i; bits after the last are zero. */
void zn_answers_write(const zn_vote_header *header, const uint8_t *bits, uint8_t *out);
/* Reads an answer message; *bits borrows it. Returns 0, or -ZN_ERR_FORMAT with *err filled. */
int zn_answers_read(zn_vote_header *header, zn_span *bits, zn_span message, zn_error *err);

#endif
