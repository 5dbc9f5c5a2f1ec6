/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/flow.h"

#include "flow/flow_fast.h"

#include <stdlib.h>

#define EVICT_CHOICE 4 /* flows compared for each that is evicted */

typedef struct candidate {
    int64_t last_ns;
    uint32_t flow;
    uint32_t order; /* order among equal times */
} candidate;

typedef struct zn_flow_search {
    uint32_t flow[EVICT_CHOICE * ZN_FLOW_EVICT_MAX];
    candidate candidates[EVICT_CHOICE * ZN_FLOW_EVICT_MAX];
} search;

static void close_flow(zn_flow_table *t, uint32_t flow, zn_flow_end why, int64_t now_ns);

/* Reserves all that has an entry for each flow. */
static int init_parts(zn_flow_table *t, uint32_t max_flows, unsigned sets, zn_error *err)
{
    int rc = zn_slab_init(&t->flows, sizeof(zn_flow), max_flows, err);
    zn_flow *entries = (zn_flow *)(void *)t->flows.base;
    t->wheel.entries = entries;
    t->wheel.index = &t->index;
    t->wheel.close = close_flow;
    t->wheel.owner = t;
    if (rc == 0)
        rc = zn_slab_init(&t->cold, sizeof(zn_flow_cold), max_flows, err);
    if (rc == 0)
        rc = zn_tcp_init(&t->tcp, entries, max_flows, sets, t->stats, err);
    if (rc == 0)
        rc = zn_wheel_init(&t->wheel, max_flows, err);
    if (rc == 0)
        rc = zn_flow_index_init(&t->index, entries, max_flows, err);
    if (rc != 0)
        return rc;
    t->closed.at = zn_block_alloc(max_flows * sizeof *t->closed.at);
    return t->closed.at != NULL
               ? 0
               : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a queue of %u flows", max_flows);
}

