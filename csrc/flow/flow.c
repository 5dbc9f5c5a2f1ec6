/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/flow.h"

#include "flow/flow_fast.h"
#include "flow/flow_internal.h"

#define SEGMENTS_PER_FLOW 8 /* in flight, on average over all flows */

/* Room beside the entries for what the column sets need. */
static int init_sets(zn_flow_table *t, uint32_t max_flows, unsigned sets, zn_error *err)
{
    uint32_t segments = zn_slab_cap((uint64_t)max_flows * SEGMENTS_PER_FLOW + ZN_PATH_SEGMENTS);
    if ((sets & ZN_SET_LAYER7) != 0) {
        t->layer7 = zn_block_alloc(max_flows * sizeof *t->layer7);
        if (t->layer7 == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %u flows", max_flows);
    }
    if ((sets & (ZN_SET_E2E | ZN_SET_OPTIONS)) == 0)
        return 0;
    t->paths = zn_block_alloc(max_flows * sizeof *t->paths);
    if (t->paths == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %u flows", max_flows);
    return zn_slab_init(&t->segments, zn_tcp_path_entry_bytes(), segments, err);
}

/* The entries, and what any of them may have beside it: as many as there are flows. */
static int init_entries(zn_flow_table *t, uint32_t max_flows, zn_error *err)
{
    int rc = zn_slab_init(&t->flows, sizeof(zn_flow), max_flows, err);
    if (rc == 0)
        rc = zn_slab_init(&t->besides, sizeof(zn_flow_cold), max_flows, err);
    if (rc == 0)
        rc = zn_slab_init(&t->resents, sizeof(zn_flow_retransmission_pair), max_flows, err);
    if (rc == 0)
        rc = zn_slab_init(&t->gaps, sizeof(zn_seq_gaps), max_flows, err);
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
    t->search = zn_heap_alloc(zn_flow_search_bytes());
    if (t->search == NULL) {
        zn_heap_free(t);
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a flow table");
    }
    max_flows += ZN_FLOW_SPARE;
    rc = init_entries(t, max_flows, err);
    if (rc == 0)
        rc = init_sets(t, max_flows, sets, err);
    if (rc == 0)
        rc = zn_flow_wheel_init(t, max_flows, err);
    if (rc == 0)
        rc = zn_flow_index_init(t, max_flows, err);
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
    zn_flow_index_fini(t);
    zn_block_free(t->closed.at, t->flows.cap * sizeof *t->closed.at);
    zn_slab_fini(&t->parts);
    zn_slab_fini(&t->segments);
    zn_block_free(t->paths, t->flows.cap * sizeof *t->paths);
    zn_block_free(t->layer7, t->flows.cap * sizeof *t->layer7);
    zn_slab_fini(&t->gaps);
    zn_slab_fini(&t->resents);
    zn_slab_fini(&t->besides);
    zn_slab_fini(&t->flows);
    zn_heap_free(t->search);
    zn_heap_free(t);
}

zn_flow *zn_flow_at(const zn_flow_table *t, uint32_t flow)
{
    return zn_flow_entry(t, flow);
}

static size_t place_of(const zn_flow_table *t, const zn_flow *f)
{
    return (size_t)(f - (const zn_flow *)(const void *)t->flows.base);
}

zn_tcp_path *zn_flow_path(const zn_flow_table *t, const zn_flow *f)
{
    return t->paths == NULL || f->tuple.proto != ZN_PROTO_TCP ? NULL : &t->paths[place_of(t, f)];
}

zn_flow_layer7 *zn_flow_layer7_of(const zn_flow_table *t, const zn_flow *f)
{
    return zn_flow_layer7_entry(t, f);
}

/* The client by what a lone packet tells: the receiver of a SYN-ACK, else the end that is not on a
 * well-known port, else the sender. */
static uint8_t guess_client(const zn_packet *p)
{
    uint8_t receiver = (uint8_t)(1 - p->sender);
    bool from_well_known = p->tuple.port[p->sender] < ZN_WELL_KNOWN_PORTS;
    bool to_well_known = p->tuple.port[receiver] < ZN_WELL_KNOWN_PORTS;
    if (p->tuple.proto == ZN_PROTO_UDP || (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK)) == ZN_TCP_SYN)
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
    f->client = guess_client(p);
    f->opener = f->client & 1u;
    f->first_ns = f->last_ns = p->t_ns;
    zn_flow_index_add(t, flow, p->hash);
    if (p->tuple.proto == ZN_PROTO_TCP) {
        if (t->paths != NULL)
            memset(zn_flow_path(t, f), 0, sizeof *t->paths);
        if (t->layer7 != NULL)
            memset(zn_flow_layer7_of(t, f), 0, sizeof *t->layer7);
        f->midstream = (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK)) != ZN_TCP_SYN;
        t->stats->n[ZN_STAT_FLOWS_MIDSTREAM] += f->midstream;
        t->stats->n[ZN_STAT_FLOWS_TCP]++;
    } else {
        t->stats->n[ZN_STAT_FLOWS_UDP]++;
    }
    zn_flow_timer_start(t, flow);
    return flow;
}

