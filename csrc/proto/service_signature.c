/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/service_signature.h"

#include "proto/ascii.h"
#include "proto/http.h"
#include "proto/starts.h"
#include "proto/tls.h"

#define WORD(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))
#define REQUEST_MIN 8 /* as long as the longest common method: fewer bytes are not enough */
#define RTP_HEADER_BYTES 12
#define RTCP_TYPE_MIN 192 /* full intra-frame request; up to IDMS settings: what is assigned */
#define RTCP_TYPE_MAX 211
#define V2_FIXED_BYTES 9  /* type, version, three lengths */
#define SIP_METHOD_MAX 9u /* zn_datagram_is_none counts on it */
#define MPEG_TS_BYTES 188
#define MPEG_TS_SYNC 0x47

/* TLS: a record of the handshake (RFC 8446 5.1) that starts with a hello. */
static zn_service_signature tls_signature(zn_span segment)
{
    zn_cursor c = zn_cursor_over_span(segment, true);
    uint32_t start = zn_cursor_be24(&c);
    uint8_t length = zn_cursor_u8(&c);
    uint8_t message;
    zn_cursor_skip(&c, 1);
    message = zn_cursor_u8(&c);
    if (!zn_cursor_ok(&c) || start < 0x160300 || start > 0x160304 || length > 0x48)
        return ZN_SIGNATURE_NONE;
    if (message == 1)
        return ZN_SIGNATURE_TLS_CLIENT_HELLO;
    return message == 2 ? ZN_SIGNATURE_TLS_SERVER_HELLO : ZN_SIGNATURE_NONE;
}

/* SSL 2.0: a ClientHello for a later version, as long as the lengths in it say (RFC 5246 E.2). */
static zn_service_signature v2_hello_signature(zn_span segment)
{
    zn_cursor c = zn_cursor_over_span(segment, true);
    uint32_t length = zn_cursor_be16(&c) & 0x7fff, inside = V2_FIXED_BYTES;
    zn_cursor_skip(&c, 3); /* type, version */
    for (unsigned i = 0; i < 3; i++)
        inside += zn_cursor_be16(&c);
    return zn_cursor_ok(&c) && length == inside ? ZN_SIGNATURE_TLS_CLIENT_HELLO : ZN_SIGNATURE_NONE;
}

zn_service_signature zn_service_signature_of(zn_span segment)
{
    zn_cursor c = zn_cursor_over_span(segment, true);
    uint32_t start = zn_cursor_be32(&c);
    if (zn_ascii_first(segment) == ZN_TLS_CONTENT_HANDSHAKE) /* no text */
        return tls_signature(segment);
    if ((start & ZN_BEGIN_V2_MASK) == ZN_BEGIN_V2_HELLO)
        return v2_hello_signature(segment);
    switch (start) {
    case WORD('P', 'O', 'S', 'T'):
        return ZN_SIGNATURE_HTTP_POST;
    case WORD('H', 'T', 'T', 'P'):
        return ZN_SIGNATURE_HTTP_RESPONSE;
    case WORD('2', '2', '0', ' '):
    case WORD('2', '2', '0', '-'):
        return ZN_SIGNATURE_SMTP_GREETING;
    case WORD('H', 'E', 'L', 'O'):
    case WORD('E', 'H', 'L', 'O'):
    case WORD('h', 'e', 'l', 'o'):
    case WORD('e', 'h', 'l', 'o'):
        return ZN_SIGNATURE_SMTP_HELO;
    case WORD('+', 'O', 'K', ' '):
    case WORD('-', 'E', 'R', 'R'):
        return ZN_SIGNATURE_POP3_GREETING;
    case WORD('U', 'S', 'E', 'R'):
    case WORD('A', 'P', 'O', 'P'):
    case WORD('Q', 'U', 'I', 'T'):
        return ZN_SIGNATURE_POP3_COMMAND;
    case WORD('*', ' ', 'O', 'K'):
        return ZN_SIGNATURE_IMAP_GREETING;
    case WORD('S', 'S', 'H', '-'):
        return ZN_SIGNATURE_SSH;
    default:
        break;
    }
    if (segment.n >= REQUEST_MIN && zn_service_may_be_http(segment) &&
        zn_http_is_known_method(segment))
        return ZN_SIGNATURE_HTTP_REQUEST;
    return ZN_SIGNATURE_NONE;
}

static bool is_alphanumeric(uint8_t byte)
{
    uint8_t lower = zn_ascii_lower(byte);
    return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9');
}

bool zn_service_is_imap(zn_span segment)
{
    zn_cursor c = zn_cursor_over_span(segment, true);
    uint8_t before = zn_cursor_u8(&c);
    if (before == '*')
        return zn_cursor_u8(&c) == ' ';
    for (unsigned i = 0; i < 5; i++) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte == ' ' && is_alphanumeric(before))
            return true;
        before = byte;
    }
    return false;
}

