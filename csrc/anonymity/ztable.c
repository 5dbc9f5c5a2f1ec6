/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One observation (t, u, a):
 *   1. the clock says whether t is on time, late or not to be used;
 *   2. users of a older than t - window are evicted;
 *   3. users newer than t (none if t is on time) are skipped, and u is inserted after them, unless
 *      u is already stored with a later time;
 *   4. released iff at least z users are stored with a time up to t, u included.
 * Times stored were really observed, and a user has one: so what is counted exists,
 * and no order of the input can release too much.
 *
 * Two hands, the sweep and the cap's hand, go round all attributes, slab by slab in memory order,
 * at little cost.
 *
 * The sweep retires attributes whose newest user is out of the window, trims others and shrinks
 * their records, one step after it has seen them, when the memory that takes has arrived. Every
 * observation moves it by two slots, so a round takes half as many observations as there are
 * slots, however far the clock went; a new one starts half a window after the last one ended.
 *
 * At a cap, the other hand looks at the next CAP_CANDIDATES attributes, evicts the oldest of them
 * and stays there. This is the oldest attribute of all if attributes lie in memory in the order of
 * their age, or if there are at most CAP_CANDIDATES. If the hand sees free slots only, left by an
 * earlier load, the attribute that was just observed is evicted, and the hand moves on.
 *
 * Every table lays out its memory for its caps at start and never asks for more, so the layout is
 * the most memory that it can touch. The caps for a budget are found by laying out tables on trial,
 * which takes address space only. Neither needs the cost of a tuple in each form, or the worst case
 * that an adversary could cause.
 */
#include "anonymity/ztable_internal.h"

#include <string.h>
#include <unistd.h>

#define DEFAULT_TUPLES (UINT32_C(1) << 26)
#define DEFAULT_ATTRIBUTES (UINT32_C(1) << 24)
#define TUPLES_AN_ATTRIBUTE 4 /* of the caps */

#define ROUNDS_PER_WINDOW 2
#define DRAIN_STEPS (8 * ZN_ZSWEEP_EVERY)
#define TRIM_STEPS 64 /* entries of a list freed at one step */
#define CAP_CANDIDATES 16
#define CAP_STEPS 64        /* slots looked at in search of the candidates */
#define CAP_FREE_STEPS 1024 /* slots looked at while all are free */

#define MARK_NUMBERS 15 /* of slices, of which a mark has one */

/* ---- attributes of either form ---- */

/* Time of the newest user. */
static inline int64_t newest_of(const zn_ztable *t, zn_zref ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        return zn_zlist_at(t, zn_zref_index(ref))->newest_ns;
    return zn_zrecord_times(t, ref)[zn_zrecord_at(t, ref)->head];
}

/* Time of the oldest user. */
static int64_t oldest_of(const zn_ztable *t, zn_zref ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        return zn_zlist_at(t, zn_zref_index(ref))->oldest_ns;
    return zn_zrecord_get(t, ref, zn_zref_count(t, ref) - 1).t_ns;
}

/* Users in the window that ends at t_ns. */
static uint64_t live_users(const zn_ztable *t, zn_zref ref, int64_t t_ns)
{
    int64_t start = zn_zwindow_start(t, t_ns);
    uint32_t n = zn_zref_count(t, ref), later = 0, e;
    if (zn_zref_kind(ref) != ZN_ZKIND_LIST) {
        while (n != 0 && zn_zrecord_get(t, ref, n - 1).t_ns < start)
            n--;
        while (later != n && zn_zrecord_get(t, ref, later).t_ns > t_ns)
            later++;
        return n - later;
    }
    e = zn_zlist_at(t, zn_zref_index(ref))->newest;
    for (; e != 0 && zn_zentry_at(t, e)->t_ns > t_ns; later++)
        e = zn_zentry_at(t, e)->older;
    if (e == 0)
        return 0;
    e = zn_zlist_at(t, zn_zref_index(ref))->oldest;
    for (; e != 0 && zn_zentry_at(t, e)->t_ns < start; n--)
        e = zn_zentry_at(t, e)->newer;
    return n > later ? n - later : 0;
}

size_t zn_znewest(const zn_ztable *t, zn_id attribute, zn_observation *out, size_t n)
{
    const zn_zref *ref = zn_zref_find(t, attribute);
    size_t users = ref != NULL ? zn_zref_count(t, *ref) : 0;
    uint32_t e;
    if (n > users)
        n = users;
    if (n == 0)
        return 0;
    if (zn_zref_kind(*ref) != ZN_ZKIND_LIST) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = zn_zrecord_get(t, *ref, i);
        return n;
    }
    e = zn_zlist_at(t, zn_zref_index(*ref))->newest;
    for (size_t i = 0; i < n; i++, e = zn_zentry_at(t, e)->older)
        out[i] = zn_zentry_get(t, e);
    return n;
}

