/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/packet_hold.h"

#include "util/arena.h"

#define FIRST_SLOTS 4096u
#define SLOTS_MAX (UINT32_C(1) << 30) /* places are told apart by their distance */

int zn_packet_hold_init(zn_packet_hold *h, uint64_t bytes, zn_error *err)
{
    uint64_t most = bytes / sizeof *h->slots;
    h->size = h->size_max = FIRST_SLOTS;
    while (h->size_max < SLOTS_MAX && (uint64_t)h->size_max * 2 <= most)
        h->size_max *= 2;
    h->slots = zn_block_alloc((size_t)h->size * sizeof *h->slots);
    return h->slots != NULL ? 0 : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to hold packets");
}

void zn_packet_hold_fini(zn_packet_hold *h)
{
    zn_block_free(h->slots, (size_t)h->size * sizeof *h->slots);
    memset(h, 0, sizeof *h);
}

/* Doubles the ring; false without memory, or where it is as large as it may be. */
static bool grow(zn_packet_hold *h)
{
    uint32_t size = h->size * 2;
    zn_hold_slot *slots =
        h->size < h->size_max ? zn_block_alloc((size_t)size * sizeof *slots) : NULL;
    if (slots == NULL)
        return false;
    for (uint32_t place = h->first; place != h->end; place++)
        slots[place & (size - 1)] = h->slots[place & (h->size - 1)];
    zn_block_free(h->slots, (size_t)h->size * sizeof *h->slots);
    h->slots = slots;
    h->size = size;
    return true;
}

bool zn_packet_hold_reserve(zn_packet_hold *h, uint32_t n)
{
    while (h->size - (h->end - h->first) < n)
        if (!grow(h))
            return false;
    return true;
}

zn_held_packet *zn_packet_hold_add(zn_packet_hold *h, bool options)
{
    uint32_t place = h->end;
    zn_held_packet *p = zn_packet_hold_at(h, place);
    ZN_ASSERT(h->size - (h->end - h->first) >= 2);
    p->at = place;
    p->slots = options ? 2 : 1;
    h->end += p->slots;
    h->n++;
    if (h->end - h->first > h->most)
        h->most = h->end - h->first;
    return p;
}
