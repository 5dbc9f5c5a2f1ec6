/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index from 5-tuple to flow: buckets of one cache line, chosen by the low bits of the keyed hash;
 * slots with a 16-bit tag from its high bits; a chain of overflow buckets behind a full bucket.
 * Without the key a sender cannot fill one chain. When a flow leaves, the last flow of its chain
 * takes its slot, so an overflow bucket exists only behind a full bucket. There is at most one
 * overflow bucket for every ZN_BUCKET_SLOTS flows, and as many are reserved.
 *
 * The index begins with few buckets, so that the buckets of few flows lie close together. When they
 * are half full it grows at once to its full size, because growing visits every flow, and a later
 * growth would visit more flows. Each bucket is split into itself and buckets that were not used
 * before.
 */
#include "flow/flow_index.h"

#define SMALL_PAGES_BYTES ((size_t)2 << 20) /* before huge pages, as zn_block_alloc asks for them */
#define FIRST_BUCKETS 8192u                 /* half a MiB */
#define FLOWS_PER_BUCKET 5u                 /* half full: overflow is rare */
#define FETCH_AHEAD 8 /* buckets between the prefetch of their flows and their split */

static void set_buckets(zn_flow_index *x, uint64_t buckets)
{
    x->bucket_mask = buckets - 1;
    x->grow_above = buckets == x->bucket_cap ? UINT32_MAX : (uint32_t)buckets * FLOWS_PER_BUCKET;
}

/* Has the system put memory under buckets [from, to). A bucket is read before it is written: the
 * kernel first lends zeros for a new page, and interrupts every processor that runs a thread of the
 * process to replace them. Only for buckets on small pages: huge ones are few. */
static bool populate(zn_flow_index *x, uint64_t from, uint64_t to)
{
    uint64_t end = SMALL_PAGES_BYTES / sizeof *x->buckets;
    end = end < to ? end : to;
    return from >= end || zn_block_populate(&x->buckets[from], (end - from) * sizeof *x->buckets);
}

static bool make_buckets(zn_flow_index *x)
{
    uint64_t first = x->bucket_cap < FIRST_BUCKETS ? x->bucket_cap : FIRST_BUCKETS;
    x->buckets = zn_block_alloc(x->bucket_cap * sizeof *x->buckets);
    set_buckets(x, first);
    return x->buckets != NULL && populate(x, 0, first);
}

int zn_flow_index_init(zn_flow_index *x, zn_flow *entries, uint32_t max_flows, zn_error *err)
{
    uint64_t buckets = 16;
    while (buckets * FLOWS_PER_BUCKET < max_flows)
        buckets *= 2; /* fewer than 2^32: zn_flow.bucket holds the bits that choose one */
    x->entries = entries;
    x->bucket_cap = buckets;
    if (!make_buckets(x))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for an index of %u flows", max_flows);
    return zn_slab_init(&x->overflow, sizeof(zn_flow_bucket), max_flows / ZN_BUCKET_SLOTS + 1, err);
}

void zn_flow_index_fini(zn_flow_index *x)
{
    if (x->buckets != NULL)
        zn_block_free(x->buckets, x->bucket_cap * sizeof *x->buckets);
    zn_slab_fini(&x->overflow);
    x->buckets = NULL;
}

static zn_flow_bucket *next_bucket(const zn_flow_index *x, const zn_flow_bucket *b)
{
    return b->overflow == 0 ? NULL : zn_slab_at(&x->overflow, b->overflow);
}

/* Returns the entry of a flow. */
static zn_flow *entry_of(const zn_flow_index *x, uint32_t flow)
{
    return &x->entries[flow - 1];
}

uint32_t zn_flow_index_find(const zn_flow_index *x, const zn_tuple *tuple, uint64_t hash)
{
    const zn_flow_bucket *b = &x->buckets[hash & x->bucket_mask];
    uint16_t tag = zn_flow_tag(hash);
    for (; b != NULL; b = next_bucket(x, b))
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++)
            if (b->tag[i] == tag && b->flow[i] != 0 &&
                zn_tuple_equal(&entry_of(x, b->flow[i])->tuple, tuple))
                return b->flow[i];
    return 0;
}

/* Puts a flow into a bucket or its chain. */
static void put(zn_flow_index *x, zn_flow_bucket *b, uint32_t flow, uint16_t tag)
{
    for (;;) {
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++) {
            if (b->flow[i] == 0) {
                b->flow[i] = flow;
                b->tag[i] = tag;
                return;
            }
        }
        if (b->overflow == 0)
            b->overflow = zn_slab_take(&x->overflow);
        ZN_ASSERT(b->overflow != 0);
        b = next_bucket(x, b);
    }
}

