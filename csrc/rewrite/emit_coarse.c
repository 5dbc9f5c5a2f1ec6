/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/emit_coarse.h"

#include "build/build_tcp_options.h"

static zn_coarse_segment segment_of(const zn_delayed *p)
{
    return (zn_coarse_segment){p->packet.seq, p->packet.ack, p->payload_bytes, p->packet.tcp_flags};
}

void zn_note_positions(zn_packet_plan *plan, const zn_delayed *p)
{
    zn_coarse_segment segment = segment_of(p);
    zn_coarse_note(plan->sides, p->sender, &segment);
}

bool zn_coarsen_packet(const zn_flow *f, const zn_packet_plan *plan, const zn_delayed *p,
                       zn_delayed *out)
{
    zn_coarse_segment segment = segment_of(p);
    uint32_t headers = 20u + p->packet.option_bytes + (zn_addr_is_v4(&f->tuple.addr[0]) ? 20u : 0u);
    zn_coarse_round(plan->sides, p->sender, &segment);
    *out = *p;
    out->packet.seq = segment.seq;
    out->packet.ack = segment.ack;
    out->payload_bytes = segment.payload_bytes;
    out->packet.window = ZN_COARSE_WINDOW;
    return segment.payload_bytes <= UINT16_MAX - headers;
}

static bool map_block(const void *side, uint32_t edge[2])
{
    return zn_coarse_round_block(side, edge);
}

void zn_coarsen_options(const zn_packet_plan *plan, const zn_delayed *p, uint8_t *options,
                        uint8_t n)
{
    zn_build_tcp_options_map_sack(options, n, map_block, &plan->sides[1u - p->sender]);
}
