/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "state/flow.h"

#include "state/flow_internal.h"

#define GAPS_PER_FLOW 8 /* one of so many flows has holes at the same time */

int zn_flow_table_open(zn_flow_table **out, uint32_t max_flows, zn_stats *stats, zn_error *err)
{
    zn_flow_table *t = zn_heap_alloc(sizeof *t);
    int rc;
    *out = NULL;
    if (t == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a flow table");
    t->stats = stats;
    rc = zn_slab_init(&t->flows, sizeof(zn_flow), max_flows, err);
    if (rc == 0)
        rc = zn_slab_init(&t->gaps, sizeof(zn_seq_gaps), max_flows / GAPS_PER_FLOW + 64, err);
    if (rc == 0) {
        t->users = zn_block_alloc(max_flows * sizeof *t->users);
        if (t->users == NULL)
            rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the users of %u flows", max_flows);
    }
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
    zn_block_free(t->users, t->flows.cap * sizeof *t->users);
    zn_slab_fini(&t->gaps);
    zn_slab_fini(&t->flows);
    zn_heap_free(t);
}

zn_flow *zn_flow_at(const zn_flow_table *t, uint32_t flow)
{
    return zn_slab_at(&t->flows, flow);
}

static zn_addr *user_outside(const zn_flow_table *t, const zn_flow *f)
{
    return &t->users[f - (const zn_flow *)(const void *)t->flows.base];
}

void zn_flow_set_user(zn_flow_table *t, zn_flow *f, const zn_addr *user)
{
    f->user_outside = user != NULL;
    if (user != NULL)
        *user_outside(t, f) = *user;
}

const zn_addr *zn_flow_user(const zn_flow_table *t, const zn_flow *f)
{
    return f->user_outside ? user_outside(t, f) : &f->tuple.addr[f->user];
}

/* The client by what a lone packet tells: the receiver of a SYN-ACK, else the end that is not on a
 * well-known port, else the sender. */
static uint8_t guess_client(const zn_packet *p)
{
    uint8_t receiver = (uint8_t)(1 - p->sender);
    bool from_well_known = p->tuple.port[p->sender] < 1024;
    bool to_well_known = p->tuple.port[receiver] < 1024;
    if (p->tuple.proto == ZN_PROTO_UDP || (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK)) == ZN_TCP_SYN)
        return p->sender;
    if ((p->tcp_flags & ZN_TCP_SYN) != 0)
        return receiver;
    return from_well_known && !to_well_known ? receiver : p->sender;
}

static uint32_t open_flow(zn_flow_table *t, const zn_packet *p)
{
    uint32_t flow = zn_slab_take(&t->flows);
    zn_flow *f;
    if (flow == 0) {
        t->stats->n[ZN_STAT_DROP_FLOW_TABLE_FULL]++;
        return 0;
    }
    f = zn_flow_at(t, flow);
    f->tuple = p->tuple;
    f->hash = p->hash;
    f->client = guess_client(p);
    f->first_ns = f->last_ns = p->t_ns;
    if (!zn_flow_index_add(t, flow)) {
        zn_flow_free(t, flow);
        t->stats->n[ZN_STAT_DROP_FLOW_TABLE_FULL]++;
        return 0;
    }
    if (p->tuple.proto == ZN_PROTO_TCP) {
        f->midstream = (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK)) != ZN_TCP_SYN;
        t->stats->n[ZN_STAT_FLOWS_MIDSTREAM] += f->midstream;
        t->stats->n[ZN_STAT_FLOWS_TCP]++;
    } else {
        t->stats->n[ZN_STAT_FLOWS_UDP]++;
    }
    zn_flow_timer_start(t, flow);
    return flow;
}

/* The live flow of a packet; one that is idle too long, or closed and reused, gives way. */
static uint32_t current_flow(zn_flow_table *t, const zn_packet *p)
{
    uint32_t flow = zn_flow_find(t, p);
    const zn_flow *f;
    bool opens =
        p->tuple.proto == ZN_PROTO_UDP || (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK)) == ZN_TCP_SYN;
    if (flow == 0)
        return 0;
    f = zn_flow_at(t, flow);
    if (f->end == ZN_FLOW_OPEN) {
        if (p->t_ns - f->last_ns <= zn_flow_idle_ns(f))
            return flow;
        zn_flow_close(t, flow, ZN_FLOW_IDLE);
        return 0;
    }
    if (!opens && p->t_ns - f->last_ns <= ZN_FLOW_LINGER_NS)
        return flow;
    zn_flow_index_remove(t, flow);
    return 0;
}

