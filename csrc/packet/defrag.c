/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each datagram has ZN_DEFRAG_BYTES, the longest that there can be, so that a fragment is copied
 * once, to its place; only touched bytes take memory. The bytes that are known of it are a list of
 * ranges in order that neither touch nor overlap. A datagram is whole when one range from 0 to its
 * end is left.
 */
#include "packet/defrag.h"

#include "util/arena.h"

#define BUCKETS ZN_DEFRAG_DATAGRAMS

_Static_assert((BUCKETS & (BUCKETS - 1)) == 0, "a bucket is chosen by the hash's low bits");

typedef struct range {
    uint32_t from, to;
} range;

/* An incomplete datagram, or one handed out. */
typedef struct parts {
    uint32_t link;         /* next in its bucket's chain or in `out`; the slab's, while free */
    uint32_t older, newer; /* in the order of their first fragments */
    uint32_t fragments;    /* how many came so far */
    zn_id id;
    int64_t t_ns; /* time of its first fragment */
    uint32_t kind;
    uint32_t end; /* 0: not known */
    uint32_t ranges;
    zn_stat spoilt; /* counts its fragments when it is dropped; ZN_STAT_COUNT: not spoilt */
    range known[ZN_DEFRAG_RANGES];
} parts;

struct zn_defrag {
    zn_slab slab;
    uint8_t *bytes; /* ZN_DEFRAG_BYTES for each entry of the slab */
    uint32_t bucket[BUCKETS];
    uint32_t oldest, newest;
    uint32_t out; /* those handed out, until zn_defrag_release */
    zn_stats *stats;
};

