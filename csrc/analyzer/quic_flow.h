/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* State of QUIC flows and of their connections, which quic_analyzer.c and quic_evidence.c share. */
#ifndef ZN_ANALYZER_QUIC_FLOW_H
#define ZN_ANALYZER_QUIC_FLOW_H

#include "analyzer/analyzers.h"
#include "analyzer/quic_analyzer.h"
#include "proto/quic_crypto.h"

#define ZN_QUIC_EARLY_SLOTS 1024u /* early answers that are kept at a time, one a flow */
#define ZN_QUIC_EARLY_BYTES 1472u /* of an early answer: what an Ethernet frame holds */

/* A connection ID, copied. */
typedef struct zn_quic_id {
    uint8_t n;
    uint8_t byte[ZN_QUIC_ID_MAX];
} zn_quic_id;

static inline zn_span zn_quic_id_span(const zn_quic_id *id)
{
    return (zn_span){id->byte, id->n};
}

static inline bool zn_quic_is_id(const zn_quic_id *id, zn_span bytes)
{
    return zn_span_equal(zn_quic_id_span(id), bytes);
}

/* bytes.n is at most ZN_QUIC_ID_MAX: the parser takes no longer ID. */
static inline zn_quic_id zn_quic_copy_id(zn_span bytes)
{
    zn_quic_id id = {(uint8_t)bytes.n, {0}};
    if (bytes.n != 0)
        memcpy(id.byte, bytes.p, bytes.n);
    return id;
}

#define ZN_QUIC_OWN_IDS 8
/* The part of a flow's state that its connections share. */
typedef struct zn_quic_shared {
    zn_quic_id own[ZN_QUIC_OWN_IDS]; /* IDs of the client's making */
    uint8_t owns;                    /* how many; ZN_QUIC_OWN_IDS + 1: too many */
    uint8_t connections;             /* how many began in this flow */
    uint32_t paused; /* first paused connection, 0: none; in a paused connection the next */
    zn_quic_facts facts;
} zn_quic_shared;

/* The state of a flow and of its current connection, or of a paused connection. */
typedef struct zn_quic_flow {
    uint32_t link;                /* the slab's, while free */
    uint32_t version;             /* of the client's packets */
    uint32_t name;                /* the name entry of this connection, 0: none */
    uint64_t answered_before;     /* bytes that the server sent before it began */
    zn_quic_keys keys;            /* the client's */
    zn_quic_secret server_secret; /* makes the server's keys */
    zn_quic_id first;             /* the ID that makes both */
    zn_quic_id client;            /* the client's own */
    zn_quic_id server;            /* the ID the server chose */
    zn_quic_id retry;             /* the ID of the server's Retry */
    zn_quic_id early_id;    /* the last ID that the client addressed before the server chose one */
    zn_quic_id early_start; /* the same behind a short header, and the bytes that follow it */
    int64_t early_id_ns, early_start_ns; /* the times of these packets */
    zn_quic_shared shared;
    uint32_t stream;       /* paused: the connection's zn_flow_state.stream */
    uint8_t initials;      /* how many were tried since the connection began */
    uint8_t answers;       /* server's packets tried for its ID */
    bool proven : 1;       /* paused: the connection's zn_flow.client_acked */
    bool opened : 1;       /* an Initial authenticated */
    bool done : 1;         /* the hello was read or abandoned */
    bool foreign : 1;      /* packets of a version that is not read */
    bool server_known : 1; /* `server` is set */
    bool retried : 1;      /* `retry` is set, and no Initial used it yet */
    bool guessable : 1;    /* `server` may be known without the server's packets */
    bool addressed : 1;    /* the client sent a packet to `server` */
    bool agent_waits : 1;  /* facts.agent is this connection's */
    bool attributes : 1;   /* the flow's attributes are this connection's */
} zn_quic_flow;

/* A datagram that came before all of the other side: an answer that no key opens yet. */
typedef struct zn_quic_early {
    int64_t t_ns;
    int64_t opened_ns; /* zn_flow.first_ns: other flows may have had the number */
    uint32_t flow;     /* 0: the slot is free */
    uint16_t n;
    uint8_t sender; /* tuple index */
    uint8_t bytes[ZN_QUIC_EARLY_BYTES];
} zn_quic_early;

/* The state for all flows. */
typedef struct zn_quic_tools {
    zn_quic *crypto;
    zn_quic_early *early;         /* ZN_QUIC_EARLY_SLOTS of them, by the flow's number */
    zn_slab paused;               /* of zn_quic_flow */
    zn_quic_crypto_frames frames; /* of the Initial at hand */
} zn_quic_tools;

static inline zn_quic_tools *zn_quic_tools_of(const zn_packet_context *s)
{
    return zn_analyzer_state(s);
}

static inline zn_quic *zn_quic_crypto_of(const zn_packet_context *s)
{
    return zn_quic_tools_of(s)->crypto;
}

static inline zn_quic_flow *zn_quic_flow_of(const zn_packet_context *s)
{
    return zn_names_datagram(s->names, s->f);
}

#endif
