/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expiry. The wheel has a list of flows for each of the next ZN_WHEEL_SLOTS seconds. A packet does
 * not touch the wheel: a flow is looked at when its slot comes, and goes into a later one if it was
 * active since. Turning the wheel over a longer gap than its size visits every slot once.
 */
#include "state/flow_internal.h"

int64_t zn_flow_idle_ns(const zn_flow *f)
{
    const zn_flow_side *client = &f->side[f->client], *server = &f->side[1 - f->client];
    uint16_t syn = f->rare[f->client].syn;
    if (f->tuple.proto == ZN_PROTO_UDP)
        return client->packets + server->packets == 1 ? ZN_FLOW_UDP_SINGLE_NS : ZN_FLOW_UDP_IDLE_NS;
    if (server->packets == 0 && syn != 0 && client->packets == syn)
        return ZN_FLOW_SYN_IDLE_NS;
    return ZN_FLOW_TCP_IDLE_NS;
}

void zn_flow_list_append(zn_flow_table *t, zn_flow_list *list, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    f->next = 0;
    f->previous = list->first != 0 ? list->last : 0;
    if (list->first == 0)
        list->first = flow;
    else
        zn_flow_at(t, list->last)->next = flow;
    list->last = flow;
}

void zn_flow_list_remove(zn_flow_table *t, zn_flow_list *list, uint32_t flow)
{
    const zn_flow *f = zn_flow_at(t, flow);
    if (f->previous != 0)
        zn_flow_at(t, f->previous)->next = f->next;
    else
        list->first = f->next;
    if (f->next != 0)
        zn_flow_at(t, f->next)->previous = f->previous;
    else
        list->last = f->previous;
}

zn_flow_list *zn_flow_wheel_at(zn_flow_table *t, int64_t second, unsigned age)
{
    return &t->wheel[(uint64_t)second % ZN_WHEEL_SLOTS * ZN_WHEEL_AGES + age];
}

/* In which of a slot's lists a flow belongs. */
static unsigned age_of(const zn_flow_table *t, const zn_flow *f)
{
    int64_t age = (t->wheel_s - f->last_ns / ZN_NS_PER_S) / ZN_FLOW_VISIT_S;
    return age <= 0 ? 0 : age < ZN_WHEEL_AGES ? (unsigned)age : ZN_WHEEL_AGES - 1;
}

static void set_second(zn_flow_table *t, int64_t second)
{
    t->wheel_s = second;
    t->due_ns = second < INT64_MAX / ZN_NS_PER_S ? (second + 1) * ZN_NS_PER_S : INT64_MAX;
}

void zn_flow_timer_start(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    zn_flow_list *list;
    int64_t second;
    if (!t->wheel_started) {
        set_second(t, f->last_ns / ZN_NS_PER_S);
        t->wheel_started = true;
    }
    second = (f->last_ns + zn_flow_idle_ns(f)) / ZN_NS_PER_S + 1;
    if (second <= t->wheel_s)
        second = t->wheel_s + 1;
    if (second > t->wheel_s + ZN_FLOW_VISIT_S)
        second = t->wheel_s + ZN_FLOW_VISIT_S;
    list = zn_flow_wheel_at(t, second, age_of(t, f));
    f->list = (uint16_t)(list - t->wheel);
    zn_flow_list_append(t, list, flow);
}

void zn_flow_timer_stop(zn_flow_table *t, uint32_t flow)
{
    zn_flow_list_remove(t, &t->wheel[zn_flow_at(t, flow)->list], flow);
}

/* Fetches what closing the flow two behind f in its list will look at, and the one behind that. */
static void look_ahead(const zn_flow_table *t, const zn_flow *f)
{
    uint32_t second = f->next == 0 ? 0 : zn_flow_at(t, f->next)->next;
    const zn_flow *ahead;
    if (second == 0)
        return;
    ahead = zn_flow_at(t, second);
    zn_flow_prefetch(t, ahead->bucket);
    if (ahead->next != 0)
        ZN_PREFETCH_WRITE(&zn_flow_at(t, ahead->next)->next);
}

/* A list's second has come: each of its flows is closed, or looked at again later. */
static void visit_list(zn_flow_table *t, zn_flow_list *list, int64_t now_ns)
{
    uint32_t flow;
    while ((flow = list->first) != 0) {
        const zn_flow *f = zn_flow_at(t, flow);
        look_ahead(t, f);
        if (now_ns - f->last_ns > zn_flow_idle_ns(f)) {
            zn_flow_close(t, flow, ZN_FLOW_IDLE);
        } else {
            zn_flow_timer_stop(t, flow); /* the new second is another list's */
            zn_flow_timer_start(t, flow);
        }
    }
}

static bool has_lingered(const zn_flow_table *t, int64_t now_ns)
{
    const zn_flow *f = zn_flow_at(t, t->lingering.first);
    return !f->indexed || now_ns - f->last_ns > ZN_FLOW_LINGER_NS;
}

void zn_flow_expire(zn_flow_table *t, int64_t now_ns)
{
    int64_t now_s = now_ns / ZN_NS_PER_S;
    if (!t->wheel_started || now_s <= t->wheel_s)
        return;
    /* Slots hold at most ZN_FLOW_VISIT_S seconds ahead: one turn finds them all. */
    if (now_s - t->wheel_s > ZN_WHEEL_SLOTS)
        t->wheel_s = now_s - ZN_WHEEL_SLOTS;
    while (t->wheel_s < now_s) {
        t->wheel_s++;
        for (unsigned age = ZN_WHEEL_AGES; age-- > 0;)
            visit_list(t, zn_flow_wheel_at(t, t->wheel_s, age), now_ns);
    }
    set_second(t, now_s);
    while (t->lingering.first != 0 && has_lingered(t, now_ns))
        zn_flow_free_lingering(t);
}

static void close_list(zn_flow_table *t, zn_flow_list *list, int64_t now_ns, bool input_ended)
{
    while (list->first != 0) {
        const zn_flow *f = zn_flow_at(t, list->first);
        bool idle = !input_ended || now_ns - f->last_ns > zn_flow_idle_ns(f);
        look_ahead(t, f);
        zn_flow_close(t, list->first, idle ? ZN_FLOW_IDLE : ZN_FLOW_INPUT_END);
    }
}

/* In the order of the wheel, which depends on the packets and not on which slots they found free. */
static void close_all(zn_flow_table *t, int64_t now_ns, bool input_ended)
{
    for (unsigned i = 1; i <= ZN_WHEEL_SLOTS; i++)
        for (unsigned age = ZN_WHEEL_AGES; age-- > 0;)
            close_list(t, zn_flow_wheel_at(t, t->wheel_s + i, age), now_ns, input_ended);
}

void zn_flow_rebase(zn_flow_table *t, int64_t now_ns)
{
    close_all(t, now_ns, false);
    /* What closed before is not found any more: its time is not the one that comes. */
    for (uint32_t i = t->closed.first; i < t->closed.end; i++)
        if (zn_flow_at(t, t->closed.at[i])->indexed)
            zn_flow_index_remove(t, t->closed.at[i]);
    while (t->lingering.first != 0)
        zn_flow_free_lingering(t);
    set_second(t, now_ns / ZN_NS_PER_S);
}

void zn_flow_end_input(zn_flow_table *t, int64_t now_ns)
{
    zn_flow_expire(t, now_ns);
    close_all(t, now_ns, true);
}
