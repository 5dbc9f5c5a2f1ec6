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
    if (f->tuple.proto == ZN_PROTO_UDP)
        return client->packets + server->packets == 1 ? ZN_FLOW_UDP_SINGLE_NS : ZN_FLOW_UDP_IDLE_NS;
    if (server->packets == 0 && client->syn != 0 && client->packets == client->syn)
        return ZN_FLOW_SYN_IDLE_NS;
    return ZN_FLOW_TCP_IDLE_NS;
}

/* Time at which something happens to the flow if no packet comes. */
static int64_t due_ns(const zn_flow *f)
{
    return f->last_ns + (f->end == ZN_FLOW_OPEN ? zn_flow_idle_ns(f) : ZN_FLOW_LINGER_NS);
}

static void put(zn_flow_table *t, uint32_t flow, int64_t due)
{
    zn_flow *f = zn_flow_at(t, flow);
    int64_t second = due / ZN_NS_PER_S + 1;
    if (second <= t->wheel_s)
        second = t->wheel_s + 1;
    if (second > t->wheel_s + ZN_FLOW_VISIT_S)
        second = t->wheel_s + ZN_FLOW_VISIT_S;
    f->next_timer = t->wheel[second % ZN_WHEEL_SLOTS];
    t->wheel[second % ZN_WHEEL_SLOTS] = flow;
    f->timed = true;
}

void zn_flow_timer_start(zn_flow_table *t, uint32_t flow)
{
    const zn_flow *f = zn_flow_at(t, flow);
    if (!t->wheel_started) {
        t->wheel_s = f->last_ns / ZN_NS_PER_S;
        t->wheel_started = true;
    }
    put(t, flow, due_ns(f));
}

/* A flow's slot has come: close it, free it, or look again later. */
static void visit(zn_flow_table *t, uint32_t flow, int64_t now_ns)
{
    zn_flow *f = zn_flow_at(t, flow);
    f->timed = false;
    if (f->end == ZN_FLOW_OPEN && now_ns - f->last_ns > zn_flow_idle_ns(f)) {
        zn_flow_close(t, flow, ZN_FLOW_IDLE);
        return;
    }
    if (f->emitted && (!f->indexed || now_ns - f->last_ns > ZN_FLOW_LINGER_NS)) {
        zn_flow_free(t, flow);
        return;
    }
    put(t, flow, due_ns(f));
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
        uint32_t flow;
        t->wheel_s++;
        flow = t->wheel[t->wheel_s % ZN_WHEEL_SLOTS];
        t->wheel[t->wheel_s % ZN_WHEEL_SLOTS] = 0;
        while (flow != 0) {
            uint32_t next = zn_flow_at(t, flow)->next_timer;
            visit(t, flow, now_ns);
            flow = next;
        }
    }
}

/* In the order of the wheel, which depends on the packets and not on which slots they found free. */
static void close_all(zn_flow_table *t, int64_t now_ns, bool input_ended)
{
    for (unsigned i = 1; i <= ZN_WHEEL_SLOTS; i++) {
        uint32_t flow = t->wheel[(uint64_t)(t->wheel_s + i) % ZN_WHEEL_SLOTS];
        for (; flow != 0; flow = zn_flow_at(t, flow)->next_timer) {
            const zn_flow *f = zn_flow_at(t, flow);
            if (f->end != ZN_FLOW_OPEN)
                continue;
            if (input_ended && now_ns - f->last_ns <= zn_flow_idle_ns(f))
                zn_flow_close(t, flow, ZN_FLOW_INPUT_END);
            else
                zn_flow_close(t, flow, ZN_FLOW_IDLE);
        }
    }
}

void zn_flow_rebase(zn_flow_table *t, int64_t now_ns)
{
    close_all(t, now_ns, false);
    /* Closed flows wait in slots of the old time, which come round within one turn; without an
     * index entry they are freed there whatever their time says. */
    for (unsigned i = 0; i < ZN_WHEEL_SLOTS; i++)
        for (uint32_t flow = t->wheel[i]; flow != 0; flow = zn_flow_at(t, flow)->next_timer)
            if (zn_flow_at(t, flow)->indexed)
                zn_flow_index_remove(t, flow);
    t->wheel_s = now_ns / ZN_NS_PER_S;
}

void zn_flow_end_input(zn_flow_table *t, int64_t now_ns)
{
    zn_flow_expire(t, now_ns);
    close_all(t, now_ns, true);
}
