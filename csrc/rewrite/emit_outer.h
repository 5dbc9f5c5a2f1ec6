/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands for the headers around a packet, where they are kept: its tags, labels, sessions and
 * tunnels. Their identifiers and addresses are under the keys of the packet's own addresses, so
 * that nothing joins two epochs.
 *
 * A header that cannot be built, or has an address that never leaves, goes with all that is around
 * it; so do those that came in another order than a frame can have.
 */
#ifndef ZN_REWRITE_EMIT_OUTER_H
#define ZN_REWRITE_EMIT_OUTER_H

#include "rewrite/rewriter_state.h"

/* Adds the headers around p to its entry, the newest one, for which there is room. user: whose
 * packet it is. epoch: of its addresses. */
void zn_hold_outer(zn_packet_output *of, const zn_packet *p, const zn_addr *user, int64_t epoch,
                          zn_held_packet *held);

#endif
