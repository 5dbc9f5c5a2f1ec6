/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/delay_line.h"

#include "util/arena.h"

#define FIRST_SLOTS 4096u
#define SLOTS_MAX (UINT32_C(1) << 30) /* limit that keeps distances of places unambiguous */
#define ADDRESSES_PER_SLOT ((uint32_t)(sizeof(zn_delay_slot) / sizeof(zn_addr)))

int zn_delay_line_init(zn_delay_line *line, uint64_t bytes, zn_error *err)
{
    uint64_t most = bytes / sizeof *line->slots;
    line->size = line->size_max = FIRST_SLOTS;
    while (line->size_max < SLOTS_MAX && (uint64_t)line->size_max * 2 <= most)
        line->size_max *= 2;
    line->slots = zn_block_alloc((size_t)line->size * sizeof *line->slots);
    return line->slots != NULL ? 0 : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to hold packets");
}

void zn_delay_line_fini(zn_delay_line *line)
{
    zn_block_free(line->slots, (size_t)line->size * sizeof *line->slots);
    memset(line, 0, sizeof *line);
}

/* Doubles the ring. Returns false if there is no memory or the ring has its largest size. */
static bool grow(zn_delay_line *line)
{
    uint32_t size = line->size * 2;
    zn_delay_slot *slots =
        line->size < line->size_max ? zn_block_alloc((size_t)size * sizeof *slots) : NULL;
    if (slots == NULL)
        return false;
    for (uint32_t place = line->first; place != line->end; place++)
        slots[place & (size - 1)] = *zn_delay_line_slot(line, place);
    zn_block_free(line->slots, (size_t)line->size * sizeof *line->slots);
    line->slots = slots;
    line->size = size;
    return true;
}

bool zn_delay_line_reserve(zn_delay_line *line, uint32_t n)
{
    while (line->size - (line->end - line->first) < n)
        if (!grow(line))
            return false;
    return true;
}

static void note_most(zn_delay_line *line)
{
    if (line->end - line->first > line->most)
        line->most = line->end - line->first;
}

zn_delayed *zn_delay_line_add(zn_delay_line *line, uint8_t slots)
{
    uint32_t place = line->end;
    zn_delayed *p = zn_delay_line_at(line, place);
    ZN_ASSERT(line->size - (line->end - line->first) >= 2);
    p->at = place;
    p->outer = 0;
    p->slots = slots;
    line->end += slots;
    line->n++;
    note_most(line);
    return p;
}

void zn_delay_line_add_outer(zn_delay_line *line, zn_delayed *p,
                             const zn_build_encapsulation *outer)
{
    uint32_t addresses = 0, place = line->end;
    for (unsigned i = 0; i < ZN_LAYERS_MAX; i++)
        addresses += outer->layer[i].kind == ZN_LAYER_IP ? 2 : 0;
    ZN_ASSERT(p->at + p->slots == line->end && addresses <= ZN_BUILD_OUTER_ADDRESSES);
    memcpy(zn_delay_line_slot(line, place)->outer.layer, outer->layer, sizeof outer->layer);
    for (uint32_t i = 0; i < addresses; i++)
        zn_delay_line_slot(line, place + 1 + i / ADDRESSES_PER_SLOT)
            ->outer_address[i % ADDRESSES_PER_SLOT] = outer->address[i];
    p->outer = p->slots;
    line->end += 1 + (addresses + ADDRESSES_PER_SLOT - 1) / ADDRESSES_PER_SLOT;
    p->slots = (uint8_t)(line->end - p->at);
    ZN_ASSERT(p->slots - p->outer <= (int)ZN_DELAYED_OUTER_SLOTS &&
              line->end - line->first <= line->size);
    note_most(line);
}

void zn_delay_line_outer(const zn_delay_line *line, const zn_delayed *p,
                         zn_build_encapsulation *out)
{
    uint32_t place = p->at + p->outer;
    out->layer[0].kind = ZN_LAYER_NONE;
    if (p->outer == 0)
        return;
    memcpy(out->layer, zn_delay_line_slot(line, place)->outer.layer, sizeof out->layer);
    for (uint32_t i = 0; i < ZN_BUILD_OUTER_ADDRESSES; i++)
        if (p->outer + 1u + i / ADDRESSES_PER_SLOT < p->slots)
            out->address[i] = zn_delay_line_slot(line, place + 1 + i / ADDRESSES_PER_SLOT)
                                  ->outer_address[i % ADDRESSES_PER_SLOT];
}
