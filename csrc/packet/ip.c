/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "packet/ip.h"

#define V4_HEADER_BYTES 20u
#define V6_HEADER_BYTES 40u
#define EXTENSIONS_MAX 8u /* RFC 8200 4.1 knows six, destination options twice */

enum {
    EXTENSION_HOP_BY_HOP = 0,
    EXTENSION_ROUTING = 43,
    EXTENSION_FRAGMENT = 44,
    EXTENSION_AH = 51,
    EXTENSION_DESTINATION = 60
};

/* Returns why a header that does not fit its bytes is not decoded. */
static zn_stat misfit(const zn_cursor *c)
{
    return c->state == ZN_CURSOR_SHORT ? ZN_STAT_DROP_IP_TRUNCATED : ZN_STAT_DROP_IP_MALFORMED;
}

static bool is_extension(uint8_t protocol, bool v6)
{
    switch (protocol) {
    case EXTENSION_HOP_BY_HOP:
    case EXTENSION_ROUTING:
    case EXTENSION_FRAGMENT:
    case EXTENSION_DESTINATION:
        return v6;
    case EXTENSION_AH:
        return true;
    default:
        return false;
    }
}

/* Sets a fragment's place, which an IPv6 fragment header (RFC 8200 4.5) or IPv4's fields hold. */
static zn_stat place_fragment(zn_ip *out, uint32_t id, uint16_t offset, bool more)
{
    out->fragment = offset != 0 || more; /* else it is "atomic" (RFC 6946): a whole packet */
    out->id = id;
    out->offset = offset;
    out->more = more;
    if (out->fragment && (out->payload_wire == 0 || (more && out->payload_wire % 8 != 0)))
        return ZN_STAT_DROP_IP_MALFORMED;
    return offset + out->payload_wire <= UINT16_MAX ? ZN_STAT_COUNT : ZN_STAT_DROP_IP_MALFORMED;
}

/* Moves past the extension header of kind out->protocol, and sets that to the next one. */
static zn_stat skip_extension(zn_ip *out)
{
    zn_cursor *c = &out->payload;
    uint8_t kind = out->protocol;
    uint8_t next = zn_cursor_u8(c);
    uint8_t length = zn_cursor_u8(c);
    uint32_t bytes = kind == EXTENSION_AH ? 8u + 4u * length : 8u + 8u * length;
    uint16_t place = 0;
    uint32_t id = 0;

    if (kind == EXTENSION_FRAGMENT) {
        bytes = 8;
        place = zn_cursor_be16(c);
        id = zn_cursor_be32(c);
    } else {
        zn_cursor_skip(c, bytes - 2);
    }
    if (!zn_cursor_ok(c))
        return misfit(c);
    if (bytes > out->payload_wire)
        return ZN_STAT_DROP_IP_MALFORMED;
    out->payload_wire -= bytes;
    out->headers = out->headers == 0 ? 0 : (uint16_t)(out->headers + bytes);
    out->protocol = next;
    out->authenticated |= kind == EXTENSION_AH;
    if (kind != EXTENSION_FRAGMENT || (place & 0xfff9) == 0)
        return ZN_STAT_COUNT;
    return place_fragment(out, id, place & 0xfff8, (place & 1) != 0);
}

zn_stat zn_ip_skip_extensions(zn_ip *ip)
{
    for (unsigned n = 0; is_extension(ip->protocol, ip->v6); n++) {
        bool was_fragment = ip->fragment;
        zn_stat why = n < EXTENSIONS_MAX ? skip_extension(ip) : ZN_STAT_DROP_IP_MALFORMED;
        if (why != ZN_STAT_COUNT)
            return why;
        if (ip->fragment && !was_fragment)
            break;
    }
    return ZN_STAT_COUNT;
}

static zn_stat decode_v4(zn_cursor *c, uint32_t wire, zn_ip *out)
{
    uint32_t header = (zn_cursor_u8(c) & 0x0fu) * 4u;
    zn_span src, dst;
    uint16_t place;
    uint32_t total;

    zn_cursor_skip(c, 1);
    total = zn_cursor_be16(c);
    out->id = zn_cursor_be16(c);
    place = zn_cursor_be16(c);
    out->ttl = zn_cursor_u8(c);
    out->protocol = zn_cursor_u8(c);
    zn_cursor_skip(c, 2);
    src = zn_cursor_take(c, 4);
    dst = zn_cursor_take(c, 4);
    if (!zn_cursor_ok(c))
        return misfit(c);
    if (total == 0)
        total = wire;
    if (header < V4_HEADER_BYTES || total < header)
        return ZN_STAT_DROP_IP_MALFORMED;
    zn_cursor_skip(c, header - V4_HEADER_BYTES);
    if (!zn_cursor_ok(c))
        return misfit(c);
    out->src = zn_addr_from_v4(src.p);
    out->dst = zn_addr_from_v4(dst.p);
    out->v6 = out->fragment = out->authenticated = false;
    out->headers = (uint16_t)header;
    out->payload_wire = total - header;
    out->payload = zn_cursor_sub(c, out->payload_wire);
    if (ZN_UNLIKELY((place & 0x3fff) != 0))
        return place_fragment(out, out->id, (uint16_t)(place << 3), (place & 0x2000) != 0);
    return out->protocol == EXTENSION_AH ? zn_ip_skip_extensions(out) : ZN_STAT_COUNT;
}

static zn_stat decode_v6(zn_cursor *c, uint32_t wire, zn_ip *out)
{
    zn_span src, dst;

    zn_cursor_skip(c, 4);
    out->payload_wire = zn_cursor_be16(c);
    out->protocol = zn_cursor_u8(c);
    out->ttl = zn_cursor_u8(c);
    out->id = 0;
    out->headers = V6_HEADER_BYTES;
    src = zn_cursor_take(c, sizeof out->src.byte);
    dst = zn_cursor_take(c, sizeof out->dst.byte);
    if (!zn_cursor_ok(c))
        return misfit(c);
    memcpy(out->src.byte, src.p, sizeof out->src.byte);
    memcpy(out->dst.byte, dst.p, sizeof out->dst.byte);
    out->v6 = true;
    out->fragment = out->authenticated = false;
    if (out->payload_wire == 0) /* a jumbogram (RFC 2675), or too long before segmentation */
        out->payload_wire = wire - V6_HEADER_BYTES;
    out->payload = zn_cursor_sub(c, out->payload_wire);
    return is_extension(out->protocol, true) ? zn_ip_skip_extensions(out) : ZN_STAT_COUNT;
}

zn_stat zn_ip_decode(zn_cursor *frame, uint32_t wire, zn_ip *out)
{
    zn_cursor peek = *frame;
    switch (zn_cursor_u8(&peek) >> 4) {
    case 4:
        return decode_v4(frame, wire, out);
    case 6:
        return decode_v6(frame, wire, out);
    default:
        return zn_cursor_ok(&peek) ? ZN_STAT_DROP_IP_MALFORMED : misfit(&peek);
    }
}
