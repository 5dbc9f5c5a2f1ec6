/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the page cache holds the file in pieces of 2 MiB, and file and address have the same boundaries,
 * a part costs one entry of the page table.
 */
#include "io/file_map.h"

#include "io/map_guard.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PART_BYTES ((uint64_t)2 << 20) /* a huge page */
#define AROUND_BYTES ((uint64_t)64 << 10)
#define KEPT_BYTES (4 * PART_BYTES) /* behind what was populated last: what is still being used */

bool zn_file_map_is_cut(const zn_file_map *m)
{
    return zn_map_guard_hit(m->guard);
}

/* Its size now, as far as it was mapped. */
static uint64_t size_of(const zn_file_map *m)
{
    struct stat st;
    if (fstat(m->fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0)
        return 0;
    return (uint64_t)st.st_size < m->total ? (uint64_t)st.st_size : m->total;
}

static bool reserve(zn_file_map *m, uint64_t total)
{
    uintptr_t at;
    if (total > SIZE_MAX / 2)
        return false;
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

/* One byte of each: the kernel maps what it has around it. Asking for all (MADV_POPULATE_READ) takes longer,
 * page by page, where the cache holds the file in small pieces. */
static void touch(const uint8_t *bytes, uint64_t n)
{
    for (uint64_t at = 0; at < n; at += AROUND_BYTES)
        (void)*(const volatile uint8_t *)(bytes + at);
}

static bool map(zn_file_map *m, int fd, uint64_t total)
{
    void *at = (void *)(uintptr_t)m->bytes;
    m->fd = fd;
    m->total = total;
    if (mmap(at, (size_t)total, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        return false;
    m->guard = zn_map_guard_add(m->bytes, (size_t)total);
    return m->guard >= 0;
}

bool zn_file_map_open(zn_file_map *m, int fd, uint64_t total)
{
    *m = (zn_file_map){.guard = -1};
    if (reserve(m, total) && map(m, fd, total))
        return true;
    zn_file_map_close(m);
    return false;
}

void zn_file_map_close(zn_file_map *m)
{
    if (m->reserved != NULL) {
        zn_map_guard_remove(m->guard);
        (void)munmap(m->reserved, m->reserved_bytes);
    }
    *m = (zn_file_map){.guard = -1};
}

int zn_file_map_check(const zn_file_map *m)
{
    bool shorter = size_of(m) < m->populated;
    errno = shorter ? ESTALE : EIO;
    return shorter || zn_file_map_is_cut(m) ? -1 : 0;
}

/* The pages of parts that are far enough behind are given back. */
static void release(zn_file_map *m)
{
    uint64_t end = m->populated < KEPT_BYTES ? 0 : m->populated - KEPT_BYTES;
    if (end > m->released)
        (void)madvise((void *)(uintptr_t)(m->bytes + m->released), (size_t)(end - m->released),
                      MADV_DONTNEED);
    m->released = end > m->released ? end : m->released;
}

int64_t zn_file_map_next(zn_file_map *m)
{
    uint64_t size = size_of(m), n;
    if (zn_file_map_check(m) != 0)
        return -1;
    n = size - m->populated < PART_BYTES ? size - m->populated : PART_BYTES;
    release(m);
    touch(m->bytes + m->populated, n);
    m->populated += n;
    return zn_file_map_check(m) == 0 ? (int64_t)n : -1;
}
