/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS handshakes: the server name of a ClientHello (RFC 8446 4.1.2, RFC 6066 3), from the first
 * bytes a client sent, which may span several records (RFC 8446 5.1); and other details of both
 * sides: versions, application protocols, resumption, the name in the server's certificate (up to
 * TLS 1.2; later it is encrypted).
 *
 * A server name counts only when the whole ClientHello is there, so that a cut or forged tail
 * cannot change what was read; in a capture cut by its snapshot length a whole server_name
 * extension is enough. A ClientHello may have the form of SSL 2.0 (RFC 5246 E.2), which names no
 * host. The rest is for the columns of Tstat's LAYER7 set: a hello that is cut gives
 * as much as is there.
 */
#ifndef ZN_PROTO_TLS_H
#define ZN_PROTO_TLS_H

#include "util/cursor.h"

/* Types of a record (RFC 8446 5.1). */
enum {
    ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC = 20,
    ZN_TLS_CONTENT_HANDSHAKE = 22,
    ZN_TLS_CONTENT_APPLICATION_DATA = 23
};

#define ZN_TLS_V2_HEADER 0x80u /* of a first byte: a record of SSL 2.0 with two bytes of header */

#define ZN_TLS_VERSIONS 15 /* of a list; more are not kept */

/* Bits of the protocols in NPN and ALPN extensions, as Tstat numbers them. */
enum {
    ZN_NPN_EMPTY = 1,
    ZN_NPN_HTTP = 2,
    ZN_NPN_SPDY = 4,
    ZN_NPN_H2 = 8,
    ZN_ALPN_EMPTY = 16,
    ZN_ALPN_HTTP = 32,
    ZN_ALPN_SPDY = 64,
    ZN_ALPN_H2 = 128
};

typedef struct zn_tls_details {
    uint16_t version[ZN_TLS_VERSIONS]; /* of supported_versions, else the hello's own */
    uint8_t versions;                  /* how many; 0: there is no hello */
    uint8_t protocols;                 /* ZN_NPN_*, ZN_ALPN_* */
    bool session_id;                   /* not empty */
    bool pre_shared_key, early_data;   /* extensions */
    bool retry;                        /* a ServerHello that is a HelloRetryRequest */
} zn_tls_details;

#define ZN_TLS_HELLO_MAX 16384 /* longest ClientHello looked at: several times a post-quantum one */

/* Buffer for a ClientHello that spans records; one a parser thread, reused. */
typedef struct zn_tls_scratch {
    uint8_t bytes[ZN_TLS_HELLO_MAX];
} zn_tls_scratch;

typedef struct zn_tls_hello {
    zn_span name;     /* as sent; empty when there is no server_name. Borrows input or scratch. */
    bool ech_offered; /* an encrypted_client_hello extension (0xfe0d, RFC 9849) is there */
    size_t consumed;  /* bytes of the stream the hello took, with its record headers */
    zn_span cookie;   /* DTLS: the server's, sent back; borrows input */
    zn_span transport_parameters; /* QUIC: the extension's data (RFC 9001 8.2); borrows input */
    zn_span body;           /* from the version on; empty unless whole. Borrows input or scratch. */
    uint16_t ech_bytes;     /* of the encrypted_client_hello extension's data */
    zn_tls_details details; /* as zn_tls_read_details has them; none if cut or damaged */
} zn_tls_hello;

/*
 * Parses the head of a client's byte stream. `cut`: no more bytes can come, because the capture's
 * snapshot length cut them off. Returns ZN_DONE with *out; ZN_NEED_MORE; ZN_MALFORMED (also for
 * two server_name extensions or two host names: which one is meant cannot be known; and for a hello
 * longer than ZN_TLS_HELLO_MAX); or ZN_OTHER when the stream does not start with a ClientHello.
 */
zn_parse zn_tls_client_hello(zn_span head, bool cut, zn_tls_scratch *scratch, zn_tls_hello *out);
/* False where zn_tls_client_hello says ZN_OTHER by the first byte. */
static inline bool zn_tls_may_begin(zn_span head)
{
    zn_cursor c = zn_cursor_over_span(head, true);
    uint8_t first = zn_cursor_u8(&c);
    return head.n == 0 || first == ZN_TLS_CONTENT_HANDSHAKE || (first & ZN_TLS_V2_HEADER) != 0;
}

/* Parses a ClientHello as zn_tls_client_hello does, but from handshake messages without records, as
 * in QUIC's CRYPTO stream (RFC 9001 4). */
zn_parse zn_tls_bare_hello(zn_span head, zn_tls_hello *out);

/*
 * Parses the body of a DTLS ClientHello (RFC 6347 4.2.1, RFC 9147 5.3), reassembled from its
 * fragments. declared: length of the body in bytes; a shorter body was cut by the capture.
 */
zn_parse zn_tls_datagram_hello(zn_span body, size_t declared, zn_tls_hello *out);

/* ---- other details of a handshake ------------------------------------------------------------ */

/* Joins the handshake bytes of the records at the start of `head`: in `scratch`, which has room for
 * `cap` bytes, or in place if one record has them all. Borrows both. *ended is true if a record of
 * another type, or no record, follows. */
zn_span zn_tls_handshake_bytes(zn_span head, uint8_t *scratch, size_t cap, bool *ended);

/* Returns the offset in `head` of the byte `at` of the handshake bytes that its records carry;
 * head.n if the records end before. */
size_t zn_tls_handshake_offset(zn_span head, size_t at);

/* Reads the hello at the start of `handshake`, of a client or a server; out->versions is 0 if there
 * is no hello. */
void zn_tls_read_details(zn_span handshake, zn_tls_details *out);

/*
 * The first certificate of the Certificate message (RFC 5246 7.4.2) among the messages of
 * `handshake`. Returns ZN_DONE with *certificate (borrows), ZN_NEED_MORE while it may still come,
 * or ZN_OTHER when it does not.
 */
zn_parse zn_tls_first_certificate(zn_span handshake, zn_span *certificate);

/*
 * Writes the first common name of a certificate's subject (RFC 5280 4.1, in DER, X.690) to *name,
 * as sent; borrows `certificate`. The name is a UTF8String, PrintableString, IA5String or
 * TeletexString. Returns ZN_DONE, ZN_OTHER if the subject has no common name, or ZN_MALFORMED.
 */
zn_parse zn_x509_common_name(zn_span certificate, zn_span *name);

#endif
