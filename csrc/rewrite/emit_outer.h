/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outer headers of a packet, where they are kept: tags, labels, sessions and tunnels. Their
 * identifiers and addresses become pseudonyms under the keys of the packet's own addresses, so that
 * no header links two epochs.
 *
 * A header is left out, with all headers around it, if it cannot be built or has an address that
 * never leaves. Headers in an order that a frame cannot have are left out, too.
 */
#ifndef ZN_REWRITE_EMIT_OUTER_H
#define ZN_REWRITE_EMIT_OUTER_H

#include "rewrite/rewriter_state.h"

/* Adds the outer headers of p to its entry, the newest one, for which there is room. user is the
 * real address of the packet's user, and epoch is the epoch of the packet's addresses. */
void zn_delay_outer(zn_packet_output *of, const zn_packet *p, const zn_addr *user, int64_t epoch,
                    zn_delayed *entry);

#endif
