/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads streams, and files that cannot be mapped, in portions that stay in the second-level cache
 * until they are used.
 */
#include "capture/byte_source.h"

#include "util/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)
#define BUFFER_BYTES (ZN_BYTE_SOURCE_MAX + READ_BYTES)
#define WAIT_MS 200 /* so that a signal right before a wait, which does not end it, is noticed */

static void init(zn_byte_source *s, const char *name)
{
    memset(s, 0, sizeof *s);
    s->fd = -1;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
}

void zn_byte_source_open_memory(zn_byte_source *s, const uint8_t *bytes, size_t n)
{
    init(s, "the buffer");
    s->pending = zn_cursor_over(bytes, n, false);
    s->end_offset = s->total = n;
}

static int open_buffer(zn_byte_source *s, int fd, zn_error *err)
{
    s->buffer = zn_block_alloc(BUFFER_BYTES); /* uses memory only where it is touched */
    if (s->buffer == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to read %s", s->name);
    s->fd = fd;
    s->pending = zn_cursor_over(s->buffer, 0, false);
    return 0;
}

int zn_byte_source_open_fd(zn_byte_source *s, int fd, const char *name, zn_error *err)
{
    init(s, name);
    return open_buffer(s, fd, err);
}

void zn_byte_source_put_back(zn_byte_source *s, zn_span bytes)
{
    ZN_ASSERT(s->end_offset == 0 && bytes.n <= READ_BYTES);
    if (bytes.n != 0)
        memcpy(s->buffer, bytes.p, bytes.n);
    s->pending = zn_cursor_over(s->buffer, bytes.n, false);
    s->end_offset = bytes.n;
}

/* Takes over fd, the open file. */
static int open_file(zn_byte_source *s, int fd, const struct stat *st, zn_error *err)
{
    bool is_file = S_ISREG(st->st_mode) && st->st_size > 0; /* files in /proc have a size of 0 */
    uint64_t total = is_file ? (uint64_t)st->st_size : 0;
    int rc = 0;
    if (is_file && zn_file_map_open(&s->map, fd, total)) {
        s->fd = fd;
        s->pending = zn_cursor_over(s->map.bytes, 0, false);
    } else {
        rc = open_buffer(s, fd, err);
    }
    s->is_file = is_file;
    s->total = total;
    return rc;
}

int zn_byte_source_open_path(zn_byte_source *s, const char *path, zn_error *err)
{
    struct stat st;
    int fd, rc = 0;
    init(s, path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return zn_fail(err, ZN_ERR_IO, errno, "%s cannot be opened: %s", s->name, strerror(errno));
    if (fstat(fd, &st) != 0)
        rc = zn_fail(err, ZN_ERR_IO, errno, "%s: %s", s->name, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        rc = zn_fail(err, ZN_ERR_IO, EISDIR, "%s is a folder, not a capture", s->name);
    else
        rc = open_file(s, fd, &st, err);
    if (rc != 0)
        (void)close(fd);
    s->owns_fd = rc == 0;
    return rc;
}

void zn_byte_source_close(zn_byte_source *s)
{
    zn_file_map_close(&s->map);
    zn_block_free(s->buffer, BUFFER_BYTES);
    if (s->owns_fd)
        (void)close(s->fd);
    init(s, "");
}

/* Moves the pending bytes to the start of the buffer. */
static void compact(zn_byte_source *s)
{
    size_t left = zn_cursor_left(&s->pending);
    ZN_ASSERT(left <= ZN_BYTE_SOURCE_MAX);
    if (left != 0 && s->pending.p != s->buffer)
        memmove(s->buffer, s->pending.p, left);
    s->pending = zn_cursor_over(s->buffer, left, false);
    s->fetched = NULL;
}

static int unreadable(const zn_byte_source *s, zn_error *err)
{
    return zn_fail(err, ZN_ERR_IO, errno, "%s cannot be read: %s", s->name, strerror(errno));
}

/* Fails with the reason that capture/mapped_file left in errno. */
static int not_believed(const zn_byte_source *s, zn_error *err)
{
    if (errno == ESTALE)
        return zn_fail(err, ZN_ERR_IO, errno,
                       "%s was cut while it was read: read it again as it is now", s->name);
    return zn_fail(err, ZN_ERR_IO, errno, "%s was cut while it was read, or cannot be read: %s",
                   s->name, strerror(errno));
}

int zn_byte_source_check(const zn_byte_source *s, zn_error *err)
{
    if (s->map.bytes == NULL || zn_file_map_check(&s->map) == 0)
        return 0;
    return not_believed(s, err);
}

static int refill_from_map(zn_byte_source *s, zn_error *err)
{
    int64_t got = zn_file_map_next(&s->map);
    if (got < 0)
        return not_believed(s, err);
    s->pending = zn_cursor_over(s->pending.p, zn_cursor_left(&s->pending) + (size_t)got, false);
    s->end_offset += (uint64_t)got;
    s->at_end = got == 0 || s->end_offset == s->total;
    return got > 0;
}

/* Reads as read(2) does; errno is EINTR also when a stream has had nothing for WAIT_MS. */
static ssize_t read_some(const zn_byte_source *s, uint8_t *to, size_t most)
{
    struct pollfd wait = {.fd = s->fd, .events = POLLIN};
    int ready = s->is_file ? 1 : poll(&wait, 1, WAIT_MS);
    if (ready > 0)
        return read(s->fd, to, most);
    if (ready == 0)
        errno = EINTR;
    return -1;
}

int zn_byte_source_refill(zn_byte_source *s, zn_error *err)
{
    size_t left = zn_cursor_left(&s->pending), most = READ_BYTES;
    ssize_t got;
    if (!zn_byte_source_may_grow(s))
        return 0;
    if (s->map.bytes != NULL)
        return refill_from_map(s, err);
    compact(s);
    if (s->is_file && most > s->total - s->end_offset)
        most = (size_t)(s->total - s->end_offset); /* not those appended since */
    got = read_some(s, s->buffer + left, most);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        errno = EINTR; /* another process took the bytes */
    if (got < 0)
        return unreadable(s, err);
    s->pending = zn_cursor_over(s->buffer, left + (size_t)got, false);
    s->end_offset += (uint64_t)got;
    s->at_end = got == 0 || (s->is_file && s->end_offset == s->total);
    return got > 0;
}
