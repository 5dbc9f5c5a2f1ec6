/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/ip.h"

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

/* Why a header that does not fit its bytes is not decoded. */
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

/* Goes behind the extension header of kind out->protocol, which says what follows it. */
static zn_stat skip_extension(zn_ip *out)
{
    zn_cursor *c = &out->payload;
    uint8_t kind = out->protocol;
    uint8_t next = zn_cursor_u8(c);
    uint8_t length = zn_cursor_u8(c);
    uint32_t bytes = 8u + 8u * length;
    bool later_fragment = false;

    if (kind == EXTENSION_FRAGMENT) {
        uint16_t place = zn_cursor_be16(c);
        bytes = 8;
        zn_cursor_skip(c, bytes - 4);
        later_fragment = (place & 0xfff8) != 0;
        out->fragment = (place & 1) != 0;
    } else {
        if (kind == EXTENSION_AH)
            bytes = 8u + 4u * length;
        zn_cursor_skip(c, bytes - 2);
    }
    if (!zn_cursor_ok(c))
        return misfit(c);
    if (bytes > out->payload_wire)
        return ZN_STAT_DROP_IP_MALFORMED;
    out->payload_wire -= bytes;
    out->protocol = next;
    return later_fragment ? ZN_STAT_DROP_IP_FRAGMENT : ZN_STAT_COUNT;
}

static zn_stat skip_extensions(zn_ip *out, bool v6)
{
    for (unsigned n = 0; is_extension(out->protocol, v6); n++) {
        zn_stat why = n < EXTENSIONS_MAX ? skip_extension(out) : ZN_STAT_DROP_IP_MALFORMED;
        if (why != ZN_STAT_COUNT)
            return why;
    }
    return ZN_STAT_COUNT;
}

static zn_stat decode_v4(zn_cursor *c, uint32_t wire, zn_ip *out)
{
    uint32_t header = (zn_cursor_u8(c) & 0x0fu) * 4u;
    zn_span src, dst;
    uint32_t total;
    uint16_t place;

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
    if ((place & 0x1fff) != 0)
        return ZN_STAT_DROP_IP_FRAGMENT;
    out->src = zn_addr_from_v4(src.p);
    out->dst = zn_addr_from_v4(dst.p);
    out->fragment = (place & 0x2000) != 0;
    out->payload_wire = total - header;
    out->payload = zn_cursor_sub(c, out->payload_wire);
    return skip_extensions(out, false);
}

static zn_stat decode_v6(zn_cursor *c, uint32_t wire, zn_ip *out)
{
    zn_span src, dst;

    zn_cursor_skip(c, 4);
    out->payload_wire = zn_cursor_be16(c);
    out->protocol = zn_cursor_u8(c);
    out->ttl = zn_cursor_u8(c);
    out->id = 0;
    src = zn_cursor_take(c, sizeof out->src.byte);
    dst = zn_cursor_take(c, sizeof out->dst.byte);
    if (!zn_cursor_ok(c))
        return misfit(c);
    memcpy(out->src.byte, src.p, sizeof out->src.byte);
    memcpy(out->dst.byte, dst.p, sizeof out->dst.byte);
    out->fragment = false;
    if (out->payload_wire == 0) /* a jumbogram (RFC 2675), or too long before segmentation */
        out->payload_wire = wire - V6_HEADER_BYTES;
    out->payload = zn_cursor_sub(c, out->payload_wire);
    return skip_extensions(out, true);
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
