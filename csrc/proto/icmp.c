/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/icmp.h"

#include "util/protocol.h"

#define HEADER_PLAIN 0x45 /* IPv4, five words */
#define VERSION_6 6u
#define DECLARED_MIN 128u /* RFC 4884 4: the least place that a quote has before objects */

enum { FRAGMENT_DONT = 0x4000, FRAGMENT_MORE = 0x2000, FRAGMENT_OFFSET = 0x1fff };

/* Types (IANA, "ICMP Type Numbers" and "ICMPv6 Parameters") */
enum {
    V4_ECHO_REPLY = 0,
    V4_UNREACHABLE = 3,
    V4_REDIRECT = 5,
    V4_ECHO = 8,
    V4_TIME_EXCEEDED = 11,
    V4_PARAMETER = 12,
    V6_UNREACHABLE = 1,
    V6_TOO_BIG = 2,
    V6_TIME_EXCEEDED = 3,
    V6_PARAMETER = 4,
    V6_ECHO = 128,
    V6_ECHO_REPLY = 129
};
enum { CODE_FRAGMENTATION = 4 }; /* of V4_UNREACHABLE */

static zn_icmp_kind kind_of(uint8_t type, bool v6)
{
    if (v6 && (type == V6_ECHO || type == V6_ECHO_REPLY))
        return ZN_ICMP_ECHO;
    if (v6)
        return type >= V6_UNREACHABLE && type <= V6_PARAMETER ? ZN_ICMP_ERROR : ZN_ICMP_OTHER;
    switch (type) {
    case V4_ECHO:
    case V4_ECHO_REPLY:
        return ZN_ICMP_ECHO;
    case V4_UNREACHABLE:
    case V4_REDIRECT:
    case V4_TIME_EXCEEDED:
    case V4_PARAMETER:
        return ZN_ICMP_ERROR;
    default:
        return ZN_ICMP_OTHER;
    }
}

/* True for the extension headers of RFC 8200 4 and RFC 4302, and "no next header". */
static bool is_extension(uint8_t protocol)
{
    return protocol == 0 || protocol == 43 || protocol == 44 || protocol == 51 || protocol == 59 ||
           protocol == 60;
}

/* Reads a plain IPv4 header. The cursor fails where it is not one. */
static void read_v4(zn_cursor *c, zn_icmp_quote *out)
{
    uint8_t first = zn_cursor_u8(c);
    uint16_t total, place;
    zn_span src, dst;
    out->service = zn_cursor_u8(c);
    total = zn_cursor_be16(c);
    out->id = zn_cursor_be16(c);
    place = zn_cursor_be16(c);
    out->hops = zn_cursor_u8(c);
    out->protocol = zn_cursor_u8(c);
    zn_cursor_skip(c, 2); /* checksum */
    src = zn_cursor_take(c, 4);
    dst = zn_cursor_take(c, 4);
    if (first != HEADER_PLAIN || total < ZN_ICMP_V4_HEADER + ZN_ICMP_QUOTED_BYTES ||
        (place & FRAGMENT_OFFSET) != 0)
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    if (!zn_cursor_ok(c))
        return;
    out->length = (uint16_t)(total - ZN_ICMP_V4_HEADER);
    out->dont_fragment = (place & FRAGMENT_DONT) != 0;
    out->more_fragments = (place & FRAGMENT_MORE) != 0;
    out->src = zn_addr_from_v4(src.p);
    out->dst = zn_addr_from_v4(dst.p);
}

/* Reads an IPv6 header that no extension header follows. The cursor fails where it is not one. */
static void read_v6(zn_cursor *c, zn_icmp_quote *out)
{
    uint32_t first = zn_cursor_be32(c); /* version, traffic class, flow label */
    zn_span src, dst;
    out->service = (uint8_t)(first >> 20);
    out->length = zn_cursor_be16(c);
    out->protocol = zn_cursor_u8(c);
    out->hops = zn_cursor_u8(c);
    src = zn_cursor_take(c, sizeof out->src.byte);
    dst = zn_cursor_take(c, sizeof out->dst.byte);
    if (first >> 28 != VERSION_6 || out->length < ZN_ICMP_QUOTED_BYTES ||
        is_extension(out->protocol))
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    if (!zn_cursor_ok(c))
        return;
    memcpy(out->src.byte, src.p, sizeof out->src.byte);
    memcpy(out->dst.byte, dst.p, sizeof out->dst.byte);
}

