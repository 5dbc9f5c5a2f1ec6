/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a stream against a map of bytes. Each step of three or more bytes adds a piece or
 * consumes a part of the head. Traps where the head holds a byte that was not sent there first, or
 * a piece that says something else is not called a conflict.
 */
#include "flow/reassembly.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct model {
    uint8_t byte[ZN_STREAM_MAX];
    bool sent[ZN_STREAM_MAX];
} model;

static model seen;

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* Whether the piece contradicts what the stream has kept. */
static bool contradicts(uint32_t offset, zn_span piece)
{
    for (size_t i = 0; i < piece.n && offset + i < ZN_STREAM_MAX; i++)
        if (seen.sent[offset + i] && seen.byte[offset + i] != piece.p[i])
            return true;
    return false;
}

static void remember(uint32_t offset, zn_span piece)
{
    for (size_t i = 0; i < piece.n && offset + i < ZN_STREAM_MAX; i++) {
        seen.byte[offset + i] = piece.p[i];
        seen.sent[offset + i] = true;
    }
}

static void forget(uint32_t bytes)
{
    uint32_t left = bytes < ZN_STREAM_MAX ? ZN_STREAM_MAX - bytes : 0;
    memmove(seen.byte, seen.byte + ZN_STREAM_MAX - left, left);
    memmove(seen.sent, seen.sent + ZN_STREAM_MAX - left, left);
    memset(seen.sent + left, 0, ZN_STREAM_MAX - left);
}

static void check(const zn_stream_pool *pool, uint32_t stream)
{
    zn_span head = zn_stream_start(pool, stream);
    uint32_t first = 0;
    require(head.n <= ZN_STREAM_MAX);
    for (size_t i = 0; i < head.n; i++)
        require(seen.sent[i] && seen.byte[i] == head.p[i]);
    require(head.n == ZN_STREAM_MAX || !seen.sent[head.n]);
    while (first < ZN_STREAM_MAX && !seen.sent[first])
        first++;
    require(zn_stream_first(pool, stream) == first);
}

/* One step; false when the stream is tainted. */
static bool step(zn_stream_pool *pool, uint32_t stream, zn_cursor *c)
{
    uint8_t kind = zn_cursor_u8(c);
    uint32_t offset = zn_cursor_be16(c);
    zn_span piece;
    if (kind % 8 == 7) { /* mostly within the head */
        offset %= (uint32_t)zn_stream_start(pool, stream).n + 40;
        zn_stream_consume(pool, stream, offset);
        forget(offset);
        return true;
    }
    if ((kind & 8) != 0)
        offset %= 100;
    piece = zn_cursor_take(c, kind >> 4 < zn_cursor_left(c) ? kind >> 4 : zn_cursor_left(c));
    switch (zn_stream_add(pool, stream, offset, piece)) {
    case ZN_STREAM_CONFLICT:
        require(contradicts(offset, piece));
        return false;
    case ZN_STREAM_OUTSIDE:
        break;
    default:
        require(!contradicts(offset, piece));
        remember(offset, piece);
        break;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    zn_stream_pool pool;
    uint32_t stream;
    bool clean = true;
    require(zn_stream_pool_init(&pool, 2, NULL) == 0);
    stream = zn_stream_take(&pool);
    forget(ZN_STREAM_MAX);
    while (clean && zn_cursor_left(&c) >= 3) {
        clean = step(&pool, stream, &c);
        if (clean)
            check(&pool, stream);
    }
    zn_stream_give(&pool, stream);
    zn_stream_pool_fini(&pool);
    return 0;
}
