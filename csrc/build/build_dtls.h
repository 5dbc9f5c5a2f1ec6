/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in anonymized packets for a client's datagram of DTLS (RFC 6347 4, RFC 9147 4) that
 * has fragments of a ClientHello.
 *
 * Written are, from the datagram's start on, the handshake records in clear that hold nothing else:
 * type, version and length of a record, the last two bytes of its sequence number; type, length and
 * number of the message, offset and length of the fragment; and the fragment's part of what stands
 * for the hello (zn_build_client_hello_datagram). From the first byte of anything else on, and from
 * a fragment of a hello that may not be shown, all is zeros.
 */
#ifndef ZN_BUILD_BUILD_DTLS_H
#define ZN_BUILD_BUILD_DTLS_H

#include "util/cursor.h"

/* What stands for the body of a hello. */
typedef struct zn_build_dtls_hello {
    uint16_t message; /* its number */
    zn_span body;
} zn_build_dtls_hello;

/* Builds the datagram with `n` hellos: a fragment is of the first one that has its message's number
 * and length. out[datagram.n] is all zeros. Returns false, and writes nothing, where it does not
 * begin with a fragment of one of them. */
bool zn_build_dtls_datagram(zn_span datagram, const zn_build_dtls_hello *hellos, size_t n,
                            uint8_t *out);

#endif
