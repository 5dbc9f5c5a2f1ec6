/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of a capture's bytes: memory, a mapped file, or a stream through a buffer. The pending
 * bytes are a cursor, which the reader moves; a refill brings more.
 *
 * Pending bytes stay where they are until the next zn_byte_source_refill, so frames may borrow them
 * until then; bytes of memory and of a mapped file stay until the source is closed.
 */
#ifndef ZN_CAPTURE_BYTE_SOURCE_H
#define ZN_CAPTURE_BYTE_SOURCE_H

#include "capture/mapped_file.h"
#include "util/cursor.h"

/* Number of bytes, from the first pending byte on, that are prefetched for the reader. */
#define ZN_BYTE_SOURCE_FETCHED 4096
/* Bytes that a batch takes of memory or of a mapped file. */
#define ZN_BYTE_SOURCE_TAKEN ((size_t)128 << 10)
/* Largest size of a record or block in bytes. If this many bytes are pending, a reader must consume
 * some. */
#define ZN_BYTE_SOURCE_MAX ((uint32_t)16 << 20)

typedef struct zn_byte_source {
    zn_cursor pending;
    uint64_t end_offset;    /* end of `pending`, in bytes from the start of the capture */
    uint64_t total;         /* bytes in all; 0 for a stream */
    uint8_t *buffer;        /* the stream is read into it; NULL: memory or a mapped file */
    zn_file_map map;        /* of a regular file that can be mapped */
    const uint8_t *fetched; /* up to here, bytes or their records' heads were prefetched */
    int fd;
    bool owns_fd;
    bool is_file; /* a regular file of `total` bytes: a read never waits for a writer */
    bool at_end;  /* the end was read */
    char name[128];
} zn_byte_source;

/* Opens a file by path; anything but a regular file is a stream. All openers fill *s, which need
 * not be initialised. Returns 0, or a negative zn_err with *err filled and *s closed. */
int zn_byte_source_open_path(zn_byte_source *s, const char *path, zn_error *err);
/* Opens a stream from fd, which the caller closes. `name` identifies it in messages. Returns 0, or
 * a negative zn_err with *err filled. */
int zn_byte_source_open_fd(zn_byte_source *s, int fd, const char *name, zn_error *err);
/* Puts bytes that were read from fd before, at most 64 KiB, in front of the stream. Only before
 * anything else is read. */
void zn_byte_source_put_back(zn_byte_source *s, zn_span bytes);
/* Opens n bytes of memory, which must stay valid until the source is closed. */
void zn_byte_source_open_memory(zn_byte_source *s, const uint8_t *bytes, size_t n);
/* Closes a source that an opener filled; again is fine. */
void zn_byte_source_close(zn_byte_source *s);

/*
 * Reads more bytes. From a stream it reads the available bytes, and waits for the first. From a
 * file it reads the next part, up to the size that the file had when it was opened. Moves the
 * pending bytes, unless the file is mapped. Returns 1 if bytes were read, 0 at the end, or
 * -ZN_ERR_IO. os_errno is EINTR if a signal came during the wait, or no byte came for some 200 ms:
 * the call can be repeated.
 */
int zn_byte_source_refill(zn_byte_source *s, zn_error *err);
/* Returns 0, or -ZN_ERR_IO when a mapped file was cut while it was read, so that the bytes read
 * from it cannot be believed. */
int zn_byte_source_check(const zn_byte_source *s, zn_error *err);

/* Returns whether a refill may bring more bytes. */
static inline bool zn_byte_source_may_grow(const zn_byte_source *s)
{
    return (s->buffer != NULL || s->map.bytes != NULL) && !s->at_end;
}

/* Returns whether bytes stay where they are until the source is closed. */
static inline bool zn_byte_source_is_mapped(const zn_byte_source *s)
{
    return s->buffer == NULL;
}

/* Returns the place where a reader of many records should pause: the end of the pending bytes, or
 * of their first ZN_BYTE_SOURCE_TAKEN bytes if they stay in memory. The records up to there are
 * still in the second-level cache when they are used. */
static inline const uint8_t *zn_byte_source_pause(const zn_byte_source *s)
{
    zn_cursor at = s->pending;
    zn_span rest = zn_cursor_rest(&at);
    bool all = !zn_byte_source_is_mapped(s) || rest.n < ZN_BYTE_SOURCE_TAKEN;
    return all ? rest.p + rest.n : rest.p + ZN_BYTE_SOURCE_TAKEN;
}

/* Returns true when a part of a mapped file is known to be missing; zn_byte_source_check says
 * more. */
static inline bool zn_byte_source_is_cut(const zn_byte_source *s)
{
    return s->map.bytes != NULL && zn_file_map_is_cut(&s->map);
}

/* Prefetches the next bytes of the reader. In a mapped file the kernel does not prefetch them into
 * the caches. */
static inline void zn_byte_source_fetch(zn_byte_source *s)
{
    zn_cursor at = s->pending;
    s->fetched = zn_span_fetch(zn_cursor_rest(&at), ZN_BYTE_SOURCE_FETCHED, s->fetched);
}

/* Returns the offset of the first pending byte in the capture. */
static inline uint64_t zn_byte_source_offset(const zn_byte_source *s)
{
    return s->end_offset - zn_cursor_left(&s->pending);
}

/* Returns true when a file ended before the size that it had when it was opened. */
static inline bool zn_byte_source_shrank(const zn_byte_source *s)
{
    return s->is_file && s->at_end && s->end_offset < s->total;
}

#endif
