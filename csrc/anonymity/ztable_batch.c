/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many observations at once. A table that is larger than the caches answers each look-up with a
 * chain of misses: bucket, record, place in the record; with a list also its entry. Here the
 * observations go through a pipeline, each step of which asks for the memory that the next one
 * reads, and the last of which decides. The addresses are guesses, perhaps out of date when they
 * are used: no result depends on them.
 *
 * Observations pass each step in groups. If a page is not in the TLB either, the processor stops at
 * a prefetch until it has the page's address. Prefetches close together, with little code between
 * them, wait for their pages at the same time.
 *
 * Numbers are hashed by SipHash-1-3 (util/hash.h) sixteen at a time, one in each lane of a vector.
 * The compiler splits the vectors into what the processor has: more with AVX2, and with AVX-512 two
 * groups of eight that do not wait for each other.
 */
#include "anonymity/ztable_internal.h"

#include <string.h>

#define GROUP 8   /* observations that go through a step together */
#define HASHED 64 /* numbers hashed at a time, and twice as many stored: more than are under way */
#define STEPS 4

/* ---- hashing ---- */

#define LANES 16

typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t))));

typedef struct sip_lanes {
    lanes v0, v1, v2, v3;
} sip_lanes;

#define INLINE static inline __attribute__((always_inline))

/* Vector with x in every lane. */
#define ALL(x) ((lanes){0} + (x))

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