/* ---- marks ---- */

/* Returns the number of the slice that t_ns lies in. */
static inline int64_t slice_of(const zn_ztable *t, int64_t t_ns)
{
    uint64_t inside = (uint64_t)t_ns - (uint64_t)t->slice_start_ns;
    return ZN_LIKELY(inside < (uint64_t)t->slice_ns) ? t->slice : t_ns / t->slice_ns;
}

/* Returns the mark bits of a slice. */
static inline uint32_t bits_of(int64_t slice)
{
    return (uint32_t)(slice % MARK_NUMBERS) + 1;
}

/* Notes the slice of the clock. */
static inline void follow_slice(zn_ztable *t)
{
    uint64_t inside = (uint64_t)t->clock.now_ns - (uint64_t)t->slice_start_ns;
    if (ZN_LIKELY(inside < (uint64_t)t->slice_ns && t->slice_bits != 0))
        return;
    t->slice = t->clock.now_ns / t->slice_ns;
    t->slice_start_ns = t->slice * t->slice_ns;
    t->slice_bits = bits_of(t->slice);
}

static inline uint32_t mark_bits(const zn_ztable *t, zn_zref ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        return zn_zlist_at(t, zn_zref_index(ref))->mark;
    return zn_zrecord_at(t, ref)->mark;
}

static inline void set_mark_bits(const zn_ztable *t, zn_zref ref, uint32_t bits)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        zn_zlist_at(t, zn_zref_index(ref))->mark = (uint8_t)bits;
    else
        zn_zrecord_at(t, ref)->mark = bits & 15;
}

/* Returns the slice of a mark with these bits, or ZN_SLICE_NONE. Deletes a mark that is over. The
 * newest user had the time newest_ns when the bits were read. A mark is at most 7 slices older than
 * the newest user. If the newest user is in the window, the mark is at most 14 slices old. Two
 * slices with the same bits are 15 slices apart. */
static int64_t decode_mark(zn_ztable *t, zn_zref ref, uint32_t bits, int64_t newest_ns)
{
    int64_t slice = slice_of(t, newest_ns) - ZN_MARK_SLICES, numbers_on;
    if (bits == 0)
        return ZN_SLICE_NONE;
    numbers_on = ((int64_t)bits - 1 - slice) % MARK_NUMBERS;
    slice += numbers_on < 0 ? numbers_on + MARK_NUMBERS : numbers_on;
    if (slice_of(t, t->clock.now_ns) - slice <= ZN_MARK_SLICES)
        return slice;
    set_mark_bits(t, ref, 0);
    return ZN_SLICE_NONE;
}

/* Returns the slice of an attribute's mark, or ZN_SLICE_NONE. */
static int64_t read_mark(zn_ztable *t, zn_zref ref)
{
    return decode_mark(t, ref, mark_bits(t, ref), newest_of(t, ref));
}

/* Marks an attribute, whose mark is `before`, at a time. */
static inline void write_mark(zn_ztable *t, zn_zref ref, int64_t before, int64_t t_ns)
{
    int64_t slice = slice_of(t, t_ns);
    if (slice > before && slice_of(t, t->clock.now_ns) - slice <= ZN_MARK_SLICES)
        set_mark_bits(t, ref, bits_of(slice));
}

/* Returns the part of an attribute's identity that is stored. */
static zn_id id_of(const zn_ztable *t, zn_zref ref)
{
    zn_id id = zn_zref_kind(ref) == ZN_ZKIND_LIST ? zn_zlist_at(t, zn_zref_index(ref))->id
                                                  : zn_zrecord_id(zn_zrecord_at(t, ref));
    id.hi &= ZN_ZID_HI;
    return id;
}

/* Hands the mark of an attribute that is about to be freed to the owner of the marks. */
static void keep_mark(zn_ztable *t, zn_zref ref)
{
    int64_t slice = read_mark(t, ref);
    if (slice != ZN_SLICE_NONE && !t->marks.keep(t->marks.of, id_of(t, ref), slice))
        t->answer_bits |= ZN_ANSWER_LOST;
}

/* Returns the slice of the mark that the owner kept for an attribute, or ZN_SLICE_NONE. */
static __attribute__((noinline)) int64_t kept_mark(zn_ztable *t, zn_id id)
{
    int64_t slice;
    id.hi &= ZN_ZID_HI;
    slice = t->marks.find(t->marks.of, id);
    if (slice == ZN_SLICE_NONE || slice_of(t, t->clock.now_ns) - slice > ZN_MARK_SLICES)
        return ZN_SLICE_NONE;
    return slice;
}

