/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Cipher suites of TLS: which one a server chose, and whether a suite encrypts. */
#ifndef ZN_PROTO_TLS_SUITE_H
#define ZN_PROTO_TLS_SUITE_H

#include "util/cursor.h"

/* Properties of the records after a ServerHello (RFC 8446 4.1.3, RFC 5246 7.4.1.3). */
typedef struct zn_tls_choice {
    uint16_t suite;
    bool version_1_3;
    size_t message_bytes; /* of the ServerHello, with its header */
} zn_tls_choice;

/* Reads the whole ServerHello at the start of the handshake messages. Returns ZN_DONE with *out,
 * ZN_NEED_MORE, ZN_MALFORMED, or ZN_OTHER if another message is at the start. */
zn_parse zn_tls_server_choice(zn_span handshake, zn_tls_choice *out);

/* Returns true for a suite that IANA has registered and that encrypts. The suites with NULL in
 * their names, and unknown suites, do not. */
bool zn_tls_suite_encrypts(uint16_t suite);

#endif
