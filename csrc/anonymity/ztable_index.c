/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear hashing. With 2^k + s buckets, the s first have been split: a hash goes to bucket (hash
 * mod 2^k), or, when that one is already split, to (hash mod 2^(k+1)). Growing splits bucket s,
 * shrinking undoes the last split; either moves the references of one bucket only. The loads at
 * which it grows and shrinks are far enough apart that no sequence of adds and removes makes it
 * split and merge in turn.
 *
 * A bucket chosen by k bits holds, in `next`, eight bits of each hash from bit NEXT(k) on, which is
 * k or up to seven below. Only where NEXT changes, at every eighth doubling, do the hashes have to
 * be found again.
 */
#include "anonymity/ztable_index.h"

#include <string.h>

#define LEVEL_MIN 6 /* 64 buckets: one page of 4 KiB */
#define BUCKETS_MIN (UINT32_C(1) << LEVEL_MIN)
#define NEXT(level) (LEVEL_MIN + ((level) - LEVEL_MIN) / 8 * 8)
#define ALL_SLOTS ((1u << ZN_ZBUCKET_SLOTS) - 1)
/* Buckets are given back to the system in blocks of 2 MiB, the size of a huge page. */
#define BUCKETS_GIVEN_BACK (((size_t)2 << 20) / sizeof(zn_zbucket))

/* References a bucket, on average and in halves, at which buckets are split or merged. */
#define LOAD_SPLIT 10
#define LOAD_MERGE 4

static uint32_t buckets_for(uint32_t cap)
{
    uint64_t n = (uint64_t)cap * 2 / LOAD_SPLIT + 1;
    return n < BUCKETS_MIN ? BUCKETS_MIN : (uint32_t)n;
}

static void start_small(zn_zindex *x)
{
    x->level = LEVEL_MIN;
    x->mask = BUCKETS_MIN - 1;
    x->split = 0;
    x->high = BUCKETS_MIN;
    x->live = 0;
}

int zn_zindex_init(zn_zindex *x, uint32_t cap, zn_zindex_keys keys, const void *owner,
                   zn_error *err)
{
    memset(x, 0, sizeof *x);
    x->keys = keys;
    x->owner = owner;
    x->bucket_cap = buckets_for(cap);
    /* An overflow bucket exists only after ten full slots, so this many are always enough. */
    if (zn_slab_init(&x->overflow, sizeof(zn_zbucket), cap / ZN_ZBUCKET_SLOTS + 1, err) != 0)
        return -ZN_ERR_CAPACITY;
    x->bucket = zn_block_alloc(x->bucket_cap * sizeof(zn_zbucket));
    if (x->bucket == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0,
                       "no memory for an index of %u entries; lower its limit", cap);
    start_small(x);
    return 0;
}

void zn_zindex_fini(zn_zindex *x)
{
    zn_slab_fini(&x->overflow);
    zn_block_free(x->bucket, x->bucket_cap * sizeof(zn_zbucket));
    memset(x, 0, sizeof *x);
}

bool zn_zindex_populate(zn_zindex *x)
{
    x->resident = zn_slab_populate(&x->overflow) &&
                  zn_block_populate(x->bucket, x->bucket_cap * sizeof(zn_zbucket));
    return x->resident;
}

void zn_zindex_reset(zn_zindex *x)
{
    zn_slab_reset(&x->overflow);
    if (x->resident)
        memset(x->bucket, 0, x->high * sizeof(zn_zbucket));
    else
        zn_block_clear(x->bucket, x->bucket_cap * sizeof(zn_zbucket));
    start_small(x);
}

/* The number of a bucket's slots in use, which come first. */
static uint32_t used(const zn_zbucket *b)
{
    uint32_t empty = zn_zbucket_match(b, 0);
    return empty != 0 ? (uint32_t)__builtin_ctz(empty) : ZN_ZBUCKET_SLOTS;
}

/* The content of a slot. */
typedef struct filling {
    uint32_t ref;
    uint8_t tag, next;
} filling;

/* Puts a reference at the end of the chain that starts at `b`. */
static void append(zn_zindex *x, zn_zbucket *b, filling f)
{
    uint32_t i;
    while (b->more != 0)
        b = zn_zindex_more(x, b);
    i = used(b);
    if (i == ZN_ZBUCKET_SLOTS) {
        b->more = zn_slab_take(&x->overflow);
        ZN_ASSERT(b->more != 0);
        b = zn_zindex_more(x, b);
        i = 0;
    }
    b->tag[i] = f.tag;
    b->next[i] = f.next;
    b->ref[i] = f.ref;
}

/* Takes the first bucket of the chain at `more` off into *copy and frees it; false at the end. */
static bool next_of_chain(zn_zindex *x, uint32_t more, zn_zbucket *copy)
{
    if (more == 0)
        return false;
    *copy = *(const zn_zbucket *)zn_slab_at(&x->overflow, more);
    zn_slab_give(&x->overflow, more);
    return true;
}

