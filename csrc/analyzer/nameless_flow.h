/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP flows that are known to have no names, by the bytes of their protocol (proto/nameless.h).
 *
 * Bytes count only in a flow that was seen from its start: the opening is the first byte of its
 * side, and what the client says was read, without a hole before it, by the search for names, which
 * found no message in it. That search goes on: should a name come nevertheless, the flow has it.
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
