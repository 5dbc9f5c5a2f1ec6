/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are read as pipes are, in portions that stay in the second-level cache until they are used.
 * Mapping them costs more: for each page an entry in the page table, made and taken down again, and
 * memory's latency where records are walked. It would also end the process (SIGBUS) where a file becomes
 * shorter.
 */
#include "io/byte_source.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ZN_PIECE_BYTES

static void init(zn_byte_source *s, const char *name)
{
    memset(s, 0, sizeof *s);
    s->fd = -1;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
}

void zn_byte_source_open_memory(zn_byte_source *s, const uint8_t *bytes, size_t n)
{
    init(s, "the buffer");
    s->unread = zn_cursor_over(bytes, n, false);
    s->end_offset = s->total = n;
}

int zn_byte_source_open_fd(zn_byte_source *s, int fd, const char *name, zn_error *err)
{
    init(s, name);
    s->buffer = zn_block_alloc(zn_pieces_buffer_bytes()); /* takes memory as far as it is used */
    if (s->buffer == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to read %s", s->name);
    s->fd = fd;
    s->unread = zn_cursor_over(s->buffer, 0, false);
    return 0;
}

int zn_byte_source_share(zn_byte_source *s, zn_pool *pool, unsigned calls, zn_error *err)
{
    if (!s->is_file || !zn_byte_source_may_grow(s))
        return 0;
    if (s->pieces == NULL) {
        int rc = zn_pieces_open(&s->pieces, s->fd, s->end_offset, s->total, s->buffer, err);
        if (rc != 0)
            return rc;
        s->buffer = NULL;
    }
    zn_pieces_share(s->pieces, pool, calls);
    return 0;
}

void zn_byte_source_rest(zn_byte_source *s)
{
    if (s->pieces != NULL)
        zn_pieces_rest(s->pieces);
}

void zn_byte_source_next(zn_byte_source *s)
{
    if (s->pieces != NULL)
        zn_pieces_lend(s->pieces);
}

void zn_byte_source_put_back(zn_byte_source *s, zn_span bytes)
{
    ZN_ASSERT(s->end_offset == 0 && bytes.n <= READ_BYTES);
    if (bytes.n != 0)
        memcpy(s->buffer, bytes.p, bytes.n);
    s->unread = zn_cursor_over(s->buffer, bytes.n, false);
    s->end_offset = bytes.n;
}

int zn_byte_source_open_path(zn_byte_source *s, const char *path, zn_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc = 0;
    init(s, path);
    if (fd < 0)
        return zn_fail(err, ZN_ERR_IO, errno, "%s cannot be opened: %s", s->name, strerror(errno));
    if (fstat(fd, &st) != 0)
        rc = zn_fail(err, ZN_ERR_IO, errno, "%s: %s", s->name, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        rc = zn_fail(err, ZN_ERR_IO, EISDIR, "%s is a folder, not a capture", s->name);
    else
        rc = zn_byte_source_open_fd(s, fd, path, err);
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    s->owns_fd = true;
    s->is_file = S_ISREG(st.st_mode) && st.st_size > 0; /* a size of 0: as in /proc */
    s->total = s->is_file ? (uint64_t)st.st_size : 0;
    return 0;
}

void zn_byte_source_close(zn_byte_source *s)
{
    zn_pieces_close(s->pieces);
    zn_block_free(s->buffer, zn_pieces_buffer_bytes());
    if (s->owns_fd)
        (void)close(s->fd);
    init(s, "");
}

/* The unread bytes move to the start of the buffer. */
static void make_room(zn_byte_source *s)
{
    size_t left = zn_cursor_left(&s->unread);
    ZN_ASSERT(left <= ZN_BYTE_SOURCE_MAX);
    if (left != 0 && s->unread.p != s->buffer)
        memmove(s->buffer, s->unread.p, left);
    s->unread = zn_cursor_over(s->buffer, left, false);
}

static int unreadable(const zn_byte_source *s, zn_error *err)
{
    return zn_fail(err, ZN_ERR_IO, errno, "%s cannot be read: %s", s->name, strerror(errno));
}

static int refill_from_pieces(zn_byte_source *s, zn_error *err)
{
    uint64_t left = s->total - s->end_offset;
    ssize_t got = zn_pieces_next(s->pieces, &s->unread);
    if (got < 0)
        return unreadable(s, err);
    s->end_offset += (uint64_t)got;
    s->at_end = (uint64_t)got == left || (size_t)got < ZN_PIECE_BYTES;
    return got > 0;
}

int zn_byte_source_refill(zn_byte_source *s, zn_error *err)
{
    size_t left = zn_cursor_left(&s->unread), most = READ_BYTES;
    ssize_t got;
    if (!zn_byte_source_may_grow(s))
        return 0;
    if (s->pieces != NULL)
        return refill_from_pieces(s, err);
    make_room(s);
    if (s->is_file && most > s->total - s->end_offset)
        most =
            (size_t)(s->total - s->end_offset); /* what is appended meanwhile is for another time */
    got = read(s->fd, s->buffer + left, most);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        struct pollfd wait = {.fd = s->fd, .events = POLLIN};
        if (poll(&wait, 1, -1) >= 0)
            got = read(s->fd, s->buffer + left, most);
    }
    if (got < 0)
        return unreadable(s, err);
    s->unread = zn_cursor_over(s->buffer, left + (size_t)got, false);
    s->end_offset += (uint64_t)got;
    s->at_end = got == 0 || (s->is_file && s->end_offset == s->total);
    return got > 0;
}
