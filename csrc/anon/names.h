/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From packets to votes: which parser reads a flow's bytes, when a name is complete, and when its
 * client has shown that it is real.
 *
 * TCP: the client's bytes are looked at from their start, in place where a hello or request head
 * lies in one segment, else through state/stream. A flow joined in its middle is searched at the
 * start of its first segments, in both directions, and whoever sends a hello or request is the
 * client. UDP: DNS questions on port 53; a QUIC Initial is counted, not decoded.
 *
 * Evidence (unless the policy says any): TCP, the acknowledged handshake; DNS, the matching
 * response. A name that comes first waits; one whose evidence never comes is unconfirmed.
 */
#ifndef ZN_ANON_NAMES_H
#define ZN_ANON_NAMES_H

#include "anon/gate.h"
#include "proto/tls.h"
#include "state/stream.h"

/* What a flow was recognised as: zn_flow.protocol. */
enum { ZN_PROTOCOL_UNKNOWN, ZN_PROTOCOL_TLS, ZN_PROTOCOL_HTTP, ZN_PROTOCOL_DNS, ZN_PROTOCOL_QUIC };

typedef struct zn_names {
    const zn_policy *policy;
    zn_stats *stats;
    zn_gate *gate;
    zn_name_book *book;
    zn_stream_pool streams;
    zn_tls_scratch tls;
} zn_names;

/* Looks at one packet of an open flow, after the flow table counted it. */
void zn_names_packet(zn_names *names, uint32_t flow, zn_flow *f, const zn_packet *p);
/* The flow is closed: what is still waiting is settled as unconfirmed or incomplete. */
void zn_names_flow_closed(zn_names *names, zn_flow *f);

#endif