int zn_flow_table_open(zn_flow_table **out, uint32_t max_flows, unsigned sets, zn_stats *stats,
                       zn_error *err)
{
    zn_flow_table *t = zn_heap_alloc(sizeof *t);
    int rc;
    *out = NULL;
    if (t == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a flow table");
    t->stats = stats;
    t->search = zn_heap_alloc(sizeof *t->search);
    if (t->search == NULL) {
        zn_heap_free(t);
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a flow table");
    }
    rc = init_parts(t, max_flows + ZN_FLOW_SPARE, sets, err);
    if (rc != 0) {
        zn_flow_table_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void zn_flow_table_close(zn_flow_table *t)
{
    if (t == NULL)
        return;
    zn_flow_index_fini(&t->index);
    zn_block_free(t->closed.at, t->flows.cap * sizeof *t->closed.at);
    zn_wheel_fini(&t->wheel);
    zn_tcp_fini(&t->tcp);
    zn_slab_fini(&t->cold);
    zn_slab_fini(&t->flows);
    zn_heap_free(t->search);
    zn_heap_free(t);
}

zn_flow *zn_flow_at(const zn_flow_table *t, uint32_t flow)
{
    return zn_flow_entry(t, flow);
}

uint32_t zn_flow_find(const zn_flow_table *t, const zn_packet *p)
{
    return zn_flow_index_find(&t->index, &p->tuple, p->hash);
}

zn_tcp_path *zn_flow_path(const zn_flow_table *t, const zn_flow *f)
{
    return zn_tcp_path_of(&t->tcp, f);
}

zn_flow_layer7 *zn_flow_layer7_of(const zn_flow_table *t, const zn_flow *f)
{
    return zn_tcp_layer7_of(&t->tcp, f);
}

const zn_flow_retransmissions *zn_flow_retransmissions_of(const zn_flow_table *t, const zn_flow *f,
                                                          unsigned side)
{
    const zn_flow_retransmission_pair *pair;
    if (ZN_LIKELY(f->retransmissions == 0))
        return NULL;
    pair = zn_slab_at(&t->tcp.retransmissions, f->retransmissions);
    return &pair->side[side];
}

/* Guesses the client by one packet: the sender of a SYN, the receiver of a SYN-ACK, else the end
 * that is not on a well-known port, else the sender. A multicast group is no client. */
static uint8_t guess_client(const zn_packet *p)
{
    uint8_t receiver = (uint8_t)(1 - p->sender);
    bool from_well_known = p->tuple.port[p->sender] < ZN_WELL_KNOWN_PORTS;
    bool to_well_known = p->tuple.port[receiver] < ZN_WELL_KNOWN_PORTS;
    if ((p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK)) == ZN_TCP_SYN ||
        zn_addr_is_group(&p->tuple.addr[receiver]))
        return p->sender;
    if ((p->tcp_flags & ZN_TCP_SYN) != 0)
        return receiver;
    return from_well_known && !to_well_known ? receiver : p->sender;
}

static uint32_t open_flow(zn_flow_table *t, const zn_packet *p)
{
    uint32_t flow = zn_slab_take_zeroed(&t->flows);
    zn_flow *f;
    if (flow == 0) {
        t->stats->n[ZN_STAT_DROP_FLOW_TABLE_FULL]++;
        return 0;
    }
    f = zn_flow_at(t, flow);
    f->tuple = p->tuple;
    f->client = guess_client(p) & 1u;
    f->opener = f->client;
    f->watch[0] = f->watch[1] = ZN_WATCH_ALL | ZN_FLOW_COUNT_SLOWLY;
    f->first_ns = f->last_ns = p->t_ns;
    zn_flow_index_add(&t->index, flow, p->hash);
    if (p->tuple.proto == ZN_PROTO_TCP) {
        zn_tcp_open(&t->tcp, f);
        f->midstream = (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK)) != ZN_TCP_SYN;
        t->stats->n[ZN_STAT_FLOWS_TCP]++;
    } else {
        t->stats->n[ZN_STAT_FLOWS_UDP]++;
    }
    zn_wheel_add(&t->wheel, flow);
    return flow;
}

/* Returns the live flow of a packet, or 0. Closes it when it was idle for too long or its ports are
 * reused. *played: zn_flow.plays_server of a TCP flow that was there. */
static uint32_t current_flow(zn_flow_table *t, const zn_packet *p, uint8_t *played)
{
    uint32_t flow = zn_flow_find(t, p);
    const zn_flow *f;
    uint8_t flags = p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK | ZN_TCP_RST);
    bool opens = p->tuple.proto == ZN_PROTO_UDP || flags == ZN_TCP_SYN;
    if (flow == 0)
        return 0;
    f = zn_flow_at(t, flow);
    *played = p->tuple.proto == ZN_PROTO_TCP ? f->plays_server : 0;
    if (f->end == ZN_FLOW_OPEN) {
        int64_t idle_ns = p->t_ns - f->last_ns;
        bool late = ZN_UNLIKELY(idle_ns > ZN_FLOW_LEAST_IDLE_NS) && idle_ns > zn_flow_idle_ns(f);
        bool syn = opens && p->tuple.proto == ZN_PROTO_TCP;
        if (!late && (ZN_LIKELY(!syn) || !zn_tcp_begins_another(f, p)))
            return flow;
        close_flow(t, flow, ZN_FLOW_IDLE, p->t_ns);
        return 0;
    }
    if (!opens && p->t_ns - f->last_ns <= ZN_FLOW_LINGER_NS && !zn_tcp_answers_another(f, p))
        return flow;
    zn_flow_index_remove(&t->index, flow);
    return 0;
}

/* Shows the next packet to the analyzers, because a packet was counted that they did not see.
 * Analyzers that wait for a number of packets then declare again which packets they need. */
static uint32_t look_next(zn_flow *f)
{
    f->watch[0] |= ZN_WATCH_PACKET;
    f->watch[1] |= ZN_WATCH_PACKET;
    return 0;
}

uint32_t zn_flow_update(zn_flow_table *t, const zn_packet *p, bool *opened)
{
    uint8_t played = 0;
    uint32_t flow = current_flow(t, p, &played);
    zn_flow_end end = ZN_FLOW_OPEN;
    zn_flow *f;
    *opened = false;
    if (flow == 0) {
        if ((p->tcp_flags & ZN_TCP_RST) != 0) {
            t->stats->n[ZN_STAT_DROP_FLOW_CLOSED]++;
            return 0;
        }
        flow = open_flow(t, p);
        if (flow == 0)
            return 0;
        *opened = true;
        zn_flow_at(t, flow)->plays_server = played & 3u; /* an echo of it may still come */
    }
    f = zn_flow_at(t, flow);
    zn_flow_count_slowly(f);
    if (f->end != ZN_FLOW_OPEN) {
        if ((p->tcp_flags & ZN_TCP_SYN) != 0) /* a SYN that opens no flow is an answer */
            zn_flow_note_server(f, p->sender);
        t->stats->n[ZN_STAT_DROP_FLOW_CLOSED]++;
        return 0;
    }
    zn_wheel_wake(&t->wheel, f);
    if (p->t_ns > f->last_ns)
        f->last_ns = p->t_ns;
    if (p->tuple.proto != ZN_PROTO_TCP)
        zn_udp_count(f, p);
    else if (zn_tcp_refuse_reset(f, p))
        return look_next(f);
    else
        end = zn_tcp_count(&t->tcp, f, p);
    if (end != ZN_FLOW_OPEN)
        close_flow(t, flow, end, p->t_ns);
    return flow;
}

