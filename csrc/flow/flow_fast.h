/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nearly every packet is, counted in line: a segment with no other flag than ACK and PSH and
 * the bytes that its sender sends next, or none; or a datagram; of a flow that is open. All others
 * are zn_flow_update's, which counts these in the same way.
 */
#ifndef ZN_FLOW_FLOW_FAST_H
#define ZN_FLOW_FLOW_FAST_H

#include "flow/flow_table.h"

static inline void zn_tcp_add_message(zn_flow_layer7 *l, zn_flow_side *side, unsigned i)
{
    if (ZN_UNLIKELY(++side->messages == 0))
        l->messages[i] += UINT8_MAX + 1;
}

/* Messages end with PSH or FIN, where something was sent since the last one: of a segment that is
 * usual. The side's next_seq is that behind it. */
static inline void zn_tcp_count_message(zn_flow_layer7 *l, zn_flow_side *side, const zn_packet *p)
{
    unsigned i = p->sender;
    side->sent_is_next = true;
    if ((p->tcp_flags & ZN_TCP_PSH) == 0) {
        if (side->message_is_next && p->payload_len != 0) {
            l->message_seq[i] = p->seq;
            side->message_is_next = false;
        }
        return;
    }
    if (side->message_is_next ? p->payload_len == 0
                              : zn_seq_ahead(side->next_seq, l->message_seq[i]) <= 0)
        return;
    side->message_is_next = true;
    zn_tcp_add_message(l, side, i);
}

static inline void zn_udp_count(zn_flow *f, const zn_packet *p)
{
    zn_flow_side *side = &f->side[p->sender];
    side->packets++;
    side->bytes += p->payload_len;
    side->packets_data += p->payload_len != 0;
    if (side->packets == 1 && side->first_data_ns == 0) /* not when the count comes round */
        side->first_data_ns = p->t_ns;
    side->last_data_ns = p->t_ns;
}

/* A segment without SYN, FIN and RST that simply comes next. */
static inline void zn_tcp_count_next(zn_flow_side *side, const zn_packet *p)
{
    if (p->payload_len != 0) {
        side->next_seq = p->seq + p->payload_len;
        side->bytes += p->payload_len;
        side->packets_data++;
        side->last_data_ns = p->t_ns;
    } else {
        side->acks_pure++;
    }
    side->packets++;
    side->acks++;
}

/* False, and nothing is counted, when the segment may be another. `l`: NULL when it is not asked
 * for. */
static inline bool zn_tcp_count_fast(zn_flow *f, zn_flow_layer7 *l, const zn_packet *p)
{
    zn_flow_side *side = &f->side[p->sender];
    unsigned flags = p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_FIN | ZN_TCP_RST | ZN_TCP_ACK);
    if (flags != ZN_TCP_ACK || !side->seq_known || f->fin_seen)
        return false;
    if (p->seq != side->next_seq && (p->payload_len != 0 || l != NULL))
        return false;
    if (ZN_UNLIKELY(side->first_data_ns == 0) && p->payload_len != 0)
        side->first_data_ns = p->t_ns;
    zn_tcp_count_next(side, p);
    if (ZN_UNLIKELY(side->first_ack_ns == 0))
        side->first_ack_ns = p->t_ns;
    /* What it acknowledges is asked of its first ones only: the other side lies elsewhere. */
    if (ZN_UNLIKELY(!f->client_acked) && f->syn_acked && p->sender == f->client &&
        p->ack == f->side[1 - p->sender].isn + 1)
        f->client_acked = true;
    if (l != NULL)
        zn_tcp_count_message(l, side, p);
    return true;
}

/* Counts p where *f, which zn_flow_probe gave, is its flow and p is as said above; `l`: as
 * zn_flow_layer7_at has it. False, and nothing is counted: zn_flow_update is to be asked. */
static inline bool zn_flow_count_fast(const zn_flow_table *t, zn_flow *f, zn_flow_layer7 *l,
                                      const zn_packet *p)
{
    if (!zn_flow_is(f, p) || f->end != ZN_FLOW_OPEN || p->t_ns - f->last_ns > ZN_FLOW_LEAST_IDLE_NS)
        return false;
    if (ZN_UNLIKELY(p->tuple.proto != ZN_PROTO_TCP))
        zn_udp_count(f, p);
    else if (t->tcp.paths != NULL || !zn_tcp_count_fast(f, l, p))
        return false;
    if (p->t_ns > f->last_ns)
        f->last_ns = p->t_ns;
    return true;
}

/*
 * Of most segments the questions above were answered by the ones before: they are about the flow,
 * which only packets of other kinds change. ZN_FLOW_COUNT_SLOWLY of the sender is clear then, and
 * of the next segment only what is its own is asked. Whoever changes what an answer depends on sets
 * it for both sides: zn_flow_update, the closing of a flow, the engine when it looks into a packet.
 */
static inline void zn_flow_count_slowly(zn_flow *f)
{
    f->watch[0] |= ZN_FLOW_COUNT_SLOWLY;
    f->watch[1] |= ZN_FLOW_COUNT_SLOWLY;
}

/* Clears ZN_FLOW_COUNT_SLOWLY of a side where zn_flow_count_fast has nothing more to ask about its
 * flow. */
static inline void zn_flow_try_count_shortly(const zn_flow_table *t, zn_flow *f, unsigned sender)
{
    const zn_flow_side *side = &f->side[sender];
    if (f->tuple.proto == ZN_PROTO_TCP && t->tcp.paths == NULL && f->indexed &&
        f->end == ZN_FLOW_OPEN && side->seq_known && !f->fin_seen && side->first_data_ns != 0 &&
        side->first_ack_ns != 0 && (f->client_acked || !f->syn_acked || sender != f->client))
        f->watch[sender] &= (uint8_t)~ZN_FLOW_COUNT_SLOWLY;
}

/* zn_flow_count_fast for a packet that is not older than what the flow had before, of a side whose
 * ZN_FLOW_COUNT_SLOWLY is clear. */
static inline bool zn_flow_count_shortly(zn_flow *f, zn_flow_layer7 *l, const zn_packet *p)
{
    zn_flow_side *side = &f->side[p->sender];
    if (!zn_tuple_equal(&f->tuple, &p->tuple) ||
        (uint64_t)(p->t_ns - f->last_ns) > ZN_FLOW_LEAST_IDLE_NS ||
        (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_FIN | ZN_TCP_RST | ZN_TCP_ACK)) != ZN_TCP_ACK ||
        p->seq != side->next_seq)
        return false;
    zn_tcp_count_next(side, p);
    f->last_ns = p->t_ns;
    if (l != NULL)
        zn_tcp_count_message(l, side, p);
    return true;
}

#endif
