/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If the page cache has the file in blocks of 2 MiB, aligned like the addresses, a part takes one
 * entry of the page table. A file that is smaller than such a block is mapped at any address.
 */
#include "capture/mapped_file.h"

#include "capture/sigbus_guard.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define PART_BYTES ((uint64_t)2 << 20)    /* a huge page */
#define AROUND_BYTES ((uint64_t)64 << 10) /* mapped by the kernel around a touched page */
#define STORED_BYTES (4 * PART_BYTES)     /* behind the last part: their frames are in use */
/* Bytes given back at a time, because each time the kernel interrupts every processor that runs a
 * thread of the process. */
#define RELEASED_BYTES (8 * PART_BYTES)

bool zn_file_map_is_cut(const zn_file_map *m)
{
    return zn_sigbus_guard_hit(m->guard);
}

/* Returns the file's size now, at most `total`; -1 when the system does not say. */
static int64_t size_of(const zn_file_map *m)
{
    struct stat st;
    if (fstat(m->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return -1;
    return (uint64_t)st.st_size < m->total ? st.st_size : (int64_t)m->total;
}

/* Returns true when a file that has this size now can be believed; if not, sets errno. */
static bool is_believed(const zn_file_map *m, int64_t size)
{
    bool shorter = size >= 0 && (uint64_t)size < m->populated;
    if (shorter || size < 0 || zn_file_map_is_cut(m)) {
        errno = shorter ? ESTALE : EIO;
        return false;
    }
    return true;
}

/* Returns true when addresses are not limited. Under a limit they are left to the tables. */
static bool has_addresses(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

static bool reserve(zn_file_map *m, uint64_t total)
{
    uintptr_t at;
    m->reserved_bytes = (size_t)(total + PART_BYTES);
    m->reserved = mmap(NULL, m->reserved_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->reserved == MAP_FAILED) {
        m->reserved = NULL;
        return false;
    }
    at = (uintptr_t)m->reserved;
    m->bytes = m->reserved + (-at & (PART_BYTES - 1));
    return true;
}

/* Reads one byte in every AROUND_BYTES, around which the kernel maps the pages that it has. To ask
 * for all of them (MADV_POPULATE_READ) takes longer, page by page, where the cache holds the file
 * in small blocks. */
static void touch(const uint8_t *bytes, uint64_t n)
{
    for (uint64_t at = 0; at < n; at += AROUND_BYTES)
        (void)*(const volatile uint8_t *)(bytes + at);
}

static bool map(zn_file_map *m, int fd, uint64_t total)
{
    void *at = (void *)(uintptr_t)m->bytes;
    int flags = MAP_SHARED | (at != NULL ? MAP_FIXED : 0);
    at = mmap(at, (size_t)total, PROT_READ, flags, fd, 0);
    if (at == MAP_FAILED)
        return false;
    if (m->reserved == NULL) {
        m->bytes = m->reserved = at;
        m->reserved_bytes = (size_t)total;
    }
    m->fd = fd;
    m->total = total;
#ifdef MADV_DONTDUMP
    (void)madvise(at, (size_t)total, MADV_DONTDUMP); /* no traffic in a core file */
#endif
    m->guard = zn_sigbus_guard_add(m->bytes, (size_t)total);
    return m->guard >= 0;
}

bool zn_file_map_open(zn_file_map *m, int fd, uint64_t total)
{
    *m = (zn_file_map){.guard = -1};
    if (total <= SIZE_MAX / 2 && has_addresses() && (total < PART_BYTES || reserve(m, total)) &&
        map(m, fd, total))
        return true;
    zn_file_map_close(m);
    return false;
}

void zn_file_map_close(zn_file_map *m)
{
    if (m->reserved != NULL) {
        zn_sigbus_guard_remove(m->guard);
        (void)munmap(m->reserved, m->reserved_bytes);
    }
    *m = (zn_file_map){.guard = -1};
}

int zn_file_map_check(const zn_file_map *m)
{
    return is_believed(m, size_of(m)) ? 0 : -1;
}

/* Gives back the pages of parts that are far enough behind. */
static void release(zn_file_map *m)
{
    uint64_t end = m->populated < STORED_BYTES ? 0 : m->populated - STORED_BYTES;
    if (end < m->released + RELEASED_BYTES)
        return;
    (void)madvise((void *)(uintptr_t)(m->bytes + m->released), (size_t)(end - m->released),
                  MADV_DONTNEED);
    m->released = end;
}

int64_t zn_file_map_next(zn_file_map *m)
{
    int64_t size = size_of(m);
    uint64_t n;
    if (!is_believed(m, size))
        return -1;
    n = (uint64_t)size - m->populated;
    if (n > PART_BYTES)
        n = PART_BYTES;
    release(m);
    touch(m->bytes + m->populated, n);
    m->populated += n;
    return is_believed(m, size) ? (int64_t)n : -1;
}
