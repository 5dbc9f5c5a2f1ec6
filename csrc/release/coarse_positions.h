/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coarse positions, which replace the sequence numbers of a TCP flow whose sizes stay hidden.
 *
 * The position of a byte in the stream of its side is rounded up to a multiple of ZN_COARSE_BYTES,
 * in sequence numbers, acknowledgements and SACK blocks. The result depends on the position only
 * and keeps the order of positions, so repeated, overlapping and reordered segments stay
 * consistent. A segment with the first byte of a multiple has all ZN_COARSE_BYTES bytes; the other
 * segments have no bytes. The multiples divide 2^32, so numbers may wrap.
 *
 * Positions count from the byte after the SYN. If the SYN was not seen, they count from the number
 * of the side's first segment or from the first acknowledgement of the other side, for the whole
 * flow. A FIN has the next number after the rounded positions. An acknowledgement of a FIN that was
 * not seen yet counts as an acknowledgement of a byte.
 */
#ifndef ZN_RELEASE_COARSE_POSITIONS_H
#define ZN_RELEASE_COARSE_POSITIONS_H

#include "util/base.h"

#define ZN_COARSE_BYTES 16384u

/* State of the stream of one side. */
typedef struct zn_coarse_side {
    uint32_t first; /* number from which positions count */
    uint32_t fin;   /* number of the FIN */
    bool has_first, has_fin;
} zn_coarse_side;

typedef struct zn_coarse_segment {
    uint32_t seq, ack;
    uint32_t payload_bytes;
    uint8_t tcp_flags;
} zn_coarse_segment;

/* Notes a segment of `sender`, an index of side[2]. Called for each segment of a flow, in their
 * order, before any other function. */
void zn_coarse_note(zn_coarse_side side[2], unsigned sender, const zn_coarse_segment *segment);

/* Makes the numbers and the length of a segment coarse. */
void zn_coarse_round(const zn_coarse_side side[2], unsigned sender, zn_coarse_segment *segment);

/* Makes a block of SACK about the stream of this side coarse, of which `edge` has the first number
 * and the one behind the last. Returns whether anything is left of it. */
bool zn_coarse_round_block(const zn_coarse_side *side, uint32_t edge[2]);

#endif
