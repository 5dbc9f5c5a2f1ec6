/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hands go round the slab of attributes, in memory order, which costs next to nothing.
 *
 * The sweep retires attributes whose newest entry is out of the window. Every observation moves it
 * by a few slots, so a round takes at most slots / SWEEP_STEPS observations however far the clock
 * went, and a new round starts a quarter of a window after the last one ended.
 *
 * At a cap, the other hand looks at the next CAP_CANDIDATES attributes, throws out the oldest of
 * them and stays behind it. Where attributes are as old as their place in memory, and where there
 * are fewer than that, this is the very oldest.
 */
#include "state/ztable_internal.h"

#define SWEEP_STEPS 2
#define DRAIN_STEPS 8
#define CAP_CANDIDATES 16
#define CAP_STEPS 64 /* slots looked at in search of that many candidates */

static uint32_t next_slot(const zn_ztable *t, uint32_t hand)
{
    return hand >= t->attributes.used_high ? 1 : hand + 1;
}

void zn_zroom_sweep(zn_ztable *t)
{
    int64_t start = zn_zwindow_start(t, t->clock.now_ns);
    if (t->dying != 0)
        zn_zdying_drain(t, DRAIN_STEPS);
    if (!t->sweeping) {
        if (t->clock.now_ns - t->swept_ns < t->config.window_ns / 4)
            return;
        t->sweeping = true;
    }
    for (int i = 0; i < SWEEP_STEPS; i++) {
        const zn_zattribute *a;
        if (t->sweep_hand >= t->attributes.used_high) {
            t->sweep_hand = 0;
            t->sweeping = false;
            t->swept_ns = t->clock.now_ns;
            return;
        }
        a = zn_zattribute_at(t, ++t->sweep_hand);
        if (a->count != 0 && !a->dying && a->newest_ns < start)
            zn_zattribute_retire(t, t->sweep_hand);
    }
}

/* Of the attributes next to the hand, the one with the oldest entry or the longest untouched. */
static uint32_t find_oldest(zn_ztable *t, bool untouched)
{
    uint32_t best = 0, slot = t->cap_hand;
    int64_t best_ns = 0;
    for (int steps = 0, candidates = 0; steps < CAP_STEPS && candidates < CAP_CANDIDATES; steps++) {
        const zn_zattribute *a;
        int64_t ns;
        slot = next_slot(t, slot);
        a = zn_zattribute_at(t, slot);
        if (a->count == 0 || a->dying)
            continue;
        candidates++;
        ns = untouched ? a->newest_ns : a->oldest_ns;
        if (best == 0 || ns < best_ns) {
            best = slot;
            best_ns = ns;
        }
    }
    t->cap_hand = best != 0 ? best : slot;
    return best;
}

static void throw_out_tuple(zn_ztable *t, uint32_t attribute)
{
    const zn_zattribute *a = zn_zattribute_at(t, attribute);
    if (a->oldest_ns >= zn_zwindow_start(t, t->clock.now_ns))
        t->stats.evicted++;
    if (a->count == 1)
        zn_zattribute_retire(t, attribute);
    else
        zn_zentry_drop_oldest(t, attribute);
}

void zn_zroom_enforce_caps(zn_ztable *t, uint32_t current)
{
    if (ZN_UNLIKELY(t->entries.live > t->config.max_tuples)) {
        if (t->dying != 0) {
            zn_zdying_drain(t, 1);
        } else {
            uint32_t oldest = find_oldest(t, false);
            throw_out_tuple(t, oldest != 0 ? oldest : current);
        }
    }
    if (ZN_UNLIKELY(t->stats.attributes > t->config.max_attributes)) {
        uint32_t oldest = find_oldest(t, true);
        if (oldest == 0)
            oldest = current;
        t->stats.evicted += zn_zattribute_live(t, oldest);
        zn_zattribute_retire(t, oldest);
    }
}