void zn_flow_swap_client(zn_flow *f)
{
    f->client ^= 1u;
}

/* Returns true when one side's data was seen and no packet of the other's: half of the connection
 * was captured. */
static bool is_one_sided(const zn_flow *f)
{
    const zn_flow_side *a = &f->side[0], *b = &f->side[1];
    return f->tuple.proto == ZN_PROTO_TCP &&
           ((a->packets == 0 && b->packets_data != 0) || (b->packets == 0 && a->packets_data != 0));
}

static void list_append(zn_flow_table *t, zn_flow_list *list, uint32_t flow)
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

static void list_remove(zn_flow_table *t, zn_flow_list *list, uint32_t flow)
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

static void queue_closed(zn_flow_table *t, uint32_t flow)
{
    zn_flow_queue *q = &t->closed;
    if (q->end == t->flows.cap) { /* the array is used to its end: move all to its start */
        q->end -= q->first;
        memmove(q->at, q->at + q->first, q->end * sizeof *q->at);
        q->first = 0;
    }
    q->at[q->end++] = flow;
    if (q->end > q->high)
        q->high = q->end;
}

/* Returns zn_flow.closed_ns of a flow that is closed at now_ns. */
static int64_t closing_ns(const zn_flow *f, zn_flow_end why, int64_t now_ns)
{
    int64_t idle_ns = zn_flow_idle_ns(f);
    int64_t idle_end_ns = f->last_ns < INT64_MAX - idle_ns ? f->last_ns + idle_ns : INT64_MAX;
    if (why == ZN_FLOW_FIN || why == ZN_FLOW_RST)
        return f->last_ns;
    return idle_end_ns < now_ns ? idle_end_ns : now_ns;
}

static void close_flow(zn_flow_table *t, uint32_t flow, zn_flow_end why, int64_t now_ns)
{
    zn_flow *f = zn_flow_at(t, flow);
    ZN_ASSERT(f->end == ZN_FLOW_OPEN);
    zn_wheel_remove(&t->wheel, flow);
    f->end = why & 0xf;
    f->closed_ns = closing_ns(f, why, now_ns);
    zn_flow_count_slowly(f);
    if (why != ZN_FLOW_FIN && why != ZN_FLOW_RST)
        zn_flow_index_remove(&t->index, flow);
    zn_tcp_close(&t->tcp, f);
    queue_closed(t, flow);
    t->stats->n[ZN_STAT_FLOWS_CLOSED]++;
    t->stats->n[ZN_STAT_FLOWS_ONE_SIDED] += is_one_sided(f);
    t->stats->n[ZN_STAT_FLOWS_MIDSTREAM] += f->midstream;
}

uint32_t zn_flow_next_closed(zn_flow_table *t)
{
    zn_flow_queue *q = &t->closed;
    uint32_t flow;
    if (q->first == q->end)
        return 0;
    if (q->first + ZN_FLOW_AHEAD < q->end) {
        const uint8_t *entry = (const uint8_t *)zn_flow_at(t, q->at[q->first + ZN_FLOW_AHEAD]);
        for (size_t at = 0; at < sizeof(zn_flow); at += ZN_CACHE_LINE)
            ZN_PREFETCH_WRITE(entry + at);
        if (t->tcp.layer7 != NULL) {
            entry = (const uint8_t *)&t->tcp.layer7[q->at[q->first + ZN_FLOW_AHEAD] - 1];
            for (size_t at = 0; at < sizeof(zn_flow_layer7); at += ZN_CACHE_LINE)
                ZN_PREFETCH_WRITE(entry + at);
        }
    }
    flow = q->at[q->first++];
    if (q->first == q->end)
        q->first = q->end = 0;
    return flow;
}

static void free_flow(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    if (f->indexed)
        zn_flow_index_remove(&t->index, flow);
    if (f->cold != 0)
        zn_slab_give(&t->cold, f->cold);
    zn_tcp_free(&t->tcp, f);
    memset(f, 0, sizeof *f);
    zn_slab_give(&t->flows, flow);
}

