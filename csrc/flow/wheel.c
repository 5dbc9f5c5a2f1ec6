/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flow that had packets since its last visit goes into a later slot when its slot comes. Turning
 * the wheel over a gap longer than its size visits every slot once.
 *
 * A list is a chain of parts, each a cache line of numbers of flows, so that the entries of many
 * flows can be prefetched before the first of them is looked at; links in the entries would have to
 * be read one after the other. A flow that leaves before its slot's turn leaves a hole, and the
 * last flow of a part frees the part. Flows know their part but not its list, so that a part can
 * move to another list without touching them.
 *
 * Most visits would find no change. So a full part whose flows were idle together sleeps: it moves
 * from slot to slot without a look at its flows, until a flow may be due or has a packet.
 * zn_wheel_wake notices the packet, because it comes so long after the previous packet, or so late
 * (zn_flow_comes_late), that it does not take the fast path.
 */
#include "flow/wheel.h"

#define VISIT_NS (ZN_FLOW_VISIT_S * ZN_NS_PER_S)

int64_t zn_flow_idle_ns(const zn_flow *f)
{
    const zn_flow_side *client = &f->side[f->client], *server = &f->side[1 - f->client];
    bool udp = f->tuple.proto == ZN_PROTO_UDP;
    /* true only after a packet of the server's, so the first cache line decides */
    if (f->client_acked)
        return udp ? ZN_FLOW_UDP_IDLE_NS : ZN_FLOW_TCP_IDLE_NS;
    if (udp)
        return client->packets + server->packets == 1 ? ZN_FLOW_UDP_SINGLE_NS : ZN_FLOW_UDP_IDLE_NS;
    if (server->packets == 0 && f->flag_counts[f->client].syn != 0 &&
        client->packets == f->flag_counts[f->client].syn)
        return ZN_FLOW_SYN_IDLE_NS;
    return ZN_FLOW_TCP_IDLE_NS;
}

static zn_flow *entry_of(const zn_wheel *w, uint32_t flow)
{
    return &w->entries[flow - 1];
}

/* ---- lists ---- */

static zn_wheel_part *part_at(const zn_wheel *w, uint32_t part)
{
    ZN_ASSERT(part >= 1 && part <= w->parts.used_high);
    return (zn_wheel_part *)(void *)w->parts.base + (part - 1);
}

/* Takes a part out of its list. */
static void take_out(zn_wheel *w, uint32_t part)
{
    const zn_wheel_part *p = part_at(w, part);
    zn_wheel_list *list = &w->list[p->list];
    uint32_t next = p->next, previous = p->previous;
    if (previous != 0)
        part_at(w, previous)->next = next;
    else
        list->first = next;
    if (next != 0)
        part_at(w, next)->previous = previous;
    else
        list->last = previous;
}

/* Puts a part at the end of a list. */
static void append(zn_wheel *w, unsigned number, uint32_t part)
{
    zn_wheel_list *list = &w->list[number];
    zn_wheel_part *p = part_at(w, part);
    p->list = (uint16_t)number;
    p->next = 0;
    p->previous = list->last;
    if (list->last != 0)
        part_at(w, list->last)->next = part;
    else
        list->first = part;
    list->last = part;
}

/* Takes an empty part out of its list and frees it. */
static void drop(zn_wheel *w, uint32_t part)
{
    take_out(w, part);
    zn_slab_give(&w->parts, part);
}

static void put(zn_wheel *w, unsigned number, uint32_t flow)
{
    zn_flow *f = entry_of(w, flow);
    uint32_t part = w->list[number].last;
    zn_wheel_part *p;
    if (part == 0 || part_at(w, part)->used == ZN_WHEEL_PART) {
        part = zn_slab_take(&w->parts);
        ZN_ASSERT(part != 0);
        append(w, number, part);
    }
    p = part_at(w, part);
    f->next = part;
    f->previous = p->used;
    p->flow[p->used++] = flow;
    p->live++;
}