void zn_ztable_set_marks(zn_ztable *t, const zn_zmarks *marks)
{
    t->marks = *marks;
    t->slice_ns = zn_mark_slice_ns(t->config.window_ns);
}

uint8_t zn_ztable_mark(zn_ztable *t, zn_id attribute, int64_t t_ns)
{
    const zn_zref *found = zn_zref_find(t, attribute);
    zn_zref ref;
    int64_t before;
    if (found == NULL)
        return 0;
    ref = *found;
    before = read_mark(t, ref);
    if (before != ZN_SLICE_NONE && t_ns > t->clock.now_ns &&
        slice_of(t, t_ns) - before > ZN_MARK_SLICES)
        before = ZN_SLICE_NONE; /* over at the time of the publication */
    write_mark(t, ref, before, t_ns);
    return before == ZN_SLICE_NONE ? ZN_ANSWER_FIRST : 0;
}

/* Removes an attribute. */
static void retire(zn_ztable *t, zn_zref ref)
{
    if (t->marks.of != NULL)
        keep_mark(t, ref);
    t->stats.attributes--;
    t->stats.tuples -= zn_zref_count(t, ref);
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST) {
        uint32_t list = zn_zref_index(ref);
        zn_zindex_remove(&t->by_id, zn_zlist_at(t, list)->id.lo, ref);
        zn_zlist_free(t, list);
    } else {
        zn_zindex_remove(&t->by_id, zn_zrecord_at(t, ref)->id_lo, ref);
        zn_zrecord_free(t, ref);
    }
}

/* Prefetches the buckets that users of a record will have in a list: they lie too far apart to be
 * waited for one by one. */
static void fetch_buckets(const zn_ztable *t, zn_zref ref, uint32_t list)
{
    for (uint32_t i = 0, n = zn_zref_count(t, ref); i < n; i++) {
        uint32_t user = (uint32_t)zn_zrecord_get(t, ref, i).user;
        ZN_PREFETCH_WRITE(zn_zindex_home(&t->by_user, zn_zentry_hash(t, list, user)));
    }
}

/* Turns the record *ref into a list; false when the cap leaves none. */
static bool become_list(zn_ztable *t, zn_zref *ref)
{
    uint32_t list = zn_zlist_make(t, zn_zrecord_id(zn_zrecord_at(t, *ref)));
    uint32_t n = zn_zref_count(t, *ref);
    if (list == 0)
        return false;
    zn_zlist_at(t, list)->mark = (uint8_t)zn_zrecord_at(t, *ref)->mark;
    fetch_buckets(t, *ref, list);
    while (n-- != 0) {
        zn_observation o = zn_zrecord_get(t, *ref, n);
        zn_zlist_push(t, list, &o);
    }
    zn_zrecord_free(t, *ref);
    *ref = zn_zref_of(ZN_ZKIND_LIST, list);
    return true;
}

/* ---- reclaiming ---- */

static const zn_slab *slab_of(const zn_ztable *t, uint32_t kind)
{
    return &t->size[kind].slab;
}

/* Moves a hand to the start of the next slab; false when it came round. */
static bool next_kind(const zn_ztable *t, zn_zhand *h)
{
    bool last = h->kind == ZN_ZKIND_LIST || (h->kind + 1 == t->sizes && !t->with_lists);
    h->slot = 0;
    if (last)
        h->kind = 0;
    else
        h->kind = h->kind + 1 == t->sizes ? ZN_ZKIND_LIST : h->kind + 1;
    return !last;
}

/* Moves a hand to the next slot that was ever used; false when it came round. */
static bool advance(const zn_ztable *t, zn_zhand *h)
{
    while (h->slot >= slab_of(t, h->kind)->used_high)
        if (!next_kind(t, h))
            return false;
    h->slot++;
    return true;
}

static void sweep_list(zn_ztable *t, uint32_t list, int64_t start)
{
    zn_zref ref = zn_zref_of(ZN_ZKIND_LIST, list);
    if (zn_zref_count(t, ref) == 0)
        return;
    if (newest_of(t, ref) < start)
        retire(t, ref);
    else
        zn_zlist_trim(t, list, start, TRIM_STEPS);
}

/* Frees what the records noted by the last step no longer need. */
static void sweep_noted(zn_ztable *t, int64_t start)
{
    for (uint32_t i = 0; i < t->stale_count; i++) {
        zn_zref ref = t->stale[i];
        if (zn_zref_count(t, ref) == 0)
            continue; /* moved since */
        if (newest_of(t, ref) < start)
            retire(t, ref);
        else
            zn_zrecord_trim(t, ref, start);
    }
    t->stale_count = 0;
}

