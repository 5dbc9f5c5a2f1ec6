/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that come with the votes of a message. Flag 1 marks rows sealed to a reader
 * (crypto/sealed_row.h), flag 2 marks shares and rows (crypto/threshold.h). The rows are a section
 * between the groups and the checksum:
 *
 *     32 bytes of prefix, for all rows; then for each vote, in the order of the message, u16 n (0:
 *     nothing) and n bytes; then u32, the length of the section, these four bytes included
 *
 * The section holds no vote. A shard counts the message without the section, which is an ordinary
 * message.
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
    size_t plain_bytes;   /* size of the message without its section */
} zn_vote_rows;

/* Returns true if a message has one of the flags. */
bool zn_vote_rows_flagged(zn_span message);

/* Reads the section of a flagged message, and checks the section and the checksum. Returns 0, or
 * -ZN_ERR_FORMAT with *err filled. */
int zn_vote_rows_read(zn_vote_rows *out, zn_span message, zn_error *err);
/* Writes the message without its section: rows->plain_bytes bytes. */
void zn_vote_rows_plain(const zn_vote_rows *rows, zn_span message, uint8_t *out);
/* Takes the row of the next vote off *c, which begins over rows->rows. */
zn_span zn_vote_rows_next(zn_cursor *c);

/* Returns the bytes of a plain message of n bytes with a section of prefix and rows. */
size_t zn_vote_rows_bytes(size_t n, zn_span prefix_and_rows);
/* Writes the message with its section to out. */
void zn_vote_rows_attach(zn_span plain, uint8_t flag, zn_span prefix_and_rows, uint8_t *out);

#endif
