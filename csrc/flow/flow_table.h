/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a flow table, and inline functions that every packet calls: for flow/flow.c and the
 * engine's packet path. All others include flow/flow.h.
 */
#ifndef ZN_FLOW_FLOW_TABLE_H
#define ZN_FLOW_FLOW_TABLE_H

#include "flow/flow.h"
#include "flow/flow_index.h"
#include "flow/tcp.h"
#include "flow/wheel.h"

/* Closed flows in order: at[first] to at[end - 1]. Not a list, whose links would have to be read
 * one after the other. */
typedef struct zn_flow_queue {
    uint32_t *at;
    uint32_t first, end, high; /* high: the largest that end ever was */
} zn_flow_queue;

/* A list of flows in the order in which they were appended. */
typedef struct zn_flow_list {
    uint32_t first, last; /* 0: none; last means nothing then */
} zn_flow_list;

struct zn_flow_table {
    zn_flow_index index;
    zn_wheel wheel; /* open flows */
    zn_tcp tcp;
    zn_slab flows;
    zn_slab cold;                  /* zn_flow_cold */
    zn_flow_queue closed;          /* flows whose records are to be written */
    zn_flow_list lingering;        /* flows whose records are written */
    uint32_t held;                 /* flows whose records are written, which are still needed */
    struct zn_flow_search *search; /* zn_flow_evict's */
    zn_stats *stats;
};

/* Note that a flow, whose record is written, is needed for longer; and, before zn_flow_emitted,
 * that it is not any more. */
static inline void zn_flow_hold(zn_flow_table *t)
{
    t->held++;
}

static inline void zn_flow_unhold(zn_flow_table *t)
{
    t->held--;
}

/* zn_flow_at, inline. */
static inline zn_flow *zn_flow_entry(const zn_flow_table *t, uint32_t flow)
{
    ZN_ASSERT(flow >= 1 && flow <= t->flows.used_high);
    return (zn_flow *)(void *)t->flows.base + (flow - 1);
}

/* Addresses in a table that packets need and only zn_flow_grow changes: a copy at hand serves many
 * packets. */
typedef struct zn_flow_places {
    const zn_flow_bucket *buckets;
    uint64_t bucket_mask;
    zn_flow *flows;         /* the entry of flow 1 is the first */
    zn_flow_layer7 *layer7; /* the same; NULL: no LAYER7 columns */
} zn_flow_places;

static inline zn_flow_places zn_flow_places_of(const zn_flow_table *t)
{
    return (zn_flow_places){t->index.buckets, t->index.bucket_mask, t->index.entries,
                            t->tcp.layer7};
}

/* zn_flow_layer7_of, inline. */
static inline zn_flow_layer7 *zn_flow_layer7_entry(const zn_flow_table *t, const zn_flow *f)
{
    return zn_tcp_layer7_of(&t->tcp, f);
}

/* Returns the data beside an entry for the LAYER7 columns, of a flow of either protocol; NULL: the
 * table has no such columns. */
static inline zn_flow_layer7 *zn_flow_layer7_at(const zn_flow_table *t, uint32_t flow)
{
    return t->tcp.layer7 == NULL ? NULL : &t->tcp.layer7[flow - 1];
}

/* The first step for a packet of this hash: prefetches the flow's bucket. */
__attribute__((always_inline)) static inline void zn_flow_prefetch(const zn_flow_table *t,
                                                                   uint64_t hash)
{
    zn_flow_index_prefetch(&t->index, hash);
}

/* The second step: returns the flow whose tag the bucket has, or 0, and prefetches what most
 * packets touch of its entry. It is mostly the packet's flow, and surely when zn_flow_is returns
 * true. Always inline: compilers find that a function which only prefetches has no effect, and drop
 * its call. */
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

/* Returns true when zn_flow_find would find this flow for the packet. */
static inline bool zn_flow_is(const zn_flow *f, const zn_packet *p)
{
    return f->indexed && zn_tuple_equal(&f->tuple, &p->tuple);
}

/* Lets the index grow when there are too many flows for its buckets. */
static inline void zn_flow_grow(zn_flow_table *t)
{
    if (ZN_UNLIKELY(t->flows.live > t->index.grow_above))
        zn_flow_index_grow(&t->index);
}

/* Returns whether zn_flow_expire has something to do: a second has ended. */
static inline bool zn_flow_expire_due(const zn_flow_table *t, int64_t now_ns)
{
    return now_ns >= t->wheel.due_ns;
}

/* Returns true when a packet of this time comes so late that the wheel may take its flow for idle,
 * and must be woken. Earlier ones need not, unless they come more than ZN_FLOW_LEAST_IDLE_NS after
 * their flow's last one. */
static inline bool zn_flow_comes_late(const zn_flow_table *t, int64_t t_ns)
{
    return t->wheel.due_ns - t_ns > ZN_FLOW_VISIT_S * ZN_NS_PER_S - ZN_FLOW_LEAST_IDLE_NS;
}

#endif
