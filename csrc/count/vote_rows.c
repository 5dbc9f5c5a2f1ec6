/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/vote_rows.h"

#include "count/vote_message.h"
#include "util/little_endian.h"

#define VERSION_AT 4
#define FLAGS_AT 5
#define SHARD_AT 6
#define VERSION 1
#define VOTES_AT 52
#define LENGTH_BYTES 4

bool zn_vote_rows_flagged(zn_span message)
{
    return message.n > FLAGS_AT && (message.p[FLAGS_AT] == ZN_VOTE_ROWS_SEALED ||
                                    message.p[FLAGS_AT] == ZN_VOTE_ROWS_SHARES);
}

static int damaged(zn_error *err)
{
    return zn_fail(err, ZN_ERR_FORMAT, 0, "the vote message with rows is damaged or cut");
}

/* Returns true if the rows belong to this number of votes. */
static bool are_whole(zn_span rows, uint32_t votes)
{
    zn_cursor c = zn_cursor_over_span(rows, true);
    for (uint32_t i = 0; i < votes && zn_cursor_ok(&c); i++)
        (void)zn_vote_rows_next(&c);
    return zn_cursor_ok(&c) && zn_cursor_left(&c) == 0;
}

int zn_vote_rows_read(zn_vote_rows *out, zn_span message, zn_error *err)
{
    zn_cursor c;
    zn_span body, section;
    size_t length;
    memset(out, 0, sizeof *out);
    if (message.n < ZN_VOTE_HEADER_BYTES + LENGTH_BYTES + ZN_VOTE_CHECKSUM_BYTES ||
        !zn_vote_rows_flagged(message) || message.p[VERSION_AT] != VERSION)
        return damaged(err);
    body = zn_span_part(message, 0, message.n - ZN_VOTE_CHECKSUM_BYTES);
    if (zn_le_get(message.p + body.n, ZN_VOTE_CHECKSUM_BYTES) != zn_vote_checksum(body.p, body.n))
        return damaged(err);
    length = zn_le_get(body.p + body.n - LENGTH_BYTES, LENGTH_BYTES);
    if (length < ZN_VOTE_ROWS_PREFIX + LENGTH_BYTES || length > body.n - ZN_VOTE_HEADER_BYTES)
        return damaged(err);
    section = zn_span_part(body, body.n - length, body.n - LENGTH_BYTES);
    c = zn_cursor_over_span(zn_span_after(body, SHARD_AT), true);
    out->flag = body.p[FLAGS_AT];
    out->shard = zn_cursor_le16(&c);
    out->probe = zn_cursor_le(&c, 8);
    out->sequence = zn_cursor_le(&c, 8);
    out->votes = (uint32_t)zn_le_get(body.p + VOTES_AT, 4);
    out->prefix = zn_span_first(section, ZN_VOTE_ROWS_PREFIX);
    out->rows = zn_span_after(section, ZN_VOTE_ROWS_PREFIX);
    out->plain_bytes = message.n - length;
    return are_whole(out->rows, out->votes) ? 0 : damaged(err);
}

zn_span zn_vote_rows_next(zn_cursor *c)
{
    return zn_cursor_take(c, zn_cursor_le16(c));
}

/* Writes the checksum behind a message of n bytes. */
static void put_checksum(uint8_t *message, size_t n)
{
    (void)zn_le_put(message + n, zn_vote_checksum(message, n), ZN_VOTE_CHECKSUM_BYTES);
}

void zn_vote_rows_plain(const zn_vote_rows *rows, zn_span message, uint8_t *out)
{
    size_t n = rows->plain_bytes - ZN_VOTE_CHECKSUM_BYTES;
    memcpy(out, message.p, n);
    out[FLAGS_AT] = 0;
    put_checksum(out, n);
}

size_t zn_vote_rows_bytes(size_t n, zn_span prefix_and_rows)
{
    return n + prefix_and_rows.n + LENGTH_BYTES;
}

void zn_vote_rows_attach(zn_span plain, uint8_t flag, zn_span prefix_and_rows, uint8_t *out)
{
    size_t n = plain.n - ZN_VOTE_CHECKSUM_BYTES;
    uint8_t *end;
    memcpy(out, plain.p, n);
    out[FLAGS_AT] = flag;
    memcpy(out + n, prefix_and_rows.p, prefix_and_rows.n);
    end = zn_le_put(out + n + prefix_and_rows.n, prefix_and_rows.n + LENGTH_BYTES, LENGTH_BYTES);
    put_checksum(out, (size_t)(end - out));
}
