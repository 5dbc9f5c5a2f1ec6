/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch mask: the packets of a flow that analyzers look at.
 *
 * After each look, the functions listed in watch.c declare the packets that they still need of
 * either side (analyzer/watch_need.h), and the flow stores the union: zn_flow.watch, watch_left and
 * watch_seq. For a row of the table of analyzers its parse state declares the need; over UDP every
 * packet is looked at unless the row is QUIC's. Any other code that looks at segments has to be
 * listed. For a packet that is not needed, zn_watch_skip has the same effect as a look: it moves
 * watch_seq, or notes a time. In builds with ZN_DEBUG the engine looks nevertheless, and compares.
 */
#ifndef ZN_ANALYZER_WATCH_H
#define ZN_ANALYZER_WATCH_H

#include "analyzer/analyzers.h"
#include "analyzer/layer7.h"
#include "analyzer/names.h"
#include "analyzer/service.h"
#include "analyzer/tcp_stream.h"
#include "proto/ascii.h"
#include "proto/quic.h"
#include "proto/service_signature.h"

_Static_assert(ZN_PACKET_START >= ZN_SIGNATURE_START_BYTES,
               "a datagram is recognised by its start");

/* Returns true only where no analyzer recognises a segment with this start. */
static inline bool zn_watch_begins_nothing(zn_span start)
{
    return zn_analyzers_begin_nothing(start) &&
           zn_ascii_first(start) != ZN_TLS_CONTENT_APPLICATION_DATA;
}

/* Skips a datagram in the same way, if neither port is a port of DNS. */
static inline bool zn_watch_is_no_datagram(const zn_packet *p)
{
    zn_span start = zn_packet_start(p);
    return (zn_ascii_first(start) & ZN_QUIC_LONG_FORM) == 0 &&
           zn_datagram_is_none(start, p->payload_len);
}

/* Counts a packet of the flow; to be called before zn_watch_wants. */
static inline void zn_watch_count(zn_flow *f)
{
    if (ZN_UNLIKELY(f->watch_left != 0) && --f->watch_left == 0) {
        f->watch[0] |= ZN_WATCH_PACKET;
        f->watch[1] |= ZN_WATCH_PACKET;
    }
}

/* Returns whether a segment with payload is wanted from a side with these bits. */
static inline bool zn_watch_wants_payload(const zn_flow *f, unsigned bits, const zn_packet *p)
{
    int32_t offset;
    if ((bits & ZN_WATCH_PAYLOAD) != 0 || (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_RST)) != 0 ||
        ((bits & ZN_WATCH_TEXT) != 0 && zn_service_may_be_http(zn_packet_start(p))))
        return true;
    if (ZN_LIKELY((bits & (ZN_WATCH_START | ZN_WATCH_BEFORE)) == 0))
        return false;
    if ((bits & ZN_WATCH_START) != 0 && !zn_watch_begins_nothing(zn_packet_start(p)))
        return true;
    if ((bits & ZN_WATCH_BEFORE) == 0)
        return false;
    offset = zn_seq_ahead(p->seq, f->watch_seq);
    if ((bits & ZN_WATCH_START) == 0)
        return offset <= 0;
    return offset != 0 || ZN_STATE(f)->parse_tries == ZN_SEARCH_TRIES;
}

/* Returns whether an analyzer has to look into a packet of this flow. */
static inline bool zn_watch_wants(const zn_flow *f, const zn_packet *p)
{
    unsigned bits = f->watch[p->sender];
    if ((bits & ZN_WATCH_PACKET) != 0 || (p->tunnel_count != 0 && (bits & ZN_WATCH_TUNNEL) != 0))
        return true;
    if (ZN_UNLIKELY(p->tuple.proto != ZN_PROTO_TCP))
        return (bits & ZN_WATCH_PAYLOAD) != 0 || !zn_watch_is_no_datagram(p);
    return p->payload_len != 0 && zn_watch_wants_payload(f, bits, p);
}

/* Returns whether the packet's side is watched for text at most: then zn_watch_is_text alone
 * decides, and zn_watch_skip does nothing. One test instead of four. */
static inline bool zn_watch_is_quiet(const zn_flow *f, const zn_packet *p)
{
    unsigned bits = f->watch[p->sender] & ~(unsigned)(ZN_WATCH_TUNNEL | ZN_WATCH_TEXT);
    return (bits | f->watch_left | p->tunnel_count) == 0;
}

static inline bool zn_watch_is_text(const zn_flow *f, const zn_packet *p)
{
    return zn_service_may_be_http(zn_packet_start(p)) && (f->watch[p->sender] & ZN_WATCH_TEXT) != 0;
}

/* Does for a packet that is not wanted all that a look would do. `l`: of the flow, where it has
 * one. */
static inline void zn_watch_skip(zn_flow *f, zn_flow_layer7 *l, const zn_packet *p)
{
    unsigned bits = f->watch[p->sender];
    if (p->payload_len != 0 && (bits & (ZN_WATCH_BEFORE | ZN_WATCH_TIME)) != 0) {
        if ((bits & ZN_WATCH_TIME) != 0 && p->payload.n != 0)
            ZN_LAYER7(l)->last_handshake_ns[p->sender] = p->t_ns;
        if ((bits & ZN_WATCH_BEFORE) != 0 && (bits & ZN_WATCH_START) != 0) {
            f->watch_seq = p->seq + p->payload_len;
            ZN_STATE(f)->parse_tries = (ZN_STATE(f)->parse_tries + 1u) & 0xfu;
        }
    }
}

/* Asks every analyzer, after a look into a packet of the flow, what it needs of the next ones. */
void zn_watch_ask(const zn_names *names, zn_flow *f);

#endif
