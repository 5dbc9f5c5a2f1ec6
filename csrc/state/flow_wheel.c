/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of the timer wheel: open flows in the order in which they came. A list is a chain of parts,
 * each a cache line of numbers of flows, so that the entries of many flows can be fetched before the
 * first of them is looked at; links in the entries would have to be read one after the other. A flow that
 * leaves before its list's time leaves a hole, and the last one of a part takes the part with it.
 */
#include "state/flow_internal.h"

int zn_flow_wheel_init(zn_flow_table *t, uint32_t max_flows, zn_error *err)
{
    /* Each part holds a flow: there are never more. */
    return zn_slab_init(&t->parts, sizeof(zn_wheel_part), max_flows, err);
}

static zn_wheel_part *part_at(const zn_flow_table *t, uint32_t part)
{
    return zn_slab_at(&t->parts, part);
}

/* Takes an empty part out of its list. */
static void drop(zn_flow_table *t, zn_wheel_list *list, uint32_t part)
{
    const zn_wheel_part *p = part_at(t, part);
    uint32_t next = p->next, previous = p->previous;
    if (previous != 0)
        part_at(t, previous)->next = next;
    else
        list->first = next;
    if (next != 0)
        part_at(t, next)->previous = previous;
    else
        list->last = previous;
    zn_slab_give(&t->parts, part);
}

/* A new part at the end of the list. */
static uint32_t extend(zn_flow_table *t, zn_wheel_list *list)
{
    uint32_t part = zn_slab_take(&t->parts);
    ZN_ASSERT(part != 0);
    part_at(t, part)->previous = list->last;
    if (list->last != 0)
        part_at(t, list->last)->next = part;
    else
        list->first = part;
    list->last = part;
    return part;
}

void zn_flow_wheel_add(zn_flow_table *t, unsigned number, uint32_t flow)
{
    zn_wheel_list *list = &t->wheel[number];
    zn_flow *f = zn_flow_entry(t, flow);
    uint32_t part = list->last;
    zn_wheel_part *p;
    if (part == 0 || part_at(t, part)->used == ZN_WHEEL_PART)
        part = extend(t, list);
    p = part_at(t, part);
    f->list = (uint16_t)number;
    f->next = part;
    f->previous = p->used;
    p->flow[p->used++] = flow;
    p->live++;
}

void zn_flow_wheel_remove(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_entry(t, flow);
    uint32_t part = f->next;
    zn_wheel_part *p;
    if (part == 0)
        return;
    f->next = 0;
    p = part_at(t, part);
    ZN_ASSERT(p->flow[f->previous] == flow);
    p->flow[f->previous] = 0;
    if (--p->live == 0)
        drop(t, &t->wheel[f->list], part);
}

uint32_t zn_flow_wheel_first(const zn_flow_table *t, unsigned number)
{
    uint32_t part = t->wheel[number].first;
    const zn_wheel_part *p;
    if (part == 0)
        return 0;
    p = part_at(t, part);
    for (unsigned i = 0; i < p->used; i++)
        if (p->flow[i] != 0)
            return p->flow[i];
    return 0;
}

/* Fetches what looking at the part's flows needs of their entries, and the part behind. */
static void fetch(const zn_flow_table *t, uint32_t part)
{
    const zn_wheel_part *p;
    if (part == 0)
        return;
    p = part_at(t, part);
    if (p->next != 0)
        ZN_PREFETCH_WRITE(part_at(t, p->next));
    for (unsigned i = 0; i < p->used; i++) {
        if (p->flow[i] == 0)
            continue;
        ZN_PREFETCH_WRITE(zn_flow_entry(t, p->flow[i]));
        ZN_PREFETCH_WRITE(&zn_flow_entry(t, p->flow[i])->next);
    }
}

size_t zn_flow_wheel_take(zn_flow_table *t, unsigned number, uint32_t flow[ZN_WHEEL_PART])
{
    zn_wheel_list *list = &t->wheel[number];
    uint32_t part = list->first;
    const zn_wheel_part *p;
    size_t n = 0;
    if (part == 0)
        return 0;
    p = part_at(t, part);
    fetch(t, p->next);
    for (unsigned i = 0; i < p->used; i++) {
        if (p->flow[i] == 0)
            continue;
        zn_flow_entry(t, p->flow[i])->next = 0;
        flow[n++] = p->flow[i];
    }
    drop(t, list, part);
    return n;
}

uint32_t zn_flow_wheel_length(const zn_flow_table *t, unsigned number)
{
    uint32_t n = 0;
    for (uint32_t part = t->wheel[number].first; part != 0; part = part_at(t, part)->next)
        n += part_at(t, part)->live;
    return n;
}
