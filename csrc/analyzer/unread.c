/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/unread.h"

#include "analyzer/analyzer.h"
#include "proto/ascii.h"
#include "proto/nameless.h"
#include "proto/quic.h"
#include "proto/resemblance.h"

/* Bytes that a first message must have left, if the snapshot length cut it, to show that it is of
 * no analyzer: a method and a blank; the version of a DTLS record; the IDs of a QUIC header. */
#define SEGMENT_START_MIN 16
#define DATAGRAM_START_MIN 3
#define LONG_HEADER_MIN 64

/* ---- signs of bytes -------------------------------------------------------------------------- */

/* Returns true if a segment of either side shows that the client sent bytes: its own sequence
 * number, or the number that the server acknowledges, lies behind the first byte of the stream. */
static bool shows_client_bytes(const zn_flow *f, const zn_packet *p)
{
    const zn_flow_side *client = &f->side[f->client];
    uint32_t start = client->isn + 1, syn = (p->tcp_flags & ZN_TCP_SYN) != 0;
    int32_t fin = client->fin != 0; /* takes a sequence number, too */
    if (p->payload_len != 0 && p->sender == f->client)
        return zn_seq_ahead(p->seq + syn + p->payload_len, start) > 0;
    if (p->sender == f->client)
        return zn_seq_ahead(p->seq + syn, start) > fin;
    return (p->tcp_flags & ZN_TCP_ACK) != 0 && zn_seq_ahead(p->ack, start) > fin;
}

void zn_unread_see(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    const zn_packet *p = s->p;
    ZN_ASSERT(ZN_FACTS(f)->client_bytes == ZN_CLIENT_SILENT);
    if (f->midstream)
        return;
    if (p->tuple.proto == ZN_PROTO_TCP) {
        if (shows_client_bytes(f, p))
            ZN_FACTS(f)->client_bytes = ZN_CLIENT_OPEN;
    } else if (p->sender == f->client) {
        ZN_FACTS(f)->client_bytes = p->payload_len != 0 ? ZN_CLIENT_OPEN : ZN_CLIENT_SILENT;
    } else if (f->side[f->client].packets == 0) { /* the flow began before the capture */
        ZN_FACTS(f)->client_bytes = ZN_CLIENT_UNREAD;
    }
}

void zn_unread_disregard(const zn_packet_context *s)
{
    if (s->p->sender == s->f->client && s->p->payload_len != 0)
        ZN_FACTS(s->f)->client_bytes = ZN_CLIENT_UNREAD;
}

/* ---- first bytes that no analyzer recognises ------------------------------------------------- */

/* Returns true if the server's port is a port of an analyzer's protocol. */
static bool has_analyzer_port(const zn_packet_context *s)
{
    static const struct {
        uint32_t proto;
        uint16_t port;
    } ports[] = {
#define X(transport, number) {ZN_PROTO_##transport, number},
        ZN_ANALYZER_PORTS(X)
#undef X
    };
    const zn_tuple *tuple = &s->f->tuple;
    uint16_t port = tuple->port[1 - s->f->client];
    for (uint32_t id = 1; id < s->names->analyzer_count; id++) {
        const zn_analyzer *a = &s->names->analyzers[id];
        uint8_t over = tuple->proto == ZN_PROTO_TCP ? ZN_OVER_TCP : ZN_OVER_UDP;
        if (a->port != 0 && a->port == port && (a->transports & over) != 0)
            return true;
    }
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
        if (ports[i].port == port && ports[i].proto == tuple->proto)
            return true;
    return false;
}

/* Returns true if a client of a protocol without names begins with these bytes. */
static bool begins_nameless_protocol(zn_span bytes)
{
    zn_nameless nameless = {0};
    zn_nameless_open(&nameless, bytes, true);
    return nameless.known;
}

static void decide(zn_flow *f, bool nameless)
{
    ZN_FACTS(f)->client_bytes = nameless ? ZN_CLIENT_NAMELESS : ZN_CLIENT_UNREAD;
}

void zn_unread_segment(const zn_packet_context *s, zn_span bytes, bool cut)
{
    if (ZN_FACTS(s->f)->client_bytes == ZN_CLIENT_NAMELESS && zn_resembles_tls_handshake(bytes))
        ZN_FACTS(s->f)->client_bytes = ZN_CLIENT_UNREAD; /* behind a request for TLS, say */
    if (ZN_FACTS(s->f)->client_bytes >= ZN_CLIENT_NAMELESS)
        return;
    decide(s->f, !zn_resembles_tcp_message(bytes) && (!cut || bytes.n >= SEGMENT_START_MIN) &&
                     (!has_analyzer_port(s) || begins_nameless_protocol(bytes)));
}

void zn_unread_datagram(const zn_packet_context *s)
{
    const zn_packet *p = s->p;
    bool is_long = (zn_ascii_first(p->payload) & ZN_QUIC_LONG_FORM) != 0;
    size_t least = is_long ? LONG_HEADER_MIN : DATAGRAM_START_MIN;
    if (p->sender != s->f->client || ZN_LIKELY(ZN_FACTS(s->f)->client_bytes >= ZN_CLIENT_NAMELESS))
        return;
    decide(s->f, !zn_resembles_dtls(p->payload) &&
                     (zn_packet_payload_whole(p) || p->payload.n >= least) &&
                     !has_analyzer_port(s));
}

/* ---- the decision ---------------------------------------------------------------------------- */

bool zn_unread(const zn_flow *f)
{
    if (ZN_FACTS(f)->names != 0 || f->names_dropped)
        return false;
    if (f->midstream)
        return true;
    switch ((zn_client_bytes)ZN_FACTS(f)->client_bytes) {
    case ZN_CLIENT_SILENT:
        return f->side[f->client].packets == 0;
    case ZN_CLIENT_NAMELESS:
        return false;
    case ZN_CLIENT_OPEN:
    case ZN_CLIENT_UNREAD:
        break;
    }
    return true;
}
