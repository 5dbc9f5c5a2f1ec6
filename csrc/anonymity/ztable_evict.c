/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hands go round all attributes, slab by slab in memory order, which costs next to nothing.
 *
 * The sweep retires attributes whose newest user is out of the window, trims others and shrinks
 * their records, one step after it has seen them, when the memory that takes has arrived. Every
 * observation moves it by two slots, so a round takes half as many
 * observations as there are slots, however far the clock went; a new one starts half a window after
 * the last one ended.
 *
 * At a cap, the other hand looks at the next CAP_CANDIDATES attributes, throws out the oldest of
 * them and stays behind it. Where attributes are as old as their place in memory, and where there
 * are fewer than that, this is the very oldest. Where it finds free slots alone, which an earlier
 * load has left, the attribute that was just observed goes, and the hand goes on.
 */
#include "anonymity/ztable_internal.h"

#define ROUNDS_PER_WINDOW 2
#define DRAIN_STEPS (8 * ZN_ZSWEEP_EVERY)
#define TRIM_STEPS 64 /* entries of a list freed at one step */
#define CAP_CANDIDATES 16
#define CAP_STEPS 64        /* slots looked at in search of that many candidates */
#define CAP_FREE_STEPS 1024 /* the same, while there is none */

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

int64_t zn_zref_newest(const zn_ztable *t, zn_zref ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        return zn_zlist_at(t, zn_zref_index(ref))->newest_ns;
    return zn_zrecord_get(t, ref, 0).t_ns;
}

static int64_t oldest_of(const zn_ztable *t, zn_zref ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        return zn_zlist_at(t, zn_zref_index(ref))->oldest_ns;
    return zn_zrecord_get(t, ref, zn_zref_count(t, ref) - 1).t_ns;
}

uint64_t zn_zref_live(const zn_ztable *t, zn_zref ref, int64_t t_ns)
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

void zn_zref_retire(zn_ztable *t, zn_zref ref)
{
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

static void sweep_list(zn_ztable *t, uint32_t list, int64_t start)
{
    zn_zref ref = zn_zref_of(ZN_ZKIND_LIST, list);
    if (zn_zref_count(t, ref) == 0)
        return;
    if (zn_zref_newest(t, ref) < start)
        zn_zref_retire(t, ref);
    else
        zn_zlist_trim(t, list, start, TRIM_STEPS);
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

void zn_zroom_sweep(zn_ztable *t)
{
    int64_t start = zn_zwindow_start(t, t->clock.now_ns);
    uint32_t steps = 0;
    if (t->dying != 0)
        zn_zlist_drain(t, DRAIN_STEPS);
    zn_zrecord_sweep(t, start);
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

/* Of the attributes next to the hand, the one with the oldest entry or the longest untouched. */
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
        ns = untouched ? zn_zref_newest(t, ref) : oldest_of(t, ref);
        if (best == 0 || ns < best_ns) {
            best = ref;
            best_ns = ns;
            after = h;
        }
    }
    t->cap_hand = best != 0 ? after : h;
    return best;
}

static void throw_out_tuple(zn_ztable *t, zn_zref ref)
{
    if (oldest_of(t, ref) >= zn_zwindow_start(t, t->clock.now_ns))
        t->stats.evicted++;
    if (zn_zref_count(t, ref) == 1)
        zn_zref_retire(t, ref);
    else if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        zn_zlist_drop_oldest(t, zn_zref_index(ref));
    else
        zn_zrecord_drop_oldest(t, ref);
}

void zn_zroom_enforce_caps(zn_ztable *t, zn_id current)
{
    if (ZN_UNLIKELY(t->stats.tuples + t->dying_tuples > t->config.max_tuples)) {
        if (t->dying != 0) {
            zn_zlist_drain(t, 1);
        } else {
            zn_zref oldest = find_oldest(t, false);
            throw_out_tuple(t, oldest != 0 ? oldest : *zn_zref_find(t, current));
        }
    }
    if (ZN_UNLIKELY(t->stats.attributes > t->config.max_attributes)) {
        zn_zref oldest = find_oldest(t, true);
        if (oldest == 0)
            oldest = *zn_zref_find(t, current);
        t->stats.evicted += zn_zref_live(t, oldest, t->clock.now_ns);
        zn_zref_retire(t, oldest);
    }
}
