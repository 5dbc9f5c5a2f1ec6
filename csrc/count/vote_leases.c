/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap by end, and an open-addressed index with linear probing into the heap. Each lease
 * has its slot of the index, so that the index is updated when the lease moves. */
#include "count/vote_leases.h"

#include "util/arena.h"
#include "util/hash.h"

#include <string.h>

#define LO_BITS (UINT64_MAX >> 1) /* the bits of id.lo by which a lease can be found */

static size_t lease_bytes(const zn_leases *l)
{
    return l->max * sizeof *l->lease;
}

static size_t slot_bytes(const zn_leases *l)
{
    return ((size_t)l->mask + 1) * sizeof *l->slot;
}

int zn_leases_init(zn_leases *l, uint32_t max, zn_error *err)
{
    uint32_t slots = 2;
    if (max < 1 || max > ZN_LEASES_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "there are from 1 to %u leases", ZN_LEASES_MAX);
    while (slots < 2 * max)
        slots *= 2;
    l->max = max;
    l->mask = slots - 1;
    l->lease = zn_block_alloc(lease_bytes(l));
    l->slot = zn_block_alloc(slot_bytes(l));
    if (l->lease == NULL || l->slot == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %u leases", max);
    return 0;
}

void zn_leases_fini(zn_leases *l)
{
    zn_block_free(l->lease, lease_bytes(l));
    zn_block_free(l->slot, slot_bytes(l));
    memset(l, 0, sizeof *l);
}

/* ---- the index ---- */

static uint32_t home_of(const zn_leases *l, uint64_t lo)
{
    return (uint32_t)(lo & LO_BITS) & l->mask;
}

zn_lease *zn_leases_find(const zn_leases *l, zn_id id)
{
    for (uint32_t at = home_of(l, id.lo); l->slot[at] != 0; at = (at + 1) & l->mask) {
        zn_lease *lease = l->lease + l->slot[at] - 1;
        if (zn_id_equal(lease->id, id))
            return lease;
    }
    return NULL;
}

zn_lease *zn_leases_find_lo(const zn_leases *l, uint64_t lo)
{
    for (uint32_t at = home_of(l, lo); l->slot[at] != 0; at = (at + 1) & l->mask) {
        zn_lease *lease = l->lease + l->slot[at] - 1;
        if (((lease->id.lo ^ lo) & LO_BITS) == 0)
            return lease;
    }
    return NULL;
}

/* Puts a lease into a place of the heap. */
static void put(zn_leases *l, uint32_t place, const zn_lease *lease)
{
    l->lease[place] = *lease;
    l->slot[lease->slot] = place + 1;
}

/* Frees a slot, and moves up later slots that were displaced by it. */
static void free_slot(zn_leases *l, uint32_t slot)
{
    for (uint32_t at = (slot + 1) & l->mask; l->slot[at] != 0; at = (at + 1) & l->mask) {
        zn_lease *lease = l->lease + l->slot[at] - 1;
        uint32_t home = home_of(l, lease->id.lo);
        if (((at - home) & l->mask) < ((at - slot) & l->mask))
            continue;
        l->slot[slot] = l->slot[at];
        lease->slot = slot;
        slot = at;
    }
    l->slot[slot] = 0;
}

/* ---- the heap ---- */

static void sift_up(zn_leases *l, uint32_t place)
{
    zn_lease lease = l->lease[place];
    while (place != 0 && l->lease[(place - 1) / 2].until_ns > lease.until_ns) {
        put(l, place, &l->lease[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(l, place, &lease);
}

static void sift_down(zn_leases *l, uint32_t place)
{
    zn_lease lease = l->lease[place];
    for (uint32_t child; (child = 2 * place + 1) < l->n; place = child) {
        if (child + 1 < l->n && l->lease[child + 1].until_ns < l->lease[child].until_ns)
            child++;
        if (l->lease[child].until_ns >= lease.until_ns)
            break;
        put(l, place, &l->lease[child]);
    }
    put(l, place, &lease);
}

bool zn_leases_add(zn_leases *l, zn_id id, int64_t since_ns, int64_t until_ns)
{
    zn_lease lease = {.id = id, .since_ns = since_ns, .until_ns = until_ns};
    if (l->n == l->max)
        return false;
    lease.slot = home_of(l, id.lo);
    while (l->slot[lease.slot] != 0)
        lease.slot = (lease.slot + 1) & l->mask;
    put(l, l->n++, &lease);
    sift_up(l, l->n - 1);
    return true;
}

void zn_leases_extend(zn_leases *l, zn_lease *lease, int64_t until_ns)
{
    ZN_ASSERT(until_ns >= lease->until_ns);
    lease->until_ns = until_ns;
    sift_down(l, (uint32_t)(lease - l->lease));
}

void zn_leases_remove(zn_leases *l, zn_lease *lease)
{
    uint32_t place = (uint32_t)(lease - l->lease);
    free_slot(l, lease->slot);
    if (place == --l->n)
        return;
    put(l, place, &l->lease[l->n]);
    sift_down(l, place);
    sift_up(l, place);
}

void zn_leases_expire(zn_leases *l, int64_t t_ns)
{
    while (l->n != 0 && l->lease->until_ns < t_ns)
        zn_leases_remove(l, l->lease);
}