/* Payload types of RFC 3551 that are assigned, and the dynamic ones. */
static bool is_payload_type(uint8_t type)
{
    return type == 0 || (type >= 3 && type <= 18) || type == 25 || type == 26 || type == 28 ||
           (type >= 31 && type <= 34) || type >= 96;
}

/* Recognises the protocols that can share the ports of an RTP session, by the first byte (RFC 7983
 * 7; 0xff10: WhatsApp's relays). */
static zn_datagram_signature media_signature(zn_span payload)
{
    zn_cursor c = zn_cursor_over_span(payload, true);
    zn_datagram_signature signature = {ZN_DATAGRAM_OTHER, 0, 0};
    uint8_t first = zn_cursor_u8(&c), type = zn_cursor_u8(&c);
    if (payload.n < RTP_HEADER_BYTES)
        return signature;
    if (first < 4 || (first >= 16 && first < 80) || (first == 0xff && type == 0x10)) {
        signature.kind = ZN_DATAGRAM_RTP_COMPANION;
    } else if (first >= 0x80 && first < 0xc0) {
        signature.sequence = zn_cursor_be16(&c);
        signature.source = zn_cursor_be32(&c);
        if (is_payload_type(type & 0x7f)) {
            signature.kind = ZN_DATAGRAM_RTP;
            signature.source = zn_cursor_be32(&c); /* after the timestamp */
        } else if (type >= RTCP_TYPE_MIN && type <= RTCP_TYPE_MAX) {
            signature.kind = ZN_DATAGRAM_RTCP;
        }
    }
    return signature;
}

static bool is_sip(zn_span payload)
{
    static const uint8_t sip[] = " sip:", version[] = "SIP/2.0";
    zn_cursor c = zn_cursor_over_span(payload, true);
    zn_span start = zn_cursor_take(&c, sizeof version - 1);
    zn_cursor line;
    if (start.n != 0 && memcmp(start.p, version, start.n) == 0)
        return true;
    if (zn_ascii_first(payload) < 'A' || zn_ascii_first(payload) > 'Z')
        return false; /* before a long search, as all datagrams come here */
    line = zn_cursor_over_span(payload, true);
    if (zn_cursor_left(&line) > SIP_METHOD_MAX + sizeof sip)
        line = zn_cursor_sub(&line, SIP_METHOD_MAX + sizeof sip);
    start = zn_ascii_take_until(&line, ' ');
    if (start.n < 3 || start.n > SIP_METHOD_MAX)
        return false;
    start = zn_cursor_take(&line, sizeof sip - 1);
    return start.n != 0 && memcmp(start.p, sip, start.n) == 0;
}

static bool is_teredo(zn_span payload)
{
    zn_cursor c = zn_cursor_over_span(payload, true);
    uint32_t version = zn_cursor_be32(&c);
    zn_cursor_skip(&c, 4);
    return version == 0x60000000 && zn_cursor_be32(&c) == 0x20010000;
}

static bool is_mpeg_ts(zn_span payload, size_t wire)
{
    zn_cursor c = zn_cursor_over_span(payload, true);
    if (wire != ZN_MPEG_TS_WIRE || zn_cursor_u8(&c) != MPEG_TS_SYNC)
        return false;
    zn_cursor_skip(&c, MPEG_TS_BYTES - 1);
    return zn_cursor_u8(&c) == MPEG_TS_SYNC;
}

/* A record in the clear, with the first bytes of a ClientHello, ServerHello or
 * HelloVerifyRequest. */
static bool is_dtls_hello(zn_span payload)
{
    zn_cursor c = zn_cursor_over_span(payload, true);
    uint32_t start = zn_cursor_be24(&c);
    uint16_t epoch = zn_cursor_be16(&c);
    uint8_t message;
    zn_cursor_skip(&c, 8); /* sequence number, length */
    message = zn_cursor_u8(&c);
    return zn_cursor_ok(&c) && (start == 0x16feff || start == 0x16fefd) && epoch == 0 &&
           message >= 1 && message <= 3;
}

zn_datagram_signature zn_datagram_signature_of(zn_span payload, size_t wire)
{
    zn_datagram_signature signature = media_signature(payload);
    if (is_sip(payload))
        signature.kind = ZN_DATAGRAM_SIP;
    else if (is_teredo(payload))
        signature.kind = ZN_DATAGRAM_TEREDO;
    else if (is_mpeg_ts(payload, wire))
        signature.kind = ZN_DATAGRAM_MPEG_TS;
    else if (is_dtls_hello(payload))
        signature.kind = ZN_DATAGRAM_DTLS;
    return signature;
}
