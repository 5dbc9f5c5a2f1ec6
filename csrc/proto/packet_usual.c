/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/packet_usual.h"

#include "proto/layers.h"
#include "proto/packet_tuple.h"

#define LINKTYPE_ETHERNET 1
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERNET_BYTES 14u
#define VLAN_TAG_BYTES 4u
#define V4_HEADER_BYTES 20u
#define V6_HEADER_BYTES 40u
#define TCP_HEADER_BYTES 20u
#define UDP_HEADER_BYTES 8u
#define V4_START 0x45       /* version 4, a header without options */
#define V4_FRAGMENT 0x3fffu /* more fragments, or an offset */

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
    zn_span header = zn_cursor_take(c, ETHERNET_BYTES);
    uint16_t type;
    *seen = 0;
    if (header.n == 0)
        return false;
    type = zn_header_be16(header, 12);
    if (type == ETHERTYPE_VLAN) {
        header = zn_cursor_take(c, VLAN_TAG_BYTES);
        if (header.n == 0)
            return false;
        *seen = UINT64_C(1) << (ZN_STAT_IN_VLAN - ZN_STAT_IN_FIRST);
        type = zn_header_be16(header, 2);
    }
    return type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6;
}

static inline zn_addr_words mapped(uint32_t v4)
{
    return (zn_addr_words){0, htobe64(UINT64_C(0xffff) << 32 | v4)};
}

/* `start`: the header's first byte. */
static inline bool read_v4(zn_cursor *c, uint8_t start, usual *out)
{
    zn_span header = zn_cursor_take(c, V4_HEADER_BYTES);
    uint16_t total;
    if (start != V4_START || header.n == 0 || (zn_header_be16(header, 6) & V4_FRAGMENT) != 0)
        return false;
    total = zn_header_be16(header, 2);
    out->id = zn_header_be16(header, 4);
    out->ttl = zn_header_u8(header, 8);
    out->protocol = zn_header_u8(header, 9);
    out->src = mapped(zn_header_be32(header, 12));
    out->dst = mapped(zn_header_be32(header, 16));
    out->payload_wire = (uint32_t)total - V4_HEADER_BYTES;
    return total >= V4_HEADER_BYTES;
}

static inline bool read_v6(zn_cursor *c, usual *out)
{
    zn_span header = zn_cursor_take(c, V6_HEADER_BYTES);
    if (header.n == 0)
        return false;
    out->payload_wire = zn_header_be16(header, 4);
    out->protocol = zn_header_u8(header, 6);
    out->ttl = zn_header_u8(header, 7);
    out->id = 0;
    out->src = (zn_addr_words){zn_header_word(header, 8), zn_header_word(header, 16)};
    out->dst = (zn_addr_words){zn_header_word(header, 24), zn_header_word(header, 32)};
    return out->payload_wire != 0; /* else a jumbogram, or too long before segmentation */
}

/* Reads the IP header and narrows the cursor to what it carries. */
static inline bool read_ip(zn_cursor *c, usual *out)
{
    zn_cursor peek = *c;
    uint8_t start = zn_cursor_u8(&peek);
    if (!(start >> 4 == 4 ? read_v4(c, start, out) : start >> 4 == 6 && read_v6(c, out)))
        return false;
    *c = zn_cursor_over_span(take_captured(c, out->payload_wire), true);
    return true;
}

static inline bool read_tcp(zn_cursor *c, uint32_t wire, uint16_t port[2], zn_packet *out)
{
    zn_span header = zn_cursor_take(c, TCP_HEADER_BYTES);
    uint32_t bytes;
    if (header.n == 0)
        return false;
    bytes = (uint32_t)(zn_header_u8(header, 12) >> 4) * 4u;
    if (bytes < TCP_HEADER_BYTES || bytes > wire)
        return false;
    port[0] = zn_header_be16(header, 0);
    port[1] = zn_header_be16(header, 2);
    out->seq = zn_header_be32(header, 4);
    out->ack = zn_header_be32(header, 8);
    out->tcp_flags = zn_header_u8(header, 13);
    out->window = zn_header_be16(header, 14);
    out->tcp_options = take_captured(c, bytes - TCP_HEADER_BYTES);
    out->payload = zn_cursor_rest(c);
    out->payload_len = wire - bytes;
    return true;
}

static inline bool read_udp(zn_cursor *c, uint32_t wire, uint16_t port[2], zn_packet *out)
{
    zn_span header = zn_cursor_take(c, UDP_HEADER_BYTES);
    uint16_t length;
    if (header.n == 0)
        return false;
    port[0] = zn_header_be16(header, 0);
    port[1] = zn_header_be16(header, 2);
    length = zn_header_be16(header, 4);
    if (length < UDP_HEADER_BYTES || length > wire ||
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