void zn_wheel_remove(zn_wheel *w, uint32_t flow)
{
    zn_flow *f = entry_of(w, flow);
    uint32_t part = f->next;
    zn_wheel_part *p;
    if (part == 0)
        return;
    f->next = 0;
    p = part_at(w, part);
    ZN_ASSERT(p->flow[f->previous] == flow);
    p->flow[f->previous] = 0;
    if (--p->live == 0)
        drop(w, part);
}

static uint32_t first_of(const zn_wheel *w, unsigned number)
{
    uint32_t part = w->list[number].first;
    const zn_wheel_part *p;
    if (part == 0)
        return 0;
    p = part_at(w, part);
    for (unsigned i = 0; i < p->used; i++)
        if (p->flow[i] != 0)
            return p->flow[i];
    return 0;
}

static size_t take(zn_wheel *w, uint32_t part, uint32_t flow[ZN_WHEEL_PART])
{
    const zn_wheel_part *p = part_at(w, part);
    size_t n = 0;
    for (unsigned i = 0; i < p->used; i++) {
        if (p->flow[i] == 0)
            continue;
        entry_of(w, p->flow[i])->next = 0;
        flow[n++] = p->flow[i];
    }
    drop(w, part);
    return n;
}

static void move(zn_wheel *w, uint32_t part, unsigned number)
{
    take_out(w, part);
    append(w, number, part);
}

/* ---- turns ---- */

/* Returns the number of the list for a second and an age. */
static unsigned list_at(int64_t second, unsigned age)
{
    return (unsigned)((uint64_t)second % ZN_WHEEL_SLOTS * ZN_WHEEL_AGES + age);
}

/* Returns the age of a flow, which chooses among the lists of a slot. */
static unsigned age_of(const zn_wheel *w, const zn_flow *f)
{
    int64_t age = (w->second - f->last_ns / ZN_NS_PER_S) / ZN_FLOW_VISIT_S;
    return age <= 0 ? 0 : age < ZN_WHEEL_AGES ? (unsigned)age : ZN_WHEEL_AGES - 1;
}

static void set_second(zn_wheel *w, int64_t second)
{
    w->second = second;
    w->due_ns = second < INT64_MAX / ZN_NS_PER_S ? (second + 1) * ZN_NS_PER_S : INT64_MAX;
}

/* Returns the list of the second in which a flow's idle time ends, or the next visit is due. */
static unsigned list_of(const zn_wheel *w, const zn_flow *f)
{
    /* Added as whole seconds, as in ns the sum with the latest times would overflow. */
    int64_t second = f->last_ns / ZN_NS_PER_S + zn_flow_idle_ns(f) / ZN_NS_PER_S + 1;
    if (second <= w->second)
        second = w->second + 1;
    if (second > w->second + ZN_FLOW_VISIT_S)
        second = w->second + ZN_FLOW_VISIT_S;
    return list_at(second, age_of(w, f));
}

void zn_wheel_add(zn_wheel *w, uint32_t flow)
{
    const zn_flow *f = entry_of(w, flow);
    if (!w->started) {
        set_second(w, f->last_ns / ZN_NS_PER_S);
        w->started = true;
    }
    put(w, list_of(w, f), flow);
}

typedef struct turn {
    int64_t now_ns;
    zn_wheel_reason why;
    bool late; /* at least ZN_FLOW_VISIT_S have passed since the turn before */
} turn;

static bool is_idle(const zn_flow *f, int64_t now_ns)
{
    int64_t idle_ns = now_ns - f->last_ns;
    return idle_ns > ZN_FLOW_LEAST_IDLE_NS && idle_ns > zn_flow_idle_ns(f);
}

/* Returns true if a flow of a part that has its turn closes; false for `flow` 0. */
static bool closes(const zn_wheel *w, uint32_t flow, const turn *now)
{
    return flow != 0 && (now->why != ZN_WHEEL_TURN || is_idle(entry_of(w, flow), now->now_ns));
}

