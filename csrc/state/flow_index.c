/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index from 5-tuple to flow: buckets of one cache line, chosen by the low bits of the keyed
 * hash, slots told apart by a 16-bit tag from its high bits, a chain of overflow buckets behind. A
 * sender without the key cannot fill one chain.
 *
 * There are few buckets at first, so that those of few flows lie close together, and many times as
 * many when they are half full: so many more at once, as each flow that is there has to be looked
 * at. Each bucket is then split; the others that it is split into were not used before.
 */
#include "state/flow_internal.h"

#define SMALL_PAGES_BYTES ((size_t)2 << 20) /* as zn_block_alloc asks for them */
#define FIRST_BUCKETS 8192u                 /* half a MiB */
#define FLOWS_PER_BUCKET 5u                 /* half full: overflow is rare */
#define FIRST_GROWTH 32u /* times: a power of two, as all numbers of buckets; to 16 MiB */
#define GROWTH 4u        /* later: of more, clearing pages takes too long */
#define FETCH_AHEAD 8    /* buckets from the fetch of their flows to their split */

static void set_buckets(zn_flow_table *t, uint64_t buckets)
{
    t->bucket_mask = buckets - 1;
    t->grow_above = buckets == t->bucket_cap ? UINT32_MAX : (uint32_t)buckets * FLOWS_PER_BUCKET;
}

/* Has memory put behind buckets from number `from` to before `to`. A bucket is looked at before it
 * is written to: of a new page the kernel then lends zeros at first, and to replace them it stops
 * every processor that runs one of the process's threads. Further in, where pages are huge, they
 * are few. */
static bool populate(zn_flow_table *t, uint64_t from, uint64_t to)
{
    uint64_t end = SMALL_PAGES_BYTES / sizeof *t->buckets;
    end = end < to ? end : to;
    return from >= end || zn_block_populate(&t->buckets[from], (end - from) * sizeof *t->buckets);
}

static bool make_buckets(zn_flow_table *t)
{
    uint64_t first = t->bucket_cap < FIRST_BUCKETS ? t->bucket_cap : FIRST_BUCKETS;
    t->buckets = zn_block_alloc(t->bucket_cap * sizeof *t->buckets);
    set_buckets(t, first);
    return t->buckets != NULL && populate(t, 0, first);
}

int zn_flow_index_init(zn_flow_table *t, uint32_t max_flows, zn_error *err)
{
    uint64_t buckets = 16;
    while (buckets * FLOWS_PER_BUCKET < max_flows)
        buckets *= 2; /* fewer than 2^32, so that zn_flow.bucket chooses one */
    t->bucket_cap = buckets;
    if (!make_buckets(t))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for an index of %u flows", max_flows);
    return zn_slab_init(&t->overflow, sizeof(zn_flow_bucket), (uint32_t)(buckets / 4 + 16), err);
}

void zn_flow_index_fini(zn_flow_table *t)
{
    if (t->buckets != NULL)
        zn_block_free(t->buckets, t->bucket_cap * sizeof *t->buckets);
    zn_slab_fini(&t->overflow);
    t->buckets = NULL;
}

static zn_flow_bucket *next_bucket(const zn_flow_table *t, const zn_flow_bucket *b)
{
    return b->overflow == 0 ? NULL : zn_slab_at(&t->overflow, b->overflow);
}

uint32_t zn_flow_find(const zn_flow_table *t, const zn_packet *p)
{
    const zn_flow_bucket *b = &t->buckets[p->hash & t->bucket_mask];
    uint16_t tag = zn_flow_tag(p->hash);
    for (; b != NULL; b = next_bucket(t, b))
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++)
            if (b->tag[i] == tag && b->flow[i] != 0 &&
                zn_tuple_equal(&zn_flow_entry(t, b->flow[i])->tuple, &p->tuple))
                return b->flow[i];
    return 0;
}

/* Puts a flow into a bucket or behind it; false when no overflow bucket is left. */
static bool put(zn_flow_table *t, zn_flow_bucket *b, uint32_t flow, uint16_t tag)
{
    for (;;) {
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++) {
            if (b->flow[i] == 0) {
                b->flow[i] = flow;
                b->tag[i] = tag;
                return true;
            }
        }
        if (b->overflow == 0) {
            b->overflow = zn_slab_take(&t->overflow);
            if (b->overflow == 0)
                return false;
        }
        b = next_bucket(t, b);
    }
}

