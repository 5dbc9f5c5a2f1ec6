/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coarse packets: those of TCP flows whose names are withheld, with rounded positions in place of
 * their own (release/coarse_positions.h). A packet waits with its own numbers, as it is not known
 * yet what becomes of it; they are rounded when it leaves.
 *
 * The window is the same in all of them: as a receiver whose program does not read moves it by each
 * byte that comes, it would say how many came.
 */
#ifndef ZN_REWRITE_EMIT_COARSE_H
#define ZN_REWRITE_EMIT_COARSE_H

#include "release/packet_gate.h"
#include "rewrite/packet_hold.h"

#define ZN_COARSE_WINDOW UINT16_MAX

/* Takes note of a packet of TCP of the plan's flow, when its turn to leave has come. */
void zn_note_positions(zn_packet_plan *plan, const zn_held_packet *p);
/* Writes to *out what p leaves as, all but its options. Returns false where that would be too long
 * for its length field. */
bool zn_coarsen_packet(const zn_flow *f, const zn_packet_plan *plan, const zn_held_packet *p,
                       zn_held_packet *out);
/* Makes p->option_bytes of options coarse that it leaves with. */
void zn_coarsen_options(const zn_packet_plan *plan, const zn_held_packet *p,
                               uint8_t *options);

#endif
