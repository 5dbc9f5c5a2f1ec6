/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that tell nothing more: most of them. A flow's name, service and hello are behind it, or
 * the packet carries no bytes, or such as begin nothing. The questions stand in line, ask what a
 * counted packet has touched anyway, note what looking would, and answer no where they are not
 * sure: zn_analyzers_packet, zn_service_packet, zn_layer7_packet and zn_dn_hunter_packet then look,
 * and do nothing for any other packet.
 */
#ifndef ZN_ANALYZER_WATCH_H
#define ZN_ANALYZER_WATCH_H

#include "analyzer/analyzers.h"
#include "analyzer/layer7.h"
#include "analyzer/parse_state.h"
#include "analyzer/service.h"
#include "analyzer/tcp_stream.h"
#include "flow/flow_fast.h"
#include "proto/ascii.h"
#include "proto/quic.h"
#include "proto/service_signature.h"
#include "proto/starts.h"

_Static_assert(ZN_PACKET_START >= ZN_SIGNATURE_START_BYTES, "a datagram is told by its start");

/* It came as its flow's packets do, and the flow's server address was voted for, or will not be. */
static inline bool zn_beyond_places(const zn_flow *f, const zn_packet *p)
{
    return p->tunnel_count == 0 && !f->user_outside && f->addr_vote != ZN_ADDR_PENDING;
}

/* A segment with no name in it: of the server, or behind what the client had to say. */
static inline bool zn_beyond_names(const zn_flow *f, const zn_packet *p)
{
    if (p->payload_len == 0 || f->head == ZN_PARSE_OFF)
        return true;
    if (p->sender != f->client)
        return f->head != ZN_PARSE_SEARCH || !f->midstream;
    return zn_parse_state_of(f) == ZN_PARSE_NEXT && f->stream == 0 &&
           (p->tcp_flags & ZN_TCP_SYN) == 0 && zn_seq_ahead(p->seq, f->parse_seq) > 0;
}

/*
 * The segment, of a flow whose service is known, begins no message of HTTP and is no part of a
 * handshake. Where the first data of TLS are not seen yet and these are not they, its time is noted
 * as the handshake's last, as zn_layer7_packet does.
 */
static inline bool zn_beyond_layer7(zn_flow_layer7 *l, zn_flow *f, const zn_packet *p)
{
    unsigned side = p->sender;
    uint8_t all = side == f->client ? ZN_LAYER7_CLIENT_READ : ZN_LAYER7_CERTIFICATE_SETTLED;
    if (p->payload.n != 0 && zn_service_may_be_http(zn_packet_start(p)))
        return false;
    if (f->service != ZN_SERVICE_TLS) /* no certificate, and nobody asks for a handshake's times */
        return true;
    if (f->side[side].tls_read)
        return true;
    if (l->certificate != 0 && (l->state & ZN_LAYER7_CERTIFICATE_VOTED) == 0)
        return false;
    if (p->payload.n == 0)
        return true;
    if ((p->tcp_flags & ZN_TCP_RST) != 0 || (l->state & all) == 0)
        return false;
    if (l->appdata_ns[side] != 0) {
        f->side[side].tls_read = (l->state & ZN_LAYER7_CERTIFICATE_SETTLED) != 0;
        return true;
    }
    if (f->side[0].packets + f->side[1].packets > ZN_LAYER7_WATCHED_PACKETS)
        return true;
    if (zn_ascii_first(zn_packet_start(p)) == ZN_TLS_CONTENT_APPLICATION_DATA)
        return false;
    l->last_handshake_ns[side] = p->t_ns;
    return true;
}

/* Nothing tells the service yet, and the segment does not either; behind more of them, none
 * does. */
static inline bool zn_beyond_service(const zn_flow *f, const zn_packet *p)
{
    return p->payload.n == 0 || f->service >= ZN_SERVICE_KNOWN ||
           (f->service == 0 && f->watched <= ZN_SERVICE_SILENT_PACKETS &&
            zn_begins_nothing(zn_packet_start(p)));
}

/* The start of the client's segments is looked at, for what can be told by it. */
static inline bool zn_beyond_is_searched(const zn_flow *f)
{
    return f->head == ZN_PARSE_SEARCH && f->parse_tries != 0 && f->stream == 0 &&
           f->protocol == ZN_ANALYZER_NONE && zn_flow_has_user(f) &&
           !zn_service_has_dns_port(&f->tuple);
}

/* The client's segment comes next and begins nothing, and is not the last one looked at. */
static inline bool zn_beyond_search(const zn_flow *f, const zn_packet *p)
{
    return f->parse_tries != ZN_SEARCH_TRIES && p->seq == f->parse_seq &&
           (p->tcp_flags & ZN_TCP_SYN) == 0 && zn_analyzers_begin_nothing(zn_packet_start(p));
}

/* Of which zn_analyzers_packet would note no more than this. */
static inline void zn_beyond_searched(zn_flow *f, const zn_packet *p)
{
    f->parse_tries++;
    f->parse_seq = p->seq + p->payload_len;
}

