/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a capture's bytes come from: a mapped file, memory, or a stream through a buffer. The
 * unread bytes at hand are a cursor that the reader moves; a stream gets more by a refill.
 *
 * Bytes behind the cursor stay where they are until the next zn_byte_source_begin or
 * zn_byte_source_refill, so frames may borrow them in between.
 */
#ifndef ZN_IO_BYTE_SOURCE_H
#define ZN_IO_BYTE_SOURCE_H

#include "base/cursor.h"

/* Most unread bytes a reader may ask a stream for before it consumes some. */
#define ZN_BYTE_SOURCE_MAX ((uint32_t)16 << 20)

typedef struct zn_byte_source {
    zn_cursor unread;
    uint64_t end_offset;  /* where `unread` ends, in bytes from the start of the capture */
    uint64_t total;       /* bytes in all; 0 for a stream, which does not know */
    uint64_t batch_end;   /* a batch should end once this offset is reached */
    uint8_t *buffer;      /* stream: its buffer; NULL otherwise */
    void *map;            /* mapped file: its first byte; NULL otherwise */
    uint64_t map_dropped; /* pages before this offset were given back to the system */
    int fd;
    bool owns_fd;
    bool at_end; /* stream: a read found the end */
    char name[128];
} zn_byte_source;

/* Openers fill *s, which need not be initialised; 0 or a negative zn_err, *s then being closed.
 * A regular file is mapped, anything else is a stream. */
int zn_byte_source_open_path(zn_byte_source *s, const char *path, zn_error *err);
/* A stream from fd, which stays the caller's; `name` stands for it in messages. */
int zn_byte_source_open_fd(zn_byte_source *s, int fd, const char *name, zn_error *err);
/* Bytes that were read from the stream before it was opened, at most 64 KiB, come first. Only before
 * anything else is read. */
void zn_byte_source_put_back(zn_byte_source *s, zn_span bytes);
void zn_byte_source_open_memory(zn_byte_source *s, const uint8_t *bytes, size_t n);
void zn_byte_source_close(zn_byte_source *s);

/*
 * Starts a batch: nobody borrows bytes behind the cursor any more. Returns 0; 1 when the mapped
 * file has become shorter than it was, so that its bytes must not be touched; or -ZN_ERR_IO.
 */
int zn_byte_source_begin(zn_byte_source *s, zn_error *err);

/*
 * Reads what a stream has, waiting for the first byte; moves the unread bytes. Returns 1 when there
 * is more at hand now, 0 when there will never be, or -ZN_ERR_IO; os_errno EINTR means that a
 * signal came while it waited, and that it can be called again.
 */
int zn_byte_source_refill(zn_byte_source *s, zn_error *err);

/* A refill may bring more bytes. */
static inline bool zn_byte_source_may_grow(const zn_byte_source *s)
{
    return s->buffer != NULL && !s->at_end;
}

/* The offset of the first unread byte. */
static inline uint64_t zn_byte_source_offset(const zn_byte_source *s)
{
    return s->end_offset - zn_cursor_left(&s->unread);
}

/* The batch should end here. */
static inline bool zn_byte_source_batch_ends(const zn_byte_source *s)
{
    return zn_byte_source_offset(s) >= s->batch_end;
}

#endif
