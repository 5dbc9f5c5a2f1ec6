/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expiry. The wheel has a list of flows for each of the next ZN_WHEEL_SLOTS seconds. A packet does
 * not touch the wheel: a flow is looked at when its slot comes, and goes into a later one if it was
 * active since. Turning the wheel over a longer gap than its size visits every slot once.
 *
 * Most looks would find what the last one found. So a full part whose flows were idle together
 * sleeps: it goes on from slot to slot without a look at them, until one of them may be due or has
 * a packet. Of that zn_flow_update tells: after so long, or so late (zn_flow_comes_late), no packet
 * is taken for the usual one.
 */
#include "flow/flow_internal.h"

#define VISIT_NS (ZN_FLOW_VISIT_S * ZN_NS_PER_S)

int64_t zn_flow_idle_ns(const zn_flow *f)
{
    const zn_flow_side *client = &f->side[f->client], *server = &f->side[1 - f->client];
    bool udp = f->tuple.proto == ZN_PROTO_UDP;
    if (f->client_acked) /* something that the server had sent: only the first cache line tells */
        return udp ? ZN_FLOW_UDP_IDLE_NS : ZN_FLOW_TCP_IDLE_NS;
    if (udp)
        return client->packets + server->packets == 1 ? ZN_FLOW_UDP_SINGLE_NS : ZN_FLOW_UDP_IDLE_NS;
    if (server->packets == 0 && f->flag_counts[f->client].syn != 0 &&
        client->packets == f->flag_counts[f->client].syn)
        return ZN_FLOW_SYN_IDLE_NS;
    return ZN_FLOW_TCP_IDLE_NS;
}

void zn_flow_list_append(zn_flow_table *t, zn_flow_list *list, uint32_t flow)
{
    zn_flow *f = zn_flow_entry(t, flow);
    f->next = 0;
    f->previous = list->first != 0 ? list->last : 0;
    if (list->first == 0)
        list->first = flow;
    else
        zn_flow_entry(t, list->last)->next = flow;
    list->last = flow;
}

void zn_flow_list_remove(zn_flow_table *t, zn_flow_list *list, uint32_t flow)
{
    const zn_flow *f = zn_flow_entry(t, flow);
    if (f->previous != 0)
        zn_flow_entry(t, f->previous)->next = f->next;
    else
        list->first = f->next;
    if (f->next != 0)
        zn_flow_entry(t, f->next)->previous = f->previous;
    else
        list->last = f->previous;
}

