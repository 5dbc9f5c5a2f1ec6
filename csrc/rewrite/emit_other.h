/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of protocols other than TCP and UDP. They have no flow, so their addresses are made when
 * they come. ICMP messages leave as build/build_icmp makes them. An ICMP error shares the fate of
 * the flow whose packet it quotes. Of other protocols, only the IP header leaves.
 */
#ifndef ZN_REWRITE_EMIT_OTHER_H
#define ZN_REWRITE_EMIT_OTHER_H

#include "rewrite/rewriter_state.h"

/* Fills in the entry of a packet, which has two slots. Returns the counter of the reason for which
 * the packet does not leave, or ZN_STAT_COUNT. */
zn_stat zn_delay_other(const zn_rewriter *r, zn_packet_output *of, const zn_packet *p,
                       zn_delayed *entry);

/* Returns the real address of the user of a packet without a flow. */
const zn_addr *zn_other_user(const zn_packet *p, const zn_delayed_other *other);
/* Returns the epoch of the keys for a packet without a flow. */
int64_t zn_other_epoch(const zn_packet_output *of, const zn_packet *p);

/* Returns an address of a packet that leaves: end 0 is its source, and end 1 its destination. */
zn_addr zn_other_address(const zn_packet_output *of, const zn_delayed *p, unsigned end);
/* Writes the shown part of the payload over zeros. src and dst are the addresses with which the
 * packet leaves. */
void zn_show_other(zn_packet_output *of, const zn_delayed *p, const zn_addr *src,
                   const zn_addr *dst, uint8_t *payload);

#endif