/* Takes up to n steps among the slots of one kind; returns how many. */
static uint32_t sweep_kind(zn_ztable *t, uint32_t n, int64_t start)
{
    zn_zhand *h = &t->sweep_hand;
    uint32_t left = slab_of(t, h->kind)->used_high - h->slot;
    if (n > left)
        n = left;
    if (h->kind != ZN_ZKIND_LIST)
        zn_zrecord_look(t, zn_zref_of(h->kind, h->slot + 1), n, start);
    else
        for (uint32_t i = 1; i <= n; i++)
            sweep_list(t, h->slot + i, start);
    h->slot += n;
    return n;
}

/* Takes a bounded step of the sweep, every ZN_ZSWEEP_EVERY observations. */
static void sweep(zn_ztable *t)
{
    int64_t start = zn_zwindow_start(t, t->clock.now_ns);
    uint32_t steps = 0;
    if (t->dying != 0)
        zn_zlist_drain(t, DRAIN_STEPS);
    sweep_noted(t, start);
    if (!t->sweeping) {
        if (t->clock.now_ns - t->swept_ns < t->config.window_ns / ROUNDS_PER_WINDOW)
            return;
        t->sweeping = true;
    }
    while ((steps += sweep_kind(t, ZN_ZSTALE_MAX - steps, start)) < ZN_ZSTALE_MAX)
        if (!next_kind(t, &t->sweep_hand)) {
            t->sweeping = false;
            t->swept_ns = t->clock.now_ns;
            return;
        }
}

/* Returns, of the attributes next to the hand, the one with the oldest entry or, with `untouched`,
 * the one whose newest entry is oldest; 0: none. */
static zn_zref find_oldest(zn_ztable *t, bool untouched)
{
    zn_zref best = 0;
    zn_zhand h = t->cap_hand, after = h;
    int64_t best_ns = 0;
    for (int steps = 0, candidates = 0;
         steps < (best == 0 ? CAP_FREE_STEPS : CAP_STEPS) && candidates < CAP_CANDIDATES; steps++) {
        zn_zref ref;
        int64_t ns;
        if (!advance(t, &h))
            continue;
        ref = zn_zref_of(h.kind, h.slot);
        if (zn_zref_count(t, ref) == 0)
            continue;
        candidates++;
        ns = untouched ? newest_of(t, ref) : oldest_of(t, ref);
        if (best == 0 || ns < best_ns) {
            best = ref;
            best_ns = ns;
            after = h;
        }
    }
    t->cap_hand = best != 0 ? after : h;
    return best;
}

static void evict_tuple(zn_ztable *t, zn_zref ref)
{
    if (oldest_of(t, ref) >= zn_zwindow_start(t, t->clock.now_ns))
        t->stats.evicted++;
    if (zn_zref_count(t, ref) == 1)
        retire(t, ref);
    else if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        zn_zlist_drop_oldest(t, zn_zref_index(ref));
    else
        zn_zrecord_drop_oldest(t, ref);
}

/* Evicts the oldest until the caps hold again; `current` is the attribute just observed. */
static void enforce_caps(zn_ztable *t, zn_id current)
{
    if (ZN_UNLIKELY(t->stats.tuples + t->dying_tuples > t->config.max_tuples)) {
        if (t->dying != 0) {
            zn_zlist_drain(t, 1);
        } else {
            zn_zref oldest = find_oldest(t, false);
            evict_tuple(t, oldest != 0 ? oldest : *zn_zref_find(t, current));
        }
    }
    if (ZN_UNLIKELY(t->stats.attributes > t->config.max_attributes)) {
        zn_zref oldest = find_oldest(t, true);
        if (oldest == 0)
            oldest = *zn_zref_find(t, current);
        t->stats.evicted += live_users(t, oldest, t->clock.now_ns);
        retire(t, oldest);
    }
}
/* ---- memory ---- */

/* A block takes whole pages. */
static size_t pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static size_t slab_max(const zn_slab *s)
{
    return pages(s->object_bytes * s->cap);
}

static size_t index_max(const zn_zindex *x)
{
    return pages(x->bucket_cap * sizeof *x->bucket) + slab_max(&x->overflow);
}

size_t zn_ztable_memory_max(const zn_ztable *t)
{
    size_t bytes = pages(sizeof *t) + index_max(&t->by_id);
    for (uint32_t i = 0; i < t->sizes; i++)
        bytes += slab_max(&t->size[i].slab);
    if (t->with_lists)
        bytes +=
            index_max(&t->by_user) + slab_max(&t->size[ZN_ZKIND_LIST].slab) + slab_max(&t->entries);
    return bytes;
}

