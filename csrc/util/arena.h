/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of all memory, at start-up: blocks, and slabs of objects of one size.
 *
 * A block is address space from the kernel: zeroed, page-aligned, and physical memory only where it
 * is touched. A table can therefore be laid out for its cap at start, never has to move, and costs
 * what it uses. A slab hands out objects by 32-bit index (1 .. cap; 0 means none), reuses the most
 * recently freed first, and never grows past its cap.
 *
 * Not thread-safe: a slab belongs to the engine that made it.
 */
#ifndef ZN_UTIL_ARENA_H
#define ZN_UTIL_ARENA_H

#include "util/base.h"

/*
 * Returns `bytes` (> 0) bytes of zeroed memory, page-aligned, or NULL if the system has no memory.
 * Large blocks ask for huge pages, which the system may refuse.
 */
void *zn_block_alloc(size_t bytes);
/* Gives a block of `bytes` bytes back. NULL is fine. */
void zn_block_free(void *block, size_t bytes);
/*
 * Returns a block of at least `wanted` bytes that begins with the content of `block` (NULL: none),
 * and sets *bytes to its size. It may be the same block; a larger one has twice the size at least,
 * so that growing step by step costs little, and the old one is given back. On NULL the old block
 * stays valid.
 */
void *zn_block_grow(void *block, size_t *bytes, size_t wanted);
/* Gives the block's physical pages back to the system; the block then reads as zeros. */
void zn_block_clear(void *block, size_t bytes);
/*
 * Has the system put physical memory under the whole block now, so that no later access waits for
 * it. The content stays. Returns false when the system has no memory.
 */
bool zn_block_populate(void *block, size_t bytes);
/*
 * Returns how many bytes of memory the system has left (/proc/meminfo); SIZE_MAX where it does not
 * say. The limit of a control group is not known here.
 */
size_t zn_memory_available(void);

/* Returns a small zeroed object for things made once at start; NULL when memory is out. */
void *zn_heap_alloc(size_t bytes);
/* Changes a heap object's size, as realloc does, and returns it; on NULL the old one stays
 * valid. */
void *zn_heap_resize(void *object, size_t bytes);
/* Frees a heap object. NULL is fine. */
void zn_heap_free(void *object);

#ifdef ZN_TESTING
/*
 * Makes the n-th call from now on fail, once (0: none). Counted are the three allocation functions
 * and zn_block_populate.
 */
void zn_alloc_fail_after(uint64_t n);
#endif

typedef struct zn_slab {
    uint8_t *base;
    size_t object_bytes;
    uint32_t cap;        /* most objects ever alive */
    uint32_t used_high;  /* highest index ever handed out */
    uint32_t first_free; /* list of freed objects, linked through their first four bytes */
    uint32_t live;
    bool resident; /* populated, and keeps its memory */
} zn_slab;

#define ZN_SLAB_MOST (UINT32_MAX - 1) /* objects that a slab can have */

/* Returns `wanted`, or as many objects as a slab can have. */
static inline uint32_t zn_slab_cap(uint64_t wanted)
{
    return wanted < ZN_SLAB_MOST ? (uint32_t)wanted : ZN_SLAB_MOST;
}

/* Prepares a slab for `cap` (1 .. ZN_SLAB_MOST) objects of object_bytes (>= 4) each. Returns 0,
 * -ZN_ERR_CONFIG for other numbers, or -ZN_ERR_CAPACITY; *err is filled. */
int zn_slab_init(zn_slab *s, size_t object_bytes, uint32_t cap, zn_error *err);
/* Gives the slab's memory back; a zeroed slab is fine. */
void zn_slab_fini(zn_slab *s);
/* Takes physical memory for all objects now and keeps it; returns false if the system has no
 * memory. */
bool zn_slab_populate(zn_slab *s);
/* Takes an object, all of whose bytes are zero. Returns its index, or 0 when the slab is full. */
uint32_t zn_slab_take(zn_slab *s);
/* Takes an object as zn_slab_take does, but faster: the caller zeroes each object before it gives
 * the object back. */
uint32_t zn_slab_take_zeroed(zn_slab *s);
/* Frees the object of this index. */
void zn_slab_give(zn_slab *s, uint32_t index);
/* Frees every object, and gives their memory back unless the slab was populated. */
void zn_slab_reset(zn_slab *s);
/* Returns the bytes of memory that the slab's objects have touched. */
size_t zn_slab_bytes(const zn_slab *s);

static inline void *zn_slab_at(const zn_slab *s, uint32_t index)
{
    ZN_ASSERT(index >= 1 && index <= s->used_high);
    return s->base + (size_t)(index - 1) * s->object_bytes;
}

#endif
