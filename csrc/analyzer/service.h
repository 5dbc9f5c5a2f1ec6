/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service of a flow, in the numbers of Tstat's con_t, c_type and s_type.
 *
 * A TCP flow counts as a service once both sides spoke it: a request and a response, a greeting and
 * a command, two hellos. Datagrams count as the protocol that they look like, each side for itself;
 * RTP is a suspicion (ZN_UDP_RTP_ONCE) until a second datagram of the same source follows the
 * first.
 */
#ifndef ZN_ANALYZER_SERVICE_H
#define ZN_ANALYZER_SERVICE_H

#include "analyzer/flow_state.h"
#include "analyzer/watch_need.h"
#include "packet/packet.h"
#include "proto/dns.h"

/* Values of zn_flow_state.service: after a client's TLS hello; at least KNOWN when there is nothing
 * more to find, and that of TLS. */
#define ZN_SERVICE_TLS_HELLO 7
#define ZN_SERVICE_KNOWN 9
#define ZN_SERVICE_TLS 14

struct zn_names;

/* Returns whether one of the ports is that of DNS, or of NBNS, mDNS or LLMNR, which have its
 * format. */
static inline bool zn_service_has_dns_port(const zn_tuple *tuple)
{
    for (unsigned i = 0; i < 2; i++)
        if (tuple->port[i] == 53 || tuple->port[i] == 137 || tuple->port[i] == 5353 ||
            tuple->port[i] == 5355)
            return true;
    return false;
}

/* Begins the search in a new flow, before its first packet is counted (zn_watch_count). */
void zn_service_open(zn_flow *f);
/* Adds the packets of a TCP flow that are still needed to *need. */
void zn_service_need(const struct zn_names *names, const zn_flow *f, zn_watch_need *need);
/* Ends the wait for a first word, if it is over, before a packet of the flow is looked at, also of
 * one from another tunnel: then only the next payload may show the service. */
void zn_service_wait(zn_flow *f);
/* Looks at one packet with payload, after the flow table counted it. */
void zn_service_packet(zn_flow *f, const zn_packet *p);
/* Takes the question of a datagram of one side, before zn_service_packet looks at the datagram. */
void zn_service_question(zn_flow_side *side, const zn_dns_question *q);
/* Returns whether the client sent a TLS hello; with `both`, the server too. */
static inline bool zn_service_is_tls(const zn_flow *f, bool both)
{
    return ZN_STATE(f)->service == ZN_SERVICE_TLS ||
           (!both && ZN_STATE(f)->service == ZN_SERVICE_TLS_HELLO);
}

/* Tstat's con_t of a TCP flow: one of ZN_CONNECTION_*, 0 when no service was recognised. */
uint32_t zn_service_connection(const zn_flow *f);
/* Tstat's type (ZN_UDP_*) of the datagrams from one side of a UDP flow; `side`: its tuple index. */
uint8_t zn_service_udp_type(const zn_flow *f, unsigned side);

#endif
