/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash index from a keyed 64-bit hash to 32-bit references that grows and shrinks one bucket at a
 * time (linear hashing, Litwin 1980): no call ever costs a rebuild, and memory follows what is in.
 *
 * A bucket is one cache line of twelve references with an 8-bit tag each. Chains of overflow
 * buckets are kept compact, so an index laid out for `cap` references can never run out of them.
 * References are opaque and non-zero; what they stand for is the caller's to compare.
 */
#ifndef ZN_STATE_ZTABLE_INDEX_H
#define ZN_STATE_ZTABLE_INDEX_H

#include "base/arena.h"

#include <string.h>

#define ZN_ZBUCKET_SLOTS 12

typedef struct zn_zbucket {
    uint8_t tag[ZN_ZBUCKET_SLOTS]; /* 0: slot empty; filled slots come first */
    uint32_t ref[ZN_ZBUCKET_SLOTS];
    uint32_t more; /* overflow bucket that continues this one, 0: none */
} zn_zbucket;

_Static_assert(sizeof(zn_zbucket) == 64, "a bucket is a cache line");

/* The hash a reference was added under. */
typedef uint64_t zn_zindex_hash(const void *owner, uint32_t ref);

typedef struct zn_zindex {
    zn_zbucket *bucket;
    zn_slab overflow;
    zn_zindex_hash *hash_of;
    const void *owner; /* first argument of hash_of */
    uint32_t bucket_cap;
    uint32_t mask;  /* buckets at the start of this round of splits, minus 1; 2^k - 1 */
    uint32_t split; /* buckets already split in this round */
    uint32_t high;  /* buckets ever in use since their pages were last given back */
    uint32_t live;
} zn_zindex;

/* Returns 0, or -ZN_ERR_CAPACITY with *err filled; zn_zindex_fini accepts what is left. */
int zn_zindex_init(zn_zindex *x, uint32_t cap, zn_zindex_hash *hash_of, const void *owner,
                   zn_error *err);
void zn_zindex_fini(zn_zindex *x);
void zn_zindex_reset(zn_zindex *x);

/* Adds a reference that is not in yet. */
void zn_zindex_add(zn_zindex *x, uint64_t hash, uint8_t tag, uint32_t ref);
/* Takes out a reference that is in. */
void zn_zindex_remove(zn_zindex *x, uint64_t hash, uint32_t ref);

/* Bytes of memory touched. */
size_t zn_zindex_bytes(const zn_zindex *x);
/* NULL, or what is broken. Slow: for tests. */
const char *zn_zindex_check(const zn_zindex *x);

static inline uint32_t zn_zindex_buckets(const zn_zindex *x)
{
    return x->mask + 1 + x->split;
}

static inline zn_zbucket *zn_zindex_home(const zn_zindex *x, uint64_t hash)
{
    uint32_t b = (uint32_t)hash & x->mask;
    if (b < x->split)
        b = (uint32_t)hash & (x->mask << 1 | 1);
    return x->bucket + b;
}

static inline zn_zbucket *zn_zindex_more(const zn_zindex *x, const zn_zbucket *b)
{
    return b->more != 0 ? zn_slab_at(&x->overflow, b->more) : NULL;
}

/* Eight or four bytes of which each that equals `tag` leaves its top bit set. */
static inline uint64_t zn_zbucket_equal(uint64_t tags, uint8_t tag)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t x = tags ^ UINT64_C(0x0101010101010101) * tag;
    return ~(((x & low) + low) | x | low);
}

/* Bit i is set when slot i has this tag. */
static inline uint32_t zn_zbucket_match(const zn_zbucket *b, uint8_t tag)
{
    const uint64_t gather = UINT64_C(0x0002040810204081);
    uint64_t first = 0, last = 0;
    memcpy(&first, b->tag, 8);
    memcpy(&last, b->tag + 8, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    first = __builtin_bswap64(first);
    last = __builtin_bswap64(last);
#endif
    first = (zn_zbucket_equal(first, tag) >> 7) * gather >> 49;
    last = (zn_zbucket_equal(last, tag) >> 7) * gather >> 49;
    return (uint32_t)((first & 0xff) | (last & 0x0f) << 8);
}

#endif
