/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index from 5-tuple to flow: buckets of one cache line, of ten 16-bit tags and ten 32-bit
 * references. It holds numbers of flows, and borrows their entries, which hold tuple and hash.
 */
#ifndef ZN_FLOW_FLOW_INDEX_H
#define ZN_FLOW_FLOW_INDEX_H

#include "flow/flow.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define ZN_BUCKET_SLOTS 10

typedef struct zn_flow_bucket {
    uint16_t tag[ZN_BUCKET_SLOTS];
    uint32_t flow[ZN_BUCKET_SLOTS]; /* 0: empty */
    uint32_t overflow;              /* next bucket of the chain, 0: none */
} zn_flow_bucket;
_Static_assert(sizeof(zn_flow_bucket) == 64, "a bucket is one cache line");

typedef struct zn_flow_index {
    zn_flow *entries; /* the entry of flow 1 is the first */
    zn_flow_bucket *buckets;
    uint64_t bucket_mask; /* buckets - 1 */
    uint64_t bucket_cap;  /* most buckets there will be */
    uint32_t grow_above;  /* flows beyond which zn_flow_index_grow is due */
    zn_slab overflow;     /* overflow buckets */
} zn_flow_index;

/* Prepares an index for the flows of `entries`, up to max_flows. Returns 0, or a negative zn_err
 * with *err filled; zn_flow_index_fini either way. */
int zn_flow_index_init(zn_flow_index *x, zn_flow *entries, uint32_t max_flows, zn_error *err);
/* Frees the memory of the index. */
void zn_flow_index_fini(zn_flow_index *x);
/* Returns the flow of this tuple, whose hash is `hash`, or 0. */
uint32_t zn_flow_index_find(const zn_flow_index *x, const zn_tuple *tuple, uint64_t hash);
/* Adds a flow whose tuple has this hash, and sets its `bucket` and `indexed`. */
void zn_flow_index_add(zn_flow_index *x, uint32_t flow, uint64_t hash);
/* Takes a flow out, and clears its `indexed`. */
void zn_flow_index_remove(zn_flow_index *x, uint32_t flow);
/* Grows the index to all buckets that it can have. */
void zn_flow_index_grow(zn_flow_index *x);
/* Return the bytes of memory in use, and the bytes of a full index. */
size_t zn_flow_index_memory(const zn_flow_index *x);
size_t zn_flow_index_memory_max(const zn_flow_index *x);
/* Returns whether the index holds the flow. */
bool zn_flow_index_has(const zn_flow_index *x, uint32_t flow);
/* Returns whether the index holds this number of flows, in no more buckets than they need. Slow:
 * for tests. */
bool zn_flow_index_adds_up(const zn_flow_index *x, uint32_t flows);

static inline uint16_t zn_flow_tag(uint64_t hash)
{
    return (uint16_t)(hash >> 48);
}

/* Prefetches the bucket of this hash. */
__attribute__((always_inline)) static inline void zn_flow_index_prefetch(const zn_flow_index *x,
                                                                         uint64_t hash)
{
    ZN_PREFETCH(&x->buckets[hash & x->bucket_mask]);
}

/* Returns the first slot that has the tag; ZN_BUCKET_SLOTS: none. */
static inline unsigned zn_flow_slot(const zn_flow_bucket *b, uint16_t tag)
{
#ifdef __SSE2__
    __m128i all = _mm_set1_epi16((short)tag), first, rest;
    first = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)(const void *)b), all);
    rest = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)(const void *)b + 1), all);
    /* The load reads references behind the tags: the bit set here stops the search before them. */
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(_mm_packs_epi16(first, rest)) |
                                   1u << ZN_BUCKET_SLOTS);
#else
    unsigned i = 0;
    while (i < ZN_BUCKET_SLOTS && b->tag[i] != tag)
        i++;
    return i;
#endif
}

static inline uint64_t zn_tuple_word(const zn_tuple *t, size_t i)
{
    uint64_t w;
    memcpy(&w, (const uint8_t *)t + i * sizeof w, sizeof w);
    return w;
}

/* Compares words: a call of memcmp for 40 bytes costs more. */
static inline bool zn_tuple_equal(const zn_tuple *a, const zn_tuple *b)
{
    return ((zn_tuple_word(a, 4) ^ zn_tuple_word(b, 4)) |
            (zn_tuple_word(a, 1) ^ zn_tuple_word(b, 1)) |
            (zn_tuple_word(a, 3) ^ zn_tuple_word(b, 3)) |
            (zn_tuple_word(a, 0) ^ zn_tuple_word(b, 0)) |
            (zn_tuple_word(a, 2) ^ zn_tuple_word(b, 2))) == 0;
}

#endif
