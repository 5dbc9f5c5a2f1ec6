/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All memory comes from here, and at start-up: blocks, and slabs of fixed-size objects.
 *
 * A block is address space from the kernel: zeroed, page-aligned, and physical memory only where it
 * is touched. A table can therefore be laid out for its cap at start, never has to move, and costs
 * what it uses. A slab hands out objects by 32-bit index (1 .. cap; 0 means none), reuses the most
 * recently freed first, and never grows past its cap.
 *
 * Not thread-safe: an arena belongs to the engine that made it.
 */
#ifndef ZN_UTIL_ARENA_H
#define ZN_UTIL_ARENA_H

#include "util/base.h"

/*
 * Zeroed memory of `bytes` bytes, page-aligned; NULL when the system has none. Large blocks ask for
 * huge pages, which the system may or may not give.
 */
void *zn_block_alloc(size_t bytes);
void zn_block_free(void *block, size_t bytes);
/* Gives the block's physical pages back; its content reads as zero afterwards. */
void zn_block_clear(void *block, size_t bytes);
/*
 * Has physical memory put under the whole block now, so that nothing waits for it later; what it
 * holds stays. False when the system has none.
 */
bool zn_block_populate(void *block, size_t bytes);
/*
 * Bytes that the system could give now; SIZE_MAX where it does not say (/proc/meminfo). The limit
 * of a control group is not known here.
 */
size_t zn_memory_available(void);

/* Small zeroed heap object for things made once at start; NULL when memory is out. */
void *zn_heap_alloc(size_t bytes);
/* Changes a heap object's size, as realloc does; NULL leaves the old one valid. */
void *zn_heap_resize(void *object, size_t bytes);
void zn_heap_free(void *object);

#ifdef ZN_TESTING
/*
 * Makes the call number `n` from now on fail once (0: none), counting the three allocation
 * functions and zn_block_populate.
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

/* As many objects as are wanted, or as a slab can have. */
static inline uint32_t zn_slab_cap(uint64_t wanted)
{
    return wanted < ZN_SLAB_MOST ? (uint32_t)wanted : ZN_SLAB_MOST;
}

/* object_bytes >= 4; returns 0, or -ZN_ERR_CAPACITY and fills *err. */
int zn_slab_init(zn_slab *s, size_t object_bytes, uint32_t cap, zn_error *err);
void zn_slab_fini(zn_slab *s);
/* Takes the memory of all objects from the system now, to be kept; false when it has none. */
bool zn_slab_populate(zn_slab *s);
/* Index of an object whose bytes are all zero, or 0 when the slab is full. */
uint32_t zn_slab_take(zn_slab *s);
/* The same, where each object is zeroed before it is given back: then it need not be done here. */
uint32_t zn_slab_take_zeroed(zn_slab *s);
void zn_slab_give(zn_slab *s, uint32_t index);
/* Forgets every object, and gives their memory back unless the slab was populated. */
void zn_slab_reset(zn_slab *s);
/* Bytes of memory that objects of the slab have touched. */
size_t zn_slab_bytes(const zn_slab *s);

static inline void *zn_slab_at(const zn_slab *s, uint32_t index)
{
    ZN_ASSERT(index >= 1 && index <= s->used_high);
    return s->base + (size_t)(index - 1) * s->object_bytes;
}

#endif
