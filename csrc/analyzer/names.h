/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From packets to votes: which parser reads a flow's bytes, when a name is complete, and when its
 * client has shown that it is real.
 *
 * TCP: the client's bytes are looked at from their start, in place where a hello or request head
 * lies in one segment, else through flow/reassembly: TLS, HTTP/1, HTTP/2 in clear, DNS on port 53,
 * also behind a PROXY or SOCKS prefix or a request for TLS. A flow joined in its middle is searched
 * at the start of its first segments, in both directions, and whoever sends a hello or request is
 * the client. UDP: DNS questions on port 53; QUIC Initials and DTLS hellos on any port.
 *
 * Evidence (unless the policy says any): TCP, the acknowledged handshake, for DNS as well, and of
 * bytes far from where the stream goes on that they acknowledge what the server sent; DNS over UDP,
 * the matching response; QUIC, packets to the connection ID that the server chose; DTLS, the
 * server's cookie; both only where the client's side sent nothing that an echo would make them of.
 * A name that comes first waits; one whose evidence never comes is unconfirmed.
 */
#ifndef ZN_ANALYZER_NAMES_H
#define ZN_ANALYZER_NAMES_H

#include "analyzer/name_store.h"
#include "analyzer/quic_facts.h"
#include "analyzer/roles.h"
#include "anonymity/votes.h"
#include "flow/reassembly.h"
#include "proto/http2.h"
#include "proto/quic_crypto.h"
#include "proto/tls.h"

/* What a flow was recognised as: zn_flow.protocol. */
enum {
    ZN_PROTOCOL_UNKNOWN,
    ZN_PROTOCOL_TLS,
    ZN_PROTOCOL_HTTP,
    ZN_PROTOCOL_DNS,
    ZN_PROTOCOL_DTLS,
    ZN_PROTOCOL_QUIC,
    ZN_PROTOCOL_QUIC_BOTH_WAYS /* the server answered in the client's version */
};

/* What a TCP flow's client is expected to send next: zn_flow.head. */
typedef enum zn_parse_state {
    ZN_PARSE_SEARCH,       /* nothing recognised yet */
    ZN_PARSE_TLS,          /* in the middle of a ClientHello */
    ZN_PARSE_TLS_AGAIN,    /* behind it: another may follow */
    ZN_PARSE_HTTP,         /* in the middle of a request head */
    ZN_PARSE_HTTP_BETWEEN, /* a request was read; another may follow */
    ZN_PARSE_HTTP_CHUNK,   /* a request was read; a chunk of its body follows */
    ZN_PARSE_H2,           /* frames, of which the next may be of any type */
    ZN_PARSE_H2_BLOCK,     /* in the middle of a header block */
    ZN_PARSE_DNS,          /* a message */
    ZN_PARSE_DNS_MESSAGE,  /* in the middle of one */
    ZN_PARSE_OFF           /* nothing more to find */
} zn_parse_state;

#define ZN_NAMES_TRIES 15 /* segments of an unrecognised flow whose start is looked at */

typedef struct zn_names {
    const zn_roles *roles;
    zn_stats *stats;
    zn_flow_table *flows;
    zn_votes *votes;
    zn_name_store *name_store;
    zn_stream_pool streams;
    zn_slab header_tables; /* zn_hpack of HTTP/2 connections */
    zn_tls_scratch tls;
    zn_http2_scratch h2;
    zn_slab datagrams;      /* state of QUIC and DTLS flows */
    zn_hash_key cookie_key; /* of DTLS cookies' identities */
    zn_quic *quic;
    zn_quic_crypto_frames crypto_frames; /* of the Initial at hand */
} zn_names;

/* roles, stats, flows, votes and name_store of *names are set; makes the rest for max_flows flows.
 * 0, or a negative zn_err. */
int zn_names_init(zn_names *names, uint32_t max_flows, zn_error *err);
void zn_names_fini(zn_names *names);
/* Bytes of memory in use. */
size_t zn_names_memory(const zn_names *names);

/* What opened the flow may be an answer: if its receiver asks later on, that is the client. */
bool zn_names_may_be_answer(const zn_packet *p);
/* Looks at one packet of an open flow, after the flow table counted it. False when nothing that it
 * says may be taken for its flow's: it came by another tunnel than the flow's user. */
bool zn_names_packet(zn_names *names, uint32_t flow, zn_flow *f, const zn_packet *p);
/* The flow is closed: what is still waiting is settled as unconfirmed or incomplete. A request head
 * that the capture does not finish may cast its vote here. */
void zn_names_flow_closed(zn_names *names, uint32_t flow, zn_flow *f);
/* What a closed flow's QUIC packets told beside its name; NULL for other flows. */
const zn_quic_facts *zn_names_quic_facts(const zn_names *names, const zn_flow *f);
/* The flow's record is written: frees what was kept for it. */
void zn_names_forget(zn_names *names, zn_flow *f);
/* The ZN_STAT_STATUS_* counter of a closed flow: what could be read of its names, released or
 * not. */
zn_stat zn_names_status(const zn_names *names, const zn_flow *f);

#endif
