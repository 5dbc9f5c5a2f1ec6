/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP flows that are known to have no names, by the bytes of their protocol (proto/nameless.h).
 *
 * The bytes are used only in a flow that was seen from its start. The opening must be the first
 * bytes of its side, and the search for names must have read the client's bytes without a hole and
 * found no message. The search continues: if a name comes later, the flow has that name.
 */
#ifndef ZN_ANALYZER_NAMELESS_FLOW_H
#define ZN_ANALYZER_NAMELESS_FLOW_H

#include "flow/flow.h"
#include "packet/packet.h"
#include "proto/nameless.h"

/* Takes a packet of a TCP flow, after a look at it. Returns whether the flow is known to have no
 * names. */
bool zn_nameless_flow_see(zn_nameless *n, const zn_flow *f, const zn_packet *p);

#endif