/* The bits of slot i's hash that a bucket chosen by `to` bits holds, from one chosen by `from`. */
static uint8_t next_bits(const zn_zindex *x, const zn_zbucket *b, uint32_t i, uint32_t from,
                         uint32_t to)
{
    if (NEXT(from) == NEXT(to))
        return b->next[i];
    return (uint8_t)(x->keys.hash(x->owner, b->ref[i]) >> NEXT(to));
}

/* Prefetches what the next split, which comes soon, will read and write. */
static void prepare_split(const zn_zindex *x)
{
    const zn_zbucket *b = x->bucket + x->split;
    ZN_PREFETCH_WRITE(b + 1);
    ZN_PREFETCH_WRITE(b + x->mask + 1);
    zn_zindex_fetch_more(x, b);
    if (NEXT(x->level) != NEXT(x->level + 1))
        for (uint32_t i = 0; i < ZN_ZBUCKET_SLOTS; i++)
            if (b->ref[i] != 0)
                x->keys.fetch(x->owner, b->ref[i]);
}

/*
 * Deals what a bucket without overflow held to two empty ones. Nothing here overflows, and there is
 * no branch on the side, which cannot be predicted.
 */
static void deal(const zn_zindex *x, const zn_zbucket *old, zn_zbucket *low, zn_zbucket *high)
{
    zn_zbucket *to[2] = {low, high};
    uint32_t dealt[2] = {0, 0}, bit = x->level - NEXT(x->level);
    for (uint32_t i = 0, n = used(old); i < n; i++) {
        uint32_t side = old->next[i] >> bit & 1, place = dealt[side]++;
        to[side]->tag[place] = old->tag[i];
        to[side]->next[place] = next_bits(x, old, i, x->level, x->level + 1);
        to[side]->ref[place] = old->ref[i];
    }
}

/* Deals the references of a bucket and of its overflow buckets, which are freed; *old is
 * overwritten. */
static void deal_chain(zn_zindex *x, zn_zbucket *old, zn_zbucket *low, zn_zbucket *high)
{
    uint32_t bit = x->level - NEXT(x->level);
    do {
        for (uint32_t i = 0, n = used(old); i < n; i++) {
            filling f = {old->ref[i], old->tag[i], next_bits(x, old, i, x->level, x->level + 1)};
            append(x, (old->next[i] >> bit & 1) != 0 ? high : low, f);
        }
    } while (next_of_chain(x, old->more, old));
}

static void split(zn_zindex *x)
{
    zn_zbucket *low = x->bucket + x->split;
    zn_zbucket *high = low + x->mask + 1;
    zn_zbucket old = *low;
    memset(low, 0, sizeof *low);
    memset(high, 0, sizeof *high);
    if (old.more == 0)
        deal(x, &old, low, high);
    else
        deal_chain(x, &old, low, high);
    if (++x->split > x->mask) {
        x->mask = x->mask << 1 | 1;
        x->level++;
        x->split = 0;
    }
    if (zn_zindex_buckets(x) > x->high)
        x->high = zn_zindex_buckets(x);
    prepare_split(x);
}

/* Rewrites the hash bits in the chain at `b` for a bucket chosen by one bit less. */
static void lower(const zn_zindex *x, zn_zbucket *b)
{
    if (NEXT(x->level) == NEXT(x->level + 1))
        return;
    for (; b != NULL; b = zn_zindex_more(x, b))
        for (uint32_t i = 0, n = used(b); i < n; i++)
            b->next[i] = next_bits(x, b, i, x->level + 1, x->level);
}

static void merge(zn_zindex *x)
{
    zn_zbucket *low, *high, old;
    if (x->split == 0) {
        x->level--;
        x->mask >>= 1;
        x->split = x->mask + 1;
    }
    x->split--;
    low = x->bucket + x->split;
    high = low + x->mask + 1;
    lower(x, low);
    lower(x, high);
    old = *high;
    memset(high, 0, sizeof *high);
    do {
        for (uint32_t i = 0, n = used(&old); i < n; i++) {
            filling f = {old.ref[i], old.tag[i], old.next[i]};
            append(x, low, f);
        }
    } while (next_of_chain(x, old.more, &old));
    if (!x->resident && zn_zindex_buckets(x) + 2 * BUCKETS_GIVEN_BACK <= x->high) {
        size_t from = (x->high - 1) / BUCKETS_GIVEN_BACK * BUCKETS_GIVEN_BACK;
        zn_block_clear(x->bucket + from, (x->high - from) * sizeof(zn_zbucket));
        x->high = (uint32_t)from;
    }
}

