/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Where analyzers put the messages that they have read whole, for those who need their bytes. */
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
    uint32_t seq;   /* TCP: of the first byte; ZN_MESSAGE_DTLS_HELLO: the number */
    uint32_t entry; /* a certificate's name entry, 0: none */
    zn_span
        key_id; /* ZN_MESSAGE_QUIC: the ID that the connection's keys come from; empty: not known */
    /* ZN_MESSAGE_DTLS_HELLO: the client's datagrams from its first fragment on, but for the one
     * that completed it */
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
