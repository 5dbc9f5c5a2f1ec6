/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of analyzers in a flow: the layout of the bytes that flow/ reserves for them. All of it
 * is zero when a flow opens.
 */
#ifndef ZN_ANALYZER_FLOW_STATE_H
#define ZN_ANALYZER_FLOW_STATE_H

#include "flow/flow.h"

/* In the flow's first cache line, which each of its packets touches. */
typedef struct __attribute__((packed, may_alias)) zn_flow_state {
    uint32_t stream;         /* the client's bytes being collected, 0: none */
    uint8_t parse;           /* analyzer/parse_state */
    uint8_t parse_tries : 4; /* analyzer/tcp_stream: segments that it has searched */
    uint8_t service : 4;     /* analyzer/service: state of the search for the service */
    uint8_t addr_vote : 3;   /* release/gate's decision on the server address */
    uint8_t protocol : 5;    /* zn_analyzer_id of the flow's protocol, if recognised */
} zn_flow_state;
_Static_assert(sizeof(zn_flow_state) == ZN_FLOW_STATE_BYTES, "it fills what flow/ reserves");
_Static_assert(offsetof(zn_flow, state) % sizeof(uint32_t) == 0, "the stream is a word");

/* State of the bytes that a flow's client sent: whether they may name a host (analyzer/unread). */
typedef enum zn_client_bytes {
    ZN_CLIENT_SILENT,   /* no sign of bytes */
    ZN_CLIENT_OPEN,     /* signs of bytes that no analyzer has judged yet */
    ZN_CLIENT_NAMELESS, /* bytes read from the first byte on, which name no host */
    ZN_CLIENT_UNREAD    /* bytes that may name a host and cannot be read */
} zn_client_bytes;

/* In the rest of the flow. */
typedef struct __attribute__((may_alias)) zn_flow_facts {
    uint32_t names;        /* first name entry, 0: none */
    uint16_t header_table; /* analyzer/http2: header table of the connection, or 0 */
    uint8_t http_method : 6;
    uint8_t client_bytes : 2;   /* zn_client_bytes */
    bool server_was_client : 1; /* release/gate: in an epoch whose clients are forgotten */
    bool server_is_queried : 1; /* release/gate_remote: no answer yet to whether it was a client */
    bool record_is_queried : 1; /* release/gate_remote: flow closed; its record waits for answers */
    bool ech_offered : 1;
    bool missed : 1;        /* bytes that may hold a name were passed over */
    bool client_marked : 1; /* analyzer/names: the vote that marks the client was cast */
    bool switches : 1;      /* analyzer/http: the last request makes way for another protocol */
} zn_flow_facts;
_Static_assert(sizeof(zn_flow_facts) == ZN_FLOW_FACTS_BYTES, "they fill what flow/ reserves");

#define ZN_LAYER7_VERSIONS 15 /* kept of a ClientHello's list: as many as Tstat prints */

/* In a zn_flow_layer7; the members before last_handshake_ns lie in its first cache line. */
typedef struct __attribute__((may_alias)) zn_layer7_state {
    int64_t appdata_ns[2];   /* by tuple index, as each pair here; 0: none */
    uint32_t certificate;    /* name entry of the server certificate's name, 0: none */
    uint32_t server_seq;     /* where the server's hello starts */
    uint32_t stream;         /* its bytes from there, being collected; 0: none */
    uint16_t server_version; /* 0: no ServerHello */
    uint8_t state;           /* analyzer/layer7's */
    uint8_t segments;        /* segments put into `stream` */
    uint8_t version_count;
    uint8_t alpn[2];
    uint8_t session; /* bits of Tstat's tls_session_stat */
    char http_status[3];

    int64_t last_handshake_ns[2];
    uint32_t appdata_seq[2]; /* from the ISN, of the segment that began with application data */
    uint32_t http_requests, http_responses;
    uint16_t versions[ZN_LAYER7_VERSIONS];
} zn_layer7_state;
_Static_assert(sizeof(zn_layer7_state) <= ZN_FLOW_LAYER7_BYTES, "it fits what flow/ reserves");
_Static_assert(offsetof(zn_flow_layer7, state) + offsetof(zn_layer7_state, last_handshake_ns) == 64,
               "what packets after the handshake touch is in the first cache line");

static inline zn_flow_state *zn_flow_state_write(zn_flow *f)
{
    return (zn_flow_state *)(void *)f->state;
}

static inline const zn_flow_state *zn_flow_state_read(const zn_flow *f)
{
    return (const zn_flow_state *)(const void *)f->state;
}

static inline zn_flow_facts *zn_flow_facts_write(zn_flow *f)
{
    return (zn_flow_facts *)(void *)f->facts;
}

static inline const zn_flow_facts *zn_flow_facts_read(const zn_flow *f)
{
    return (const zn_flow_facts *)(const void *)f->facts;
}

static inline zn_layer7_state *zn_layer7_state_write(zn_flow_layer7 *l)
{
    return (zn_layer7_state *)(void *)l->state;
}

static inline const zn_layer7_state *zn_layer7_state_read(const zn_flow_layer7 *l)
{
    return (const zn_layer7_state *)(const void *)l->state;
}

/* The state and the facts of a flow `f`; the analyzers' part of its zn_flow_layer7 `l`. */
#define ZN_STATE(f)                                                                                \
    _Generic((f), zn_flow *: zn_flow_state_write, const zn_flow *: zn_flow_state_read)(f)
#define ZN_FACTS(f)                                                                                \
    _Generic((f), zn_flow *: zn_flow_facts_write, const zn_flow *: zn_flow_facts_read)(f)
#define ZN_LAYER7(l)                                                                               \
    _Generic((l),                                                                                  \
        zn_flow_layer7 *: zn_layer7_state_write,                                                   \
        const zn_flow_layer7 *: zn_layer7_state_read)(l)

#endif
