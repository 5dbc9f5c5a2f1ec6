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
#define CACHE_LINE 64

/* Left to itself, GCC 12 finds that functions which only prefetch do nothing, and drops the call. */
#define FETCHER static inline __attribute__((always_inline))

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

static const zn_zbucket *user_bucket(const zn_ztable *t, zn_zref ref, const zn_observation *o)
{
    uint64_t hash = zn_zentry_hash(t, zn_zref_index(ref), (uint32_t)o->user);
    return zn_zindex_home(&t->by_user, hash);
}

FETCHER void fetch_in_list(const zn_ztable *t, zn_zref ref, const zn_observation *o)
{
    uint32_t newest = ((const zn_zlist *)attribute_at(t, ref))->newest;
    uint32_t known = first_match(user_bucket(t, ref, o), zn_ztag(o->user));
    const zn_zentry *entries = (const void *)t->entries.base;
    ZN_PREFETCH_WRITE(entries + (newest - (newest != 0)));
    ZN_PREFETCH_WRITE(entries + (known - (known != 0)));
}

FETCHER void fetch_in_record(const zn_ztable *t, zn_zref ref)
{
    const zn_zrecord *r = attribute_at(t, ref);
    const zn_zsize *s = t->size + zn_zref_kind(ref);
    const int64_t *t_ns = (const void *)((const uint8_t *)r + s->times_at);
    uint32_t oldest = r->head + r->count - (r->count != 0 ? 1u : 0u);
    ZN_PREFETCH_WRITE(t_ns + r->head);
    ZN_PREFETCH_WRITE(t_ns + zn_zring_wrap(oldest, s->users));
}

void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n, uint8_t *decisions)
{
    zn_zref ref[DISTANCE];
    for (size_t i = 0; i < n + 3 * DISTANCE; i++) {
        zn_zref *slot = ref + i % DISTANCE;
        size_t k = i - 2 * DISTANCE; /* wraps around to a large number before its stage starts */
        if (i < n)
            ZN_PREFETCH_WRITE(zn_zindex_home(&t->by_id, o[i].attribute.lo));
        if (k < n) {
            if (zn_zref_kind(*slot) == ZN_ZKIND_LIST)
                fetch_in_list(t, *slot, o + k);
            else
                fetch_in_record(t, *slot);
        }
        k += DISTANCE;
        if (k < n) {
            const zn_id *id = &o[k].attribute;
            *slot = first_match(zn_zindex_home(&t->by_id, id->lo), zn_ztag(id->hi));
            ZN_PREFETCH_WRITE(attribute_at(t, *slot));
            if (zn_zref_kind(*slot) == ZN_ZKIND_LIST)
                ZN_PREFETCH_WRITE(user_bucket(t, *slot, o + k));
        }
        k = i - 3 * DISTANCE;
        if (k < n)
            decisions[k] = (uint8_t)zn_ztable_observe(t, o + k);
    }
}