void zn_wheel_wake(zn_wheel *w, const zn_flow *f)
{
    if (ZN_UNLIKELY(w->second * ZN_NS_PER_S - f->last_ns > ZN_FLOW_LEAST_IDLE_NS) && f->next != 0)
        part_at(w, f->next)->rest = 0;
}

/* Returns true when the part sleeps and moves on without a look at its flows. When it came, they
 * were idle for less than age + 1 visits; now it is one more, and one more again at the next turn,
 * which must not be too late for any. */
static bool sleeps(const zn_wheel_part *p, const turn *now)
{
    return p->rest >= p->list % ZN_WHEEL_AGES + 3 && p->live == ZN_WHEEL_PART &&
           now->why == ZN_WHEEL_TURN && !now->late;
}

/* Returns the part if there is one and it does not sleep, else NULL. */
static const zn_wheel_part *awake(const zn_wheel *w, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = part == 0 ? NULL : part_at(w, part);
    return p == NULL || sleeps(p, now) ? NULL : p;
}

/* Prefetches the first cache lines of a part's flows, which decide whether they close. */
static void fetch_first(const zn_wheel *w, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = awake(w, part, now);
    for (unsigned i = 0; p != NULL && i < p->used; i++)
        if (p->flow[i] != 0)
            ZN_PREFETCH(entry_of(w, p->flow[i]));
}

/* Prefetches the rest of the entries of a part's flows that close. */
static void fetch_entries(const zn_wheel *w, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = awake(w, part, now);
    for (unsigned i = 0; p != NULL && i < p->used; i++)
        if (closes(w, p->flow[i], now))
            for (size_t at = ZN_CACHE_LINE; at < sizeof(zn_flow); at += ZN_CACHE_LINE)
                ZN_PREFETCH_WRITE((uint8_t *)entry_of(w, p->flow[i]) + at);
}

/* Prefetches the index's buckets of those flows. */
static void fetch_buckets(const zn_wheel *w, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = awake(w, part, now);
    for (unsigned i = 0; p != NULL && i < p->used; i++)
        if (closes(w, p->flow[i], now))
            zn_flow_index_prefetch(w->index, entry_of(w, p->flow[i])->bucket);
}

/* Moves a full part as it is when all its flows stay open and go into the same list; it sleeps from
 * then on if all of them were idle for a visit. Returns false, and does nothing, otherwise. */
static bool stay_together(zn_wheel *w, uint32_t part, int64_t now_ns)
{
    zn_wheel_part *p = part_at(w, part);
    unsigned number = ZN_WHEEL_LISTS;
    int64_t least_ns = INT64_MAX;
    if (p->live != ZN_WHEEL_PART)
        return false;
    for (unsigned i = 0; i < ZN_WHEEL_PART; i++) {
        const zn_flow *f = entry_of(w, p->flow[i]);
        int64_t idle_ns = zn_flow_idle_ns(f);
        unsigned own = list_of(w, f);
        if (is_idle(f, now_ns) || (i != 0 && own != number))
            return false;
        number = own;
        least_ns = idle_ns < least_ns ? idle_ns : least_ns;
    }
    p->rest = number % ZN_WHEEL_AGES == 0 ? 0 : (uint8_t)(least_ns / VISIT_NS);
    move(w, part, number);
    return true;
}

static void expire_or_requeue(zn_wheel *w, uint32_t flow, const turn *now)
{
    const zn_flow *f = entry_of(w, flow);
    if (now->why == ZN_WHEEL_REBASE || is_idle(f, now->now_ns))
        w->close(w->owner, flow, ZN_FLOW_IDLE, now->now_ns);
    else if (now->why == ZN_WHEEL_INPUT_END)
        w->close(w->owner, flow, ZN_FLOW_INPUT_END, now->now_ns);
    else
        zn_wheel_add(w, flow); /* into the list of a later second */
}

static uint32_t next_part(const zn_wheel *w, uint32_t part)
{
    return part == 0 ? 0 : part_at(w, part)->next;
}