int zn_defrag_open(zn_defrag **out, zn_stats *stats, zn_error *err)
{
    zn_defrag *d = zn_heap_alloc(sizeof *d);
    int rc;
    *out = NULL;
    if (d == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a table of fragments");
    d->stats = stats;
    rc = zn_slab_init(&d->slab, sizeof(parts), ZN_DEFRAG_DATAGRAMS, err);
    if (rc == 0) {
        d->bytes = zn_block_alloc((size_t)ZN_DEFRAG_DATAGRAMS * ZN_DEFRAG_BYTES);
        if (d->bytes == NULL)
            rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for fragments");
    }
    if (rc != 0) {
        zn_defrag_close(d);
        return rc;
    }
    *out = d;
    return 0;
}

void zn_defrag_close(zn_defrag *d)
{
    if (d == NULL)
        return;
    zn_block_free(d->bytes, (size_t)ZN_DEFRAG_DATAGRAMS * ZN_DEFRAG_BYTES);
    zn_slab_fini(&d->slab);
    zn_heap_free(d);
}

static parts *at(const zn_defrag *d, uint32_t entry)
{
    return zn_slab_at(&d->slab, entry);
}

static uint8_t *bytes_of(const zn_defrag *d, uint32_t entry)
{
    return d->bytes + (size_t)(entry - 1) * ZN_DEFRAG_BYTES;
}

static uint32_t *bucket_of(zn_defrag *d, zn_id id)
{
    return &d->bucket[id.lo & (BUCKETS - 1)];
}

/* Takes an entry out of its bucket and out of the list by age. */
static void unlink_entry(zn_defrag *d, uint32_t entry)
{
    parts *p = at(d, entry);
    uint32_t *link = bucket_of(d, p->id);
    while (*link != entry)
        link = &at(d, *link)->link;
    *link = p->link;
    if (p->older != 0)
        at(d, p->older)->newer = p->newer;
    else
        d->oldest = p->newer;
    if (p->newer != 0)
        at(d, p->newer)->older = p->older;
    else
        d->newest = p->older;
}

/* Drops a datagram. Its fragments are counted as `why`, or by the counter that spoilt it. */
static void give_up(zn_defrag *d, uint32_t entry, zn_stat why)
{
    const parts *p = at(d, entry);
    d->stats->n[p->spoilt != ZN_STAT_COUNT ? p->spoilt : why] += p->fragments;
    unlink_entry(d, entry);
    zn_slab_give(&d->slab, entry);
}

static uint32_t find(zn_defrag *d, const zn_datagram_fragment *fragment)
{
    uint32_t entry = *bucket_of(d, fragment->datagram);
    while (entry != 0 && !zn_id_equal(at(d, entry)->id, fragment->datagram))
        entry = at(d, entry)->link;
    if (entry == 0 || fragment->t_ns - at(d, entry)->t_ns <= ZN_DEFRAG_TIMEOUT_NS)
        return entry;
    give_up(d, entry, ZN_STAT_DROP_FRAGMENT_INCOMPLETE);
    return 0;
}

static uint32_t open_entry(zn_defrag *d, const zn_datagram_fragment *fragment)
{
    uint32_t entry = zn_slab_take(&d->slab);
    uint32_t *bucket = bucket_of(d, fragment->datagram);
    parts *p;
    if (entry == 0 && d->oldest != 0) {
        give_up(d, d->oldest, ZN_STAT_DROP_FRAGMENT_EVICTED);
        entry = zn_slab_take(&d->slab);
    }
    if (entry == 0) /* all entries are handed out */
        return 0;
    p = at(d, entry);
    p->id = fragment->datagram;
    p->t_ns = fragment->t_ns;
    p->spoilt = ZN_STAT_COUNT;
    p->link = *bucket;
    *bucket = entry;
    p->older = d->newest;
    if (d->newest != 0)
        at(d, d->newest)->newer = entry;
    else
        d->oldest = entry;
    d->newest = entry;
    return entry;
}

/* Returns true when the fragment's bytes that are known already are the same. *fresh: how many are
 * not known. */
static bool agrees(const parts *p, const uint8_t *have, const zn_datagram_fragment *fragment,
                   uint32_t *fresh)
{
    uint32_t from = fragment->offset, to = from + (uint32_t)fragment->bytes.n;
    *fresh = to - from;
    for (uint32_t i = 0; i < p->ranges; i++) {
        uint32_t low = p->known[i].from > from ? p->known[i].from : from;
        uint32_t high = p->known[i].to < to ? p->known[i].to : to;
        if (low >= high)
            continue;
        if (memcmp(have + low, fragment->bytes.p + (low - from), high - low) != 0)
            return false;
        *fresh -= high - low;
    }
    return true;
}

/* Adds [from, to) to the known ranges; false when there would be too many. */
static bool add_range(parts *p, uint32_t from, uint32_t to)
{
    range merged = {from, to};
    uint32_t first = 0, after, kept;
    while (first < p->ranges && p->known[first].to < from)
        first++;
    for (after = first; after < p->ranges && p->known[after].from <= to; after++) {
        if (p->known[after].from < merged.from)
            merged.from = p->known[after].from;
        if (p->known[after].to > merged.to)
            merged.to = p->known[after].to;
    }
    kept = p->ranges - after;
    if (first + 1 + kept > ZN_DEFRAG_RANGES)
        return false;
    memmove(&p->known[first + 1], &p->known[after], kept * sizeof p->known[0]);
    p->known[first] = merged;
    p->ranges = first + 1 + kept;
    return true;
}

/* Returns true when the fragment agrees with the datagram's end. */
static bool fits_end(const parts *p, const zn_datagram_fragment *fragment)
{
    uint32_t to = fragment->offset + (uint32_t)fragment->bytes.n;
    if (p->end != 0)
        return fragment->last ? to == p->end : to <= p->end;
    return !fragment->last || p->ranges == 0 || p->known[p->ranges - 1].to <= to;
}

/* Returns true when the datagram's first fragment is known and had another kind. */
static bool is_other_kind(const parts *p, const zn_datagram_fragment *fragment)
{
    return fragment->offset == 0 && p->ranges != 0 && p->known[0].from == 0 &&
           p->kind != fragment->kind;
}

/* Copies a fragment to its place. Returns ZN_STAT_COUNT, or the counter that says why it spoils the
 * datagram. */
static zn_stat place(parts *p, uint8_t *have, const zn_datagram_fragment *fragment)
{
    uint32_t n = (uint32_t)fragment->bytes.n, fresh;
    if (!fits_end(p, fragment) || is_other_kind(p, fragment) ||
        !agrees(p, have, fragment, &fresh) ||
        (fragment->may_not_overlap && fresh != 0 && fresh != n))
        return ZN_STAT_DROP_FRAGMENT_OVERLAP;
    if (!add_range(p, fragment->offset, fragment->offset + n))
        return ZN_STAT_DROP_FRAGMENT_EVICTED;
    memcpy(have + fragment->offset, fragment->bytes.p, n);
    if (fragment->last)
        p->end = fragment->offset + n;
    if (fragment->offset == 0)
        p->kind = fragment->kind;
    return ZN_STAT_COUNT;
}

bool zn_defrag_add(zn_defrag *d, const zn_datagram_fragment *fragment, zn_datagram *out)
{
    uint32_t entry;
    parts *p;
    *out = (zn_datagram){0};
    d->stats->n[ZN_STAT_FRAGMENTS]++;
    if (fragment->bytes.n == 0 || fragment->offset >= ZN_DEFRAG_BYTES ||
        fragment->bytes.n > ZN_DEFRAG_BYTES - fragment->offset) {
        d->stats->n[ZN_STAT_DROP_FRAGMENT_OVERLAP]++;
        return false;
    }
    entry = find(d, fragment);
    if (entry == 0)
        entry = open_entry(d, fragment);
    if (entry == 0) {
        d->stats->n[ZN_STAT_DROP_FRAGMENT_EVICTED]++;
        return false;
    }
    p = at(d, entry);
    p->fragments++;
    out->entry = entry;
    out->fragments = p->fragments;
    if (p->spoilt == ZN_STAT_COUNT)
        p->spoilt = place(p, bytes_of(d, entry), fragment);
    if (p->spoilt != ZN_STAT_COUNT || p->end == 0 || p->known[0].from != 0 ||
        p->known[0].to != p->end)
        return false;
    out->bytes = (zn_span){bytes_of(d, entry), p->end};
    out->kind = p->kind;
    d->stats->n[ZN_STAT_DATAGRAMS]++;
    unlink_entry(d, entry);
    p->link = d->out;
    d->out = entry;
    return true;
}

void zn_defrag_release(zn_defrag *d)
{
    while (d->out != 0) {
        uint32_t entry = d->out;
        d->out = at(d, entry)->link;
        zn_slab_give(&d->slab, entry);
    }
}

void zn_defrag_expire(zn_defrag *d, int64_t now_ns)
{
    while (d->oldest != 0 && now_ns - at(d, d->oldest)->t_ns > ZN_DEFRAG_TIMEOUT_NS)
        give_up(d, d->oldest, ZN_STAT_DROP_FRAGMENT_INCOMPLETE);
}

void zn_defrag_clear(zn_defrag *d)
{
    while (d->oldest != 0)
        give_up(d, d->oldest, ZN_STAT_DROP_FRAGMENT_INCOMPLETE);
}

size_t zn_defrag_memory(const zn_defrag *d)
{
    return sizeof *d + zn_slab_bytes(&d->slab) + (size_t)d->slab.used_high * ZN_DEFRAG_BYTES;
}

static const char *check_entry(const parts *p)
{
    for (uint32_t i = 0; i < p->ranges; i++) {
        if (p->known[i].from >= p->known[i].to || p->known[i].to > ZN_DEFRAG_BYTES)
            return "a range of fragments is empty or too long";
        if (i != 0 && p->known[i].from <= p->known[i - 1].to)
            return "two ranges of fragments touch";
    }
    if (p->spoilt == ZN_STAT_COUNT && p->end != 0 && p->known[p->ranges - 1].to > p->end)
        return "fragments lie after their datagram's end";
    return p->fragments == 0 ? "a datagram without fragments" : NULL;
}

const char *zn_defrag_check(const zn_defrag *d)
{
    uint32_t live = 0, chained = 0;
    for (uint32_t entry = d->oldest; entry != 0; entry = at(d, entry)->newer) {
        const char *broken = check_entry(at(d, entry));
        if (broken != NULL)
            return broken;
        live++;
    }
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (uint32_t entry = d->bucket[i]; entry != 0; entry = at(d, entry)->link)
            chained++;
    for (uint32_t entry = d->out; entry != 0; entry = at(d, entry)->link)
        live++, chained++;
    return live == chained && live == d->slab.live ? NULL : "fragments do not add up";
}
