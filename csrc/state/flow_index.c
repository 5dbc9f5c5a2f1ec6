/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index from 5-tuple to flow: buckets of one cache line, chosen by the low bits of the keyed
 * hash, slots told apart by a 16-bit tag from its high bits, a chain of overflow buckets behind. A
 * sender without the key cannot fill one chain.
 */
#include "state/flow_internal.h"

#define SMALL_PAGES_BYTES ((size_t)2 << 20) /* as zn_block_alloc asks for them */
#define FLOWS_PER_BUCKET 5                  /* half full at the cap: overflow is rare */

/* A bucket is looked at before it is written to. Of a new page the kernel then lends zeros at
 * first, and to replace them it stops every processor that runs one of the process's threads.
 * Further in, where pages are huge, they are few. */
static bool make_buckets(zn_flow_table *t, uint64_t buckets)
{
    size_t bytes = buckets * sizeof *t->buckets;
    t->buckets = zn_block_alloc(bytes);
    return t->buckets != NULL &&
           zn_block_populate(t->buckets, bytes < SMALL_PAGES_BYTES ? bytes : SMALL_PAGES_BYTES);
}

int zn_flow_index_init(zn_flow_table *t, uint32_t max_flows, zn_error *err)
{
    uint64_t buckets = 16;
    while (buckets * FLOWS_PER_BUCKET < max_flows)
        buckets *= 2; /* fewer than 2^32, so that zn_flow.bucket chooses one */
    t->bucket_mask = buckets - 1;
    if (!make_buckets(t, buckets))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for an index of %u flows", max_flows);
    return zn_slab_init(&t->overflow, sizeof(zn_flow_bucket), (uint32_t)(buckets / 4 + 16), err);
}

void zn_flow_index_fini(zn_flow_table *t)
{
    if (t->buckets != NULL)
        zn_block_free(t->buckets, (t->bucket_mask + 1) * sizeof *t->buckets);
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

bool zn_flow_index_add(zn_flow_table *t, uint32_t flow, uint64_t hash)
{
    zn_flow *f = zn_flow_at(t, flow);
    zn_flow_bucket *b = &t->buckets[hash & t->bucket_mask];
    f->bucket = (uint32_t)hash;
    for (;;) {
        for (unsigned i = 0; i < ZN_BUCKET_SLOTS; i++) {
            if (b->flow[i] == 0) {
                b->flow[i] = flow;
                b->tag[i] = zn_flow_tag(hash);
                f->indexed = true;
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
