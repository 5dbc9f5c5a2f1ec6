/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mapped file is walked in windows: the pages of the next one are asked for in one call, which
 * costs less than a fault a page, and the pages behind are given back, so that a large capture does
 * not look like used memory. Reading a page that the file no longer has would end the process
 * (SIGBUS); asking for it first fails as an ordinary error, and the size is checked each batch.
 */
#include "io/byte_source.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_BYTES ((uint64_t)2 << 20)
#define WINDOW_MARGIN                                                                              \
    ((uint64_t)512 << 10)              /* room for the record that straddles the window's end */
#define READ_BYTES ((size_t)256 << 10) /* one read stays within the second-level cache */
#define BUFFER_BYTES (ZN_BYTE_SOURCE_MAX + READ_BYTES)

static void init(zn_byte_source *s, const char *name)
{
    memset(s, 0, sizeof *s);
    s->fd = -1;
    s->batch_end = UINT64_MAX;
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
    s->buffer = zn_block_alloc(BUFFER_BYTES); /* takes memory only as far as it is used */
    if (s->buffer == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to read %s", s->name);
    s->fd = fd;
    s->unread = zn_cursor_over(s->buffer, 0, false);
    return 0;
}

void zn_byte_source_put_back(zn_byte_source *s, zn_span bytes)
{
    ZN_ASSERT(s->end_offset == 0 && bytes.n <= READ_BYTES);
    if (bytes.n != 0)
        memcpy(s->buffer, bytes.p, bytes.n);
    s->unread = zn_cursor_over(s->buffer, bytes.n, false);
    s->end_offset = bytes.n;
}

static bool map_file(zn_byte_source *s, int fd, size_t bytes, const char *name)
{
    void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return false;
    zn_byte_source_open_memory(s, map, bytes);
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    s->map = map;
    s->batch_end = 0;
    s->fd = fd;
    return true;
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
    else if (!S_ISREG(st.st_mode) || st.st_size == 0 || !map_file(s, fd, (size_t)st.st_size, path))
        rc = zn_byte_source_open_fd(s, fd, path, err);
    if (rc != 0)
        (void)close(fd);
    else
        s->owns_fd = true;
    return rc;
}

void zn_byte_source_close(zn_byte_source *s)
{
    if (s->map != NULL)
        (void)munmap(s->map, s->total);
    zn_block_free(s->buffer, BUFFER_BYTES);
    if (s->owns_fd)
        (void)close(s->fd);
    init(s, "");
}

/* Asks for the pages of the next window; false when the system could not provide one. */
static bool populate(zn_byte_source *s, uint64_t from)
{
#ifdef MADV_POPULATE_READ
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = from - from % page;
    uint64_t bytes = WINDOW_BYTES + WINDOW_MARGIN;
    if (bytes > s->total - begin)
        bytes = s->total - begin;
    if (begin > s->map_dropped) {
        (void)madvise((uint8_t *)s->map + s->map_dropped, begin - s->map_dropped, MADV_DONTNEED);
        s->map_dropped = begin;
    }
    /* Older kernels do not know the advice: the pages then come one by one. */
    return madvise((uint8_t *)s->map + begin, bytes, MADV_POPULATE_READ) == 0 || errno != EFAULT;
#else
    (void)from;
    return true;
#endif
}

int zn_byte_source_begin(zn_byte_source *s, zn_error *err)
{
    struct stat st;
    uint64_t offset = zn_byte_source_offset(s);
    bool readable = true;
    if (s->map == NULL)
        return 0;
    if (offset >= s->batch_end && offset < s->total) {
        readable = populate(s, offset);
        s->batch_end = offset + WINDOW_BYTES;
    }
    if (fstat(s->fd, &st) != 0)
        return zn_fail(err, ZN_ERR_IO, errno, "%s: %s", s->name, strerror(errno));
    if ((uint64_t)st.st_size < s->total)
        return 1;
    if (readable)
        return 0;
    s->batch_end = offset;
    return zn_fail(err, ZN_ERR_IO, EIO, "%s cannot be read at byte %llu", s->name,
                   (unsigned long long)offset);
}

int zn_byte_source_refill(zn_byte_source *s, zn_error *err)
{
    size_t left = zn_cursor_left(&s->unread);
    ssize_t got;
    if (!zn_byte_source_may_grow(s))
        return 0;
    ZN_ASSERT(left <= ZN_BYTE_SOURCE_MAX);
    if (left != 0 && s->unread.p != s->buffer)
        memmove(s->buffer, s->unread.p, left);
    s->unread = zn_cursor_over(s->buffer, left, false);
    got = read(s->fd, s->buffer + left, READ_BYTES);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        struct pollfd wait = {.fd = s->fd, .events = POLLIN};
        if (poll(&wait, 1, -1) >= 0)
            got = read(s->fd, s->buffer + left, READ_BYTES);
    }
    if (got < 0)
        return zn_fail(err, ZN_ERR_IO, errno, "%s cannot be read: %s", s->name, strerror(errno));
    s->at_end = got == 0;
    s->unread = zn_cursor_over(s->buffer, left + (size_t)got, false);
    s->end_offset += (uint64_t)got;
    return got > 0;
}
