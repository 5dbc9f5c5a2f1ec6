/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragments. Each waits in the delay line at its own place, of no flow and due to be dropped, until
 * the datagram is whole. When that is a datagram of UDP, and the first fragment is not due yet, all
 * of them get its flow and with it one fate: what is decided when the first one is due. The first
 * part of the datagram leaves with a UDP header, and all else of it as zeros.
 *
 * The fragments of a datagram are chained by `before`. Nothing ends the chain where the datagrams
 * before it had the same place in the decoder's table: how many fragments are this one's is known
 * when it is whole.
 */
#ifndef ZN_REWRITE_EMIT_FRAGMENTS_H
#define ZN_REWRITE_EMIT_FRAGMENTS_H

#include "rewrite/rewriter_state.h"

/* Fills in *held for a fragment, all but what its IP header says. */
void zn_chain_fragment(zn_packet_output *of, const zn_fragment_frame *frame, zn_held_packet *held);
/* Gives the fragments of p, a datagram of the flow (0: of none) that the last fragment completed,
 * their fate. */
void zn_bind_fragments(zn_packet_output *of, const zn_packet *p, uint32_t flow);

#endif
