/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a capture's bytes come from: memory, or a file or a stream through a buffer. The unread bytes
 * at hand are a cursor that the reader moves; a refill brings more.
 *
 * Bytes behind the cursor stay where they are until the next zn_byte_source_refill, so frames may
 * borrow them until then; or for longer, with zn_byte_source_share.
 */
#ifndef ZN_IO_BYTE_SOURCE_H
#define ZN_IO_BYTE_SOURCE_H

#include "base/cursor.h"
#include "io/pieces.h"

/* Most unread bytes a reader may ask for before it consumes some. */
#define ZN_BYTE_SOURCE_MAX ((uint32_t)16 << 20)

typedef struct zn_byte_source {
    zn_cursor unread;
    uint64_t end_offset; /* where `unread` ends, in bytes from the start of the capture */
    uint64_t total;      /* bytes in all; 0 for a stream, which does not know */
    uint8_t *buffer;     /* what is read into; NULL: memory, or pieces */
    zn_pieces *pieces;   /* NULL: never shared */
    int fd;
    bool owns_fd;
    bool is_file; /* regular, of `total` bytes: a read never waits for somebody to write */
    bool at_end;  /* a read found the end */
    char name[128];
} zn_byte_source;

/* Openers fill *s, which need not be initialised; 0 or a negative zn_err, *s then being closed.
 * Anything but a regular file is a stream. */
int zn_byte_source_open_path(zn_byte_source *s, const char *path, zn_error *err);
/* A stream from fd, which stays the caller's; `name` stands for it in messages. */
int zn_byte_source_open_fd(zn_byte_source *s, int fd, const char *name, zn_error *err);
/* Bytes that were read from the stream before it was opened, at most 64 KiB, come first. Only before
 * anything else is read. */
void zn_byte_source_put_back(zn_byte_source *s, zn_span bytes);
void zn_byte_source_open_memory(zn_byte_source *s, const uint8_t *bytes, size_t n);
void zn_byte_source_close(zn_byte_source *s);

/* From now on a regular file is also read by others, and bytes behind the cursor stay until
 * zn_byte_source_next was called `calls` (1 .. ZN_PIECES_CALLS) times more. 0, or -ZN_ERR_CAPACITY. */
int zn_byte_source_share(zn_byte_source *s, zn_pool *pool, unsigned calls, zn_error *err);
/* Nobody else reads any more when this returns. */
void zn_byte_source_rest(zn_byte_source *s);
/* A call for frames begins. */
void zn_byte_source_next(zn_byte_source *s);

/*
 * Reads what a stream has, waiting for the first byte, or the next part of a file, up to the size that
 * it was opened with; moves the unread bytes. Returns 1 when there
 * is more at hand now, 0 when there will never be, or -ZN_ERR_IO; os_errno EINTR means that a
 * signal came while it waited, and that it can be called again.
 */
int zn_byte_source_refill(zn_byte_source *s, zn_error *err);

/* A refill may bring more bytes. */
static inline bool zn_byte_source_may_grow(const zn_byte_source *s)
{
    return (s->buffer != NULL || s->pieces != NULL) && !s->at_end;
}

/* The offset of the first unread byte. */
static inline uint64_t zn_byte_source_offset(const zn_byte_source *s)
{
    return s->end_offset - zn_cursor_left(&s->unread);
}

/* The file ended before the size that it was opened with. */
static inline bool zn_byte_source_shrank(const zn_byte_source *s)
{
    return s->is_file && s->at_end && s->end_offset < s->total;
}

#endif
