/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many observations at once. A table that is larger than the caches answers each look-up with a
 * chain of misses: bucket, record, place in the record; with a list also its entry. Here the
 * observations go through a pipeline, each stage of which asks for the memory that the next one
 * reads, and the last of which decides. What is asked for is a guess, perhaps out of date when it
 * is used: nothing depends on it.
 */
#include "state/ztable_internal.h"

#define DISTANCE 8 /* observations between two stages */

/* The reference in a bucket that has the tag, or any other: never a branch to guess wrong. */
static uint32_t first_match(const zn_zbucket *b, uint8_t tag)
{
    uint32_t hits = zn_zbucket_match(b, tag);
    return b->ref[__builtin_ctz(hits | 1u << (ZN_ZBUCKET_SLOTS - 1))];
}

/* Where an attribute is or was; for no reference, where the first of its kind is. */
static const void *attribute_at(const zn_ztable *t, zn_zref ref)
{
    const zn_slab *slab = &t->size[zn_zref_kind(ref)].slab;
    uint32_t index = zn_zref_index(ref);
    return slab->base + (index - (index != 0)) * slab->object_bytes;
}

/* What a stage leaves for the next. Memory of buckets and attributes stays mapped whatever happens. */
typedef struct guess {
    const zn_zbucket *bucket; /* the attribute's, then, when that has a list, the user's */
    const void *attribute;
    zn_zref ref;
} guess;

ZN_ZFETCHER void fetch_attribute(const zn_ztable *t, guess *g, const zn_observation *o)
{
    zn_zindex_fetch_more(&t->by_id, g->bucket);
    g->ref = first_match(g->bucket, zn_ztag(o->attribute.hi));
    g->attribute = attribute_at(t, g->ref);
    ZN_PREFETCH_WRITE(g->attribute);
    if (zn_zref_kind(g->ref) == ZN_ZKIND_LIST) {
        uint64_t hash = zn_zentry_hash(t, zn_zref_index(g->ref), (uint32_t)o->user);
        g->bucket = zn_zindex_home(&t->by_user, hash);
        ZN_PREFETCH_WRITE(g->bucket);
    }
}

ZN_ZFETCHER void fetch_in_list(const zn_ztable *t, const guess *g, const zn_observation *o)
{
    uint32_t newest = ((const zn_zlist *)g->attribute)->newest;
    uint32_t known = first_match(g->bucket, zn_ztag(o->user));
    const zn_zentry *entries = (const void *)t->entries.base;
    zn_zindex_fetch_more(&t->by_user, g->bucket);
    ZN_PREFETCH_WRITE(entries + (newest - (newest != 0)));
    ZN_PREFETCH_WRITE(entries + (known - (known != 0)));
}

ZN_ZFETCHER void fetch_in_record(const zn_ztable *t, const guess *g)
{
    const zn_zrecord *r = g->attribute;
    const zn_zsize *s = t->size + zn_zref_kind(g->ref);
    const int64_t *t_ns = (const void *)((const uint8_t *)r + s->times_at);
    uint32_t oldest = r->head + r->count - (r->count != 0 ? 1u : 0u);
    ZN_PREFETCH_WRITE(t_ns + r->head);
    ZN_PREFETCH_WRITE(t_ns + zn_zring_wrap(oldest, s->users));
}

void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n, uint8_t *decisions)
{
    guess guesses[4 * DISTANCE];
    for (size_t i = 0; i < n + 3 * DISTANCE; i++) {
        size_t k = i; /* below, wraps around to a large number before its stage starts */
        guess *g = guesses + k % (4 * DISTANCE);
        if (k < n) {
            g->bucket = zn_zindex_home(&t->by_id, o[k].attribute.lo);
            ZN_PREFETCH_WRITE(g->bucket);
        }
        k -= DISTANCE;
        g = guesses + k % (4 * DISTANCE);
        if (k < n)
            fetch_attribute(t, g, o + k);
        k -= DISTANCE;
        g = guesses + k % (4 * DISTANCE);
        if (k < n && zn_zref_kind(g->ref) == ZN_ZKIND_LIST)
            fetch_in_list(t, g, o + k);
        else if (k < n)
            fetch_in_record(t, g);
        k -= DISTANCE;
        if (k < n)
            decisions[k] = (uint8_t)zn_ztable_observe(t, o + k);
    }
}
