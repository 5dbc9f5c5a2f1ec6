/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by names.c (entries, votes, evidence), names_tcp.c (bytes in order), names_read.c (what
 * they say), names_dns.c, names_udp.c, names_quic.c, names_quic_proof.c, names_agent.c and
 * names_dtls.c. */
#ifndef ZN_ANALYZER_NAMES_INTERNAL_H
#define ZN_ANALYZER_NAMES_INTERNAL_H

#include "analyzer/names.h"
#include "proto/dns.h"

/* The flow a packet belongs to, and what is known of it. */
typedef struct zn_packet_context {
    zn_names *names;
    uint32_t flow;
    zn_flow *f;
    const zn_packet *p;
} zn_packet_context;

/* A parser read what may have a name, `raw` (as sent; empty: it has none): normalises it and votes,
 * or waits for evidence. Returns the entry, or 0 when nothing is to be kept (repeated, no name, no
 * room). */
uint32_t zn_names_observed(const zn_packet_context *s, zn_name_source source, zn_span raw);
/* A name of this source was there, but must not be used: counted as `why`. */
void zn_names_rejected(zn_names *names, zn_flow *f, zn_name_source source, zn_stat why);
/* The evidence for one waiting name is complete with this packet. */
void zn_names_confirmed(const zn_packet_context *s, uint32_t entry);
/* The flow's user is proven real by this packet: votes for the server's address. */
void zn_names_addr(const zn_packet_context *s);

/* Evidence, complete with this packet, that the client is real: votes for the server's address and
 * the waiting name `entry` (0: none). Only its own: another of the flow may be forged. */
void zn_names_client_proven(const zn_packet_context *s, uint32_t entry);
/* The packet shows its sender to be the client, which the other side was taken for. False when that
 * one showed itself to be it, by a name or what proves a client, or the flow has no user now. */
bool zn_names_swap_client(const zn_packet_context *s);
/* Whether there is a stream to collect the flow's head in; counted where there is none left. */
bool zn_names_has_stream(const zn_packet_context *s);
/* Forgets what was collected of the flow's head. */
void zn_names_drop_stream(zn_names *names, zn_flow *f);

/* A second ClientHello of the flow, after a HelloRetryRequest, names `raw`: it must be what the
 * first one named. */
void zn_names_named_again(const zn_packet_context *s, zn_name_source source, zn_span raw);
/* A DNS query's question. */
void zn_names_question(const zn_packet_context *s, const zn_dns_question *q);

/* What comes behind a piece of the client's stream. */
typedef enum zn_segment_end {
    ZN_SEGMENT_OPEN, /* more may come */
    ZN_SEGMENT_CUT,  /* nothing that was captured */
    ZN_SEGMENT_HOLE  /* bytes that were not captured, and then others */
} zn_segment_end;

/* Bytes of the client at a known place of its stream. */
typedef struct zn_segment {
    zn_span bytes;
    uint32_t seq;
    uint32_t missing; /* bytes that the snapshot length cut off behind them */
    zn_segment_end end;
    bool after_hole; /* it may begin with the rest of what was lost */
} zn_segment;

/*
 * Reads what starts at the piece's start, as f->head expects it, and sets f->head to what can
 * follow. ZN_DONE: the next thing starts *used bytes further on, which may be behind the piece's
 * end. ZN_NEED_MORE: it is not whole. ZN_OTHER: it is nothing that is read. ZN_MALFORMED: f->head
 * is off.
 */
zn_parse zn_names_read(const zn_packet_context *s, const zn_segment *in, uint32_t *used);
/* The thing that f->head is in the middle of is given up and counts as suppressed. */
void zn_names_give_up(const zn_packet_context *s, zn_stat why);
/* The next bytes were not captured; `end` tells whether others come behind them. What f->head is in
 * the middle of is given up, and f->head set to what can still be read. */
void zn_names_lost(const zn_packet_context *s, zn_segment_end end);
/* Frees what reading has taken. */
void zn_names_read_end(zn_names *names, zn_flow *f);

void zn_names_tcp(const zn_packet_context *s);
/* The flow closed: a hello or request head that never became whole. `s->p` has the time of the
 * client's last bytes, and none. */
void zn_names_tcp_closed(const zn_packet_context *s);
void zn_names_udp(const zn_packet_context *s);

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
static inline zn_quic_id zn_quic_id_from(zn_span bytes)
{
    zn_quic_id id = {(uint8_t)bytes.n, {0}};
    if (bytes.n != 0)
        memcpy(id.byte, bytes.p, bytes.n);
    return id;
}

