/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of flows and released observations, the only form in which either reaches a writer.
 *
 * release/gate fills these structs and nothing else does; the writers of output/ print them and
 * know nothing else about a flow. Withheld values are already gone here, so a writer cannot leak
 * one.
 */
#ifndef ZN_RELEASE_RECORD_H
#define ZN_RELEASE_RECORD_H

#include "analyzer/kinds.h"
#include "release/columns.h"
#include "util/addr.h"
#include "util/attributes.h"
#include "util/cursor.h"

typedef enum zn_name_status {
    ZN_NAME_NONE, /* the flow exposed no name */
    ZN_NAME_RELEASED,
    ZN_NAME_SUPPRESSED,
    ZN_NAME_UNCONFIRMED, /* the evidence that its client is real never came */
    ZN_NAME_INVALID,
    ZN_NAME_GENERALIZED /* suppressed, and published as a label */
} zn_name_status;

/* Level of a published name. */
typedef enum zn_name_level {
    ZN_NAME_LEVEL_NONE, /* no name is published */
    ZN_NAME_LEVEL_NAME,
    ZN_NAME_LEVEL_DOMAIN,
    ZN_NAME_LEVEL_CATEGORY
} zn_name_level;

/* Level of a published server address. */
typedef enum zn_server_level {
    ZN_SERVER_LEVEL_NONE, /* no address is published */
    ZN_SERVER_LEVEL_ADDRESS,
    ZN_SERVER_LEVEL_AS,
    ZN_SERVER_LEVEL_COUNTRY
} zn_server_level;

typedef enum zn_ech { ZN_ECH_NONE, ZN_ECH_OFFERED } zn_ech;

typedef enum zn_disclosure {
    ZN_DISCLOSURE_NONE,      /* withheld or special: printed as missing */
    ZN_DISCLOSURE_PSEUDONYM, /* addr is a Crypto-PAn pseudonym */
    ZN_DISCLOSURE_RELEASED   /* addr is a real address that z users share */
} zn_disclosure;

/* A yes or no that may be withheld. */
typedef enum zn_flag { ZN_FLAG_UNKNOWN, ZN_FLAG_NO, ZN_FLAG_YES } zn_flag;

#define ZN_RECORD_VERSIONS 15

/* One direction: what this endpoint sent. Times are ns relative to the flow's first packet. */
typedef struct zn_record_side {
    zn_addr addr;
    zn_disclosure disclosure;
    uint16_t port;
    bool internal;
    uint64_t bytes_all, bytes_unique, bytes_retransmitted;
    uint64_t packets, packets_data, packets_retransmitted, packets_out_of_order;
    uint64_t acks, acks_pure, rst, syn, fin;
    int64_t first_data_ns, last_data_ns; /* TCP payload or any UDP datagram; 0: never */
    int64_t first_ack_ns;                /* without SYN; 0: never */
    uint8_t udp_type;                    /* Tstat's c_type and s_type: ZN_UDP_* */
    uint32_t quic_version;               /* 0: none, or only one side spoke QUIC */
    /* LAYER7 */
    uint64_t messages, protocols, appdata_bytes;
    int64_t last_handshake_ns, appdata_ns; /* since the flow's start; 0 when never */
    uint16_t tls_version[ZN_RECORD_VERSIONS];
    uint8_t tls_versions; /* how many; 0: no hello */
    /* E2E: round-trip times of what this side sent, from here to the other side and back. */
    int64_t rtt_mean_ns, rtt_min_ns, rtt_max_ns, rtt_deviation_ns;
    uint64_t rtt_count, ttl_min, ttl_max;
    /* OPTIONS, in the order of Tstat's columns. */
    uint64_t scale_seen, timestamps, scale, sack_permitted, sacks, mss;
    uint64_t segment_max, segment_min; /* payload bytes */
    uint64_t window_max, window_min, window_zero;
    uint64_t flight_max, flight_min, flight_first; /* bytes sent and not acknowledged */
    uint64_t anomalies[8];                         /* Tstat's pkts_rto to pkts_unfs */
    uint64_t flags_moved;
} zn_record_side;

