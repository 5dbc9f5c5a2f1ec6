/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Receiver of the messages that analyzers have read whole. */
#ifndef ZN_ANALYZER_MESSAGE_SINK_H
#define ZN_ANALYZER_MESSAGE_SINK_H

#include "analyzer/names.h"

typedef enum zn_message_kind {
    ZN_MESSAGE_TLS_HELLO,     /* a client's, in its records */
    ZN_MESSAGE_TLS_FLIGHT,    /* the start of a server's stream: its hello, maybe a certificate */
    ZN_MESSAGE_HTTP_REQUEST,  /* its head */
    ZN_MESSAGE_HTTP_RESPONSE, /* the start of a segment that begins with one */
    ZN_MESSAGE_HEADER, /* of a TLS record, or a DNS message over TCP: nothing in it is withheld */
    ZN_MESSAGE_ICMP,
    ZN_MESSAGE_ENCRYPTED,  /* payload that stays as it is */
    ZN_MESSAGE_DNS_TCP,    /* a client's, behind its length */
    ZN_MESSAGE_DNS,        /* the datagram of either side */
    ZN_MESSAGE_QUIC_HELLO, /* the client's stream of CRYPTO frames, from its start */
    ZN_MESSAGE_QUIC,       /* a datagram of either side */
    ZN_MESSAGE_DTLS_HELLO, /* the body of a client's, put together from its fragments */
    ZN_MESSAGE_DTLS        /* a datagram of the client with a part of one */
} zn_message_kind;

typedef struct zn_message {
    zn_message_kind kind;
    zn_span bytes;
    /* TCP: sequence number of the first byte. ZN_MESSAGE_DTLS_HELLO: message number */
    uint32_t seq;
    uint32_t entry; /* a certificate's name entry, 0: none */
    zn_span
        /* ZN_MESSAGE_QUIC: ID from which the connection's keys are derived; empty if unknown */
        key_id;
    /* ZN_MESSAGE_DTLS_HELLO: number of datagrams of the client from the hello's first fragment on,
     * without the datagram that completed the hello */
    uint8_t earlier;
} zn_message;

struct zn_message_sink {
    void (*take)(void *of, const zn_packet_context *s, const zn_message *message);
    void *of;
};

/* Gives a message to the sink, if there is one. Borrows its bytes for the call. */
static inline void zn_message_put(const zn_packet_context *s, const zn_message *message)
{
    const zn_message_sink *sink = s->names->sink;
    if (ZN_UNLIKELY(sink != NULL))
        sink->take(sink->of, s, message);
}

#endif
