/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacement of a client's DTLS datagram (RFC 6347 4, RFC 9147 4) with fragments of a ClientHello.
 *
 * The datagram has the handshake records in the clear at its start, up to the first other byte, or
 * to the first fragment of a hello that may not be shown:
 *   - type, version and length of a record, and the last two bytes of its sequence number;
 *   - type, length and number of the message, and offset and length of the fragment;
 *   - the fragment's part of the replacement of the hello (zn_build_client_hello_datagram).
 * All other bytes are zeros.
 */
#ifndef ZN_BUILD_BUILD_DTLS_H
#define ZN_BUILD_BUILD_DTLS_H

#include "util/cursor.h"

/* Replacement of the body of a ClientHello. */
typedef struct zn_build_dtls_hello {
    uint16_t message; /* number of the message */
    zn_span body;
} zn_build_dtls_hello;

/* Builds the datagram with n hellos into out[datagram.n], which is all zeros. A fragment belongs to
 * the first hello with the number and the length of its message. Returns false, and writes nothing,
 * if the datagram does not begin with a fragment of a hello. */
bool zn_build_dtls_datagram(zn_span datagram, const zn_build_dtls_hello *hellos, size_t n,
                            uint8_t *out);

#endif