static void count_datagram(zn_flow *f, const zn_packet *p)
{
    zn_flow_side *side = &f->side[p->sender];
    side->packets++;
    side->bytes += p->payload_len;
    side->packets_data += p->payload_len != 0;
    if (side->packets == 1)
        side->first_data_ns = p->t_ns;
    side->last_data_ns = p->t_ns;
}

uint32_t zn_flow_update(zn_flow_table *t, const zn_packet *p, bool *opened)
{
    uint32_t flow = current_flow(t, p);
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
    }
    f = zn_flow_at(t, flow);
    if (f->end != ZN_FLOW_OPEN) {
        t->stats->n[ZN_STAT_DROP_FLOW_CLOSED]++;
        return 0;
    }
    if (p->t_ns > f->last_ns)
        f->last_ns = p->t_ns;
    if (p->tuple.proto == ZN_PROTO_TCP)
        end = zn_tcp_count(t, f, p);
    else
        count_datagram(f, p);
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

void zn_flow_close(zn_flow_table *t, uint32_t flow, zn_flow_end why)
{
    zn_flow *f = zn_flow_at(t, flow);
    ZN_ASSERT(f->end == ZN_FLOW_OPEN);
    f->end = (uint8_t)why;
    if (f->indexed && why != ZN_FLOW_FIN && why != ZN_FLOW_RST)
        zn_flow_index_remove(t, flow);
    for (unsigned i = 0; i < 2; i++) {
        if (f->side[i].gaps != 0)
            zn_slab_give(&t->gaps, f->side[i].gaps);
        f->side[i].gaps = 0;
    }
    f->next_closed = 0;
    if (t->closed_last != 0)
        zn_flow_at(t, t->closed_last)->next_closed = flow;
    else
        t->closed_first = flow;
    t->closed_last = flow;
    t->stats->n[ZN_STAT_FLOWS_CLOSED]++;
    t->stats->n[ZN_STAT_FLOWS_ONE_SIDED] += is_one_sided(f);
}

uint32_t zn_flow_next_closed(zn_flow_table *t)
{
    uint32_t flow = t->closed_first;
    if (flow == 0)
        return 0;
    t->closed_first = zn_flow_at(t, flow)->next_closed;
    if (t->closed_first == 0)
        t->closed_last = 0;
    return flow;
}

void zn_flow_emitted(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    f->emitted = true;
    if (!f->timed)
        zn_flow_free(t, flow);
}

void zn_flow_free(zn_flow_table *t, uint32_t flow)
{
    zn_flow *f = zn_flow_at(t, flow);
    ZN_ASSERT(!f->timed);
    if (f->indexed)
        zn_flow_index_remove(t, flow);
    memset(f, 0, sizeof *f);
    zn_slab_give(&t->flows, flow);
}

bool zn_flow_complete(const zn_flow *f)
{
    if (f->end == ZN_FLOW_FIN)
        return f->side[1 - f->client].syn != 0 || f->side[f->client].packets_data == 0;
    return (f->end == ZN_FLOW_RST || f->end == ZN_FLOW_IDLE) && f->side[0].syn != 0 &&
           f->side[1].syn != 0;
}

uint32_t zn_flow_live(const zn_flow_table *t)
{
    return t->flows.live;
}

size_t zn_flow_memory(const zn_flow_table *t)
{
    return zn_slab_bytes(&t->flows) + zn_slab_bytes(&t->gaps) + zn_slab_bytes(&t->overflow) +
           (t->bucket_mask + 1) * sizeof *t->buckets;
}

const char *zn_flow_check(const zn_flow_table *t)
{
    uint32_t live = 0, timed = 0, in_wheel = 0;
    for (uint32_t flow = 1; flow <= t->flows.used_high; flow++) {
        const zn_flow *f = zn_flow_at(t, flow);
        zn_packet p = {0};
        if (f->tuple.proto == 0)
            continue;
        live++;
        timed += f->timed;
        p.tuple = f->tuple;
        p.hash = f->hash;
        if (f->indexed && zn_flow_find(t, &p) != flow)
            return "an indexed flow is not found under its tuple";
        if (f->end == ZN_FLOW_OPEN && !(f->indexed && f->timed))
            return "an open flow is not indexed or has no timer";
        if (f->emitted && f->end == ZN_FLOW_OPEN)
            return "an open flow is emitted";
    }
    for (unsigned slot = 0; slot < ZN_WHEEL_SLOTS; slot++)
        for (uint32_t flow = t->wheel[slot]; flow != 0; flow = zn_flow_at(t, flow)->next_timer)
            in_wheel++;
    if (live != t->flows.live)
        return "live flows do not add up";
    return in_wheel == timed ? NULL : "the timer wheel does not add up";
}
