/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coarse packets: packets of TCP flows whose names are withheld, with rounded positions in the
 * stream (release/coarse_positions.h). A packet waits with its exact positions, because its fate is
 * not known yet. The positions are rounded when the packet leaves.
 *
 * All coarse packets have the same window. If the program of a receiver does not read, the real
 * window shrinks by each byte that comes, and would disclose the number of bytes.
 */
#ifndef ZN_REWRITE_EMIT_COARSE_H
#define ZN_REWRITE_EMIT_COARSE_H

#include "release/packet_gate.h"
#include "rewrite/delay_line.h"

#define ZN_COARSE_WINDOW UINT16_MAX

/* Notes the positions of a TCP packet of the plan's flow, which is the next to leave. */
void zn_note_positions(zn_packet_plan *plan, const zn_delayed *p);
/* Writes a TCP packet with rounded positions to *out, without its options. Returns false if the
 * packet would be too long for its length field. */
bool zn_coarsen_packet(const zn_flow *f, const zn_packet_plan *plan, const zn_delayed *p,
                       zn_delayed *out);
/* Rounds the positions in n bytes of TCP options with which p leaves. */
void zn_coarsen_options(const zn_packet_plan *plan, const zn_delayed *p, uint8_t *options,
                        uint8_t n);

#endif
