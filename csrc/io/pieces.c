/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More buffers than pieces that are lent or read ahead: there is always a free one. In a buffer a piece
 * lies behind room for the rest of the one before, which is copied there; a rest that is longer, of a
 * record of up to ZN_BYTE_SOURCE_MAX, stays, and the piece is copied behind it.
 */
#include "io/pieces.h"

#include "base/arena.h"
#include "io/byte_source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PIECES (ZN_PIECES_CALLS + ZN_PIECES_AHEAD + 2)
#define ROOM_BYTES ZN_PIECE_BYTES

typedef struct piece {
    zn_job reading;
    int fd, failed; /* failed: errno; 0: it was read */
    uint8_t *buffer;
    uint64_t offset; /* in the file */
    size_t want, got;
    uint64_t lent_until; /* the call that ends it; 0: it is not lent */
    bool asked;          /* read, or about to be, and not taken */
} piece;

struct zn_pieces {
    zn_pool *pool; /* NULL: nobody reads ahead */
    unsigned calls;
    uint64_t call; /* calls so far, from 1 on */
    uint64_t next, total;
    unsigned current;
    unsigned asked[ZN_PIECES_AHEAD], asked_count; /* in their order */
    piece piece[PIECES];
};

static void read_piece(void *of, uint32_t task)
{
    piece *p = of;
    uint8_t *at = p->buffer + ROOM_BYTES;
    (void)task;
    p->got = 0;
    p->failed = 0;
    while (p->got < p->want) {
        ssize_t got = pread(p->fd, at + p->got, p->want - p->got, (off_t)(p->offset + p->got));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            p->failed = errno;
        if (got <= 0)
            return;
        p->got += (size_t)got;
    }
}

int zn_pieces_open(zn_pieces **out, int fd, uint64_t from, uint64_t total, uint8_t *first,
                   zn_error *err)
{
    zn_pieces *p = zn_heap_alloc(sizeof *p);
    *out = p;
    if (p == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to read ahead");
    for (unsigned i = 1; i < PIECES; i++) {
        p->piece[i].buffer = zn_block_alloc(zn_pieces_buffer_bytes());
        if (p->piece[i].buffer == NULL) {
            zn_pieces_close(p);
            *out = NULL;
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to read ahead");
        }
    }
    for (unsigned i = 0; i < PIECES; i++) {
        p->piece[i].fd = fd;
        p->piece[i].reading.run = read_piece;
        p->piece[i].reading.of = &p->piece[i];
    }
    p->piece[0].buffer = first;
    p->next = from;
    p->total = total;
    p->call = p->calls = 1;
    return 0;
}

void zn_pieces_close(zn_pieces *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < PIECES; i++)
        zn_block_free(p->piece[i].buffer, zn_pieces_buffer_bytes());
    zn_heap_free(p);
}

size_t zn_pieces_buffer_bytes(void)
{
    return ZN_BYTE_SOURCE_MAX + 2 * ZN_PIECE_BYTES;
}

void zn_pieces_share(zn_pieces *p, zn_pool *pool, unsigned calls)
{
    ZN_ASSERT(calls <= ZN_PIECES_CALLS);
    p->pool = pool;
    p->calls = calls;
}

void zn_pieces_rest(zn_pieces *p)
{
    for (unsigned i = 0; i < p->asked_count && p->pool != NULL; i++)
        zn_pool_finish(p->pool, &p->piece[p->asked[i]].reading);
    p->pool = NULL;
}

void zn_pieces_lend(zn_pieces *p)
{
    p->piece[p->current].lent_until = p->call + p->calls;
    p->call++;
}

/* A buffer that nobody looks at. At most ZN_PIECES_CALLS are lent: one in each call; one is the current
 * one, and ZN_PIECES_AHEAD are asked for. */
static unsigned free_piece(const zn_pieces *p)
{
    for (unsigned i = 0; i < PIECES; i++)
        if (i != p->current && !p->piece[i].asked && p->piece[i].lent_until < p->call)
            return i;
    ZN_ASSERT(false);
    return p->current;
}

/* Has pieces read until there are `n` that were asked for, or no more. */
static void ask(zn_pieces *p, unsigned n)
{
    while (p->asked_count < n && p->next < p->total) {
        unsigned i = free_piece(p);
        piece *next = &p->piece[i];
        uint64_t left = p->total - p->next;
        next->offset = p->next;
        next->want = left < ZN_PIECE_BYTES ? (size_t)left : ZN_PIECE_BYTES;
        next->asked = true;
        p->asked[p->asked_count++] = i;
        p->next += next->want;
        if (p->pool != NULL)
            zn_pool_start(p->pool, &next->reading, 1, false);
        else
            read_piece(next, 0);
    }
}

/* The pieces asked for are to be read again when their turn comes. */
static void forget(zn_pieces *p)
{
    while (p->asked_count != 0) {
        piece *asked = &p->piece[p->asked[--p->asked_count]];
        if (p->pool != NULL)
            zn_pool_finish(p->pool, &asked->reading);
        asked->asked = false;
        p->next = asked->offset;
    }
}

/* The unread bytes of the current piece, at a buffer's start, where any number more fits behind them. */
static uint8_t *gather(zn_pieces *p, const zn_cursor *unread)
{
    const piece *now = &p->piece[p->current];
    size_t left = zn_cursor_left(unread);
    uint8_t *start;
    if (unread->p == now->buffer && now->lent_until < p->call)
        return now->buffer;
    p->current = free_piece(p);
    start = p->piece[p->current].buffer;
    memcpy(start, unread->p, left);
    return start;
}

/* Makes the piece the current one, or a part of it, behind the unread bytes. */
static void join(zn_pieces *p, unsigned next, zn_cursor *unread)
{
    size_t left = zn_cursor_left(unread), got = p->piece[next].got;
    uint8_t *read = p->piece[next].buffer + ROOM_BYTES, *start;
    if (left <= ROOM_BYTES) {
        start = read - left;
        if (left != 0)
            memcpy(start, unread->p, left);
        p->current = next;
    } else {
        start = gather(p, unread);
        memcpy(start + left, read, got);
    }
    *unread = zn_cursor_over(start, left + got, false);
}

ssize_t zn_pieces_next(zn_pieces *p, zn_cursor *unread)
{
    piece *next;
    size_t got;
    ask(p, 1);
    if (p->asked_count == 0)
        return 0;
    next = &p->piece[p->asked[0]];
    if (p->pool != NULL)
        zn_pool_finish(p->pool, &next->reading);
    if (next->failed != 0) {
        errno = next->failed;
        forget(p);
        return -1;
    }
    got = next->got;
    join(p, p->asked[0], unread);
    next->asked = false; /* from here on it may be read into again */
    memmove(p->asked, p->asked + 1, --p->asked_count * sizeof p->asked[0]);
    if (p->pool != NULL)
        ask(p, ZN_PIECES_AHEAD);
    return (ssize_t)got;
}
