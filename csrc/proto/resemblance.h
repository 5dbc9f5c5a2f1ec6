/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests for first messages that no parser reads, but that look like a message of a protocol that
 * names hosts: another version, a damaged or unusual form, or a message from the middle of a
 * connection. A server may accept what a parser refuses, so such a message may name a host.
 */
#ifndef ZN_PROTO_RESEMBLANCE_H
#define ZN_PROTO_RESEMBLANCE_H

#include "util/cursor.h"

/* Returns true if a TCP segment starts like a TLS record of any version and type (RFC 8446 5.1), or
 * like a request of HTTP/1.x whose method, target or version is unusual or missing (RFC 9112 3). */
bool zn_resembles_tcp_message(zn_span bytes);
/* Returns true if a segment starts with a request line of SIP, RTSP or ICAP, which have HTTP's
 * syntax (RFC 3261 7.1, RFC 7826 4.2, RFC 3507 4.3.2); or with a line that is cut, or longer than
 * what is looked at, and whose target is such a protocol's. */
bool zn_resembles_other_request(zn_span bytes);
/* Returns true if a segment starts like a TLS record with a handshake message. */
bool zn_resembles_tls_handshake(zn_span bytes);

/* Returns true if a datagram starts like a DTLS record with a version field (RFC 6347 4.1). */
bool zn_resembles_dtls(zn_span bytes);

#endif
