/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service that the first bytes of a TCP segment or of a datagram look like, for Tstat's con_t,
 * c_type and s_type. A look, not a parse: names and evidence come from parsers of their own.
 */
#ifndef ZN_PROTO_SERVICE_SIGNATURE_H
#define ZN_PROTO_SERVICE_SIGNATURE_H

#include "util/cursor.h"

typedef enum zn_service_signature {
    ZN_SIGNATURE_NONE,
    ZN_SIGNATURE_HTTP_REQUEST,
    ZN_SIGNATURE_HTTP_POST,
    ZN_SIGNATURE_HTTP_RESPONSE,
    ZN_SIGNATURE_SMTP_GREETING, /* RFC 5321 3.1 */
    ZN_SIGNATURE_SMTP_HELO,
    ZN_SIGNATURE_POP3_GREETING, /* RFC 1939 4 */
    ZN_SIGNATURE_POP3_COMMAND,  /* a command that can come first */
    ZN_SIGNATURE_IMAP_GREETING, /* RFC 9051 7.1.1 */
    ZN_SIGNATURE_SSH,           /* RFC 4253 4.2, from either side */
    ZN_SIGNATURE_TLS_CLIENT_HELLO,
    ZN_SIGNATURE_TLS_SERVER_HELLO
} zn_service_signature;

/* False for most segments that begin no request or response of HTTP: all of them begin with two
 * capitals, which are among the 32 characters from '@' on. One test instead of four, whose results
 * for encrypted bytes could not be predicted. */
static inline bool zn_service_may_be_http(zn_span segment)
{
    zn_cursor c = zn_cursor_over_span(segment, true);
    return (zn_cursor_be16(&c) & 0xe0e0) == ('@' << 8 | '@');
}

/* The service that a segment's start looks like. */
zn_service_signature zn_service_signature_of(zn_span segment);
/* Returns whether a segment can be a tagged IMAP command or an answer to one (RFC 9051 2.2). */
bool zn_service_is_imap(zn_span segment);

#define ZN_SIGNATURE_START_BYTES 11
#define ZN_MPEG_TS_WIRE (7 * 188) /* seven packets of MPEG-TS */

typedef enum zn_datagram_kind {
    ZN_DATAGRAM_OTHER,
    ZN_DATAGRAM_SIP,          /* RFC 3261 7 */
    ZN_DATAGRAM_TEREDO,       /* RFC 4380: an IPv6 packet from 2001::/32 */
    ZN_DATAGRAM_MPEG_TS,      /* seven packets of an MPEG-2 transport stream (ISO 13818-1) */
    ZN_DATAGRAM_DTLS,         /* a hello, from either side (RFC 6347 4.2) */
    ZN_DATAGRAM_RTP,          /* RFC 3550 5.1, of a payload type that is assigned or dynamic */
    ZN_DATAGRAM_RTCP,         /* RFC 3550 6.4, RFC 5761 4 */
    ZN_DATAGRAM_RTP_COMPANION /* STUN, ZRTP, DTLS, TURN: may share the ports of RTP (RFC 7983) */
} zn_datagram_kind;

typedef struct zn_datagram_signature {
    zn_datagram_kind kind;
    uint32_t source;   /* RTP, RTCP: SSRC */
    uint16_t sequence; /* RTP */
} zn_datagram_signature;

/* The kind that a datagram looks like; `wire` is its payload's length in bytes before a capture cut
 * it. */
zn_datagram_signature zn_datagram_signature_of(zn_span payload, size_t wire);

/* Returns true only if the datagram is of none of the kinds SIP to RTCP. These kinds begin with
 * other bytes; a SIP request begins with a letter and has a space between the third byte and the
 * eleventh. start: at least the payload's first ZN_SIGNATURE_START_BYTES bytes, if the payload is
 * that long. */
static inline bool zn_datagram_is_none(zn_span start, size_t wire)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t spaces;
    uint8_t first;
    if (start.n < ZN_SIGNATURE_START_BYTES)
        return false;
    first = zn_header_u8(start, 0);
    if (first >= 0x80 || first == 0x16 || first == 0x60) /* RTP, DTLS, Teredo */
        return false;
    if (first < 'A' || first > 'Z')
        return true;
    spaces = zn_header_word(start, 3) ^ ones * ' ';
    return ((spaces - ones) & ~spaces & ones << 7) == 0 &&
           zn_header_be16(start, 0) != ('S' << 8 | 'I') &&
           (first != 'G' || wire != ZN_MPEG_TS_WIRE);
}

#endif
