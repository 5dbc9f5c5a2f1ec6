/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a TLS handshake shows beside the server name: versions, application protocols, resumption,
 * and the name in the server's certificate (up to TLS 1.2; later it is encrypted). For the columns
 * of Tstat's LAYER7 set, so a hello that is cut gives what is there of it.
 */
#ifndef ZN_PROTO_TLS_HANDSHAKE_H
#define ZN_PROTO_TLS_HANDSHAKE_H

#include "util/cursor.h"

/* Types of a record (RFC 8446 5.1). */
enum {
    ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC = 20,
    ZN_TLS_CONTENT_HANDSHAKE = 22,
    ZN_TLS_CONTENT_APPLICATION_DATA = 23
};

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

/* Puts the handshake bytes of the records at the start of `head` one behind the other: in
 * `scratch`, which has room for `cap` bytes, or those of a single record where they are. Borrows
 * both. *ended: a record of another type, or none, follows. */
zn_span zn_tls_handshake_bytes(zn_span head, uint8_t *scratch, size_t cap, bool *ended);

/* The hello at the start of `handshake`, a client's or a server's. */
void zn_tls_read_details(zn_span handshake, zn_tls_details *out);

/* The extensions that tell something of it, and NPN, which was never more than a draft. */
enum {
    ZN_TLS_ALPN = 16,
    ZN_TLS_PRE_SHARED_KEY = 41,
    ZN_TLS_EARLY_DATA = 42,
    ZN_TLS_SUPPORTED_VERSIONS = 43,
    ZN_TLS_NPN = 0x3374
};
/* Adds what the data of one of them tell. */
void zn_tls_read_extension(uint16_t type, zn_cursor *data, bool client, zn_tls_details *out);

/*
 * The first certificate of the Certificate message (RFC 5246 7.4.2) among the messages of
 * `handshake`. Returns ZN_DONE with *certificate (borrows), ZN_NEED_MORE while it may still come,
 * or ZN_OTHER when it does not.
 */
zn_parse zn_tls_first_certificate(zn_span handshake, zn_span *certificate);

#endif
