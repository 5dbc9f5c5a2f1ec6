/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in anonymized packets for the handshakes of TLS (RFC 8446, RFC 5246), DTLS and QUIC.
 *
 * Written of a ClientHello:
 *   always       headers of records; the handshake message's type and length; server_name with its
 *                name: in lower case, where choice->name says so and zn_build_name_allowed, or else
 *                masked.
 *   fingerprint  legacy_version, cipher suites, compression methods, types of extensions; supported
 *                groups, signature algorithms (also of certificates and delegated credentials),
 *                supported versions, point formats, PSK modes, certificate types and compression,
 *                record and fragment sizes, heartbeat mode, SRTP profiles, ALPN, ALPS and NPN,
 *                types of status requests, groups of key shares, ids and lengths of QUIC transport
 *                parameters; and all lengths: of the session ID, the cookie (DTLS), lists and
 *                extensions, and inside these. A name of server_name that is of another type than
 *                host_name is zeros of type 255. A name of ALPN that IANA has not registered is as
 *                many 'x'. GREASE values become the values of a fixed pattern, because a
 *                client draws them.
 *   without it   a plain hello (build/build_plain_hello.h) with server_name and one padding
 *                extension. Two hellos of one length and one name become the same.
 * So the random, session IDs, key shares, tickets, identities, binders, cookies, ECH, values of
 * transport parameters, padding and data of extensions that are not listed are zeros. So are the
 * data of a listed extension that does not parse.
 */
#ifndef ZN_BUILD_BUILD_TLS_H
#define ZN_BUILD_BUILD_TLS_H

#include "build/build.h"
#include "proto/tls.h"

/*
 * Builds the ClientHello in the records at the start of a client's stream, which
 * zn_tls_client_hello reads; bytes behind it stay zero. out[records.n] is all zeros. Returns false,
 * and writes nothing, where there is no whole ClientHello.
 */
bool zn_build_client_hello(zn_span records, const zn_build_choice *choice, zn_tls_scratch *scratch,
                           uint8_t *out);
/* The same for handshake messages without records, as QUIC's CRYPTO stream has them. */
bool zn_build_client_hello_message(zn_span message, const zn_build_choice *choice, uint8_t *out);
/* The same for the whole body of a DTLS ClientHello, put together from its fragments. */
bool zn_build_client_hello_datagram(zn_span body, const zn_build_choice *choice, uint8_t *out);

#define ZN_BUILD_FINGERPRINT_MAX 1024 /* those of browsers have some 200 bytes */

/*
 * The bytes that identify a fingerprint: all that choice->fingerprint discloses, in the order in
 * which it was sent. Two hellos that have the same differ, when they are built with it, in lengths
 * and names only.
 */
typedef struct zn_build_fingerprint {
    size_t n;
    uint8_t bytes[ZN_BUILD_FINGERPRINT_MAX];
} zn_build_fingerprint;

/* Reads the fingerprint of a ClientHello, in each of the three forms. Returns false where there is
 * no whole ClientHello, and where its fingerprint is too long: then it must not be disclosed. */
bool zn_build_tls_fingerprint(zn_span records, zn_tls_scratch *scratch, zn_build_fingerprint *out);
bool zn_build_tls_fingerprint_message(zn_span message, zn_build_fingerprint *out);
bool zn_build_tls_fingerprint_datagram(zn_span body, zn_build_fingerprint *out);

/* Synthetic certificates that were built, with the name that was given and without one. */
typedef struct zn_build_certificates {
    uint32_t named, unnamed;
} zn_build_certificates;

/*
 * Builds the records at the start of a server's stream, and sets *made. Written are:
 *   headers of records, as far as they are there: the rest behind something else stays zero;
 *   in handshake records before the first ChangeCipherSpec, and behind it where it follows a
 *   HelloRetryRequest, up to ZN_TLS_HELLO_MAX bytes: the types and lengths of messages;
 *   of a ServerHello: version, cipher suite, compression, the lengths, types of extensions, the
 *   selected version, group, ALPN (as above) and point formats, sizes, and lengths of key shares,
 *   cookies, certificate timestamps and renegotiation_info; the random of a HelloRetryRequest,
 *   which is a constant;
 *   of a Certificate (up to TLS 1.2; later ones are encrypted): lengths, and in the place of each
 *   certificate a synthetic one (build/build_x509.h), the first with `common_name`, unless that is
 *   empty, or too long for it;
 *   the constant byte of a ChangeCipherSpec.
 * A ServerHello or a certificate that is not whole is zeros. out[records.n] is all zeros. Returns
 * false, and writes nothing, where no header of a record is there.
 */
bool zn_build_server_flight(zn_span records, zn_span common_name, zn_tls_scratch *scratch,
                            uint8_t *out, zn_build_certificates *made);

#endif
