/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/id_set.h"

#include "util/arena.h"

#include <string.h>

#define ROOM_FIRST UINT32_C(32)
#define ROOM_MAX (UINT32_C(1) << 31)

void zn_id_set_fini(zn_id_set *s)
{
    zn_block_free(s->at, s->at_bytes);
    zn_block_free(s->slots, s->slots_bytes);
    memset(s, 0, sizeof *s);
}

/* Has two slots for each pair that there is room for, all empty. */
static void lay_out(zn_id_set *s, uint32_t room)
{
    s->room = room;
    s->mask = 2 * (uint64_t)room - 1;
    memset(s->slots, 0, (s->mask + 1) * sizeof *s->slots);
}

int zn_id_set_grow(zn_id_set *s, zn_error *err)
{
    uint32_t room = s->room == 0 ? ROOM_FIRST : 2 * s->room;
    void *at = NULL, *slots = NULL;
    if (s->room < ROOM_MAX) {
        at = zn_block_grow(s->at, &s->at_bytes, room * sizeof *s->at);
        s->at = at == NULL ? s->at : at;
        slots = zn_block_grow(s->slots, &s->slots_bytes, 2 * (size_t)room * sizeof *s->slots);
        s->slots = slots == NULL ? s->slots : slots;
    }
    if (at == NULL || slots == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %u identities", room);
    lay_out(s, room);
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t hash = zn_id_set_hash(s->at[i].owner, s->at[i].id), place = hash & s->mask;
        while (s->slots[place] != 0)
            place = (place + 1) & s->mask;
        s->slots[place] = (hash >> 32) << 32 | (i + 1);
    }
    return 0;
}

void zn_id_set_clear(zn_id_set *s)
{
    uint32_t room = ROOM_FIRST;
    if (s->n == 0)
        return;
    while (room < s->n)
        room *= 2;
    s->n = 0;
    lay_out(s, room);
}

size_t zn_id_set_memory(const zn_id_set *s)
{
    return s->at_bytes + s->slots_bytes;
}