unsigned zn_flow_wheel_at(int64_t second, unsigned age)
{
    return (unsigned)((uint64_t)second % ZN_WHEEL_SLOTS * ZN_WHEEL_AGES + age);
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

/* The list of the second in which a flow's idle time ends, or the next visit is due. */
static unsigned list_of(const zn_flow_table *t, const zn_flow *f)
{
    /* Idle times are whole seconds; their sum with the last times there are would not fit. */
    int64_t second = f->last_ns / ZN_NS_PER_S + zn_flow_idle_ns(f) / ZN_NS_PER_S + 1;
    if (second <= t->wheel_s)
        second = t->wheel_s + 1;
    if (second > t->wheel_s + ZN_FLOW_VISIT_S)
        second = t->wheel_s + ZN_FLOW_VISIT_S;
    return zn_flow_wheel_at(second, age_of(t, f));
}

void zn_flow_timer_start(zn_flow_table *t, uint32_t flow)
{
    const zn_flow *f = zn_flow_entry(t, flow);
    if (!t->wheel_started) {
        set_second(t, f->last_ns / ZN_NS_PER_S);
        t->wheel_started = true;
    }
    zn_flow_wheel_add(t, list_of(t, f), flow);
}

/* Why lists have their turn. */
typedef enum reason { TURN_TIME, TURN_REBASE, TURN_INPUT_END } reason;

typedef struct turn {
    int64_t now_ns;
    reason why;
    bool late; /* the time since the turn before was as long as one visit */
} turn;

static bool is_idle(const zn_flow *f, int64_t now_ns)
{
    int64_t idle_ns = now_ns - f->last_ns;
    return idle_ns > ZN_FLOW_LEAST_IDLE_NS && idle_ns > zn_flow_idle_ns(f);
}

/* A flow of a part that has its turn is to be closed; 0 is none. */
static bool closes(const zn_flow_table *t, uint32_t flow, const turn *now)
{
    return flow != 0 && (now->why != TURN_TIME || is_idle(zn_flow_entry(t, flow), now->now_ns));
}

void zn_flow_timer_wake(zn_flow_table *t, const zn_flow *f)
{
    if (ZN_UNLIKELY(t->wheel_s * ZN_NS_PER_S - f->last_ns > ZN_FLOW_LEAST_IDLE_NS) && f->next != 0)
        zn_flow_wheel_part(t, f->next)->rest = 0;
}

/* A part whose flows sleep goes on as it is. When it came, they were idle for less than age + 1
 * visits; now it is one more, and one more again at the next turn, which must not be too late for
 * any. */
static bool sleeps(const zn_wheel_part *p, const turn *now)
{
    return p->rest >= p->list % ZN_WHEEL_AGES + 3 && p->live == ZN_WHEEL_PART &&
           now->why == TURN_TIME && !now->late;
}

/* The part, if there is one and its flows are to be looked at. */
static const zn_wheel_part *awake(const zn_flow_table *t, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = part == 0 ? NULL : zn_flow_wheel_part(t, part);
    return p == NULL || sleeps(p, now) ? NULL : p;
}

/* Fetches what tells when the flows of a part are due. */
static void fetch_first(const zn_flow_table *t, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = awake(t, part, now);
    for (unsigned i = 0; p != NULL && i < p->used; i++)
        if (p->flow[i] != 0)
            ZN_PREFETCH(zn_flow_entry(t, p->flow[i]));
}

/* Fetches the entries of those of a part's flows that are to be closed. */
static void fetch_entries(const zn_flow_table *t, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = awake(t, part, now);
    for (unsigned i = 0; p != NULL && i < p->used; i++)
        if (closes(t, p->flow[i], now))
            for (size_t at = ZN_CACHE_LINE; at < sizeof(zn_flow); at += ZN_CACHE_LINE)
                ZN_PREFETCH_WRITE((uint8_t *)zn_flow_entry(t, p->flow[i]) + at);
}

/* And the buckets that the index has them in. */
static void fetch_buckets(const zn_flow_table *t, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = awake(t, part, now);
    for (unsigned i = 0; p != NULL && i < p->used; i++)
        if (closes(t, p->flow[i], now))
            zn_flow_prefetch(t, zn_flow_entry(t, p->flow[i])->bucket);
}

/* A full part whose flows all stay open and go into one list goes there as it is; it sleeps if all
 * of them were idle for a visit. False: they do not. */
static bool stay_together(zn_flow_table *t, uint32_t part, int64_t now_ns)
{
    zn_wheel_part *p = zn_flow_wheel_part(t, part);
    unsigned number = ZN_WHEEL_LISTS;
    int64_t least_ns = INT64_MAX;
    if (p->live != ZN_WHEEL_PART)
        return false;
    for (unsigned i = 0; i < ZN_WHEEL_PART; i++) {
        const zn_flow *f = zn_flow_entry(t, p->flow[i]);
        int64_t idle_ns = zn_flow_idle_ns(f);
        unsigned own = list_of(t, f);
        if (is_idle(f, now_ns) || (i != 0 && own != number))
            return false;
        number = own;
        least_ns = idle_ns < least_ns ? idle_ns : least_ns;
    }
    p->rest = number % ZN_WHEEL_AGES == 0 ? 0 : (uint8_t)(least_ns / VISIT_NS);
    zn_flow_wheel_move(t, part, number);
    return true;
}

static void expire_or_requeue(zn_flow_table *t, uint32_t flow, const turn *now)
{
    const zn_flow *f = zn_flow_entry(t, flow);
    if (now->why == TURN_REBASE || is_idle(f, now->now_ns))
        zn_flow_close(t, flow, ZN_FLOW_IDLE);
    else if (now->why == TURN_INPUT_END)
        zn_flow_close(t, flow, ZN_FLOW_INPUT_END);
    else
        zn_flow_timer_start(t, flow); /* the new second is another list's */
}

static uint32_t behind(const zn_flow_table *t, uint32_t part)
{
    return part == 0 ? 0 : zn_flow_wheel_part(t, part)->next;
}

/* The flows of a list's first part are closed, or looked at again later. */
static void turn_part(zn_flow_table *t, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = zn_flow_wheel_part(t, part);
    unsigned older = p->list % ZN_WHEEL_AGES + 1;
    uint32_t flow[ZN_WHEEL_PART];
    size_t n;
    if (sleeps(p, now)) {
        zn_flow_wheel_move(t, part, zn_flow_wheel_at(t->wheel_s + ZN_FLOW_VISIT_S, older));
        return;
    }
    if (now->why == TURN_TIME && stay_together(t, part, now->now_ns))
        return;
    n = zn_flow_wheel_take(t, part, flow);
    for (size_t i = 0; i < n; i++)
        expire_or_requeue(t, flow[i], now);
}

/* Of the parts behind the first, each is one step of fetching ahead of the one before it. */
static void turn_list(zn_flow_table *t, unsigned number, const turn *now)
{
    uint32_t first = 0, second = 0, third = 0, fourth = t->wheel[number].first, fifth;
    while ((first | second | third | fourth) != 0) {
        fifth = behind(t, fourth);
        if (fifth != 0)
            ZN_PREFETCH_WRITE(zn_flow_wheel_part(t, fifth));
        fetch_first(t, fourth, now);
        fetch_entries(t, third, now);
        fetch_buckets(t, second, now);
        if (first != 0)
            turn_part(t, first, now);
        first = second;
        second = third;
        third = fourth;
        fourth = fifth;
    }
}

static bool has_lingered(const zn_flow_table *t, int64_t now_ns)
{
    const zn_flow *f = zn_flow_entry(t, t->lingering.first);
    return !f->indexed || now_ns - f->last_ns > ZN_FLOW_LINGER_NS;
}

void zn_flow_expire(zn_flow_table *t, int64_t now_ns)
{
    int64_t now_s = now_ns / ZN_NS_PER_S;
    turn now = {now_ns, TURN_TIME, now_s - t->wheel_s >= ZN_FLOW_VISIT_S};
    if (!t->wheel_started || now_s <= t->wheel_s)
        return;
    /* Slots hold at most ZN_FLOW_VISIT_S seconds ahead: one turn finds them all. */
    if (now_s - t->wheel_s > ZN_WHEEL_SLOTS)
        t->wheel_s = now_s - ZN_WHEEL_SLOTS;
    while (t->wheel_s < now_s) {
        t->wheel_s++;
        for (unsigned age = ZN_WHEEL_AGES; age-- > 0;)
            turn_list(t, zn_flow_wheel_at(t->wheel_s, age), &now);
    }
    set_second(t, now_s);
    while (t->lingering.first != 0 && has_lingered(t, now_ns))
        zn_flow_free_lingering(t);
}

/* In the order of the wheel, which depends on the packets and not on which slots they found
 * free. */
static void close_all(zn_flow_table *t, int64_t now_ns, reason why)
{
    turn now = {now_ns, why, false};
    for (unsigned i = 1; i <= ZN_WHEEL_SLOTS; i++)
        for (unsigned age = ZN_WHEEL_AGES; age-- > 0;)
            turn_list(t, zn_flow_wheel_at(t->wheel_s + i, age), &now);
}

void zn_flow_rebase(zn_flow_table *t, int64_t now_ns)
{
    close_all(t, now_ns, TURN_REBASE);
    /* What closed before is not found any more: its time is not the one that comes. */
    for (uint32_t i = t->closed.first; i < t->closed.end; i++)
        if (zn_flow_entry(t, t->closed.at[i])->indexed)
            zn_flow_index_remove(t, t->closed.at[i]);
    while (t->lingering.first != 0)
        zn_flow_free_lingering(t);
    set_second(t, now_ns / ZN_NS_PER_S);
}

void zn_flow_end_input(zn_flow_table *t, int64_t now_ns)
{
    zn_flow_expire(t, now_ns);
    close_all(t, now_ns, TURN_INPUT_END);
}
