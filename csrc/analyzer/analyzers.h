/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of analyzers, and a packet's way through it: each row is asked in turn whether it
 * recognises the flow.
 *
 * TCP: the client's bytes are read from their start, in place where a message lies in one segment,
 * else through flow/reassembly; a PROXY or SOCKS prefix or a request for TLS is passed over. A flow
 * joined in its middle is searched at the start of its first segments, in both directions: the side
 * that sends a hello or request is the client. UDP: each datagram is looked at until one is
 * recognised.
 */
#ifndef ZN_ANALYZER_ANALYZERS_H
#define ZN_ANALYZER_ANALYZERS_H

#include "analyzer/analyzer.h"
#include "proto/starts.h"

/*
 * X(ID, name, transports, port, starts, source of its names, counter of them), in the order in
 * which they are asked. The functions of a row are zn_<name>_functions, in
 * analyzer/<name>_analyzer.c. Port 0: any; a protocol without first bytes of its own needs a port.
 */
#define ZN_ANALYZERS(X)                                                                            \
    X(TLS, tls, ZN_OVER_TCP, 0, ZN_STARTS_KNOWN, ZN_SOURCE_TLS, ZN_STAT_NAMES_TLS)                 \
    X(HTTP, http, ZN_OVER_TCP, 0, ZN_STARTS_KNOWN, ZN_SOURCE_HTTP, ZN_STAT_NAMES_HTTP)             \
    X(HTTP2, http2, ZN_OVER_TCP, 0, ZN_STARTS_KNOWN, ZN_SOURCE_HTTP, ZN_STAT_NAMES_HTTP)           \
    X(DNS, dns, ZN_OVER_BOTH, ZN_DNS_PORT, ZN_STARTS_KNOWN, ZN_SOURCE_DNS, ZN_STAT_NAMES_DNS)      \
    X(GQUIC, gquic, ZN_OVER_UDP, 0, ZN_STARTS_ANY, ZN_SOURCE_QUIC, ZN_STAT_NAMES_QUIC)             \
    X(QUIC, quic, ZN_OVER_UDP, 0, ZN_STARTS_ANY, ZN_SOURCE_QUIC, ZN_STAT_NAMES_QUIC)               \
    X(DTLS, dtls, ZN_OVER_UDP, 0, ZN_STARTS_ANY, ZN_SOURCE_TLS, ZN_STAT_NAMES_TLS)

/* Knowledge of the fast path about the first bytes of a message over TCP. KNOWN: zn_begins_nothing
 * (proto/starts.h) is false for them, or the fast path does not handle flows of that port. ANY: the
 * fast path does not know them, and skips no segment because of its start. */
enum { ZN_STARTS_ANY, ZN_STARTS_KNOWN };

/* The protocol that a flow was recognised as: zn_flow_state.protocol. */
typedef enum zn_analyzer_id {
    ZN_ANALYZER_NONE,
#define X(ID, ...) ZN_ANALYZER_##ID,
    ZN_ANALYZERS(X)
#undef X
        ZN_ANALYZERS_END
} zn_analyzer_id;
_Static_assert(ZN_ANALYZERS_END <= ZN_ANALYZERS_MAX, "zn_flow_state.parse has bits for each");

/* The number of rows over TCP of whose first bytes the fast path knows nothing. */
#define X(ID, name, transports, port, starts, ...)                                                 \
    +(((transports) & ZN_OVER_TCP) != 0 && (starts) == ZN_STARTS_ANY)
enum { ZN_ANALYZERS_STARTING_ANYHOW = ZN_ANALYZERS(X) };
#undef X

/* Returns true only where no analyzer recognises the segment's start. */
static inline bool zn_analyzers_begin_nothing(zn_span segment)
{
    return ZN_ANALYZERS_STARTING_ANYHOW == 0 && zn_begins_nothing(segment);
}

/* Makes the rest of *names, of which roles, stats, flows, votes and name_store are set, for
 * max_flows flows. Returns 0, or a negative zn_err with *err filled. */
int zn_analyzers_open(zn_names *names, uint32_t max_flows, zn_error *err);
void zn_analyzers_close(zn_names *names);
/* Bytes of memory in use. */
size_t zn_analyzers_memory(const zn_names *names);

/* Returns whether the packet that opens a flow may be an answer: if its receiver asks later on,
 * that is the client. */
bool zn_analyzers_may_be_answer(const zn_packet *p);
/* Looks at one packet of an open flow, after the flow table counted it. Returns false when the
 * packet came by another tunnel than the flow's user: nothing in it counts for the flow. */
bool zn_analyzers_packet(zn_names *names, uint32_t flow, zn_flow *f, const zn_packet *p);
/* Finishes the names of a closed flow: names that still wait become unconfirmed or incomplete. A
 * request head that the capture cut may cast its vote here. */
void zn_analyzers_flow_closed(zn_names *names, uint32_t flow, zn_flow *f);
/* Frees what was kept for a flow whose record is written. */
void zn_analyzers_forget(zn_names *names, zn_flow *f);

#endif