/* The live flow of a packet; one that is idle too long, or whose ports are reused, gives way.
 * *played: zn_flow.plays_server of the TCP flow that was there. */
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
        zn_flow_close(t, flow, ZN_FLOW_IDLE);
        return 0;
    }
    if (!opens && p->t_ns - f->last_ns <= ZN_FLOW_LINGER_NS)
        return flow;
    zn_flow_index_remove(t, flow);
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
        zn_flow_at(t, flow)->plays_server = played & 3u; /* what was sent may come back yet */
    }
    f = zn_flow_at(t, flow);
    f->settled = 0;
    if (f->end != ZN_FLOW_OPEN) {
        if ((p->tcp_flags & ZN_TCP_SYN) != 0) /* one that opens nothing answers */
            zn_flow_note_server(f, p->sender);
        t->stats->n[ZN_STAT_DROP_FLOW_CLOSED]++;
        return 0;
    }
    zn_flow_timer_wake(t, f);
    if (p->t_ns > f->last_ns)
        f->last_ns = p->t_ns;
    if (p->tuple.proto != ZN_PROTO_TCP)
        zn_udp_count(f, p);
    else if (zn_tcp_refuse_reset(f, p))
        return 0;
    else
        end = zn_tcp_count(t, f, p);
    if (end != ZN_FLOW_OPEN)
        zn_flow_close(t, flow, end);
    return flow;
}

void zn_flow_swap_client(zn_flow *f)
{
    f->client = (uint8_t)(1 - f->client);
}

/* One side's data was seen and not a packet of the other's: half of a connection was captured. */
static bool is_one_sided(const zn_flow *f)
{
    const zn_flow_side *a = &f->side[0], *b = &f->side[1];
    return f->tuple.proto == ZN_PROTO_TCP &&
           ((a->packets == 0 && b->packets_data != 0) || (b->packets == 0 && a->packets_data != 0));
}

static void queue_closed(zn_flow_table *t, uint32_t flow)
{
    zn_flow_queue *q = &t->closed;
    if (q->end == t->flows.cap) { /* at the end of its room: back to its beginning */
        q->end -= q->first;
        memmove(q->at, q->at + q->first, q->end * sizeof *q->at);
        q->first = 0;
    }
    q->at[q->end++] = flow;
    if (q->end > q->high)
        q->high = q->end;
}

