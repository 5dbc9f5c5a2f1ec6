/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be written: the only form in which a flow or an observation reaches a writer.
 *
 * anon/gate fills these structs and nothing else does; the writers of io/ print them and know
 * nothing else about a flow. Whatever is withheld is already gone here (docs of the semantics:
 * "what a flow record may say"), so a writer cannot leak.
 */
#ifndef ZN_BASE_RECORD_H
#define ZN_BASE_RECORD_H

#include "base/addr.h"
#include "base/cursor.h"

typedef enum zn_name_source {
    ZN_SOURCE_NONE,
    ZN_SOURCE_TLS,
    ZN_SOURCE_QUIC,
    ZN_SOURCE_HTTP,
    ZN_SOURCE_DNS
} zn_name_source;

typedef enum zn_name_status {
    ZN_NAME_NONE, /* the flow exposed no name */
    ZN_NAME_RELEASED,
    ZN_NAME_SUPPRESSED,
    ZN_NAME_UNCONFIRMED, /* the evidence that its client is real never came */
    ZN_NAME_INVALID
} zn_name_status;

typedef enum zn_shown {
    ZN_SHOWN_NOT,       /* withheld or special: printed as missing */
    ZN_SHOWN_PSEUDONYM, /* addr is a Crypto-PAn pseudonym */
    ZN_SHOWN_RELEASED   /* addr is a real address that z users share */
} zn_shown;

/* Bits of Tstat's con_t. */
enum { ZN_CONNECTION_HTTP = 1, ZN_CONNECTION_TLS = 8192 };
/* Tstat's types of UDP flows. */
enum { ZN_UDP_OTHER = 0, ZN_UDP_DNS = 19, ZN_UDP_DTLS = 26, ZN_UDP_QUIC = 27 };

/* One direction: what this endpoint sent. Times are ns relative to the flow's first packet. */
typedef struct zn_record_side {
    zn_addr addr;
    zn_shown shown;
    uint16_t port;
    bool internal;
    bool syn_seen;
    uint64_t bytes_all, bytes_unique, bytes_retransmitted;
    uint64_t packets, packets_data, packets_retransmitted, packets_out_of_order;
    uint64_t acks, acks_pure, rst, syn, fin;
    int64_t first_data_ns, last_data_ns; /* TCP: payload; UDP: any datagram. 0 when never */
    int64_t first_ack_ns;                /* without SYN; 0 when never */
    bool started;                        /* it sent a packet */
} zn_record_side;

typedef struct zn_record {
    uint8_t proto;    /* ZN_PROTO_TCP or ZN_PROTO_UDP */
    bool complete;    /* TCP: belongs into log_tcp_complete */
    bool midstream;   /* TCP without its SYN: Tstat logs no such flow */
    uint8_t udp_type; /* ZN_UDP_*; QUIC once both sides spoke the same version */
    bool ech_offered;
    zn_name_source source;
    zn_name_status status;
    zn_span name;             /* empty unless status is ZN_NAME_RELEASED; only 0x20-0x7e */
    uint32_t connection_type; /* Tstat's con_t: ZN_CONNECTION_* */
    uint16_t http_method;     /* Tstat's http_t: 0 not HTTP, 1 GET, 2 POST, ... */
    int64_t epoch;
    int64_t first_ns, last_ns; /* ns since the Unix epoch */
    zn_record_side client, server;
} zn_record;

/* One released observation (t, f(u, t), a). */
typedef struct zn_release {
    int64_t t_ns;
    zn_addr client; /* pseudonym */
    zn_shown client_shown;
    zn_span name;
    zn_name_source source;
} zn_release;

#endif