/* Closes the flows of a list's first part, or puts them into later lists. */
static void turn_part(zn_wheel *w, uint32_t part, const turn *now)
{
    const zn_wheel_part *p = part_at(w, part);
    unsigned older = p->list % ZN_WHEEL_AGES + 1;
    uint32_t flow[ZN_WHEEL_PART];
    size_t n;
    if (sleeps(p, now)) {
        move(w, part, list_at(w->second + ZN_FLOW_VISIT_S, older));
        return;
    }
    if (now->why == ZN_WHEEL_TURN && stay_together(w, part, now->now_ns))
        return;
    n = take(w, part, flow);
    for (size_t i = 0; i < n; i++)
        expire_or_requeue(w, flow[i], now);
}

/* Turns a list. The parts after the first are prefetched, each one step behind the one before
 * it. */
static void turn_list(zn_wheel *w, unsigned number, const turn *now)
{
    uint32_t first = 0, second = 0, third = 0, fourth = w->list[number].first, fifth;
    while ((first | second | third | fourth) != 0) {
        fifth = next_part(w, fourth);
        if (fifth != 0)
            ZN_PREFETCH_WRITE(part_at(w, fifth));
        fetch_first(w, fourth, now);
        fetch_entries(w, third, now);
        fetch_buckets(w, second, now);
        if (first != 0)
            turn_part(w, first, now);
        first = second;
        second = third;
        third = fourth;
        fourth = fifth;
    }
}

bool zn_wheel_turn(zn_wheel *w, int64_t now_ns)
{
    int64_t now_s = now_ns / ZN_NS_PER_S;
    turn now = {now_ns, ZN_WHEEL_TURN, now_s - w->second >= ZN_FLOW_VISIT_S};
    if (!w->started || now_s <= w->second)
        return false;
    /* Slots hold at most ZN_FLOW_VISIT_S seconds ahead: one turn finds them all. */
    if (now_s - w->second > ZN_WHEEL_SLOTS)
        w->second = now_s - ZN_WHEEL_SLOTS;
    while (w->second < now_s) {
        w->second++;
        for (unsigned age = ZN_WHEEL_AGES; age-- > 0;)
            turn_list(w, list_at(w->second, age), &now);
    }
    set_second(w, now_s);
    return true;
}

/* Closes flows in the order of the wheel, which depends on the packets alone and not on the slots
 * of the slab. */
void zn_wheel_close_all(zn_wheel *w, int64_t now_ns, zn_wheel_reason why)
{
    turn now = {now_ns, why, false};
    for (unsigned i = 1; i <= ZN_WHEEL_SLOTS; i++)
        for (unsigned age = ZN_WHEEL_AGES; age-- > 0;)
            turn_list(w, list_at(w->second + i, age), &now);
}

void zn_wheel_restart(zn_wheel *w, int64_t now_ns)
{
    set_second(w, now_ns / ZN_NS_PER_S);
}

size_t zn_wheel_take_oldest(zn_wheel *w, uint32_t *flow, size_t n)
{
    size_t taken = 0;
    for (unsigned age = ZN_WHEEL_AGES; age-- > 0 && taken < n;) {
        for (unsigned i = 1; i <= ZN_WHEEL_SLOTS && taken < n; i++) {
            unsigned number = list_at(w->second + i, age);
            while (taken < n && (flow[taken] = first_of(w, number)) != 0)
                zn_wheel_remove(w, flow[taken++]);
        }
    }
    return taken;
}

uint32_t zn_wheel_flows(const zn_wheel *w)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < ZN_WHEEL_LISTS; i++) {
        for (uint32_t part = w->list[i].first; part != 0; part = part_at(w, part)->next) {
            ZN_ASSERT(part_at(w, part)->list == i);
            n += part_at(w, part)->live;
        }
    }
    return n;
}

int zn_wheel_init(zn_wheel *w, uint32_t max_flows, zn_error *err)
{
    /* Each part holds a flow, so there are never more parts than flows. */
    return zn_slab_init(&w->parts, sizeof(zn_wheel_part), max_flows, err);
}

void zn_wheel_fini(zn_wheel *w)
{
    zn_slab_fini(&w->parts);
}
