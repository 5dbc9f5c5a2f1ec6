/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of the timer wheel: open flows in the order in which they came. A list is a chain of
 * parts, each a cache line of numbers of flows, so that the entries of many flows can be fetched
 * before the first of them is looked at; links in the entries would have to be read one after the
 * other. A flow that leaves before its list's time leaves a hole, and the last one of a part takes
 * the part with it. Flows know their part and not its list, so that a part can go to another list
 * without a look at them.
 */
#include "flow/flow_internal.h"

int zn_flow_wheel_init(zn_flow_table *t, uint32_t max_flows, zn_error *err)
{
    /* Each part holds a flow: there are never more. */
    return zn_slab_init(&t->parts, sizeof(zn_wheel_part), max_flows, err);
}

/* Takes a part out of its list. */
static void take_out(zn_flow_table *t, uint32_t part)
{
    const zn_wheel_part *p = zn_flow_wheel_part(t, part);
    zn_wheel_list *list = &t->wheel[p->list];
    uint32_t next = p->next, previous = p->previous;
    if (previous != 0)
        zn_flow_wheel_part(t, previous)->next = next;
    else
        list->first = next;
    if (next != 0)
        zn_flow_wheel_part(t, next)->previous = previous;
    else
        list->last = previous;
}

/* Puts a part at the end of a list. */
static void append(zn_flow_table *t, unsigned number, uint32_t part)
{
    zn_wheel_list *list = &t->wheel[number];
    zn_wheel_part *p = zn_flow_wheel_part(t, part);
    p->list = (uint16_t)number;
    p->next = 0;
    p->previous = list->last;
    if (list->last != 0)
        zn_flow_wheel_part(t, list->last)->next = part;
    else
        list->first = part;
    list->last = part;
}

/* Takes an empty part out of its list, and gives it back. */
static void drop(zn_flow_table *t, uint32_t part)
{
    take_out(t, part);
    zn_slab_give(&t->parts, part);
}

void zn_flow_wheel_add(zn_flow_table *t, unsigned number, uint32_t flow)
{
    zn_flow *f = zn_flow_entry(t, flow);
    uint32_t part = t->wheel[number].last;
    zn_wheel_part *p;
    if (part == 0 || zn_flow_wheel_part(t, part)->used == ZN_WHEEL_PART) {
        part = zn_slab_take(&t->parts);
        ZN_ASSERT(part != 0);
        append(t, number, part);
    }
    p = zn_flow_wheel_part(t, part);
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
    p = zn_flow_wheel_part(t, part);
    ZN_ASSERT(p->flow[f->previous] == flow);
    p->flow[f->previous] = 0;
    if (--p->live == 0)
        drop(t, part);
}

uint32_t zn_flow_wheel_first(const zn_flow_table *t, unsigned number)
{
    uint32_t part = t->wheel[number].first;
    const zn_wheel_part *p;
    if (part == 0)
        return 0;
    p = zn_flow_wheel_part(t, part);
    for (unsigned i = 0; i < p->used; i++)
        if (p->flow[i] != 0)
            return p->flow[i];
    return 0;
}

size_t zn_flow_wheel_take(zn_flow_table *t, uint32_t part, uint32_t flow[ZN_WHEEL_PART])
{
    const zn_wheel_part *p = zn_flow_wheel_part(t, part);
    size_t n = 0;
    for (unsigned i = 0; i < p->used; i++) {
        if (p->flow[i] == 0)
            continue;
        zn_flow_entry(t, p->flow[i])->next = 0;
        flow[n++] = p->flow[i];
    }
    drop(t, part);
    return n;
}

void zn_flow_wheel_move(zn_flow_table *t, uint32_t part, unsigned number)
{
    take_out(t, part);
    append(t, number, part);
}

uint32_t zn_flow_wheel_length(const zn_flow_table *t, unsigned number)
{
    uint32_t n = 0;
    for (uint32_t part = t->wheel[number].first; part != 0;
         part = zn_flow_wheel_part(t, part)->next) {
        ZN_ASSERT(zn_flow_wheel_part(t, part)->list == number);
        n += zn_flow_wheel_part(t, part)->live;
    }
    return n;
}
