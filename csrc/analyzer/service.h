/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which service a flow is, in the numbers of Tstat's con_t, c_type and s_type.
 *
 * A TCP flow counts as a service once both sides spoke it: a request and a response, a greeting and
 * a command, two hellos. Datagrams are taken for what they look like, each side for itself; RTP is
 * a suspicion (ZN_UDP_RTP_ONCE) until a second datagram of the same source follows the first.
 */
#ifndef ZN_ANALYZER_SERVICE_H
#define ZN_ANALYZER_SERVICE_H

#include "analyzer/flow_state.h"
#include "analyzer/watch_need.h"
#include "packet/packet.h"

/* zn_flow_state.service: at least this when there is nothing more to find, and that of TLS. */
#define ZN_SERVICE_KNOWN 9
#define ZN_SERVICE_TLS 14

struct zn_names;

/* One of the ports is that of DNS, or of NBNS, mDNS or LLMNR, which have its format. */
static inline bool zn_service_has_dns_port(const zn_tuple *tuple)
{
    for (unsigned i = 0; i < 2; i++)
        if (tuple->port[i] == 53 || tuple->port[i] == 137 || tuple->port[i] == 5353 ||
            tuple->port[i] == 5355)
            return true;
    return false;
}

/* A flow was opened; its first packet is counted (zn_watch_count) after that. */
void zn_service_open(zn_flow *f);
/* What is still needed of a TCP flow. */
void zn_service_need(const struct zn_names *names, const zn_flow *f, zn_watch_need *need);
/* Before a packet of the flow is looked at, whoever sent it: so many may have passed that only the
 * next payload may tell the service. */
void zn_service_wait(zn_flow *f);
/* Looks at one packet with payload, after the flow table counted it. */
void zn_service_packet(zn_flow *f, const zn_packet *p);
/* The client said hello in TLS; with `both`, the server too. */
bool zn_service_is_tls(const zn_flow *f, bool both);
/* Tstat's con_t of a TCP flow: one of ZN_CONNECTION_*, 0 when no service was recognised. */
uint32_t zn_service_connection(const zn_flow *f);
/* Tstat's type of what side `side` of a UDP flow sent: ZN_UDP_*. */
uint8_t zn_service_udp_type(const zn_flow *f, unsigned side);

#endif
