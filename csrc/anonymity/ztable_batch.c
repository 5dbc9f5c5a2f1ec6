/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many observations at once. A table that is larger than the caches answers each look-up with a
 * chain of misses: bucket, record, place in the record; with a list also its entry. Here the
 * observations go through a pipeline, each stage of which asks for the memory that the next one
 * reads, and the last of which decides. What is asked for is a guess, perhaps out of date when it
 * is used: nothing depends on it.
 *
 * They go in groups, a whole group through a stage. Where pages are not in the TLB either, the
 * processor stands at a prefetch until it knows the address; several of them close together, with
 * little else between, wait for each other's pages at the same time.
 */
#include "anonymity/ztable_internal.h"

#define GROUP 8   /* observations that go through a stage together */
#define HASHED 64 /* numbers hashed at a time, and twice as many kept: more than are under way */
#define STAGES 4

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

/* What a stage leaves for the next. Memory of buckets and attributes stays mapped whatever
 * happens. */
typedef struct guess {
    const zn_zbucket *bucket; /* the attribute's, then, when that has a list, the user's */
    const void *attribute;
    zn_zref ref;
} guess;

typedef struct group {
    const zn_observation *o;
    size_t n;
    guess guesses[GROUP];
} group;

/* Where groups come from: observations, or, with a key, columns to be hashed. */
typedef struct source {
    const zn_observation *o;
    const zn_hash_key *key;
    const zn_columns *in;
    size_t n;
    zn_observation hashed[2 * HASHED];
} source;

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
    ZN_PREFETCH_WRITE(&entries[newest - (newest != 0)].newer);
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

_Static_assert(HASHED % GROUP == 0 && HASHED >= STAGES * GROUP, "none is overwritten under way");

static void take(group *p, source *from, size_t at)
{
    size_t left = from->n - at;
    p->n = left < GROUP ? left : GROUP;
    if (from->key == NULL) {
        p->o = from->o + at;
        return;
    }
    p->o = from->hashed + at % (2 * HASHED);
    if (at % HASHED == 0) {
        const zn_columns *in = from->in;
        zn_columns next = {in->t_ns + at, in->user + at, in->attribute + at, in->domain};
        zn_observations_hash(from->key, &next, left < HASHED ? left : HASHED,
                             from->hashed + at % (2 * HASHED));
    }
}

static void fetch_buckets(const zn_ztable *t, group *p)
{
    for (size_t i = 0; i < p->n; i++) {
        p->guesses[i].bucket = zn_zindex_home(&t->by_id, p->o[i].attribute.lo);
        ZN_PREFETCH_WRITE(p->guesses[i].bucket);
    }
}

static void fetch_attributes(const zn_ztable *t, group *p)
{
    for (size_t i = 0; i < p->n; i++)
        fetch_attribute(t, p->guesses + i, p->o + i);
}

static void fetch_users(const zn_ztable *t, const group *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const guess *g = p->guesses + i;
        if (zn_zref_kind(g->ref) == ZN_ZKIND_LIST)
            fetch_in_list(t, g, p->o + i);
        else
            fetch_in_record(t, g);
    }
}

static void observe_all(zn_ztable *t, source *from, uint8_t *decisions)
{
    group ring[STAGES];
    size_t groups = (from->n + GROUP - 1) / GROUP;
    for (size_t i = 0; i < groups + STAGES - 1; i++) {
        size_t k = i; /* below, wraps around to a large number before its stage starts */
        if (k < groups) {
            take(ring + k % STAGES, from, k * GROUP);
            fetch_buckets(t, ring + k % STAGES);
        }
        if (--k < groups)
            fetch_attributes(t, ring + k % STAGES);
        if (--k < groups)
            fetch_users(t, ring + k % STAGES);
        if (--k < groups)
            for (size_t j = 0; j < ring[k % STAGES].n; j++)
                decisions[k * GROUP + j] = (uint8_t)zn_ztable_observe(t, ring[k % STAGES].o + j);
    }
}

void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n, uint8_t *decisions)
{
    source from;
    from.o = o;
    from.key = NULL;
    from.n = n;
    observe_all(t, &from, decisions);
}

void zn_ztable_observe_columns(zn_ztable *t, const zn_hash_key *key, const zn_columns *in, size_t n,
                               uint8_t *decisions)
{
    source from;
    from.key = key;
    from.in = in;
    from.n = n;
    observe_all(t, &from, decisions);
}