void zn_flow_emitted(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    f->emitted = true;
    if (f->indexed)
        list_append(t, &t->lingering, flow);
    else
        free_flow(t, flow);
}

static void free_lingering(zn_flow_table *t)
{
    uint32_t flow = t->lingering.first;
    list_remove(t, &t->lingering, flow);
    free_flow(t, flow);
}

static bool has_lingered(const zn_flow_table *t, int64_t now_ns)
{
    const zn_flow *f = zn_flow_entry(t, t->lingering.first);
    return !f->indexed || now_ns - f->last_ns > ZN_FLOW_LINGER_NS;
}

void zn_flow_expire(zn_flow_table *t, int64_t now_ns)
{
    if (!zn_wheel_turn(&t->wheel, now_ns))
        return;
    while (t->lingering.first != 0 && has_lingered(t, now_ns))
        free_lingering(t);
}

void zn_flow_rebase(zn_flow_table *t, int64_t now_ns)
{
    zn_wheel_close_all(&t->wheel, now_ns, ZN_WHEEL_REBASE);
    /* Closed flows are not found any more: their times are not on the new clock. */
    for (uint32_t i = t->closed.first; i < t->closed.end; i++)
        if (zn_flow_entry(t, t->closed.at[i])->indexed)
            zn_flow_index_remove(&t->index, t->closed.at[i]);
    while (t->lingering.first != 0)
        free_lingering(t);
    zn_wheel_restart(&t->wheel, now_ns);
}

void zn_flow_end_input(zn_flow_table *t, int64_t now_ns)
{
    zn_flow_expire(t, now_ns);
    zn_wheel_close_all(&t->wheel, now_ns, ZN_WHEEL_INPUT_END);
}

static int by_age(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->last_ns != b->last_ns)
        return a->last_ns < b->last_ns ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/*
 * Lingering flows are evicted first, because their records are written. Then the flows that were
 * idle for longest are evicted. The wheel orders flows by their age at insertion, which is accurate
 * to ZN_FLOW_VISIT_S. Among the first EVICT_CHOICE times `want` flows in that order the oldest are
 * taken, so that the cost of an eviction does not depend on the size of the table.
 */
void zn_flow_evict(zn_flow_table *t, uint32_t want, int64_t now_ns)
{
    search *s = t->search;
    size_t n;
    want = want < ZN_FLOW_EVICT_MAX ? want : ZN_FLOW_EVICT_MAX;
    for (; want != 0 && t->lingering.first != 0; want--)
        free_lingering(t);
    n = zn_wheel_take_oldest(&t->wheel, s->flow, (size_t)EVICT_CHOICE * want);
    for (uint32_t i = 0; i < n; i++)
        s->candidates[i] = (candidate){zn_flow_entry(t, s->flow[i])->last_ns, s->flow[i], i};
    qsort(s->candidates, n, sizeof s->candidates[0], by_age);
    for (uint32_t i = 0; i < n; i++) {
        zn_wheel_add(&t->wheel, s->candidates[i].flow);
        if (i < want) {
            close_flow(t, s->candidates[i].flow, ZN_FLOW_EVICTED, now_ns);
            t->stats->n[ZN_STAT_FLOWS_EVICTED]++;
        }
    }
}

/* ---- cold data: an entry for each flow that there can be, so that none is ever missing ---- */

/* Returns the flow's zn_flow_cold, and makes it if needed. */
static zn_flow_cold *cold_at(zn_flow_table *t, zn_flow *f)
{
    if (f->cold == 0)
        f->cold = zn_slab_take(&t->cold);
    return zn_slab_at(&t->cold, f->cold);
}

/* Returns the flow's zn_flow_cold, or NULL. */
static const zn_flow_cold *cold_of(const zn_flow_table *t, const zn_flow *f)
{
    return ZN_LIKELY(f->cold == 0) ? NULL : zn_slab_at(&t->cold, f->cold);
}

void zn_flow_set_user(zn_flow_table *t, zn_flow *f, const zn_addr *user)
{
    f->user_outside = user != NULL;
    if (user != NULL)
        cold_at(t, f)->user = *user;
}

const zn_addr *zn_flow_user(const zn_flow_table *t, const zn_flow *f)
{
    return f->user_outside ? &cold_of(t, f)->user : &f->tuple.addr[f->user];
}

void zn_flow_set_pseudonym(zn_flow_table *t, zn_flow *f, unsigned end, const zn_addr *pseudonym)
{
    *(end == f->opener ? &f->pseudonym : &cold_at(t, f)->pseudonym) = *pseudonym;
}