/* Reads the first 8 bytes of a transport. The cursor fails for ICMP that is no echo: nothing says
 * whose it is. */
static void read_transport(zn_cursor *c, bool v6, zn_icmp_quote *out)
{
    zn_cursor start = zn_cursor_sub(c, ZN_ICMP_QUOTED_BYTES);
    out->kind = ZN_ICMP_QUOTED_IP;
    if (out->protocol == ZN_PROTO_TCP || out->protocol == ZN_PROTO_UDP) {
        out->port[0] = zn_cursor_be16(&start);
        out->port[1] = zn_cursor_be16(&start);
        out->kind = ZN_ICMP_QUOTED_UDP;
        if (out->protocol == ZN_PROTO_TCP) {
            out->kind = ZN_ICMP_QUOTED_TCP;
            out->sequence = zn_cursor_be32(&start);
        }
    } else if (out->protocol == (v6 ? ZN_ICMP_V6_PROTOCOL : ZN_ICMP_V4_PROTOCOL)) {
        uint8_t type = zn_cursor_u8(&start);
        zn_cursor_skip(&start, 3); /* code, checksum */
        if (kind_of(type, v6) != ZN_ICMP_ECHO)
            zn_cursor_fail(c, ZN_CURSOR_BAD);
        out->kind = ZN_ICMP_QUOTED_ECHO;
        out->echo_type = type;
        out->echo_id = zn_cursor_be16(&start);
        out->sequence = zn_cursor_be16(&start);
    }
}

/* Reads the quoted packet at the cursor. declared: the bytes of its place, by the error's header,
 * after which extension objects follow; 0: it has all. */
static void read_quote(zn_cursor *c, bool v6, size_t declared, zn_icmp_quote *out)
{
    size_t header = v6 ? ZN_ICMP_V6_HEADER : ZN_ICMP_V4_HEADER;
    size_t left = zn_cursor_left(c);
    if (v6)
        read_v6(c, out);
    else
        read_v4(c, out);
    if (zn_cursor_ok(c))
        read_transport(c, v6, out);
    out->bytes = declared != 0 && declared < left ? declared : left;
    if (out->bytes > header + out->length)
        out->bytes = header + out->length;
    if (!zn_cursor_ok(c) || (declared != 0 && declared < DECLARED_MIN))
        *out = (zn_icmp_quote){.kind = ZN_ICMP_QUOTED_NOTHING};
}

/* Reads the second word of an error. Returns the bytes of its quote, as that says (RFC 4884 3); 0:
 * it does not. */
static size_t read_error(zn_span word, zn_icmp *out)
{
    if (out->v6) {
        if (out->type == V6_UNREACHABLE || out->type == V6_TIME_EXCEEDED)
            return 8u * zn_header_u8(word, 0);
        if (out->type == V6_TOO_BIG)
            out->mtu = zn_header_be32(word, 0);
        else
            out->pointer = zn_header_be32(word, 0);
        return 0;
    }
    if (out->type == V4_REDIRECT) {
        out->gateway = zn_addr_from_v4(word.p);
        return 0;
    }
    if (out->type == V4_PARAMETER)
        out->pointer = zn_header_u8(word, 0);
    else if (out->type == V4_UNREACHABLE && out->code == CODE_FRAGMENTATION)
        out->mtu = zn_header_be16(word, 2);
    return 4u * zn_header_u8(word, 1);
}

zn_parse zn_icmp_parse(zn_span message, bool v6, zn_icmp *out)
{
    zn_cursor c = zn_cursor_over_span(message, false);
    zn_span front = zn_cursor_take(&c, 4); /* type, code, checksum */
    zn_span word;
    memset(out, 0, sizeof *out);
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    out->v6 = v6;
    out->type = zn_header_u8(front, 0);
    out->code = zn_header_u8(front, 1);
    word = zn_cursor_take(&c, 4);
    if (!zn_cursor_ok(&c))
        return ZN_DONE;
    out->kind = kind_of(out->type, v6);
    if (out->kind == ZN_ICMP_ECHO) {
        out->id = zn_header_be16(word, 0);
        out->sequence = zn_header_be16(word, 2);
    } else if (out->kind == ZN_ICMP_ERROR) {
        size_t declared = read_error(word, out);
        read_quote(&c, v6, declared, &out->quote);
    }
    return ZN_DONE;
}
