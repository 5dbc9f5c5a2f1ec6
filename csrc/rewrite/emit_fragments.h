/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragments of UDP datagrams. Each fragment waits at its own place in the delay line, without a
 * flow and with the fate to be dropped, until the datagram is whole. If the first fragment is not
 * due by then, all fragments get the flow of the datagram and share one fate, which is decided when
 * the first fragment is due. The first part of the datagram leaves with a UDP header. All other
 * bytes of the datagram leave as zeros.
 *
 * The fragments of a datagram are linked by zn_delayed.before. The list may go on with fragments of
 * earlier datagrams that had the same entry in the decoder's table. A whole datagram knows the
 * number of its fragments.
 */
#ifndef ZN_REWRITE_EMIT_FRAGMENTS_H
#define ZN_REWRITE_EMIT_FRAGMENTS_H

#include "rewrite/rewriter_state.h"

/* Fills in the entry of a fragment, except for the fields of its IP header. */
void zn_chain_fragment(zn_packet_output *of, const zn_fragment_frame *frame, zn_delayed *entry);
/* Sets the fate of the fragments of p, a datagram of the flow (0: no flow) that the last fragment
 * completed. */
void zn_bind_fragments(zn_packet_output *of, const zn_packet *p, uint32_t flow);

#endif
