/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear hashing. With 2^k + s buckets, the s first have been split: a hash goes to bucket (hash
 * mod 2^k), or, when that one is already split, to (hash mod 2^(k+1)). Growing splits bucket s,
 * shrinking undoes the last split; either moves the references of one bucket only. Both loads
 * below are far enough apart that no sequence of adds and removes can make it split and merge in
 * turn for long.
 */
#include "state/ztable_index.h"

#define LOAD_SPLIT 8   /* mean references a bucket at which the index grows */
#define LOAD_MERGE 4   /* and shrinks */
#define BUCKETS_MIN 64 /* one page of 4 KiB */
#define ALL_SLOTS ((1u << ZN_ZBUCKET_SLOTS) - 1)
/* Buckets are given back to the system in pieces of 2 MiB, the size of a huge page. */
#define BUCKETS_GIVEN_BACK (((size_t)2 << 20) / sizeof(zn_zbucket))

static uint32_t buckets_for(uint32_t cap)
{
    uint32_t n = cap / LOAD_SPLIT + 1;
    return n < BUCKETS_MIN ? BUCKETS_MIN : n;
}

static void start_small(zn_zindex *x)
{
    x->mask = BUCKETS_MIN - 1;
    x->split = 0;
    x->high = BUCKETS_MIN;
    x->live = 0;
}

int zn_zindex_init(zn_zindex *x, uint32_t cap, zn_zindex_hash *hash_of, const void *owner,
                   zn_error *err)
{
    memset(x, 0, sizeof *x);
    x->hash_of = hash_of;
    x->owner = owner;
    x->bucket_cap = buckets_for(cap);
    /* An overflow bucket exists only behind twelve full slots, so this many are always enough. */
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

void zn_zindex_reset(zn_zindex *x)
{
    zn_slab_reset(&x->overflow);
    zn_block_clear(x->bucket, x->bucket_cap * sizeof(zn_zbucket));
    start_small(x);
}

/* Slots in use of a bucket, which come first. */
static uint32_t used(const zn_zbucket *b)
{
    uint32_t empty = zn_zbucket_match(b, 0);
    return empty != 0 ? (uint32_t)__builtin_ctz(empty) : ZN_ZBUCKET_SLOTS;
}

/* Puts a reference at the end of the chain that starts at `b`. */
static void append(zn_zindex *x, zn_zbucket *b, uint8_t tag, uint32_t ref)
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
    b->tag[i] = tag;
    b->ref[i] = ref;
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

static void split(zn_zindex *x)
{
    zn_zbucket *low = x->bucket + x->split;
    zn_zbucket *high = low + x->mask + 1;
    zn_zbucket old = *low;
    memset(low, 0, sizeof *low);
    memset(high, 0, sizeof *high);
    do {
        for (uint32_t i = 0, n = used(&old); i < n; i++) {
            uint64_t hash = x->hash_of(x->owner, old.ref[i]);
            append(x, (hash & (x->mask + 1)) != 0 ? high : low, old.tag[i], old.ref[i]);
        }
    } while (next_of_chain(x, old.more, &old));
    if (++x->split > x->mask) {
        x->mask = x->mask << 1 | 1;
        x->split = 0;
    }
    if (zn_zindex_buckets(x) > x->high)
        x->high = zn_zindex_buckets(x);
}

static void merge(zn_zindex *x)
{
    zn_zbucket *low, *high, old;
    if (x->split == 0) {
        x->mask >>= 1;
        x->split = x->mask + 1;
    }
    x->split--;
    low = x->bucket + x->split;
    high = low + x->mask + 1;
    old = *high;
    memset(high, 0, sizeof *high);
    do {
        for (uint32_t i = 0, n = used(&old); i < n; i++)
            append(x, low, old.tag[i], old.ref[i]);
    } while (next_of_chain(x, old.more, &old));
    if (zn_zindex_buckets(x) + 2 * BUCKETS_GIVEN_BACK <= x->high) {
        size_t from = (x->high - 1) / BUCKETS_GIVEN_BACK * BUCKETS_GIVEN_BACK;
        zn_block_clear(x->bucket + from, (x->high - from) * sizeof(zn_zbucket));
        x->high = (uint32_t)from;
    }
}

void zn_zindex_add(zn_zindex *x, uint64_t hash, uint8_t tag, uint32_t ref)
{
    append(x, zn_zindex_home(x, hash), tag, ref);
    x->live++;
    if (x->live / LOAD_SPLIT >= zn_zindex_buckets(x) && zn_zindex_buckets(x) < x->bucket_cap)
        split(x);
}

void zn_zindex_remove(zn_zindex *x, uint64_t hash, uint32_t ref)
{
    zn_zbucket *b = zn_zindex_home(x, hash), *hole = NULL, *before = NULL;
    uint32_t at = 0, last;
    for (;; before = b, b = zn_zindex_more(x, b)) {
        for (uint32_t i = 0; hole == NULL && i < ZN_ZBUCKET_SLOTS; i++)
            if (b->ref[i] == ref) {
                hole = b;
                at = i;
            }
        if (b->more == 0)
            break;
    }
    ZN_ASSERT(hole != NULL);
    last = used(b) - 1;
    hole->tag[at] = b->tag[last];
    hole->ref[at] = b->ref[last];
    b->tag[last] = 0;
    b->ref[last] = 0;
    if (last == 0 && before != NULL) {
        zn_slab_give(&x->overflow, before->more);
        before->more = 0;
    }
    x->live--;
    if (x->live / LOAD_MERGE < zn_zindex_buckets(x) && zn_zindex_buckets(x) > BUCKETS_MIN)
        merge(x);
}

size_t zn_zindex_bytes(const zn_zindex *x)
{
    return x->high * sizeof(zn_zbucket) + zn_slab_bytes(&x->overflow);
}

const char *zn_zindex_check(const zn_zindex *x)
{
    uint32_t n = 0, chained = 0;
    if (x->split > x->mask || zn_zindex_buckets(x) > x->high || x->high > x->bucket_cap)
        return "index: number of buckets";
    for (uint32_t i = 0; i < zn_zindex_buckets(x); i++) {
        const zn_zbucket *b = x->bucket + i;
        for (; b != NULL; b = zn_zindex_more(x, b)) {
            uint32_t full = used(b);
            if (full != ZN_ZBUCKET_SLOTS &&
                (b->more != 0 || zn_zbucket_match(b, 0) != (ALL_SLOTS >> full) << full))
                return "index: chain with a hole";
            if (b != x->bucket + i && (chained++, full == 0))
                return "index: empty overflow bucket";
            n += full;
            for (uint32_t k = 0; k < full; k++)
                if (b->ref[k] == 0 ||
                    zn_zindex_home(x, x->hash_of(x->owner, b->ref[k])) != x->bucket + i)
                    return "index: reference in a bucket of another hash";
        }
    }
    if (n != x->live || chained != x->overflow.live)
        return "index: count";
    return NULL;
}