bool zn_flow_index_add(zn_flow_table *t, uint32_t flow, uint64_t hash)
{
    zn_flow *f = zn_flow_at(t, flow);
    f->bucket = (uint32_t)hash;
    f->indexed = put(t, &t->buckets[hash & t->bucket_mask], flow, zn_flow_tag(hash));
    return f->indexed;
}

void zn_flow_index_remove(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    zn_flow_bucket *b = &t->buckets[f->bucket & t->bucket_mask];
    for (; b != NULL; b = next_bucket(t, b)) {
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++) {
            if (b->flow[i] == flow) {
                b->flow[i] = 0;
                b->tag[i] = 0;
                f->indexed = false;
                return;
            }
        }
    }
}

bool zn_flow_index_has(const zn_flow_table *t, uint32_t flow)
{
    const zn_flow_bucket *b = &t->buckets[zn_flow_at(t, flow)->bucket & t->bucket_mask];
    for (; b != NULL; b = next_bucket(t, b))
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++)
            if (b->flow[i] == flow)
                return true;
    return false;
}

/* Gives back the overflow buckets behind b that hold nothing. */
static void shorten(zn_flow_table *t, zn_flow_bucket *b)
{
    while (b->overflow != 0) {
        const zn_flow_bucket *next = next_bucket(t, b);
        uint32_t empty = b->overflow;
        bool used = false;
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++)
            used |= next->flow[i] != 0;
        if (used) {
            b = next_bucket(t, b);
            continue;
        }
        b->overflow = next->overflow;
        zn_slab_give(&t->overflow, empty);
    }
}

/* Moves what is another bucket's where the hash chooses by this mask. */
static void split(zn_flow_table *t, uint64_t number, uint64_t mask)
{
    for (zn_flow_bucket *b = &t->buckets[number]; b != NULL; b = next_bucket(t, b)) {
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++) {
            zn_flow *f = b->flow[i] == 0 ? NULL : zn_flow_at(t, b->flow[i]);
            if (f == NULL || (f->bucket & mask) == number)
                continue;
            /* No place is left only where hashes were made alike, for which one needs the key; the
             * flow is then not found any more. */
            f->indexed = put(t, &t->buckets[f->bucket & mask], b->flow[i], b->tag[i]);
            b->flow[i] = 0;
            b->tag[i] = 0;
        }
    }
    shorten(t, &t->buckets[number]);
}

/* In line whatever it takes, as zn_flow_probe. */
__attribute__((always_inline)) static inline void fetch_flows(const zn_flow_table *t,
                                                              const zn_flow_bucket *b)
{
    for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++)
        if (b->flow[i] != 0)
            ZN_PREFETCH(&zn_flow_at(t, b->flow[i])->bucket);
}

void zn_flow_index_grow(zn_flow_table *t)
{
    uint64_t before = t->bucket_mask + 1;
    uint64_t after = before * (before == FIRST_BUCKETS ? FIRST_GROWTH : GROWTH);
    if (after > t->bucket_cap)
        after = t->bucket_cap;
    (void)populate(t, before, after); /* or page by page, later */
    for (uint64_t i = 0; i < before; i++) {
        if (i + FETCH_AHEAD < before)
            fetch_flows(t, &t->buckets[i + FETCH_AHEAD]);
        split(t, i, after - 1);
    }
    set_buckets(t, after);
}

uint32_t zn_flow_index_count(const zn_flow_table *t, uint32_t *chained)
{
    uint32_t held = 0;
    *chained = 0;
    for (uint64_t i = 0; i <= t->bucket_mask; i++) {
        const zn_flow_bucket *b = &t->buckets[i];
        for (; b != NULL; b = next_bucket(t, b)) {
            *chained += b->overflow != 0;
            for (unsigned k = 0; k < ZN_BUCKET_SLOTS; k++)
                held += b->flow[k] != 0;
        }
    }
    return held;
}