void zn_flow_close(zn_flow_table *t, uint32_t flow, zn_flow_end why)
{
    zn_flow *f = zn_flow_at(t, flow);
    ZN_ASSERT(f->end == ZN_FLOW_OPEN);
    zn_flow_wheel_remove(t, flow);
    f->end = why & 0xf;
    f->settled = 0;
    if (why != ZN_FLOW_FIN && why != ZN_FLOW_RST)
        zn_flow_index_remove(t, flow);
    if (f->retransmissions != 0)
        zn_flow_drop_gaps(t, f);
    if (t->paths != NULL && f->tuple.proto == ZN_PROTO_TCP)
        zn_tcp_path_close(&t->segments, zn_flow_path(t, f));
    queue_closed(t, flow);
    t->stats->n[ZN_STAT_FLOWS_CLOSED]++;
    t->stats->n[ZN_STAT_FLOWS_ONE_SIDED] += is_one_sided(f);
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
        if (t->layer7 != NULL) {
            ZN_PREFETCH_WRITE(&t->layer7[q->at[q->first + ZN_FLOW_AHEAD] - 1]);
            ZN_PREFETCH_WRITE(&t->layer7[q->at[q->first + ZN_FLOW_AHEAD] - 1].last_handshake_ns);
        }
    }
    flow = q->at[q->first++];
    if (q->first == q->end)
        q->first = q->end = 0;
    return flow;
}

void zn_flow_emitted(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    f->emitted = true;
    if (f->indexed)
        zn_flow_list_append(t, &t->lingering, flow);
    else
        zn_flow_free(t, flow);
}

void zn_flow_free_lingering(zn_flow_table *t)
{
    uint32_t flow = t->lingering.first;
    zn_flow_list_remove(t, &t->lingering, flow);
    zn_flow_free(t, flow);
}

void zn_flow_free(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    if (f->indexed)
        zn_flow_index_remove(t, flow);
    if ((f->retransmissions | f->cold) != 0)
        zn_flow_free_cold(t, f);
    memset(f, 0, sizeof *f);
    zn_slab_give(&t->flows, flow);
}

uint32_t zn_flow_live(const zn_flow_table *t)
{
    return t->flows.live;
}

/* Beside the entry of each flow. */
static size_t cold_bytes(const zn_flow_table *t)
{
    return (t->paths == NULL ? 0 : sizeof *t->paths) + (t->layer7 == NULL ? 0 : sizeof *t->layer7);
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
    return sizeof *t + zn_slab_bytes(&t->flows) + t->flows.used_high * cold_bytes(t) +
           zn_slab_bytes(&t->besides) + zn_slab_bytes(&t->resents) +
           t->closed.high * sizeof *t->closed.at + zn_slab_bytes(&t->gaps) +
           zn_slab_bytes(&t->segments) + zn_slab_bytes(&t->parts) + zn_slab_bytes(&t->overflow) +
           (t->bucket_mask + 1) * sizeof *t->buckets;
}

static size_t full_bytes(const zn_slab *s)
{
    return (size_t)s->cap * s->object_bytes;
}

size_t zn_flow_memory_max(const zn_flow_table *t)
{
    return sizeof *t + full_bytes(&t->flows) +
           t->flows.cap * (cold_bytes(t) + sizeof *t->closed.at) + full_bytes(&t->besides) +
           full_bytes(&t->resents) + full_bytes(&t->gaps) + full_bytes(&t->segments) +
           full_bytes(&t->parts) + full_bytes(&t->overflow) + t->bucket_cap * sizeof *t->buckets;
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
    uint32_t live = 0, open = 0, emitted = 0, in_wheel = 0, cold = 0, retransmissions = 0,
             indexed = 0;
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
        if (f->indexed && !zn_flow_index_has(t, flow))
            return "an indexed flow is not in the index";
        if (f->end == ZN_FLOW_OPEN && !f->indexed)
            return "an open flow is not indexed";
        if (f->emitted && f->end == ZN_FLOW_OPEN)
            return "an open flow is emitted";
    }
    for (unsigned i = 0; i < ZN_WHEEL_LISTS; i++)
        in_wheel += zn_flow_wheel_length(t, i);
    if (!zn_flow_index_adds_up(t, indexed))
        return "the index does not add up";
    if (live != t->flows.live)
        return "live flows do not add up";
    if (emitted != length_of(t, &t->lingering))
        return "lingering flows do not add up";
    if (live - open - emitted != t->closed.end - t->closed.first)
        return "closed flows do not add up";
    if (cold != t->besides.live || retransmissions != t->resents.live)
        return "what flows have beside their entries does not add up";
    return in_wheel == open ? NULL : "the timer wheel does not add up";
}
