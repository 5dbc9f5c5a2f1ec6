/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a flow table, and what of it is done for every packet and stands in line where it
 * is used: flow/flow*.c and the engine's packet path. Everybody else takes flow/flow.h.
 */
#ifndef ZN_FLOW_FLOW_TABLE_H
#define ZN_FLOW_FLOW_TABLE_H

#include "flow/flow.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define ZN_BUCKET_SLOTS 10
#define ZN_WHEEL_SLOTS 64 /* seconds; more than ZN_FLOW_VISIT_S, a power of two */
#define ZN_WHEEL_AGES 20  /* of ZN_FLOW_VISIT_S each: more than the longest idle time */
#define ZN_WHEEL_LISTS (ZN_WHEEL_SLOTS * ZN_WHEEL_AGES)

typedef struct zn_flow_bucket {
    uint16_t tag[ZN_BUCKET_SLOTS];
    uint32_t flow[ZN_BUCKET_SLOTS]; /* 0: empty */
    uint32_t overflow;              /* next bucket of the chain, 0: none */
} zn_flow_bucket;
_Static_assert(sizeof(zn_flow_bucket) == 64, "a bucket is one cache line");

typedef struct zn_flow_retransmission_pair {
    zn_flow_retransmissions side[2]; /* by tuple index */
} zn_flow_retransmission_pair;

/* Flows that closed, in their order: at[first] to at[end - 1]. No list, whose links would have to
 * be read one after the other. */
typedef struct zn_flow_queue {
    uint32_t *at;
    uint32_t first, end, high; /* high: the largest that end ever was */
} zn_flow_queue;

/* Flows in the order in which they came. */
typedef struct zn_flow_list {
    uint32_t first, last; /* 0: none; last means nothing then */
} zn_flow_list;

#define ZN_WHEEL_PART 13 /* flows in a part of a list of the timer wheel */
typedef struct zn_wheel_part {
    uint32_t next, previous; /* 0: none; next is the slab's link while free */
    uint16_t list;           /* its number */
    uint8_t used : 4;        /* places taken */
    uint8_t live : 4;        /* those that still hold a flow */
    uint8_t rest; /* its flows sleep: so many ZN_FLOW_VISIT_S of it close none; 0: not known */
    uint32_t flow[ZN_WHEEL_PART];
} zn_wheel_part;
_Static_assert(sizeof(zn_wheel_part) == 64, "a part is one cache line");

/* Parts with flows in the order in which they came. */
typedef struct zn_wheel_list {
    uint32_t first, last; /* 0: none */
} zn_wheel_list;

struct zn_flow_table {
    zn_flow_bucket *buckets;
    uint64_t bucket_mask; /* buckets - 1 */
    uint64_t bucket_cap;  /* most buckets there will be */
    uint32_t grow_above;  /* flows for which there are too few */
    zn_slab overflow;     /* further buckets */
    zn_slab flows;
    zn_slab besides; /* zn_flow_cold */
    zn_slab resents; /* zn_flow_retransmission_pair */
    zn_slab gaps;
    zn_tcp_path *paths;                  /* by flow, NULL: not asked for; costs what it touches */
    zn_flow_layer7 *layer7;              /* the same */
    zn_slab segments;                    /* of the paths */
    zn_slab parts;                       /* of the wheel's lists */
    zn_wheel_list wheel[ZN_WHEEL_LISTS]; /* open flows: of each slot, by how long they were idle */
    struct zn_flow_search *search;       /* zn_flow_evict's */
    int64_t wheel_s;                     /* second up to which the wheel has turned */
    int64_t due_ns;                      /* the first time at which it turns again */
    bool wheel_started;
    zn_flow_queue closed;   /* whose records are due */
    zn_flow_list lingering; /* whose records are written */
    zn_stats *stats;
};

/* flow/flow_index.c: more buckets. */
void zn_flow_index_grow(zn_flow_table *t);

static inline uint16_t zn_flow_tag(uint64_t hash)
{
    return (uint16_t)(hash >> 48);
}

/* zn_flow_at. */
static inline zn_flow *zn_flow_entry(const zn_flow_table *t, uint32_t flow)
{
    ZN_ASSERT(flow >= 1 && flow <= t->flows.used_high);
    return (zn_flow *)(void *)t->flows.base + (flow - 1);
}

/* Where a table has what packets ask for, which only zn_flow_grow changes: to be kept at hand for
 * many of them. */
typedef struct zn_flow_places {
    const zn_flow_bucket *buckets;
    uint64_t bucket_mask;
    zn_flow *flows;         /* that of flow 1 first */
    zn_flow_layer7 *layer7; /* the same; NULL: not asked for */
} zn_flow_places;

