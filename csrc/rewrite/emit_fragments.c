/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/emit_fragments.h"

void zn_chain_fragment(zn_packet_output *of, const zn_fragment_frame *frame, zn_delayed *entry)
{
    entry->kind = ZN_DELAYED_FRAGMENT;
    entry->proto = ZN_PROTO_UDP;
    entry->payload_bytes = frame->bytes - (frame->offset == 0 ? ZN_BUILD_UDP_BYTES : 0u);
    entry->flow = entry->image = 0;
    entry->fragment = (zn_delayed_fragment){
        .offset = frame->offset, .more = frame->more, .why = ZN_STAT_PACKETS_DROPPED_FRAGMENT};
    entry->before = of->last_fragment[frame->datagram];
    of->last_fragment[frame->datagram] = entry->at;
    of->fragment = *frame;
}

/* Returns the earliest due time of the fragments of the datagram that the last fragment completed.
 * Returns -1 if a fragment has left or is already due. */
static int64_t earliest_due(const zn_packet_output *of)
{
    uint32_t place = of->last_fragment[of->fragment.datagram];
    int64_t due_ns = INT64_MAX;
    for (uint32_t n = 0; n < of->fragment.fragments; n++) {
        const zn_delayed *entry;
        if (!zn_delay_line_has(&of->delay_line, place))
            return -1;
        entry = zn_delay_line_at(&of->delay_line, place);
        due_ns = entry->due_ns < due_ns ? entry->due_ns : due_ns;
        place = entry->before;
    }
    return due_ns >= of->gate.clock->now_ns ? due_ns : -1;
}

/* Returns the reason for which the fragments of p, a datagram of the flow, do not leave;
 * ZN_STAT_COUNT: they may leave. */
static zn_stat fragments_stay(const zn_packet_output *of, const zn_packet *p, uint32_t flow)
{
    const zn_fragment_frame *last = &of->fragment;
    bool v4 = zn_addr_is_v4(&p->tuple.addr[0]);
    if (last->fragments == 0 || v4 == last->v6 || v4 != zn_addr_is_v4(&p->tuple.addr[1]) ||
        p->payload_len > UINT16_MAX - ZN_BUILD_UDP_BYTES - (v4 ? 20u : 0u))
        return ZN_STAT_PACKETS_DROPPED_FRAGMENT;
    if (zn_packet_is_local(&p->tuple))
        return ZN_STAT_PACKETS_DROPPED_LOCAL;
    return flow == 0 ? ZN_STAT_PACKETS_DROPPED_NO_FLOW : ZN_STAT_COUNT;
}

void zn_bind_fragments(zn_packet_output *of, const zn_packet *p, uint32_t flow)
{
    const zn_fragment_frame *last = &of->fragment;
    zn_packet_plan *plan = zn_packet_gate_plan(&of->gate, flow);
    uint32_t place = of->last_fragment[last->datagram];
    int64_t due_ns = earliest_due(of);
    zn_stat why = fragments_stay(of, p, flow);
    for (uint32_t n = 0; n < last->fragments && due_ns >= 0; n++) {
        zn_delayed *entry = zn_delay_line_at(&of->delay_line, place);
        zn_delayed_fragment *fragment = &entry->fragment;
        place = entry->before;
        fragment->why = (uint16_t)why;
        if (why != ZN_STAT_COUNT)
            continue;
        entry->due_ns = due_ns;
        entry->flow = flow;
        entry->sender = p->sender;
        fragment->datagram_bytes = ZN_BUILD_UDP_BYTES + p->payload_len;
        fragment->id = last->v6 ? zn_packet_long_id(&plan->shift, last->id)
                                : zn_packet_id(&plan->shift, (uint16_t)last->id);
        plan->held++;
    }
}
