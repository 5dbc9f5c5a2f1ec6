/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/emit_coarse.h"

#include "build/build_tcp_options.h"

static zn_coarse_segment segment_of(const zn_held_packet *p)
{
    return (zn_coarse_segment){p->seq, p->ack, p->payload_bytes, p->tcp_flags};
}

void zn_note_positions(zn_packet_plan *plan, const zn_held_packet *p)
{
    zn_coarse_segment segment = segment_of(p);
    zn_coarse_note(plan->sides, p->sender, &segment);
}

bool zn_coarsen_packet(const zn_flow *f, const zn_packet_plan *plan, const zn_held_packet *p,
                       zn_held_packet *out)
{
    zn_coarse_segment segment = segment_of(p);
    uint32_t headers = 20u + p->option_bytes + (zn_addr_is_v4(&f->tuple.addr[0]) ? 20u : 0u);
    zn_coarse_round(plan->sides, p->sender, &segment);
    *out = *p;
    out->seq = segment.seq;
    out->ack = segment.ack;
    out->payload_bytes = segment.payload_bytes;
    out->window = ZN_COARSE_WINDOW;
    return segment.payload_bytes <= UINT16_MAX - headers;
}

static bool map_block(const void *side, uint32_t edge[2])
{
    return zn_coarse_round_block(side, edge);
}

void zn_coarsen_options(const zn_packet_plan *plan, const zn_held_packet *p,
                               uint8_t *options)
{
    zn_build_tcp_options_map_sack(options, p->option_bytes, map_block,
                                  &plan->sides[1u - p->sender]);
}
