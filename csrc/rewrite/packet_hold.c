/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/packet_hold.h"

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
    p->outer = 0;
    p->slots = options ? 2 : 1;
    h->end += p->slots;
    h->n++;
    if (h->end - h->first > h->most)
        h->most = h->end - h->first;
    return p;
}

static zn_hold_slot *slot_at(const zn_packet_hold *h, uint32_t place)
{
    return &h->slots[place & (h->size - 1)];
}

void zn_packet_hold_add_outer(zn_packet_hold *h, zn_held_packet *p,
                              const zn_build_encapsulation *outer)
{
    uint32_t addresses = 0, per_slot = sizeof(zn_hold_slot) / sizeof(zn_addr);
    uint32_t place = h->end;
    for (unsigned i = 0; i < ZN_LAYERS_MAX; i++)
        addresses += outer->layer[i].kind == ZN_LAYER_IP ? 2 : 0;
    ZN_ASSERT(p->at + p->slots == h->end && addresses <= ZN_BUILD_OUTER_ADDRESSES);
    memcpy(slot_at(h, place)->layer, outer->layer, sizeof outer->layer);
    for (uint32_t i = 0; i < addresses; i++)
        slot_at(h, place + 1 + i / per_slot)->layer_address[i % per_slot] = outer->address[i];
    p->outer = p->slots;
    h->end += 1 + (addresses + per_slot - 1) / per_slot;
    p->slots = (uint8_t)(h->end - p->at);
    ZN_ASSERT(p->slots - p->outer <= (int)ZN_HELD_OUTER_SLOTS && h->end - h->first <= h->size);
    if (h->end - h->first > h->most)
        h->most = h->end - h->first;
}

void zn_packet_hold_outer(const zn_packet_hold *h, const zn_held_packet *p,
                          zn_build_encapsulation *out)
{
    uint32_t per_slot = sizeof(zn_hold_slot) / sizeof(zn_addr), place = p->at + p->outer;
    out->layer[0].kind = ZN_LAYER_NONE;
    if (p->outer == 0)
        return;
    memcpy(out->layer, slot_at(h, place)->layer, sizeof out->layer);
    for (uint32_t i = 0; i < ZN_BUILD_OUTER_ADDRESSES; i++)
        if (p->outer + 1u + i / per_slot < p->slots)
            out->address[i] = slot_at(h, place + 1 + i / per_slot)->layer_address[i % per_slot];
}