void zn_zindex_add(zn_zindex *x, uint64_t hash, uint8_t tag, uint32_t ref)
{
    zn_zbucket *home = zn_zindex_home(x, hash);
    uint32_t place = (uint32_t)(home - x->bucket);
    bool was_split = place < x->split || place > x->mask;
    filling f = {ref, tag, (uint8_t)(hash >> NEXT(x->level + was_split))};
    append(x, home, f);
    x->live++;
    if ((uint64_t)x->live * 2 >= (uint64_t)LOAD_SPLIT * zn_zindex_buckets(x) &&
        zn_zindex_buckets(x) < x->bucket_cap)
        split(x);
}

static uint32_t *slot_in(zn_zbucket *b, uint32_t ref)
{
    uint32_t hits = 0;
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi32((int)ref);
    for (uint32_t i = 0; i <= 6; i += i == 4 ? 2 : 4) { /* slots 6 and 7 twice */
        __m128i refs = _mm_loadu_si128((const void *)(b->ref + i));
        __m128i equal = _mm_cmpeq_epi32(refs, wanted);
        hits |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(equal)) << i;
    }
#else
    for (uint32_t i = 0; i < ZN_ZBUCKET_SLOTS; i++)
        hits |= (uint32_t)(b->ref[i] == ref) << i;
#endif
    return hits != 0 ? b->ref + __builtin_ctz(hits) : NULL;
}

uint32_t *zn_zindex_slot(const zn_zindex *x, uint64_t hash, uint32_t ref)
{
    zn_zbucket *b = zn_zindex_home(x, hash);
    uint32_t *slot;
    while ((slot = slot_in(b, ref)) == NULL && b->more != 0)
        b = zn_zindex_more(x, b);
    return slot;
}

void zn_zindex_remove(zn_zindex *x, uint64_t hash, uint32_t ref)
{
    zn_zbucket *b = zn_zindex_home(x, hash), *hole = b, *before = NULL;
    uint32_t *slot = NULL, last;
    for (;; before = b, b = zn_zindex_more(x, b)) {
        if (slot == NULL && (slot = slot_in(b, ref)) != NULL)
            hole = b;
        if (b->more == 0)
            break;
    }
    ZN_ASSERT(slot != NULL);
    last = used(b) - 1;
    hole->tag[slot - hole->ref] = b->tag[last];
    hole->next[slot - hole->ref] = b->next[last];
    *slot = b->ref[last];
    b->tag[last] = 0;
    b->ref[last] = 0;
    if (last == 0 && before != NULL) {
        zn_slab_give(&x->overflow, before->more);
        before->more = 0;
    }
    x->live--;
    if ((uint64_t)x->live * 2 < (uint64_t)LOAD_MERGE * zn_zindex_buckets(x) &&
        zn_zindex_buckets(x) > BUCKETS_MIN)
        merge(x);
}

size_t zn_zindex_bytes(const zn_zindex *x)
{
    return x->high * sizeof(zn_zbucket) + zn_slab_bytes(&x->overflow);
}

static const char *check_bucket(const zn_zindex *x, const zn_zbucket *home, const zn_zbucket *b)
{
    uint32_t full = used(b), place = (uint32_t)(home - x->bucket);
    uint32_t level = x->level + (place < x->split || place > x->mask);
    if (full != ZN_ZBUCKET_SLOTS &&
        (b->more != 0 || zn_zbucket_match(b, 0) != (ALL_SLOTS >> full) << full))
        return "index: chain with a hole";
    if (b != home && full == 0)
        return "index: empty overflow bucket";
    for (uint32_t i = 0; i < full; i++) {
        uint64_t hash = b->ref[i] != 0 ? x->keys.hash(x->owner, b->ref[i]) : 0;
        if (b->ref[i] == 0 || zn_zindex_home(x, hash) != home)
            return "index: reference in a bucket of another hash";
        if (b->next[i] != (uint8_t)(hash >> NEXT(level)))
            return "index: bits of a hash";
    }
    return NULL;
}

const char *zn_zindex_check(const zn_zindex *x)
{
    const char *wrong;
    uint32_t n = 0, chained = 0;
    if (x->mask + 1 != UINT32_C(1) << x->level || x->split > x->mask ||
        zn_zindex_buckets(x) > x->high || x->high > x->bucket_cap)
        return "index: number of buckets";
    for (uint32_t i = 0; i < zn_zindex_buckets(x); i++) {
        const zn_zbucket *home = x->bucket + i;
        for (const zn_zbucket *b = home; b != NULL; b = zn_zindex_more(x, b)) {
            if ((wrong = check_bucket(x, home, b)) != NULL)
                return wrong;
            chained += b != home;
            n += used(b);
        }
    }
    return n == x->live && chained == x->overflow.live ? NULL : "index: count";
}
