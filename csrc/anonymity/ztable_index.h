/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash index from a keyed 64-bit hash to 32-bit references that grows and shrinks one bucket at a
 * time (linear hashing, Litwin 1980): no call ever costs a rebuild, and memory follows the number
 * of references.
 *
 * A bucket is one cache line of ten references, each with an 8-bit tag to compare and eight bits of
 * its hash that say where it goes when the bucket is split, so that its object need not be read.
 * Chains of overflow buckets are kept compact, so an index laid out for `cap` references can never
 * run out of them. References are opaque and non-zero; the caller compares the objects that they
 * refer to.
 */
#ifndef ZN_ANONYMITY_ZTABLE_INDEX_H
#define ZN_ANONYMITY_ZTABLE_INDEX_H

#include "util/arena.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define ZN_ZBUCKET_SLOTS 10

typedef struct zn_zbucket {
    uint8_t tag[ZN_ZBUCKET_SLOTS]; /* 0: slot empty; filled slots come first */
    /* bits of the hash, starting with the bit that the next split reads */
    uint8_t next[ZN_ZBUCKET_SLOTS];
    uint32_t ref[ZN_ZBUCKET_SLOTS];
    uint32_t more; /* overflow bucket that continues this one, 0: none */
} zn_zbucket;

_Static_assert(sizeof(zn_zbucket) == 64, "a bucket is a cache line");

/* Functions by which an index learns of a reference; the first argument is the owner. */
typedef struct zn_zindex_keys {
    uint64_t (*hash)(const void *owner, uint32_t ref); /* the hash it was added under */
    void (*fetch)(const void *owner, uint32_t ref);    /* prefetches what `hash` will read */
} zn_zindex_keys;

typedef struct zn_zindex {
    zn_zbucket *bucket;
    zn_slab overflow;
    zn_zindex_keys keys;
    const void *owner;
    uint32_t bucket_cap;
    uint32_t level; /* bits of the hash that choose a bucket not yet split in this round */
    uint32_t mask;  /* 2^level - 1 */
    uint32_t split; /* buckets already split in this round */
    uint32_t high;  /* most buckets in use since pages were last given back */
    uint32_t live;
    bool resident; /* populated, and keeps its memory */
} zn_zindex;

/* Returns 0, or -ZN_ERR_CAPACITY with *err filled; zn_zindex_fini accepts what is left. */
int zn_zindex_init(zn_zindex *x, uint32_t cap, zn_zindex_keys keys, const void *owner,
                   zn_error *err);
void zn_zindex_fini(zn_zindex *x);
/* Takes the memory of all buckets from the system now and keeps it; returns false if the system has
 * no memory. */
bool zn_zindex_populate(zn_zindex *x);
/* Forgets every reference. */
void zn_zindex_reset(zn_zindex *x);

/* Adds a reference that is not in yet. */
void zn_zindex_add(zn_zindex *x, uint64_t hash, uint8_t tag, uint32_t ref);
/* The slot of a reference, to be replaced by another of the same hash; NULL: it is not in. */
uint32_t *zn_zindex_slot(const zn_zindex *x, uint64_t hash, uint32_t ref);
/* Takes out a reference that is in. */
void zn_zindex_remove(zn_zindex *x, uint64_t hash, uint32_t ref);

/* Bytes of memory touched. */
size_t zn_zindex_bytes(const zn_zindex *x);
/* Checks every invariant. Returns NULL, or a text that names the broken invariant. Slow; for
 * tests. */
const char *zn_zindex_check(const zn_zindex *x);

static inline uint32_t zn_zindex_buckets(const zn_zindex *x)
{
    return x->mask + 1 + x->split;
}

static inline zn_zbucket *zn_zindex_home(const zn_zindex *x, uint64_t hash)
{
    uint32_t half = x->mask + 1, b = (uint32_t)hash & (half + x->mask);
    uint32_t missing = -(uint32_t)(b >= half + x->split); /* all ones: no such bucket yet */
    return x->bucket + (b - (half & missing));            /* without a branch to mispredict */
}

static inline zn_zbucket *zn_zindex_more(const zn_zindex *x, const zn_zbucket *b)
{
    return b->more != 0 ? zn_slab_at(&x->overflow, b->more) : NULL;
}

/* Prefetches the overflow bucket after `b`. If `b` is out of date that is another one, which is
 * mapped as well. */
static inline __attribute__((always_inline)) void zn_zindex_fetch_more(const zn_zindex *x,
                                                                       const zn_zbucket *b)
{
    if (ZN_UNLIKELY(b->more != 0))
        ZN_PREFETCH_WRITE((const zn_zbucket *)(const void *)x->overflow.base + (b->more - 1));
}

/* Bit i is set when slot i has this tag. */
static inline uint32_t zn_zbucket_match(const zn_zbucket *b, uint8_t tag)
{
#ifdef __SSE2__
    __m128i tags = _mm_load_si128((const __m128i *)(const void *)b);
    __m128i equal = _mm_cmpeq_epi8(tags, _mm_set1_epi8((char)tag));
    return (uint32_t)_mm_movemask_epi8(equal) & ((1u << ZN_ZBUCKET_SLOTS) - 1);
#else
    uint32_t hits = 0;
    for (uint32_t i = 0; i < ZN_ZBUCKET_SLOTS; i++)
        hits |= (uint32_t)(b->tag[i] == tag) << i;
    return hits;
#endif
}

#endif