/* Bytes of a side that are filled for every flow, and with LAYER7. */
#define ZN_RECORD_CORE offsetof(zn_record_side, messages)
#define ZN_RECORD_LAYER7 offsetof(zn_record_side, rtt_mean_ns)

/* Columns find the disclosure of an address behind it. */
_Static_assert(offsetof(zn_record_side, disclosure) ==
                   offsetof(zn_record_side, addr) + sizeof(zn_addr),
               "an address and its disclosure");

typedef struct zn_record {
    uint8_t proto;   /* ZN_PROTO_TCP or ZN_PROTO_UDP */
    bool complete;   /* TCP: belongs into log_tcp_complete */
    bool midstream;  /* TCP without its SYN: Tstat logs no such flow */
    bool coarse;     /* measurements are not exact, as a name of the flow is withheld */
    bool unmeasured; /* false: the value of Tstat's columns that nothing measures */
    zn_flag is_complete, is_midstream;
    zn_flag is_early; /* evicted: the flow may have gone on */
    zn_ech ech;
    zn_name_source source;
    zn_name_status status;
    zn_name_level name_level;
    zn_span name; /* a released name, or a label of a generalized name; only 0x20-0x7e */
    zn_server_level server_level;
    uint32_t server_label;    /* number of the AS, or both letters of the country; 0: no label */
    uint32_t connection_type; /* Tstat's con_t: ZN_CONNECTION_* */
    uint16_t http_method;     /* Tstat's http_t: 0 not HTTP, 1 GET, 2 POST, ... */
    uint64_t http_requests, http_responses;
    zn_span http_status;  /* digits, empty when there was no response */
    uint64_t tls_session; /* Tstat's tls_session_stat */
    /* Name by which a DNS response resolved the server's address. Without the policy's dn_hunter,
     * the name that a DNS query asks for. If it may not be disclosed, it, the resolver and the
     * resolver's times are empty. */
    zn_span fqdn;
    zn_addr resolver;
    zn_disclosure resolver_disclosure;
    int64_t resolver_query_ns, resolver_answer_ns; /* ns since the Unix epoch; 0: none */
    zn_span certificate; /* the name in the server's certificate, empty unless released */
    zn_span user_agent;  /* in the QUIC hello, percent-encoded, empty unless released */
    zn_span attribute[ZN_ATTRIBUTE_COUNT];  /* by zn_attribute; empty unless released */
    uint64_t quic_zero_rtt, quic_ech_bytes; /* 0-RTT packets; length of ECH's extension */
    int64_t epoch;
    int64_t first_ns, last_ns; /* ns since the Unix epoch */
    int64_t closed_ns;         /* start of the minute in which the flow closed; in no column */
    /* Bytes of a side behind ZN_RECORD_CORE that can be other than zero. */
    size_t filled_after_core;
    zn_record_side client, server;
} zn_record;

_Static_assert(offsetof(zn_record, resolver_disclosure) ==
                   offsetof(zn_record, resolver) + sizeof(zn_addr),
               "an address and its disclosure");

/* Namespace of a released observation. */
typedef enum zn_space {
    ZN_SPACE_NONE,
    ZN_SPACE_NAME,
    ZN_SPACE_DNS,      /* names of DNS that count apart */
    ZN_SPACE_ATTRIBUTE /* this value plus the zn_attribute */
} zn_space;

/* One released observation (t, f(u, t), a). */
typedef struct zn_release {
    int64_t t_ns;
    zn_addr client; /* pseudonym */
    zn_disclosure client_disclosure;
    zn_span name; /* or the text of an attribute */
    zn_name_source source;
    zn_name_level level; /* ZN_NAME_LEVEL_NONE in a run without levels */
    zn_space space;      /* ZN_SPACE_NONE in a run without attributes */
} zn_release;

#endif