/* `l`: NULL when the LAYER7 columns are not asked for. */
static inline bool zn_beyond_tcp(zn_flow *f, zn_flow_layer7 *l, const zn_packet *p)
{
    bool search = !zn_beyond_names(f, p);
    if (search && (p->sender != f->client || !zn_beyond_is_searched(f) || !zn_beyond_search(f, p)))
        return false;
    if (!zn_beyond_places(f, p) || !zn_beyond_service(f, p) ||
        (l != NULL && !zn_beyond_layer7(l, f, p)))
        return false;
    if (search)
        zn_beyond_searched(f, p);
    return true;
}

/* A datagram of a QUIC connection whose client is proven, with no long header and of no form that
 * analyzer/service tells from it, and between ports that are not those of DNS. */
static inline bool zn_beyond_udp(const zn_flow *f, const zn_packet *p)
{
    return f->protocol == ZN_ANALYZER_QUIC && f->client_acked && zn_beyond_places(f, p) &&
           (zn_ascii_first(zn_packet_start(p)) & ZN_QUIC_LONG_FORM) == 0 &&
           zn_datagram_is_none(zn_packet_start(p), p->payload_len) &&
           f->side[p->sender].udp_type == ZN_UDP_OTHER && !zn_service_has_dns_port(&f->tuple);
}

/* Nothing that the packet of this flow says is new. `l`: as zn_flow_layer7_at has it. */
static inline bool zn_beyond(zn_flow *f, zn_flow_layer7 *l, const zn_packet *p)
{
    if (ZN_UNLIKELY(p->tuple.proto != ZN_PROTO_TCP))
        return zn_beyond_udp(f, p);
    return zn_beyond_tcp(f, l, p);
}

/* What zn_beyond asks about the flow of a segment with data, not about the segment, is answered,
 * and stays so until a packet of the flow is looked into. */
static inline bool zn_beyond_may_settle(const zn_flow *f, const zn_flow_layer7 *l, unsigned sender)
{
    bool client = sender == f->client;
    uint8_t all = client ? ZN_LAYER7_CLIENT_READ : ZN_LAYER7_CERTIFICATE_SETTLED;
    if (f->user_outside || f->addr_vote == ZN_ADDR_PENDING || f->service < ZN_SERVICE_KNOWN)
        return false;
    if (f->head != ZN_PARSE_OFF && (client || (f->head == ZN_PARSE_SEARCH && f->midstream)))
        return false;
    if (l == NULL || f->service != ZN_SERVICE_TLS || f->side[sender].tls_read)
        return true;
    if (l->certificate != 0 && (l->state & ZN_LAYER7_CERTIFICATE_VOTED) == 0)
        return false;
    return (l->state & all) != 0 &&
           f->side[0].packets + f->side[1].packets > ZN_LAYER7_WATCHED_PACKETS;
}

/* The same but for what the segment begins: a service, or something that has a name. */
static inline bool zn_beyond_may_search(const zn_flow *f, unsigned sender)
{
    if (f->user_outside || f->addr_vote == ZN_ADDR_PENDING)
        return false;
    if (f->service != 0 && (f->service < ZN_SERVICE_KNOWN || f->service == ZN_SERVICE_TLS))
        return false;
    if (sender != f->client)
        return f->head != ZN_PARSE_SEARCH || !f->midstream;
    return f->head == ZN_PARSE_OFF || zn_beyond_is_searched(f);
}

/* A packet of that side told nothing new; where that holds for whatever comes next, the side is
 * settled. */
static inline void zn_beyond_settle(const zn_flow_table *t, zn_flow *f, const zn_flow_layer7 *l,
                                    unsigned sender)
{
    unsigned bit;
    if (!zn_tcp_may_settle(t, f, sender))
        return;
    if (zn_beyond_may_settle(f, l, sender))
        bit = ZN_FLOW_SETTLED << sender;
    else if (zn_beyond_may_search(f, sender))
        bit = ZN_FLOW_SEARCHED << sender;
    else
        return;
    f->settled = (f->settled | bit) & 0xfu;
}

/* What zn_beyond asks about the segment itself, where its side is settled (flow/flow_fast.h). */
static inline bool zn_beyond_settled(const zn_packet *p)
{
    return p->tunnel_count == 0 && !zn_service_may_be_http(zn_packet_start(p));
}

/* Counts a segment of a side that is settled but for what it begins, as zn_flow_count_settled does,
 * where it begins nothing and others are still looked at behind it. */
static inline bool zn_beyond_count_searched(zn_flow *f, zn_flow_layer7 *l, const zn_packet *p)
{
    bool search = p->sender == f->client && f->head == ZN_PARSE_SEARCH && p->payload_len != 0;
    if (p->payload_len != 0 && !zn_analyzers_begin_nothing(zn_packet_start(p)))
        return false;
    if (p->tunnel_count != 0 || (search && !zn_beyond_search(f, p)))
        return false;
    if (f->service == 0 && f->watched >= ZN_SERVICE_SILENT_PACKETS)
        return false;
    if (!zn_flow_count_settled(f, l, p, ZN_FLOW_SEARCHED))
        return false;
    zn_service_count(f);
    if (search)
        zn_beyond_searched(f, p);
    return true;
}

#endif
