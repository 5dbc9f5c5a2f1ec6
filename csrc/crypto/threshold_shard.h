/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter's side of crypto/threshold. It collects the shares of decided votes in the order of
 * the decisions, and opens the rows of released votes when it has the shares of z users of their
 * group.
 *
 * A row leaves only if the exact count releases its vote *and* its group has z points, so no row is
 * released that the exact mode would suppress. Rows of earlier votes of the group stay closed,
 * although the key would open them.
 *
 * Shares are not trusted: a false share spoils a recovery, and the tag of the row shows this. The
 * shard keeps z + 8 points of a group, in a circle, and tries each run of z neighbours, 256 times
 * at most. So up to 8 false shares in a row suppress rows only until as many more users came. Rows
 * that are not recovered stay suppressed, and are counted.
 *
 * Memory is used where it is touched, up to the caps. At a cap new shares are dropped, which can
 * only suppress. The groups of an epoch are dropped one step after its end.
 */
#ifndef ZN_CRYPTO_THRESHOLD_SHARD_H
#define ZN_CRYPTO_THRESHOLD_SHARD_H

#include "crypto/threshold.h"

typedef struct zn_threshold_shard zn_threshold_shard;

typedef struct zn_threshold_stats {
    uint64_t votes;            /* with an attachment that could be read */
    uint64_t votes_malformed;  /* with another */
    uint64_t votes_late;       /* all of whose epochs are over */
    uint64_t shares_conflicts; /* another value at a point that is there */
    uint64_t shares_full;      /* no memory for a group or a point */
    uint64_t keys_recovered;
    uint64_t keys_spoiled;   /* groups dropped after 256 attempts */
    uint64_t rows_opened;    /* of released votes, as the next three */
    uint64_t rows_short;     /* whose group has fewer than z points */
    uint64_t rows_spoiled;   /* whose group's key could not be recovered, or did not open them */
    uint64_t rows_unprinted; /* with other bytes than 0x20 to 0x7e, which no line has */
    uint64_t resets;         /* 256 late votes in a row: all shares were dropped */
} zn_threshold_stats;

/* Opens an empty shard. max_groups: limit of the number of groups, and of lots of five points.
 * Returns 0, -ZN_ERR_CONFIG, -ZN_ERR_CAPACITY, -ZN_ERR_IO or -ZN_ERR_CRYPTO. */
int zn_threshold_shard_open(zn_threshold_shard **out, const zn_threshold_rule *rule,
                            uint32_t max_groups, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_threshold_shard_close(zn_threshold_shard *s);

/* A vote that was decided. */
typedef struct zn_threshold_decided {
    zn_threshold_vote vote;
    bool released;
    const uint8_t *nonce; /* of its message, ZN_ROW_NONCE_BYTES */
    zn_span attachment;
} zn_threshold_decided;

/* Takes a decided vote, the next in order. True: its row is released, and *row has it until the
 * next call. */
bool zn_threshold_shard_take(zn_threshold_shard *s, const zn_threshold_decided *decided,
                             zn_span *row);

const zn_threshold_stats *zn_threshold_shard_stats(const zn_threshold_shard *s);

/* ---- snapshot: "ZNTS", version 1, then rule and groups, little endian ---- */

size_t zn_threshold_shard_dump_bytes(const zn_threshold_shard *s);
/* Writes zn_threshold_shard_dump_bytes bytes. They hold keys of what z users share, and shares. */
void zn_threshold_shard_dump(const zn_threshold_shard *s, uint8_t *out);
/* Fills an empty shard from a dump. Returns 0, -ZN_ERR_FORMAT if the bytes are not a dump of a
 * shard with this rule, or -ZN_ERR_CAPACITY. After an error the shard can only be closed. */
int zn_threshold_shard_load(zn_threshold_shard *s, zn_span dump, zn_error *err);

#endif