static inline zn_flow_places zn_flow_places_of(const zn_flow_table *t)
{
    return (zn_flow_places){t->buckets, t->bucket_mask, (zn_flow *)(void *)t->flows.base,
                            t->layer7};
}

/* zn_flow_layer7_of. */
static inline zn_flow_layer7 *zn_flow_layer7_entry(const zn_flow_table *t, const zn_flow *f)
{
    return t->layer7 == NULL || f->tuple.proto != ZN_PROTO_TCP
               ? NULL
               : &t->layer7[f - (const zn_flow *)(const void *)t->flows.base];
}

/* What lies beside an entry for the LAYER7 columns, of a flow of either protocol; NULL: not asked
 * for. */
static inline zn_flow_layer7 *zn_flow_layer7_at(const zn_flow_table *t, uint32_t flow)
{
    return t->layer7 == NULL ? NULL : &t->layer7[flow - 1];
}

/* First look at a packet of this hash: fetches the flow's bucket. */
__attribute__((always_inline)) static inline void zn_flow_prefetch(const zn_flow_table *t,
                                                                   uint64_t hash)
{
    ZN_PREFETCH(&t->buckets[hash & t->bucket_mask]);
}

/* The slot that has the tag, the first if there are several; ZN_BUCKET_SLOTS: none. */
static inline unsigned zn_flow_slot(const zn_flow_bucket *b, uint16_t tag)
{
#ifdef __SSE2__
    __m128i all = _mm_set1_epi16((short)tag), first, rest;
    first = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)(const void *)b), all);
    rest = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)(const void *)b + 1), all);
    /* Behind the tags lie references: the bit that is always set stands before theirs. */
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(_mm_packs_epi16(first, rest)) |
                                   1u << ZN_BUCKET_SLOTS);
#else
    unsigned i = 0;
    while (i < ZN_BUCKET_SLOTS && b->tag[i] != tag)
        i++;
    return i;
#endif
}

/* Second look: the entry that the bucket's tag points to, or 0, and what a usual packet touches of
 * it fetched. Mostly it is the packet's flow, and always when zn_flow_is says so. In line whatever
 * it takes: of a function that only prefetches compilers find that it does nothing, and drop the
 * call. */
__attribute__((always_inline)) static inline uint32_t zn_flow_probe(const zn_flow_places *places,
                                                                    const zn_packet *p)
{
    const zn_flow_bucket *b = &places->buckets[p->hash & places->bucket_mask];
    unsigned slot = zn_flow_slot(b, zn_flow_tag(p->hash));
    uint32_t flow = slot == ZN_BUCKET_SLOTS ? 0 : b->flow[slot];
    zn_flow *f;
    if (flow == 0)
        return 0;
    f = &places->flows[flow - 1];
    ZN_PREFETCH_WRITE(f);
    ZN_PREFETCH_WRITE(&f->side[p->sender]);
    return flow;
}

static inline uint64_t zn_tuple_word(const zn_tuple *t, size_t i)
{
    uint64_t w;
    memcpy(&w, (const uint8_t *)t + i * sizeof w, sizeof w);
    return w;
}

/* In words: a call to compare 40 bytes costs more than the comparison. */
static inline bool zn_tuple_equal(const zn_tuple *a, const zn_tuple *b)
{
    return ((zn_tuple_word(a, 4) ^ zn_tuple_word(b, 4)) |
            (zn_tuple_word(a, 1) ^ zn_tuple_word(b, 1)) |
            (zn_tuple_word(a, 3) ^ zn_tuple_word(b, 3)) |
            (zn_tuple_word(a, 0) ^ zn_tuple_word(b, 0)) |
            (zn_tuple_word(a, 2) ^ zn_tuple_word(b, 2))) == 0;
}

/* The flow is the one that zn_flow_find would find for the packet. */
static inline bool zn_flow_is(const zn_flow *f, const zn_packet *p)
{
    return f->indexed && zn_tuple_equal(&f->tuple, &p->tuple);
}

/* Has the index grow where there are many more flows than before. */
static inline void zn_flow_grow(zn_flow_table *t)
{
    if (ZN_UNLIKELY(t->flows.live > t->grow_above))
        zn_flow_index_grow(t);
}

/* The wheel has a second to turn: zn_flow_expire has something to do. */
static inline bool zn_flow_expire_due(const zn_flow_table *t, int64_t now_ns)
{
    return now_ns >= t->due_ns;
}

/* A packet of this time comes so late that the wheel may have found its flow idle for a visit. Of
 * others that cannot be, unless the packet before lies further back than ZN_FLOW_LEAST_IDLE_NS. */
static inline bool zn_flow_comes_late(const zn_flow_table *t, int64_t t_ns)
{
    return t->due_ns - t_ns > ZN_FLOW_VISIT_S * ZN_NS_PER_S - ZN_FLOW_LEAST_IDLE_NS;
}

#endif
