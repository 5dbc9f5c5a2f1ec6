/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test, by the first bytes alone, whether a segment begins no message that is read. In a
 * connection in which nothing is recognised yet, segment after segment is looked at, and most begin
 * none.
 */
#ifndef ZN_PROTO_STARTS_H
#define ZN_PROTO_STARTS_H

#include "util/cursor.h"

/* The bytes below ' ', except 0, that something begins with: SOCKS, RDP, MySQL, empty lines, TDS,
 * TLS. */
#define ZN_BEGIN_CONTROLS                                                                          \
    (1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << '\n' | 1u << '\r' | 1u << 0x12 | 1u << 0x14 |   \
     1u << 0x16)
#define ZN_BEGIN_POSTGRESQL 8u /* the length of its requests for encryption */
/* A ClientHello of SSL 2.0: the top bit of its header, its type and its major version. */
#define ZN_BEGIN_V2_HELLO 0x80000103u
#define ZN_BEGIN_V2_MASK 0x8000ffffu

/* True only where zn_tls_client_hello, zn_http2_preface, zn_http_looks_like_request,
 * zn_proxy_or_starttls_prefix_skip and zn_service_signature_of find nothing at the segment's start.
 * Messages of DNS begin with anything. */
static inline bool zn_begins_nothing(zn_span segment)
{
    zn_cursor c = zn_cursor_over_span(segment, true);
    uint32_t start = zn_cursor_be32(&c), first = start >> 24;
    if (first == 0)
        return start != ZN_BEGIN_POSTGRESQL && segment.n >= sizeof start;
    if (first < ' ')
        return (ZN_BEGIN_CONTROLS >> first & 1u) == 0;
    return first >= 0x7f && (start & ZN_BEGIN_V2_MASK) != ZN_BEGIN_V2_HELLO; /* no text */
}

#endif
