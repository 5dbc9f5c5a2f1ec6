/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of other protocols than TCP and UDP. They have no flow: their addresses are made when
 * they come. ICMP leaves as build/build_icmp makes it, an error with the fate of the flow whose
 * packet it quotes; of others only the IP header.
 */
#ifndef ZN_REWRITE_EMIT_OTHER_H
#define ZN_REWRITE_EMIT_OTHER_H

#include "rewrite/rewriter_state.h"

/* Fills in *held, of two slots, for a packet that may leave. Returns the counter that says why it
 * does not, or ZN_STAT_COUNT. */
zn_stat zn_hold_other(const zn_rewriter *r, zn_packet_output *of, const zn_packet *p,
                             zn_held_packet *held);

/* Returns whose packet an entry of no flow is, by the real address, and the epoch of its keys. */
const zn_addr *zn_other_user(const zn_packet *p, const zn_held_packet *held);
int64_t zn_other_epoch(const zn_packet_output *of, const zn_packet *p);

/* Returns the address of an end of a packet that leaves: 0 its source, 1 its destination. */
zn_addr zn_other_address(const zn_packet_output *of, const zn_held_packet *p, unsigned end);
/* Writes what is shown of its payload over its zeros. src, dst: the addresses it leaves with. */
void zn_show_other(zn_packet_output *of, const zn_held_packet *p, const zn_addr *src,
                          const zn_addr *dst, uint8_t *payload);

#endif
