/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* From this size on the kernel can back a block with 2 MiB pages; for a smaller one they are too
 * large. */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define SMALL_PAGE_BYTES 4096 /* page size of systems whose huge pages are that large */

#ifdef ZN_TESTING
static uint64_t fail_after;

void zn_alloc_fail_after(uint64_t n)
{
    fail_after = n;
}

static bool must_fail(void)
{
    return ZN_UNLIKELY(fail_after != 0) && --fail_after == 0;
}
#else
static inline bool must_fail(void)
{
    return false;
}
#endif

void *zn_block_alloc(size_t bytes)
{
    void *block;
    if (must_fail())
        return NULL;
    block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (block == MAP_FAILED)
        return NULL;
#ifdef MADV_DONTDUMP
    (void)madvise(block, bytes, MADV_DONTDUMP);
#endif
#ifdef MADV_HUGEPAGE
    /* A block that is hardly used stays on small pages: only its memory after the first 2 MiB gets
     * huge ones, and only where these have 2 MiB (with pages of 64 KiB, as on some ARM systems, 512
     * MiB). */
    if (bytes >= 4 * HUGE_PAGE_BYTES && sysconf(_SC_PAGESIZE) == SMALL_PAGE_BYTES)
        (void)madvise((uint8_t *)block + HUGE_PAGE_BYTES, bytes - HUGE_PAGE_BYTES, MADV_HUGEPAGE);
#endif
    return block;
}

void zn_block_free(void *block, size_t bytes)
{
    if (block != NULL)
        (void)munmap(block, bytes);
}

void *zn_block_grow(void *block, size_t *bytes, size_t wanted)
{
    size_t size = *bytes == 0 ? (size_t)sysconf(_SC_PAGESIZE) : *bytes;
    void *larger;
    if (block != NULL && wanted <= *bytes)
        return block;
    while (size < wanted)
        size *= 2;
    larger = zn_block_alloc(size);
    if (larger == NULL)
        return NULL;
    if (block != NULL)
        memcpy(larger, block, *bytes);
    zn_block_free(block, *bytes);
    *bytes = size;
    return larger;
}

void zn_block_clear(void *block, size_t bytes)
{
    /* On failure the pages stay: they are cleared here, because callers rely on zeros. */
    if (madvise(block, bytes, MADV_DONTNEED) != 0)
        memset(block, 0, bytes);
}

/* Writes one byte of each page, with the value it has. */
static void touch(uint8_t *block, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < bytes; at += page) {
        volatile uint8_t *byte = block + at;
        *byte = *byte;
    }
}

bool zn_block_populate(void *block, size_t bytes)
{
    if (must_fail())
        return false;
#ifdef MADV_POPULATE_WRITE
    if (madvise(block, bytes, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL) /* what a kernel before 5.14 answers */
        return false;
#endif
    touch(block, bytes);
    return true;
}

size_t zn_memory_available(void)
{
    static const char wanted[] = "MemAvailable:"; /* the third line */
    char text[512];
    const char *found = NULL;
    ssize_t n;
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return SIZE_MAX;
    n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (n > 0) {
        text[n] = '\0';
        found = memmem(text, (size_t)n, wanted, sizeof wanted - 1);
    }
    if (found == NULL)
        return SIZE_MAX;
    return (size_t)strtoull(found + sizeof wanted - 1, NULL, 10) * 1024;
}

void *zn_heap_alloc(size_t bytes)
{
    return must_fail() ? NULL : calloc(1, bytes);
}

void *zn_heap_resize(void *object, size_t bytes)
{
    return must_fail() ? NULL : realloc(object, bytes);
}

void zn_heap_free(void *object)
{
    free(object);
}

int zn_slab_init(zn_slab *s, size_t object_bytes, uint32_t cap, zn_error *err)
{
    memset(s, 0, sizeof *s);
    if (object_bytes < sizeof(uint32_t) || cap == 0 || cap > ZN_SLAB_MOST)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a table of %u objects of %zu bytes cannot be made",
                       cap, object_bytes);
    s->base = zn_block_alloc(object_bytes * cap);
    if (s->base == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0,
                       "no memory for a table of %u entries of %zu bytes; lower its limit", cap,
                       object_bytes);
    s->object_bytes = object_bytes;
    s->cap = cap;
    return 0;
}

void zn_slab_fini(zn_slab *s)
{
    zn_block_free(s->base, s->object_bytes * s->cap);
    memset(s, 0, sizeof *s);
}

bool zn_slab_populate(zn_slab *s)
{
    s->resident = zn_block_populate(s->base, s->object_bytes * s->cap);
    return s->resident;
}

/* Takes an object, whose first `dirty` bytes have to be zeroed. */
static uint32_t take(zn_slab *s, size_t dirty)
{
    uint32_t index = s->first_free;
    if (index != 0) {
        uint8_t *object = zn_slab_at(s, index);
        memcpy(&s->first_free, object, sizeof s->first_free);
        ZN_PREFETCH_WRITE(s->base +
                          (size_t)(s->first_free - (s->first_free != 0)) * s->object_bytes);
        memset(object, 0, dirty);
    } else if (s->used_high < s->cap) {
        index = ++s->used_high; /* never used before: zero by the kernel */
        /* Writes to the object's page before the page is read. The kernel maps a shared page of
         * zeros to a page that is read first, and replacing the mapping interrupts every thread of
         * the process. If the object begins in the previous page, the previous object has written
         * to that page. */
        memset(s->base + (size_t)index * s->object_bytes - 1, 0, 1);
    } else {
        return 0;
    }
    s->live++;
    return index;
}

uint32_t zn_slab_take(zn_slab *s)
{
    return take(s, s->object_bytes);
}

uint32_t zn_slab_take_zeroed(zn_slab *s)
{
    return take(s, sizeof s->first_free);
}

void zn_slab_give(zn_slab *s, uint32_t index)
{
    uint8_t *object = zn_slab_at(s, index);
    memcpy(object, &s->first_free, sizeof s->first_free);
    s->first_free = index;
    s->live--;
}

void zn_slab_reset(zn_slab *s)
{
    if (s->resident)
        memset(s->base, 0, zn_slab_bytes(s));
    else if (s->used_high != 0)
        zn_block_clear(s->base, s->object_bytes * s->cap);
    s->used_high = s->first_free = s->live = 0;
}

size_t zn_slab_bytes(const zn_slab *s)
{
    return (size_t)s->used_high * s->object_bytes;
}