#define ZN_QUIC_OWN_IDS 8
/* What is known of the connection in a QUIC flow; names_quic.c tells how it is used. */
typedef struct zn_quic_state {
    uint32_t version;                /* of the client's packets */
    uint32_t name;                   /* the name entry of this connection, 0: none */
    uint64_t answered_before;        /* bytes of the server when it began */
    zn_quic_keys keys;               /* the client's */
    zn_quic_secret server_secret;    /* what the server's come from */
    zn_quic_id first;                /* the ID that both come from */
    zn_quic_id client;               /* the client's own */
    zn_quic_id server;               /* the ID the server chose */
    zn_quic_id retry;                /* the ID of the server's Retry */
    zn_quic_id own[ZN_QUIC_OWN_IDS]; /* IDs of the client's making, of all the flow's connections */
    uint8_t owns;                    /* how many; one more than there is room for: too many */
    uint8_t initials;                /* how many were tried since the connection began */
    uint8_t connections;             /* how many began in this flow */
    uint8_t answers;                 /* server's packets tried for its ID */
    bool opened : 1;                 /* an Initial authenticated */
    bool done : 1;                   /* the hello was read, or given up */
    bool foreign : 1;                /* packets of a version that is not read */
    bool server_known : 1;           /* `server` means something */
    bool retried : 1;                /* `retry` means something, and no Initial used it yet */
    bool guessable : 1;              /* who has not seen the server's packets may know `server` */
    bool addressed : 1;              /* the client sent a packet to `server` */
    bool agent_waits : 1;            /* facts.agent is this connection's */
    zn_quic_facts facts;             /* of all the flow's connections */
} zn_quic_state;

typedef struct zn_dtls_state {
    zn_id cookie;     /* identity of the server's cookie */
    uint32_t length;  /* of the hello in progress */
    uint32_t before;  /* length of the one before, 0: there was none */
    uint16_t message; /* its number, or that of the last one read */
    uint16_t message_before;
    uint8_t hellos; /* how many were begun */
    bool collecting : 1;
    bool cookie_known : 1;
} zn_dtls_state;

/* zn_names.datagrams */
typedef struct zn_datagram_state {
    uint32_t link; /* the slab's, while free */
    union {
        zn_quic_state quic;
        zn_dtls_state dtls;
    };
} zn_datagram_state;

static inline zn_datagram_state *zn_names_datagram(const zn_names *names, const zn_flow *f)
{
    return zn_slab_at(&names->datagrams, f->datagram);
}

/* Takes a state for a flow recognised as `protocol`, whose names come from `source`. False when
 * there is no room: whatever the flow exposes is then suppressed. */
bool zn_names_open_datagram(const zn_packet_context *s, uint8_t protocol, zn_name_source source);

/* A client's datagram that is not read: what it holds may come back as an answer. */
void zn_names_udp_unsupported(const zn_packet_context *s);
/* A datagram that anybody may have sent. */
void zn_names_udp_disregard(const zn_packet_context *s);
/* Whether an echo of the datagram would tell a server's ID, or its cookie. */
bool zn_names_quic_may_answer(const zn_packet_context *s);
bool zn_names_dtls_may_answer(const zn_packet_context *s);

/* Looks at a packet of a flow that is not recognised yet; false when it is no QUIC, no DTLS. */
bool zn_names_quic_begins(const zn_packet_context *s);
bool zn_names_dtls_begins(const zn_packet_context *s);
/* A packet of a recognised flow. */
void zn_names_quic(const zn_packet_context *s);
void zn_names_dtls(const zn_packet_context *s);

/* names_quic_proof.c: a packet of the client; one that may be addressed to the server's ID, of
 * which nothing is concluded when it is 0-RTT, and of an empty ID only where the client has the
 * server's handshake keys; one of the server; and what follows from a datagram. */
void zn_names_quic_sent(const zn_packet_context *s, const zn_quic_packet *packet);
void zn_names_quic_addressed(zn_quic_state *q, const zn_quic_packet *packet);
void zn_names_quic_answered(const zn_packet_context *s, const zn_quic_packet *packet);
void zn_names_quic_conclude(const zn_packet_context *s);
/* A datagram of a recognised flow that anybody may have sent: no bytes of the server's, and the
 * client's may come back as an answer. */
void zn_names_quic_disregard(const zn_packet_context *s);

/* names_agent.c: a packet, a whole hello, and the evidence that its client is real. */
void zn_names_quic_note(zn_quic_state *q, const zn_quic_packet *packet, bool from_client);
void zn_names_quic_hello(const zn_packet_context *s, const zn_tls_hello *hello);
void zn_names_quic_agent(const zn_packet_context *s);

/* The flow closed: a hello that never became whole. */
void zn_names_quic_closed(zn_names *names, zn_flow *f);
void zn_names_dtls_closed(zn_names *names, zn_flow *f);
/* The same for any flow. */
void zn_names_udp_closed(zn_names *names, zn_flow *f);

#endif