void zn_flow_index_add(zn_flow_index *x, uint32_t flow, uint64_t hash)
{
    zn_flow *f = entry_of(x, flow);
    f->bucket = (uint32_t)hash;
    f->indexed = true;
    put(x, &x->buckets[hash & x->bucket_mask], flow, zn_flow_tag(hash));
}

/* Empties a slot of bucket b, which is in the chain that starts at `first`; the chain's last flow
 * takes its place. */
static void empty_slot(zn_flow_index *x, zn_flow_bucket *first, zn_flow_bucket *b, unsigned slot)
{
    zn_flow_bucket *before = NULL, *last = first;
    unsigned used = 0, from = 0;
    b->flow[slot] = 0;
    b->tag[slot] = 0;
    for (; last->overflow != 0; last = next_bucket(x, last))
        before = last;
    if (ZN_LIKELY(before == NULL))
        return;
    for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++) {
        used += last->flow[i] != 0;
        from = last->flow[i] != 0 ? i : from;
    }
    if (b != last) {
        b->flow[slot] = last->flow[from];
        b->tag[slot] = last->tag[from];
        last->flow[from] = 0;
        last->tag[from] = 0;
        used--;
    }
    if (used == 0) {
        zn_slab_give(&x->overflow, before->overflow);
        before->overflow = 0;
    }
}

void zn_flow_index_remove(zn_flow_index *x, uint32_t flow)
{
    zn_flow *f = entry_of(x, flow);
    zn_flow_bucket *first = &x->buckets[f->bucket & x->bucket_mask];
    for (zn_flow_bucket *b = first; b != NULL; b = next_bucket(x, b)) {
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++) {
            if (b->flow[i] == flow) {
                empty_slot(x, first, b, i);
                f->indexed = false;
                return;
            }
        }
    }
}

bool zn_flow_index_has(const zn_flow_index *x, uint32_t flow)
{
    const zn_flow_bucket *b = &x->buckets[entry_of(x, flow)->bucket & x->bucket_mask];
    for (; b != NULL; b = next_bucket(x, b))
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++)
            if (b->flow[i] == flow)
                return true;
    return false;
}

/* Puts the flows that a bucket held into the buckets that their hash chooses by this mask. */
static void deal(zn_flow_index *x, const zn_flow_bucket *held, uint64_t mask)
{
    for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++)
        if (held->flow[i] != 0)
            put(x, &x->buckets[entry_of(x, held->flow[i])->bucket & mask], held->flow[i],
                held->tag[i]);
}

/* Splits a whole chain, and frees its overflow buckets. */
static void split(zn_flow_index *x, zn_flow_bucket *first, uint64_t mask)
{
    zn_flow_bucket held = *first;
    memset(first, 0, sizeof *first);
    deal(x, &held, mask);
    while (held.overflow != 0) {
        uint32_t dealt = held.overflow;
        held = *(const zn_flow_bucket *)zn_slab_at(&x->overflow, dealt);
        zn_slab_give(&x->overflow, dealt);
        deal(x, &held, mask);
    }
}

/* Always inline, as zn_flow_probe. */
__attribute__((always_inline)) static inline void fetch_flows(const zn_flow_index *x,
                                                              const zn_flow_bucket *b)
{
    for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++)
        if (b->flow[i] != 0)
            ZN_PREFETCH(&entry_of(x, b->flow[i])->bucket);
}

void zn_flow_index_grow(zn_flow_index *x)
{
    uint64_t before = x->bucket_mask + 1, after = x->bucket_cap;
    (void)populate(x, before, after); /* on failure memory comes page by page, later */
    for (uint64_t i = 0; i < before; i++) {
        if (i + FETCH_AHEAD < before)
            fetch_flows(x, &x->buckets[i + FETCH_AHEAD]);
        split(x, &x->buckets[i], after - 1);
    }
    set_buckets(x, after);
}

size_t zn_flow_index_memory(const zn_flow_index *x)
{
    return zn_slab_bytes(&x->overflow) + (x->bucket_mask + 1) * sizeof *x->buckets;
}

size_t zn_flow_index_memory_max(const zn_flow_index *x)
{
    return (size_t)x->overflow.cap * x->overflow.object_bytes + x->bucket_cap * sizeof *x->buckets;
}

bool zn_flow_index_adds_up(const zn_flow_index *x, uint32_t flows)
{
    uint32_t held = 0, chained = 0;
    for (uint64_t i = 0; i <= x->bucket_mask; i++) {
        const zn_flow_bucket *b = &x->buckets[i];
        for (; b != NULL; b = next_bucket(x, b)) {
            uint32_t used = 0;
            for (unsigned k = 0; k < ZN_BUCKET_SLOTS; k++)
                used += b->flow[k] != 0;
            if ((b->overflow != 0 && used < ZN_BUCKET_SLOTS) || (b != &x->buckets[i] && used == 0))
                return false;
            chained += b->overflow != 0;
            held += used;
        }
    }
    return held == flows && chained == x->overflow.live;
}