INLINE void sip_round(sip_lanes *s)
{
    s->v0 += s->v1;
    s->v1 = ROTATE(s->v1, 13) ^ s->v0;
    s->v0 = ROTATE(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = ROTATE(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = ROTATE(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = ROTATE(s->v1, 17) ^ s->v2;
    s->v2 = ROTATE(s->v2, 32);
}

INLINE void sip_start(sip_lanes *s, const zn_hash_key *key)
{
    s->v0 = ALL(key->k0 ^ UINT64_C(0x736f6d6570736575));
    s->v1 = ALL(key->k1 ^ UINT64_C(0x646f72616e646f6d));
    s->v2 = ALL(key->k0 ^ UINT64_C(0x6c7967656e657261));
    s->v3 = ALL(key->k1 ^ UINT64_C(0x7465646279746573));
}

INLINE void sip_absorb(sip_lanes *s, const lanes *word)
{
    s->v3 ^= *word;
    sip_round(s);
    s->v0 ^= *word;
}

INLINE void sip_squeeze(sip_lanes *s, uint64_t *out)
{
    lanes hash;
    sip_round(s);
    sip_round(s);
    sip_round(s);
    hash = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
    memcpy(out, &hash, sizeof hash);
}

/* Each user as zn_hash_words gives it. */
INLINE void hash_users(const zn_hash_key *key, const uint64_t *user, uint64_t *out)
{
    const lanes length = ALL(UINT64_C(1) << 59);
    lanes word;
    sip_lanes s;
    memcpy(&word, user, sizeof word);
    sip_start(&s, key);
    sip_absorb(&s, &word);
    sip_absorb(&s, &length);
    s.v2 ^= 0xff;
    sip_squeeze(&s, out);
}

/* Each attribute as zn_hash128 gives it for its eight bytes. */
INLINE void hash_attributes(const zn_hash_key *key, uint8_t domain, const uint64_t *attribute,
                            uint64_t *out)
{
    const lanes domains = ALL(domain), length = ALL(UINT64_C(8) << 56);
    lanes word;
    sip_lanes s;
    memcpy(&word, attribute, sizeof word);
    sip_start(&s, key);
    s.v1 ^= 0xee;
    sip_absorb(&s, &domains);
    sip_absorb(&s, &word);
    sip_absorb(&s, &length);
    s.v2 ^= 0xee;
    sip_squeeze(&s, out);
    s.v1 ^= 0xdd;
    sip_squeeze(&s, out + LANES);
}

INLINE void hash_groups(const zn_hash_key *key, const zn_columns *in, size_t n, zn_observation *out)
{
    uint64_t user[LANES], attribute[2 * LANES];
    for (size_t i = 0; i + LANES <= n; i += LANES, out += LANES) {
        hash_users(key, in->user + i, user);
        hash_attributes(key, in->domain, in->attribute + i, attribute);
        for (size_t k = 0; k < LANES; k++) {
            out[k].t_ns = in->t_ns[i + k];
            out[k].user = user[k];
            out[k].attribute.lo = attribute[k];
            out[k].attribute.hi = attribute[LANES + k];
        }
    }
}

typedef void hash_function(const zn_hash_key *key, const zn_columns *in, size_t n,
                           zn_observation *out);

static void hash_groups_portable(const zn_hash_key *key, const zn_columns *in, size_t n,
                                 zn_observation *out)
{
    hash_groups(key, in, n, out);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static void
hash_groups_avx2(const zn_hash_key *key, const zn_columns *in, size_t n, zn_observation *out)
{
    hash_groups(key, in, n, out);
}

/* A rotation is one instruction here. */
__attribute__((target("avx512f"))) static void
hash_groups_avx512(const zn_hash_key *key, const zn_columns *in, size_t n, zn_observation *out)
{
    hash_groups(key, in, n, out);
}

static hash_function *choose(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return hash_groups_avx512;
    return __builtin_cpu_supports("avx2") ? hash_groups_avx2 : hash_groups_portable;
}

#else

static hash_function *choose(void)
{
    return hash_groups_portable;
}

#endif

void zn_observations_hash(const zn_hash_key *key, const zn_columns *in, size_t n,
                          zn_observation *out)
{
    choose()(key, in, n, out);
    for (size_t i = n - n % LANES; i < n; i++) {
        out[i].t_ns = in->t_ns[i];
        out[i].user = zn_hash_words(key, in->user + i, 1);
        out[i].attribute = zn_hash128(key, in->domain, in->attribute + i, sizeof *in->attribute);
    }
}

/* ---- the pipeline ---- */

/* The first reference in a bucket with the tag; the last slot's, where none has it. Without a
 * branch that could be mispredicted. */
static uint32_t first_match(const zn_zbucket *b, uint8_t tag)
{
    uint32_t hits = zn_zbucket_match(b, tag);
    return b->ref[__builtin_ctz(hits | 1u << (ZN_ZBUCKET_SLOTS - 1))];
}

/* Returns the memory where an attribute is or was; without a reference, the memory of the first
 * attribute of its kind. */
static const void *attribute_at(const zn_ztable *t, zn_zref ref)
{
    const zn_slab *slab = &t->size[zn_zref_kind(ref)].slab;
    uint32_t index = zn_zref_index(ref);
    return slab->base + (index - (index != 0)) * slab->object_bytes;
}

/* The result of a step, for the next one. Memory of buckets and attributes stays mapped whatever
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

/* The source of groups: observations, or, with a key, columns to be hashed. */
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

_Static_assert(HASHED % GROUP == 0 && HASHED >= STEPS * GROUP, "none is overwritten under way");

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

INLINE void observe_all(zn_ztable *t, source *from, uint8_t *decisions, bool marked)
{
    group ring[STEPS];
    size_t groups = (from->n + GROUP - 1) / GROUP;
    for (size_t i = 0; i < groups + STEPS - 1; i++) {
        size_t k = i; /* below, wraps around to a large number before its step starts */
        if (k < groups) {
            take(ring + k % STEPS, from, k * GROUP);
            fetch_buckets(t, ring + k % STEPS);
        }
        if (--k < groups)
            fetch_attributes(t, ring + k % STEPS);
        if (--k < groups)
            fetch_users(t, ring + k % STEPS);
        if (--k < groups)
            for (size_t j = 0; j < ring[k % STEPS].n; j++) {
                const zn_observation *o = ring[k % STEPS].o + j;
                decisions[k * GROUP + j] =
                    marked ? zn_zobserve_marked(t, o) : (uint8_t)zn_ztable_observe(t, o);
            }
    }
}

void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n, uint8_t *decisions)
{
    source from;
    from.o = o;
    from.key = NULL;
    from.n = n;
    observe_all(t, &from, decisions, false);
}

void zn_ztable_observe_marked(zn_ztable *t, const zn_observation *o, size_t n, uint32_t early_z,
                              uint8_t *answers)
{
    source from;
    uint32_t z = t->config.z;
    from.o = o;
    from.key = NULL;
    from.n = n;
    t->late_z = early_z > z ? z : 0;
    if (early_z > z)
        t->config.z = early_z;
    observe_all(t, &from, answers, true);
    t->config.z = z;
}

void zn_ztable_observe_columns(zn_ztable *t, const zn_hash_key *key, const zn_columns *in, size_t n,
                               uint8_t *decisions)
{
    source from;
    from.key = key;
    from.in = in;
    from.n = n;
    observe_all(t, &from, decisions, false);
}
