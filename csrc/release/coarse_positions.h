/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coarse positions: what stands for the sequence numbers of a TCP flow whose sizes nobody may read.
 *
 * A byte's position in the stream of its side is rounded up to a multiple of ZN_COARSE_BYTES: in
 * sequence numbers, acknowledgements and SACK blocks alike. That depends on nothing but the
 * position, and keeps the order of positions. So segments that repeat, overlap or come in another
 * order stay consistent, and what is sent adds up to a multiple: a segment with the first byte of
 * ZN_COARSE_BYTES has all of them, and the others have none. As the multiples divide 2^32, numbers
 * may wrap.
 *
 * Positions count from the byte behind the SYN. Where the first number that is known of a side is
 * not that of its SYN, they count from there: from the number of its first segment, or from the
 * first acknowledgement of the other side. They count so for the whole flow. A FIN has one number,
 * the next one behind the rounded positions; what acknowledges it before it was seen counts as an
 * acknowledgement of a byte.
 */
#ifndef ZN_RELEASE_COARSE_POSITIONS_H
#define ZN_RELEASE_COARSE_POSITIONS_H

#include "util/base.h"

#define ZN_COARSE_BYTES 16384u

/* What is known of the stream of one side. */
typedef struct zn_coarse_side {
    uint32_t first; /* the number that positions count from */
    uint32_t fin;   /* the number of the FIN */
    bool has_first, has_fin;
} zn_coarse_side;

typedef struct zn_coarse_segment {
    uint32_t seq, ack;
    uint32_t payload_bytes;
    uint8_t tcp_flags;
} zn_coarse_segment;

/* Takes note of a segment of `sender`, a place in side[2]. To be called for each of a flow, in
 * their order, and before any other function is. */
void zn_coarse_note(zn_coarse_side side[2], unsigned sender, const zn_coarse_segment *segment);

/* Makes the numbers and the length of a segment coarse. */
void zn_coarse_round(const zn_coarse_side side[2], unsigned sender, zn_coarse_segment *segment);

/* Makes a block of SACK about the stream of this side coarse, of which `edge` has the first number
 * and the one behind the last. Returns whether anything is left of it. */
bool zn_coarse_round_block(const zn_coarse_side *side, uint32_t edge[2]);

#endif
