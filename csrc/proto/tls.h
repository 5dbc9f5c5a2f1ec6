/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server name of a TLS ClientHello (RFC 8446 4.1.2, RFC 6066 3), from the first bytes a client
 * sent. The handshake message may span several records (RFC 8446 5.1).
 *
 * A name counts only when the whole ClientHello is there, so that a cut or forged tail cannot
 * change what was read; in a capture cut by its snapshot length a whole server_name extension is
 * enough.
 */
#ifndef ZN_PROTO_TLS_H
#define ZN_PROTO_TLS_H

#include "proto/tls_handshake.h"
#include "util/cursor.h"

#define ZN_TLS_HELLO_MAX 16384 /* longest ClientHello looked at: several times a post-quantum one */

/* Buffer for a ClientHello that spans records; one a parser thread, reused. */
typedef struct zn_tls_scratch {
    uint8_t bytes[ZN_TLS_HELLO_MAX];
} zn_tls_scratch;

typedef struct zn_tls_hello {
    zn_span name;     /* as sent; empty when there is no server_name. Borrows input or scratch. */
    bool ech_offered; /* an encrypted_client_hello extension (0xfe0d, RFC 9849) is there */
    size_t consumed;  /* bytes of the stream the hello took, with its record headers */
    zn_span cookie;   /* DTLS: what the server asked to be sent back; borrows input */
    zn_span transport_parameters; /* QUIC: the extension's data (RFC 9001 8.2); borrows input */
    uint16_t ech_bytes;           /* of the encrypted_client_hello extension's data */
    zn_tls_details details;       /* as zn_tls_read_details has them; none of a hello that is cut */
} zn_tls_hello;

/*
 * Parses the head of a client's byte stream. `cut`: no more bytes can come, because the capture's
 * snapshot length cut them off. Returns ZN_DONE with *out; ZN_NEED_MORE; ZN_MALFORMED (also for
 * two server_name extensions or two host names: which one is meant cannot be told; and for a hello
 * longer than ZN_TLS_HELLO_MAX); or ZN_OTHER when the stream does not start with a ClientHello.
 */
zn_parse zn_tls_client_hello(zn_span head, bool cut, zn_tls_scratch *scratch, zn_tls_hello *out);
/* False where zn_tls_client_hello says ZN_OTHER by the first byte. */
static inline bool zn_tls_may_begin(zn_span head)
{
    zn_cursor c = zn_cursor_over_span(head, true);
    return head.n == 0 || zn_cursor_u8(&c) == ZN_TLS_CONTENT_HANDSHAKE;
}

/* The same for handshake messages without records, as QUIC's CRYPTO stream has them (RFC 9001
 * 4). */
zn_parse zn_tls_bare_hello(zn_span head, zn_tls_hello *out);

/*
 * The same for the body of a DTLS ClientHello (RFC 6347 4.2.1, RFC 9147 5.3), put together from its
 * fragments. `declared`: its length in bytes; a shorter body is one that the capture cut.
 */
zn_parse zn_tls_datagram_hello(zn_span body, size_t declared, zn_tls_hello *out);

#endif
