/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/packet_usual.h"

#include "proto/layers.h"
#include "proto/packet_tuple.h"

#define LINKTYPE_ETHERNET 1
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define V4_HEADER_BYTES 20u
#define V6_HEADER_BYTES 40u
#define TCP_HEADER_BYTES 20u
#define UDP_HEADER_BYTES 8u
#define V4_START 0x45        /* version 4, a header without options */
#define V4_FRAGMENT 0x3fffu  /* more fragments, or an offset */

/* What the IP header says. */
typedef struct usual {
    zn_addr_words src, dst;
    uint32_t payload_wire; /* zn_ip's */
    uint8_t protocol, ttl;
    uint16_t id;
} usual;

/* The next n bytes, or as many of them as were captured. */
static inline zn_span take_captured(zn_cursor *c, size_t n)
{
    size_t left = zn_cursor_left(c);
    return zn_cursor_take(c, n < left ? n : left);
}

/* Behind the Ethernet header; false when no IP header comes there. */
static inline bool skip_ethernet(zn_cursor *c, uint64_t *seen)
{
    uint16_t type;
    *seen = 0;
    zn_cursor_skip(c, 12);
    type = zn_cursor_be16(c);
    if (type == ETHERTYPE_VLAN) {
        *seen = UINT64_C(1) << (ZN_STAT_IN_VLAN - ZN_STAT_IN_FIRST);
        zn_cursor_skip(c, 2);
        type = zn_cursor_be16(c);
    }
    return (type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6) && zn_cursor_ok(c);
}

static inline zn_addr_words mapped(uint32_t v4)
{
    return (zn_addr_words){0, htobe64(UINT64_C(0xffff) << 32 | v4)};
}

static inline bool read_v4(zn_cursor header, usual *out)
{
    uint8_t start = zn_cursor_u8(&header);
    uint16_t total, place;
    zn_cursor_skip(&header, 1);
    total = zn_cursor_be16(&header);
    out->id = zn_cursor_be16(&header);
    place = zn_cursor_be16(&header);
    out->ttl = zn_cursor_u8(&header);
    out->protocol = zn_cursor_u8(&header);
    zn_cursor_skip(&header, 2);
    out->src = mapped(zn_cursor_be32(&header));
    out->dst = mapped(zn_cursor_be32(&header));
    out->payload_wire = (uint32_t)total - V4_HEADER_BYTES;
    return start == V4_START && total >= V4_HEADER_BYTES && (place & V4_FRAGMENT) == 0 &&
           zn_cursor_ok(&header);
}

static inline bool read_v6(zn_cursor header, usual *out)
{
    zn_span src, dst;
    zn_cursor_skip(&header, 4);
    out->payload_wire = zn_cursor_be16(&header);
    out->protocol = zn_cursor_u8(&header);
    out->ttl = zn_cursor_u8(&header);
    out->id = 0;
    src = zn_cursor_take(&header, sizeof out->src);
    dst = zn_cursor_take(&header, sizeof out->dst);
    if (!zn_cursor_ok(&header))
        return false;
    memcpy(&out->src, src.p, sizeof out->src);
    memcpy(&out->dst, dst.p, sizeof out->dst);
    return out->payload_wire != 0; /* else a jumbogram, or too long before segmentation */
}

/* Reads the IP header and narrows the cursor to what it carries. */
static inline bool read_ip(zn_cursor *c, usual *out)
{
    zn_cursor peek = *c;
    uint8_t version = zn_cursor_u8(&peek) >> 4;
    zn_span header = zn_cursor_take(c, version == 4 ? V4_HEADER_BYTES : V6_HEADER_BYTES);
    zn_cursor fields = zn_cursor_over_span(header, true);
    if (!(version == 4 ? read_v4(fields, out) : version == 6 && read_v6(fields, out)))
        return false;
    *c = zn_cursor_over_span(take_captured(c, out->payload_wire), true);
    return true;
}

static inline bool read_tcp(zn_cursor *c, uint32_t wire, uint16_t port[2], zn_packet *out)
{
    zn_cursor header = zn_cursor_over_span(zn_cursor_take(c, TCP_HEADER_BYTES), true);
    uint32_t bytes;
    uint16_t offset_and_flags;
    port[0] = zn_cursor_be16(&header);
    port[1] = zn_cursor_be16(&header);
    out->seq = zn_cursor_be32(&header);
    out->ack = zn_cursor_be32(&header);
    offset_and_flags = zn_cursor_be16(&header);
    out->window = zn_cursor_be16(&header);
    bytes = (uint32_t)(offset_and_flags >> 12) * 4u;
    if (!zn_cursor_ok(&header) || bytes < TCP_HEADER_BYTES || bytes > wire)
        return false;
    out->tcp_flags = (uint8_t)offset_and_flags;
    out->tcp_options = take_captured(c, bytes - TCP_HEADER_BYTES);
    out->payload = zn_cursor_rest(c);
    out->payload_len = wire - bytes;
    return true;
}

static inline bool read_udp(zn_cursor *c, uint32_t wire, uint16_t port[2], zn_packet *out)
{
    zn_cursor header = zn_cursor_over_span(zn_cursor_take(c, UDP_HEADER_BYTES), true);
    uint16_t length;
    port[0] = zn_cursor_be16(&header);
    port[1] = zn_cursor_be16(&header);
    length = zn_cursor_be16(&header);
    if (!zn_cursor_ok(&header) || length < UDP_HEADER_BYTES || length > wire ||
        zn_layers_port(port[0]) != ZN_HEADER_TRANSPORT ||
        zn_layers_port(port[1]) != ZN_HEADER_TRANSPORT)
        return false;
    out->seq = out->ack = 0;
    out->window = 0;
    out->tcp_flags = 0;
    out->tcp_options = (zn_span){c->p, 0};
    out->payload_len = length - UDP_HEADER_BYTES;
    out->payload = take_captured(c, out->payload_len);
    return true;
}

bool zn_packet_decode_usual(const zn_packet_input *in, const zn_hash_key *key, zn_packet *out)
{
    zn_cursor c = zn_cursor_over_span(in->bytes, false);
    usual ip;
    uint16_t port[2];
    uint64_t seen;
    if (in->link_type != LINKTYPE_ETHERNET || !skip_ethernet(&c, &seen) || !read_ip(&c, &ip))
        return false;
    if (ip.protocol == ZN_PROTO_TCP) {
        if (!read_tcp(&c, ip.payload_wire, port, out))
            return false;
    } else if (ip.protocol != ZN_PROTO_UDP || !read_udp(&c, ip.payload_wire, port, out)) {
        return false;
    }
    out->encapsulations = seen;
    out->tunnels.n = 0;
    out->ttl = ip.ttl;
    out->ip_id = ip.id;
    out->fragment = 0;
    zn_packet_set_tuple(out, ip.src, ip.dst, port, ip.protocol, key);
    return true;
}
