/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts most packets inline. They are of an open flow, and a datagram or a segment with no other
 * flags than ACK and PSH that carries the bytes its sender sends next, or none. zn_flow_update
 * counts all others, and would count these in the same way.
 */
#ifndef ZN_FLOW_FLOW_FAST_H
#define ZN_FLOW_FLOW_FAST_H

#include "flow/flow_table.h"

static inline void zn_tcp_add_message(zn_flow_layer7 *l, zn_flow_side *side, unsigned i)
{
    if (ZN_UNLIKELY(++side->messages == 0))
        l->messages[i] += UINT8_MAX + 1;
}

/* Counts the message that a segment may end. A message ends with PSH or FIN, where something was
 * sent since the last one. The segment is one of most, and the side's next_seq already lies behind
 * it. */
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
    if (side->packets == 1 && side->first_data_ns == 0) /* not when the count wraps to 1 */
        side->first_data_ns = p->t_ns;
    side->last_data_ns = p->t_ns;
}

/* Notes the number that the client acknowledges first, if its server's SYN was not captured yet:
 * with that number the SYN proves the client. Later ACKs before the SYN are not noted, so that a
 * sender with a forged address has one guess. */
static inline void zn_tcp_note_first_ack(zn_flow *f, const zn_packet *p)
{
    unsigned server = 1u - p->sender;
    if (f->midstream || p->sender != f->client || f->flag_counts[server].syn != 0)
        return;
    f->side[server].isn = p->ack - 1;
    f->side[server].isn_claimed = true;
}

/* Counts a segment without SYN, FIN and RST that carries the sender's next bytes. */
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

/* Counts a segment. Returns false, and counts nothing, when it may not be one of most. `l`: NULL
 * when the table has no LAYER7 columns. */
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
    if (ZN_UNLIKELY(side->first_ack_ns == 0)) {
        side->first_ack_ns = p->t_ns;
        zn_tcp_note_first_ack(f, p);
    }
    /* Only the client's first ACKs are compared: the other side lies in another cache line. */
    if (ZN_UNLIKELY(!f->client_acked) && f->syn_acked && p->sender == f->client &&
        p->ack == f->side[1 - p->sender].isn + 1)
        f->client_acked = true;
    if (l != NULL)
        zn_tcp_count_message(l, side, p);
    return true;
}

/* Counts packet p in *f, which zn_flow_probe returned, when f is its flow and p is one of most
 * packets. `l`: what zn_flow_layer7_at returned. Returns false, and counts nothing, for any other
 * packet: zn_flow_update counts it. */
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
 * The tests above are mostly about the flow, and only packets of other kinds change their outcome.
 * While ZN_FLOW_COUNT_SLOWLY of the sender is clear, they hold, and zn_flow_count_shortly tests
 * only the segment itself. All that changes such an outcome sets it for both sides: zn_flow_update,
 * the closing of a flow, the engine when it shows a packet to the analyzers.
 */
static inline void zn_flow_count_slowly(zn_flow *f)
{
    f->watch[0] |= ZN_FLOW_COUNT_SLOWLY;
    f->watch[1] |= ZN_FLOW_COUNT_SLOWLY;
}

/* Clears ZN_FLOW_COUNT_SLOWLY of a side when all tests of zn_flow_count_fast about its flow
 * hold. */
static inline void zn_flow_try_count_shortly(const zn_flow_table *t, zn_flow *f, unsigned sender)
{
    const zn_flow_side *side = &f->side[sender];
    if (f->tuple.proto == ZN_PROTO_TCP && t->tcp.paths == NULL && f->indexed &&
        f->end == ZN_FLOW_OPEN && side->seq_known && !f->fin_seen && side->first_data_ns != 0 &&
        side->first_ack_ns != 0 && (f->client_acked || !f->syn_acked || sender != f->client))
        f->watch[sender] &= (uint8_t)~ZN_FLOW_COUNT_SLOWLY;
}

/* zn_flow_count_fast for a packet of a side whose ZN_FLOW_COUNT_SLOWLY is clear, and not older than
 * the flow's last one. */
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