zn_addr zn_flow_pseudonym(const zn_flow_table *t, const zn_flow *f, unsigned end)
{
    const zn_flow_cold *cold = cold_of(t, f);
    if (end == f->opener)
        return f->pseudonym;
    return cold != NULL ? cold->pseudonym : (zn_addr){{0}};
}

void zn_flow_set_epoch(zn_flow_table *t, zn_flow *f, int64_t epoch, int64_t rotate_ns)
{
    if (ZN_UNLIKELY(epoch != f->first_ns / rotate_ns))
        memcpy(cold_at(t, f)->epoch, &epoch, sizeof epoch);
}

int64_t zn_flow_epoch(const zn_flow_table *t, const zn_flow *f, int64_t rotate_ns)
{
    const zn_flow_cold *cold = cold_of(t, f);
    int64_t later = 0;
    if (ZN_UNLIKELY(cold != NULL))
        memcpy(&later, cold->epoch, sizeof later);
    return later != 0 ? later : f->first_ns / rotate_ns;
}

void zn_flow_set_resolution(zn_flow_table *t, zn_flow *f, uint32_t resolution)
{
    if (resolution != 0 || f->cold != 0)
        cold_at(t, f)->resolution = resolution;
}

uint32_t zn_flow_resolution(const zn_flow_table *t, const zn_flow *f)
{
    const zn_flow_cold *cold = cold_of(t, f);
    return cold == NULL ? 0 : cold->resolution;
}

/* ---- sizes and checks ---- */

uint32_t zn_flow_live(const zn_flow_table *t)
{
    return t->flows.live;
}

uint32_t zn_flow_after(const zn_flow_table *t, uint32_t flow)
{
    while (flow < t->flows.used_high)
        if (zn_flow_at(t, ++flow)->tuple.proto != 0)
            return flow;
    return 0;
}

size_t zn_flow_memory(const zn_flow_table *t)
{
    return sizeof *t + zn_slab_bytes(&t->flows) + zn_tcp_memory(&t->tcp, t->flows.used_high) +
           zn_slab_bytes(&t->cold) + t->closed.high * sizeof *t->closed.at +
           zn_slab_bytes(&t->wheel.parts) + zn_flow_index_memory(&t->index);
}

static size_t full_bytes(const zn_slab *s)
{
    return (size_t)s->cap * s->object_bytes;
}

size_t zn_flow_memory_max(const zn_flow_table *t)
{
    return sizeof *t + full_bytes(&t->flows) + t->flows.cap * sizeof *t->closed.at +
           zn_tcp_memory_max(&t->tcp) + full_bytes(&t->cold) + full_bytes(&t->wheel.parts) +
           zn_flow_index_memory_max(&t->index);
}

static uint32_t length_of(const zn_flow_table *t, const zn_flow_list *list)
{
    uint32_t n = 0;
    for (uint32_t flow = list->first; flow != 0; flow = zn_flow_at(t, flow)->next)
        n++;
    return n;
}

const char *zn_flow_check(const zn_flow_table *t)
{
    uint32_t live = 0, open = 0, emitted = 0, cold = 0, retransmissions = 0, indexed = 0;
    for (uint32_t flow = 1; flow <= t->flows.used_high; flow++) {
        const zn_flow *f = zn_flow_at(t, flow);
        if (f->tuple.proto == 0)
            continue;
        live++;
        open += f->end == ZN_FLOW_OPEN;
        emitted += f->emitted;
        cold += f->cold != 0;
        retransmissions += f->retransmissions != 0;
        indexed += f->indexed;
        if (f->indexed && !zn_flow_index_has(&t->index, flow))
            return "an indexed flow is not in the index";
        if (f->end == ZN_FLOW_OPEN && !f->indexed)
            return "an open flow is not indexed";
        if (f->emitted && f->end == ZN_FLOW_OPEN)
            return "an open flow is emitted";
    }
    if (!zn_flow_index_adds_up(&t->index, indexed))
        return "the index does not add up";
    if (live != t->flows.live)
        return "live flows do not add up";
    if (emitted != length_of(t, &t->lingering))
        return "lingering flows do not add up";
    if (live - open - emitted - t->held != t->closed.end - t->closed.first)
        return "closed flows do not add up";
    if (cold != t->cold.live || retransmissions != t->tcp.retransmissions.live)
        return "what flows have beside their entries does not add up";
    return zn_wheel_flows(&t->wheel) == open ? NULL : "the timer wheel does not add up";
}
