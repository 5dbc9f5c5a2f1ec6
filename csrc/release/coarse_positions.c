/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/coarse_positions.h"

#include "packet/packet.h"

_Static_assert((ZN_COARSE_BYTES & (ZN_COARSE_BYTES - 1)) == 0, "multiples divide 2^32");

/* The number of the first byte of a segment: a SYN comes before it. */
static uint32_t first_byte(const zn_coarse_segment *segment)
{
    return segment->seq + ((segment->tcp_flags & ZN_TCP_SYN) != 0 ? 1u : 0u);
}

static void count_from(zn_coarse_side *side, uint32_t first)
{
    if (side->has_first)
        return;
    side->first = first;
    side->has_first = true;
}

void zn_coarse_note(zn_coarse_side side[2], unsigned sender, const zn_coarse_segment *segment)
{
    zn_coarse_side *own = &side[sender];
    count_from(own, first_byte(segment));
    if ((segment->tcp_flags & ZN_TCP_ACK) != 0)
        count_from(&side[1u - sender], segment->ack);
    if ((segment->tcp_flags & ZN_TCP_FIN) != 0 && !own->has_fin) {
        own->fin = first_byte(segment) + segment->payload_bytes;
        own->has_fin = true;
    }
}

/* Returns the coarse number of a byte, or of a position after the FIN. */
static uint32_t rounded(const zn_coarse_side *side, uint32_t number)
{
    uint32_t fin = side->has_fin && zn_seq_ahead(number, side->fin) > 0 ? 1 : 0;
    uint32_t position = number - fin - side->first;
    position = (position + ZN_COARSE_BYTES - 1) & ~(ZN_COARSE_BYTES - 1);
    return side->first + position + fin;
}

void zn_coarse_round(const zn_coarse_side side[2], unsigned sender, zn_coarse_segment *segment)
{
    uint32_t number = first_byte(segment), syn = number - segment->seq;
    uint32_t seq = rounded(&side[sender], number);
    segment->payload_bytes = rounded(&side[sender], number + segment->payload_bytes) - seq;
    segment->seq = seq - syn;
    if ((segment->tcp_flags & ZN_TCP_ACK) != 0)
        segment->ack = rounded(&side[1u - sender], segment->ack);
}

bool zn_coarse_round_block(const zn_coarse_side *side, uint32_t edge[2])
{
    if (!side->has_first)
        return false;
    for (unsigned i = 0; i < 2; i++)
        edge[i] = rounded(side, edge[i]);
    return edge[0] != edge[1];
}