size_t zn_ztable_memory(const zn_ztable *t)
{
    size_t bytes = sizeof *t + zn_zindex_bytes(&t->by_id);
    if (t->config.reserve)
        return zn_ztable_memory_max(t);
    for (uint32_t i = 0; i < t->sizes; i++)
        bytes += zn_slab_bytes(&t->size[i].slab);
    if (t->with_lists)
        bytes += zn_zindex_bytes(&t->by_user) + zn_slab_bytes(&t->size[ZN_ZKIND_LIST].slab) +
                 zn_slab_bytes(&t->entries);
    return bytes;
}

/* ---- opening ---- */

void zn_ztable_config_init(zn_ztable_config *out, size_t size, uint32_t z, int64_t window_ns)
{
    zn_ztable_config c = {.size = size,
                          .z = z,
                          .window_ns = window_ns,
                          .max_tuples = DEFAULT_TUPLES,
                          .max_attributes = DEFAULT_ATTRIBUTES,
                          .rebase_after = ZN_CLOCK_REBASE_AFTER};
    memcpy(out, &c, size < sizeof c ? size : sizeof c);
}

/* Reads the config of a program, which may have been compiled with an earlier version. */
static int read_config(zn_ztable_config *own, const zn_ztable_config *config, zn_error *err)
{
    *own = zn_ztable_default_config(1, 1);
    return zn_config_read(own, sizeof *own, config, "zn_ztable_config", err);
}

static int check_z(const zn_ztable_config *c, uint32_t z, zn_error *err)
{
    if (z < 1 || z > ZN_ZTABLE_Z_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "z must be from 1 to %u, not %u", ZN_ZTABLE_Z_MAX, z);
    if (c->keep != 0 && c->keep < z)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "keep (%u) must be at least z (%u)", c->keep, z);
    return 0;
}

