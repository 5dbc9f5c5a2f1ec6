/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a capture's bytes come from: memory, a mapped file, or a stream through a buffer. The
 * pending bytes at hand are a cursor that the reader moves; a refill brings more.
 *
 * Bytes after the cursor stay where they are until the next zn_byte_source_refill, so frames may
 * borrow them until then; those of memory and of a mapped file until the source is closed.
 */
#ifndef ZN_CAPTURE_BYTE_SOURCE_H
#define ZN_CAPTURE_BYTE_SOURCE_H

#include "capture/mapped_file.h"
#include "util/cursor.h"

/* Bytes from the first pending one on for which memory is asked before a reader comes there. */
#define ZN_BYTE_SOURCE_FETCHED 4096
/* Bytes taken at a time of what stays. */
#define ZN_BYTE_SOURCE_TAKEN ((size_t)128 << 10)
/* Most pending bytes a reader may ask for before it consumes some. */
#define ZN_BYTE_SOURCE_MAX ((uint32_t)16 << 20)

typedef struct zn_byte_source {
    zn_cursor pending;
    uint64_t end_offset;    /* where `pending` ends, in bytes from the start of the capture */
    uint64_t total;         /* bytes in all; 0 for a stream, which does not know */
    uint8_t *buffer;        /* what is read into; NULL: memory, or mapped */
    zn_file_map map;        /* a regular file, where it can be mapped */
    const uint8_t *fetched; /* up to here memory was asked for, or for what is read of it */
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
/* Bytes that were read from the stream before it was opened, at most 64 KiB, come first. Only
 * before anything else is read. */
void zn_byte_source_put_back(zn_byte_source *s, zn_span bytes);
void zn_byte_source_open_memory(zn_byte_source *s, const uint8_t *bytes, size_t n);
void zn_byte_source_close(zn_byte_source *s);

/*
 * Reads what a stream has, waiting for the first byte, or the next part of a file, up to the size
 * that it was opened with; moves the pending bytes, but those of a mapped file. Returns 1 when
 * there is more at hand now, 0 when there will never be, or -ZN_ERR_IO; os_errno EINTR means that a
 * signal came while it waited, or nothing for some 200 ms, and that it can be called again.
 */
int zn_byte_source_refill(zn_byte_source *s, zn_error *err);
/* 0; or -ZN_ERR_IO when what was read of a mapped file cannot be believed, as it was cut
 * meanwhile. */
int zn_byte_source_check(const zn_byte_source *s, zn_error *err);

/* A refill may bring more bytes. */
static inline bool zn_byte_source_may_grow(const zn_byte_source *s)
{
    return (s->buffer != NULL || s->map.bytes != NULL) && !s->at_end;
}

/* The bytes at hand stay where they are until the source is closed. */
static inline bool zn_byte_source_is_mapped(const zn_byte_source *s)
{
    return s->buffer == NULL;
}

/* The place where a reader of many records at once should pause: what it took so far, if that
 * stays where it is, is still in the second-level cache when it is used. */
static inline const uint8_t *zn_byte_source_pause(const zn_byte_source *s)
{
    zn_cursor at = s->pending;
    zn_span rest = zn_cursor_rest(&at);
    bool all = !zn_byte_source_is_mapped(s) || rest.n < ZN_BYTE_SOURCE_TAKEN;
    return all ? rest.p + rest.n : rest.p + ZN_BYTE_SOURCE_TAKEN;
}

/* Something of a mapped file is known to be missing: zn_byte_source_check says more. */
static inline bool zn_byte_source_is_cut(const zn_byte_source *s)
{
    return s->map.bytes != NULL && zn_file_map_is_cut(&s->map);
}

/* Has memory fetch what a reader comes to next: in a mapped file nothing else does. */
static inline void zn_byte_source_fetch(zn_byte_source *s)
{
    zn_cursor at = s->pending;
    s->fetched = zn_span_fetch(zn_cursor_rest(&at), ZN_BYTE_SOURCE_FETCHED, s->fetched);
}

/* The offset of the first pending byte. */
static inline uint64_t zn_byte_source_offset(const zn_byte_source *s)
{
    return s->end_offset - zn_cursor_left(&s->pending);
}

/* The file ended before the size that it was opened with. */
static inline bool zn_byte_source_shrank(const zn_byte_source *s)
{
    return s->is_file && s->at_end && s->end_offset < s->total;
}

#endif
