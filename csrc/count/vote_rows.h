/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes with the votes of a message that carries rows: flag 1, rows sealed to a reader
 * (crypto/sealed_row.h), or flag 2, shares and rows (crypto/threshold.h), in a section between the
 * groups and the checksum:
 *
 *     32 bytes of prefix, for all rows; then for each vote, in the order of the message, u16 n (0:
 *     nothing) and n bytes; then u32, the length of the section, these four bytes included
 *
 * The section says nothing of who votes for what, so the message without it, which is what a shard
 * counts, is an ordinary one.
 */
#ifndef ZN_COUNT_VOTE_ROWS_H
#define ZN_COUNT_VOTE_ROWS_H

#include "util/cursor.h"

#define ZN_VOTE_ROWS_SEALED 1
#define ZN_VOTE_ROWS_SHARES 2
#define ZN_VOTE_ROWS_PREFIX 32

typedef struct zn_vote_rows {
    uint64_t probe, sequence;
    uint32_t votes;
    uint16_t shard;
    uint8_t flag;
    zn_span prefix, rows; /* borrow the message */
    size_t plain_bytes;   /* of the message without its section */
} zn_vote_rows;

/* Whether a message has such a flag. */
bool zn_vote_rows_flagged(zn_span message);

/* Reads and checks the section of a message that is flagged; of the rest only the checksum. Returns
 * 0, or -ZN_ERR_FORMAT with *err filled. */
int zn_vote_rows_read(zn_vote_rows *out, zn_span message, zn_error *err);
/* Writes the message without its section: rows->plain_bytes bytes. */
void zn_vote_rows_plain(const zn_vote_rows *rows, zn_span message, uint8_t *out);
/* Takes what goes with the next vote off *c, which begins over rows->rows. */
zn_span zn_vote_rows_next(zn_cursor *c);

/* Returns the bytes of a plain message of n bytes with a section of prefix and rows. */
size_t zn_vote_rows_bytes(size_t n, zn_span prefix_and_rows);
/* Writes it to out. */
void zn_vote_rows_attach(zn_span plain, uint8_t flag, zn_span prefix_and_rows, uint8_t *out);

#endif