static int check_config(const zn_ztable_config *c, zn_error *err)
{
    if (check_z(c, c->z, err) != 0)
        return -ZN_ERR_CONFIG;
    if (c->window_ns < 1 || c->window_ns > ZN_ZTABLE_WINDOW_MAX_NS)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the window must be from 1 ns to 10 years");
    if (c->max_tuples < 1 || c->max_tuples > ZN_ZTABLE_TUPLES_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_tuples must be from 1 to %u",
                       ZN_ZTABLE_TUPLES_MAX);
    if (c->max_attributes < 1 || c->max_attributes > ZN_ZTABLE_ATTRIBUTES_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_attributes must be from 1 to %u",
                       ZN_ZTABLE_ATTRIBUTES_MAX);
    if (c->max_jump_ns < 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_jump must not be negative");
    if (c->rebase_after < 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "rebase_after must be at least 1");
    return 0;
}

static uint64_t rehash_id(const void *table, uint32_t ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        return zn_zlist_at(table, zn_zref_index(ref))->id.lo;
    return zn_zrecord_at(table, ref)->id_lo;
}

static void fetch_id(const void *table, uint32_t ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        ZN_PREFETCH(zn_zlist_at(table, zn_zref_index(ref)));
    else
        ZN_PREFETCH(zn_zrecord_at(table, ref));
}

/* Reserves the memory of a table for its caps. */
static int lay_out(zn_ztable *t, zn_error *err)
{
    static const zn_zindex_keys keys = {rehash_id, fetch_id};
    uint32_t keep = t->config.keep;
    t->with_lists = keep == 0 || keep > ZN_ZRECORD_USERS_MAX;
    if (zn_zrecord_lay_out(t, t->with_lists ? ZN_ZLIST_FROM : keep, err) != 0 ||
        (t->with_lists && zn_zlist_lay_out(t, err) != 0) ||
        zn_zindex_init(&t->by_id, zn_zattribute_cap(t) + 1, keys, t, err) != 0)
        return -ZN_ERR_CAPACITY;
    return 0;
}

/* Takes all memory that is laid out. */
static int reserve(zn_ztable *t, zn_error *err)
{
    size_t needed = zn_ztable_memory_max(t), available = zn_memory_available();
    bool done = needed <= available && zn_zindex_populate(&t->by_id);
    for (uint32_t i = 0; i < t->sizes; i++)
        done = done && zn_slab_populate(&t->size[i].slab);
    if (t->with_lists)
        done = done && zn_zindex_populate(&t->by_user) &&
               zn_slab_populate(&t->size[ZN_ZKIND_LIST].slab) && zn_slab_populate(&t->entries);
    if (!done)
        return zn_fail(err, ZN_ERR_CAPACITY, 0,
                       "a z-table of %u tuples and %u attributes reserves %zu MiB of memory, and "
                       "%zu MiB are left; lower its limits",
                       t->config.max_tuples, t->config.max_attributes, (needed >> 20) + 1,
                       available >> 20);
    return 0;
}

static void start_clock(zn_ztable *t)
{
    const zn_ztable_config *c = &t->config;
    zn_clock_init(&t->clock, c->window_ns, c->max_jump_ns, c->rebase_after);
}

int zn_ztable_open(zn_ztable **out, const zn_ztable_config *config, zn_error *err)
{
    zn_ztable_config own;
    zn_hash_key key;
    zn_ztable *t = NULL;
    int rc;
    *out = NULL;
    if ((rc = read_config(&own, config, err)) != 0 || (rc = check_config(&own, err)) != 0 ||
        (rc = zn_hash_key_random(&key, err)) != 0)
        return rc;
    t = zn_heap_alloc(sizeof *t);
    if (t == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a z-table");
    t->config = own;
    t->secret = key.k0;
    start_clock(t);
    if ((rc = lay_out(t, err)) != 0 || (own.reserve && (rc = reserve(t, err)) != 0)) {
        zn_ztable_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void zn_ztable_close(zn_ztable *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->sizes; i++)
        zn_slab_fini(&t->size[i].slab);
    zn_zindex_fini(&t->by_user);
    zn_zindex_fini(&t->by_id);
    zn_slab_fini(&t->size[ZN_ZKIND_LIST].slab);
    zn_slab_fini(&t->entries);
    zn_heap_free(t);
}

static void set_caps(zn_ztable_config *c, uint32_t tuples)
{
    uint32_t attributes = tuples / TUPLES_AN_ATTRIBUTE;
    if (attributes > ZN_ZTABLE_ATTRIBUTES_MAX)
        attributes = ZN_ZTABLE_ATTRIBUTES_MAX;
    c->max_tuples = tuples;
    c->max_attributes = attributes != 0 ? attributes : 1;
}

/* Most bytes of a table with this config; SIZE_MAX when there is not even address space for it. */
static int measure(const zn_ztable_config *c, size_t *bytes, zn_error *err)
{
    zn_ztable *t;
    int rc = zn_ztable_open(&t, c, err);
    *bytes = SIZE_MAX;
    if (rc != 0)
        return rc == -ZN_ERR_CAPACITY ? 0 : rc;
    *bytes = zn_ztable_memory_max(t);
    zn_ztable_close(t);
    return 0;
}

int zn_ztable_fit_caps(zn_ztable_config *config, size_t bytes, zn_error *err)
{
    zn_ztable_config own, trial;
    uint32_t fits = 0, too_large = ZN_ZTABLE_TUPLES_MAX;
    if (read_config(&own, config, err) != 0)
        return -ZN_ERR_CONFIG;
    trial = own;
    trial.reserve = false;
    while (fits + 1 < too_large) {
        uint32_t middle = fits + (too_large - fits) / 2;
        size_t needed;
        int rc;
        set_caps(&trial, middle);
        if ((rc = measure(&trial, &needed, err)) != 0)
            return rc;
        if (needed <= bytes)
            fits = middle;
        else
            too_large = middle;
    }
    if (fits == 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%zu bytes are not enough for a z-table", bytes);
    set_caps(&own, fits);
    own.size = config->size;
    memcpy(config, &own, own.size);
    return 0;
}

/* ---- observing ---- */

static void forget(zn_ztable *t)
{
    static const zn_zhand start = {0, 0};
    for (uint32_t i = 0; i < t->sizes; i++)
        zn_slab_reset(&t->size[i].slab);
    zn_zindex_reset(&t->by_id);
    if (t->with_lists) {
        zn_zindex_reset(&t->by_user);
        zn_slab_reset(&t->size[ZN_ZKIND_LIST].slab);
        zn_slab_reset(&t->entries);
    }
    t->dying = t->dying_tuples = 0;
    t->sweep_hand = t->cap_hand = start;
    t->sweeping = false;
    t->stale_count = 0;
    t->swept_ns = t->clock.now_ns;
    t->stats.tuples = t->stats.attributes = 0;
    if (t->marks.of != NULL)
        t->marks.forget(t->marks.of);
}

void zn_ztable_clear(zn_ztable *t)
{
    start_clock(t);
    forget(t);
}

/* Puts a user into a record, which may move or become a list, and *ref with it. */
static uint64_t place_in_record(zn_ztable *t, zn_zref *ref, const zn_observation *o)
{
    uint64_t users = zn_zrecord_place(t, ref, o);
    if (ZN_UNLIKELY(users == ZN_ZFULL) && become_list(t, ref))
        return zn_zlist_place(t, *ref, o);
    return users;
}

/* An attribute at which an observation is placed. */
typedef struct marked_place {
    zn_zref ref;
    bool is_new;       /* the attribute has a new record, without a mark */
    uint32_t bits;     /* of the mark before */
    int64_t newest_ns; /* time of the newest user before */
} marked_place;

/* Puts an accepted observation in; returns the users up to its time, ZN_ZDEEP or ZN_ZFULL. Fills *m
 * unless m is NULL. In line: every observation goes through it. */
static inline __attribute__((always_inline)) uint64_t place(zn_ztable *t, const zn_observation *o,
                                                            marked_place *m)
{
    zn_zref *ref = zn_zref_find(t, o->attribute), made;
    uint64_t users = 1;
    bool is_new = false;
    if (m != NULL && ref != NULL) {
        m->bits = mark_bits(t, *ref);
        m->newest_ns = newest_of(t, *ref);
    }
    if (ref != NULL && zn_zref_kind(*ref) == ZN_ZKIND_LIST &&
        newest_of(t, *ref) < zn_zwindow_start(t, o->t_ns)) {
        retire(t, *ref); /* all at once, however long */
        ref = NULL;
    }
    if (ref == NULL) {
        made = zn_zrecord_make(t, o);
        ref = &made;
        is_new = true;
    } else if (zn_zref_kind(*ref) == ZN_ZKIND_LIST) {
        users = zn_zlist_place(t, *ref, o);
    } else {
        users = place_in_record(t, ref, o);
    }
    if (m != NULL) {
        m->ref = *ref;
        m->is_new = is_new;
    }
    return users;
}

/* Enforces the caps after an observation was placed. */
static inline __attribute__((always_inline)) void hold_caps(zn_ztable *t, const zn_observation *o)
{
    if (ZN_UNLIKELY(t->stats.tuples + t->dying_tuples > t->config.max_tuples ||
                    t->stats.attributes > t->config.max_attributes))
        enforce_caps(t, o->attribute);
}

uint64_t zn_zplace(zn_ztable *t, const zn_observation *o)
{
    uint64_t users = place(t, o, NULL);
    hold_caps(t, o);
    return users;
}

/* Lets the clock judge an observation. */
static inline __attribute__((always_inline)) zn_clock_verdict judge(zn_ztable *t,
                                                                    const zn_observation *o)
{
    zn_clock_verdict verdict;
    if (ZN_UNLIKELY(o->t_ns < 0))
        return ZN_CLOCK_REJECTED;
    verdict = zn_clock_see(&t->clock, o->t_ns);
    if (ZN_UNLIKELY(verdict == ZN_CLOCK_REJECTED))
        return verdict;
    if (ZN_UNLIKELY(verdict == ZN_CLOCK_REBASED)) {
        t->stats.clock_jumps++;
        t->answer_bits |= ZN_ANSWER_REBASED;
        forget(t);
    }
    t->stats.late += verdict == ZN_CLOCK_LATE;
    if (t->stats.observations % ZN_ZSWEEP_EVERY == 0)
        sweep(t);
    return verdict;
}

/* Returns the decision on an observation that was placed. */
static inline __attribute__((always_inline)) zn_decision decide(const zn_ztable *t, uint64_t users)
{
    if (ZN_UNLIKELY(users >= ZN_ZFULL))
        return users == ZN_ZFULL ? ZN_NO_ROOM : ZN_LATE_DEEP;
    return users >= t->config.z ? ZN_RELEASE : ZN_BELOW_Z;
}

static zn_decision observe(zn_ztable *t, const zn_observation *o)
{
    uint64_t users;
    if (ZN_UNLIKELY(judge(t, o) == ZN_CLOCK_REJECTED))
        return ZN_TOO_LATE;
    users = zn_zplace(t, o);
    return decide(t, users);
}

static void count_not_stored(zn_ztable *t, zn_decision d)
{
    t->stats.too_late += d == ZN_TOO_LATE;
    t->stats.late_deep += d == ZN_LATE_DEEP;
    t->stats.no_room += d == ZN_NO_ROOM;
}

static inline __attribute__((always_inline)) void count_decision(zn_ztable *t, zn_decision d)
{
    t->stats.observations++;
    t->stats.released += d == ZN_RELEASE; /* no branch: which of the two cannot be predicted */
    t->stats.below_z += d == ZN_BELOW_Z;
    if (ZN_UNLIKELY(d > ZN_BELOW_Z))
        count_not_stored(t, d);
}

zn_decision zn_ztable_observe(zn_ztable *t, const zn_observation *o)
{
    zn_decision d = observe(t, o);
    count_decision(t, d);
    return d;
}

/* Gives a mark that was kept to a new record, and returns its slice. A mark of a peek that is too
 * far after the new user is lost, because the user's time does not give its slice back. */
static int64_t restore_mark(zn_ztable *t, const zn_observation *o, zn_zref ref)
{
    int64_t slice = kept_mark(t, o->attribute);
    if (slice == ZN_SLICE_NONE)
        return slice;
    if (slice <= slice_of(t, newest_of(t, ref)) + ZN_MARK_SLICES)
        set_mark_bits(t, ref, bits_of(slice));
    else
        t->answer_bits |= ZN_ANSWER_LOST;
    return slice;
}

/* Marks the attribute of an observation that was decided. Returns the bits of the answer. */
static __attribute__((noinline)) uint8_t mark_place(zn_ztable *t, const zn_observation *o,
                                                    const marked_place *m, zn_decision d,
                                                    uint8_t is_late)
{
    int64_t slice =
        m->is_new ? restore_mark(t, o, m->ref) : decode_mark(t, m->ref, m->bits, m->newest_ns);
    uint8_t first = slice == ZN_SLICE_NONE ? ZN_ANSWER_FIRST : 0;
    if (d == ZN_RELEASE) {
        write_mark(t, m->ref, slice, o->t_ns);
        return is_late | first;
    }
    if (d != ZN_BELOW_Z)
        return is_late;
    if (is_late != 0 &&
        live_users(t, m->ref, t->clock.now_ns) >= (t->late_z != 0 ? t->late_z : t->config.z)) {
        write_mark(t, m->ref, slice, t->clock.now_ns);
        return is_late | first;
    }
    return first == 0 ? is_late | ZN_ANSWER_MARKED : is_late;
}

uint8_t zn_zobserve_marked(zn_ztable *t, const zn_observation *o)
{
    zn_clock_verdict verdict;
    marked_place m;
    zn_decision d;
    uint8_t bits = 0;
    bool is_late;
    t->answer_bits = 0;
    verdict = judge(t, o);
    if (ZN_UNLIKELY(verdict == ZN_CLOCK_REJECTED)) {
        count_decision(t, ZN_TOO_LATE);
        return ZN_TOO_LATE | t->answer_bits;
    }
    follow_slice(t);
    d = decide(t, place(t, o, &m));
    is_late = verdict == ZN_CLOCK_LATE || t->late_z != 0;
    /* Most attributes with z users were marked in the slice of the clock, and most others are not
     * marked. If z > 1, a released attribute had another user in the window, so its mark is less
     * than 15 slices old. */
    if (ZN_UNLIKELY(m.is_new || is_late || d > ZN_BELOW_Z || t->config.z == 1 ||
                    m.bits != (d == ZN_RELEASE ? t->slice_bits : 0)))
        bits = mark_place(t, o, &m, d, is_late ? ZN_ANSWER_LATE : 0);
    hold_caps(t, o);
    count_decision(t, d);
    return (uint8_t)d | bits | t->answer_bits;
}

int zn_ztable_set_z(zn_ztable *t, uint32_t z, zn_error *err)
{
    int rc = check_z(&t->config, z, err);
    if (rc == 0)
        t->config.z = z;
    return rc;
}

zn_ztable_stats zn_ztable_get_stats(const zn_ztable *t)
{
    return t->stats;
}

/* ---- counting ---- */

uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute)
{
    return zn_ztable_count_at(t, attribute, t->clock.now_ns);
}

uint64_t zn_ztable_count_at(const zn_ztable *t, zn_id attribute, int64_t t_ns)
{
    const zn_zref *ref = zn_zref_find(t, attribute);
    return ref != NULL ? live_users(t, *ref, t_ns) : 0;
}

/* Collects numbers of users: in `out` while there is space, and in `bins` unless that is NULL. */
typedef struct tally {
    uint32_t *out;
    size_t n, cap;
    uint64_t *bins;
} tally;

static void add(tally *to, uint64_t users)
{
    if (to->n < to->cap)
        to->out[to->n++] = users < UINT32_MAX ? (uint32_t)users : UINT32_MAX;
    if (to->bins != NULL)
        to->bins[63 - __builtin_clzll(users)]++;
}

static void tally_kind(const zn_ztable *t, uint32_t kind, tally *to)
{
    uint32_t slots = t->size[kind].slab.used_high;
    for (uint32_t slot = 1; slot <= slots; slot++) {
        zn_zref ref = zn_zref_of(kind, slot);
        uint64_t users = zn_zref_count(t, ref) != 0 ? live_users(t, ref, t->clock.now_ns) : 0;
        if (users != 0)
            add(to, users);
    }
}

static void tally_all(const zn_ztable *t, tally *to)
{
    for (uint32_t kind = 0; kind < t->sizes; kind++)
        tally_kind(t, kind, to);
    if (t->with_lists)
        tally_kind(t, ZN_ZKIND_LIST, to);
}

size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap)
{
    tally to = {out, 0, cap, NULL};
    tally_all(t, &to);
    return to.n;
}

void zn_ztable_histogram(const zn_ztable *t, uint64_t *bins)
{
    tally to = {NULL, 0, 0, bins};
    memset(bins, 0, ZN_ZTABLE_BINS * sizeof *bins);
    tally_all(t, &to);
}
