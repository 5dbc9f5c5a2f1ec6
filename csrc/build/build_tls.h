/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshakes of TLS (RFC 8446, RFC 5246), DTLS and QUIC in anonymized packets.
 *
 * A ClientHello has these fields:
 *   always       headers of records, with the minor version 4 in place of one that no protocol has;
 *                type and length of the handshake message; server_name with its name in lower case
 *                if choice->name is true and zn_build_name_allowed returns true, or else with its
 *                mask.
 *   fingerprint  legacy_version, cipher suites, compression methods, types of extensions; supported
 *                groups, signature algorithms (also of certificates and delegated credentials),
 *                supported versions, point formats, PSK modes, certificate types and compression,
 *                record and fragment sizes, heartbeat mode, SRTP profiles, ALPN, ALPS and NPN,
 *                types of status requests, groups of key shares, ids and lengths of QUIC transport
 *                parameters; and all lengths: of the session ID, the cookie (DTLS), lists and
 *                extensions, and inside lists and extensions. If the type of a name in server_name
 *                is not host_name, zeros of type 255 replace the name. An ALPN name that IANA has
 *                not registered becomes 'x' of the same length. GREASE values become the values of
 *                a fixed pattern, because a client draws them at random.
 *   without it   a plain hello (build/build_plain_hello.h) with server_name and one padding
 *                extension. Two hellos with the same length and the same name become equal.
 * All other fields are zeros: the random, session IDs, key shares, tickets, identities, binders,
 * cookies, ECH, values of transport parameters, padding, and data of extensions that are not
 * listed. The data of a listed extension that does not parse are zeros, too.
 */
#ifndef ZN_BUILD_BUILD_TLS_H
#define ZN_BUILD_BUILD_TLS_H

#include "build/build.h"
#include "proto/tls.h"

/*
 * Builds the ClientHello in the records at the start of a client's stream, which
 * zn_tls_client_hello reads, into out[records.n], which is all zeros. Bytes behind the hello stay
 * zeros. Returns false, and writes nothing, if there is no whole ClientHello.
 */
bool zn_build_client_hello(zn_span records, const zn_build_choice *choice, zn_tls_scratch *scratch,
                           uint8_t *out);
/* Builds the ClientHello in handshake messages without records, as in a CRYPTO stream of QUIC. */
bool zn_build_client_hello_message(zn_span message, const zn_build_choice *choice, uint8_t *out);
/* Builds the body of a DTLS ClientHello that was reassembled from its fragments. */
bool zn_build_client_hello_datagram(zn_span body, const zn_build_choice *choice, uint8_t *out);

#define ZN_BUILD_FINGERPRINT_MAX 1024 /* fingerprints of browsers have about 200 bytes */

/*
 * Bytes that identify a fingerprint: everything that choice->fingerprint discloses, in the order in
 * which it was sent. Two built hellos with the same fingerprint differ only in lengths and names.
 */
typedef struct zn_build_fingerprint {
    size_t n;
    uint8_t bytes[ZN_BUILD_FINGERPRINT_MAX];
} zn_build_fingerprint;

/* Reads the fingerprint of a ClientHello in one of the three forms. Returns false if there is no
 * whole ClientHello, or if its fingerprint is too long and must not be disclosed. */
bool zn_build_tls_fingerprint(zn_span records, zn_tls_scratch *scratch, zn_build_fingerprint *out);
bool zn_build_tls_fingerprint_message(zn_span message, zn_build_fingerprint *out);
bool zn_build_tls_fingerprint_datagram(zn_span body, zn_build_fingerprint *out);

/* Numbers of synthetic certificates that were built, with the given name and without a name. */
typedef struct zn_build_certificates {
    uint32_t named, unnamed;
} zn_build_certificates;

/*
 * Builds the records at the start of a server's stream into out[records.n], which is all zeros, and
 * sets *made. The stream has these fields:
 *   - headers of records, up to the first bytes that are not a record;
 *   - types and lengths of messages, in handshake records before the first ChangeCipherSpec, or
 *     behind it if it follows a HelloRetryRequest, in up to ZN_TLS_HELLO_MAX bytes;
 *   - ServerHello: version, cipher suite, compression, lengths, types of extensions, the selected
 *     version, group, ALPN (as in a ClientHello) and point formats, sizes, and lengths of key
 *     shares, cookies, certificate timestamps and renegotiation_info; the random of a
 *     HelloRetryRequest, which is a constant;
 *   - Certificate (up to TLS 1.2, as later versions encrypt it): lengths, and a synthetic
 *     certificate (build/build_x509.h) in place of each certificate. The first of them has
 *     `common_name`, unless the name is empty or too long for it;
 *   - the constant byte of a ChangeCipherSpec.
 * A ServerHello or a certificate that is not whole is zeros. Returns false, and writes nothing, if
 * there is no header of a record.
 */
bool zn_build_server_flight(zn_span records, zn_span common_name, zn_tls_scratch *scratch,
                            uint8_t *out, zn_build_certificates *made);

#endif
