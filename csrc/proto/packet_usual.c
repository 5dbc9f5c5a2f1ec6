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

/* The next n bytes, or as many of them as were captured. */
static inline zn_span take_captured(zn_cursor *c, size_t n)
{
    size_t left = zn_cursor_left(c);
    return zn_cursor_take(c, n < left ? n : left);
}

/* Behind the Ethernet header; *version is that of the IP header there, 0 when none comes. */
static inline uint64_t skip_ethernet(zn_cursor *c, unsigned *version)
{
    zn_span header = zn_cursor_take(c, ETHERNET_BYTES);
    uint16_t type = header.n == 0 ? 0 : zn_header_be16(header, 12);
    uint64_t seen = 0;
    if (type == ETHERTYPE_VLAN) {
        header = zn_cursor_take(c, VLAN_TAG_BYTES);
        type = header.n == 0 ? 0 : zn_header_be16(header, 2);
        seen = UINT64_C(1) << (ZN_STAT_IN_VLAN - ZN_STAT_IN_FIRST);
    }
    *version = type == ETHERTYPE_IPV4 ? 4 : type == ETHERTYPE_IPV6 ? 6 : 0;
    return seen;
}

/* Narrows the cursor to the payload of an IP header. */
static inline void narrow(zn_cursor *c, uint32_t payload_wire)
{
    *c = zn_cursor_over_span(take_captured(c, payload_wire), true);
}

/* TCP's header, or nothing: an empty span. */
static inline zn_span read_tcp(zn_cursor *c, uint32_t wire, zn_packet *out)
{
    zn_span header = zn_cursor_take(c, TCP_HEADER_BYTES);
    uint32_t bytes;
    if (header.n == 0)
        return header;
    bytes = (uint32_t)(zn_header_u8(header, 12) >> 4) * 4u;
    out->seq = zn_header_be32(header, 4);
    out->ack = zn_header_be32(header, 8);
    out->tcp_flags = zn_header_u8(header, 13);
    out->window = zn_header_be16(header, 14);
    if (ZN_UNLIKELY(bytes < TCP_HEADER_BYTES || bytes > wire))
        header.n = 0;
    out->tcp_options = take_captured(c, bytes - TCP_HEADER_BYTES);
    out->payload = zn_cursor_rest(c);
    out->payload_len = wire - bytes;
    return header;
}

/* The same of UDP, between ports that no tunnel uses. */
static inline zn_span read_udp(zn_cursor *c, uint32_t wire, zn_packet *out)
{
    zn_span header = zn_cursor_take(c, UDP_HEADER_BYTES);
    uint16_t length;
    if (header.n == 0)
        return header;
    length = zn_header_be16(header, 4);
    if (length < UDP_HEADER_BYTES || length > wire ||
        zn_layers_port(zn_header_be16(header, 0)) != ZN_HEADER_TRANSPORT ||
        zn_layers_port(zn_header_be16(header, 2)) != ZN_HEADER_TRANSPORT)
        header.n = 0;
    out->seq = out->ack = 0;
    out->window = 0;
    out->tcp_flags = 0;
    out->tcp_options = (zn_span){c->p, 0};
    out->payload_len = length - UDP_HEADER_BYTES;
    out->payload = take_captured(c, out->payload_len);
    return header;
}

/* The transport header behind the cursor, or nothing. */
static inline zn_span read_transport(zn_cursor *c, uint8_t protocol, uint32_t wire, zn_packet *out)
{
    if (ZN_LIKELY(protocol == ZN_PROTO_TCP))
        return read_tcp(c, wire, out);
    return protocol == ZN_PROTO_UDP ? read_udp(c, wire, out) : (zn_span){c->p, 0};
}

static inline bool decode_v4(zn_cursor *c, const zn_hash_key *key, zn_packet *out)
{
    zn_span header = zn_cursor_take(c, V4_HEADER_BYTES), transport;
    uint32_t wire;
    uint8_t protocol;
    if (header.n == 0 || zn_header_u8(header, 0) != V4_START ||
        (zn_header_be16(header, 6) & V4_FRAGMENT) != 0)
        return false;
    wire = zn_header_be16(header, 2);
    protocol = zn_header_u8(header, 9);
    if (wire < V4_HEADER_BYTES)
        return false;
    wire -= V4_HEADER_BYTES;
    out->ip_id = zn_header_be16(header, 4);
    out->ttl = zn_header_u8(header, 8);
    narrow(c, wire);
    transport = read_transport(c, protocol, wire, out);
    if (transport.n == 0)
        return false;
    zn_packet_set_tuple_v4(
        out, (zn_v4_end){zn_header_be32(header, 12), zn_header_be16(transport, 0)},
        (zn_v4_end){zn_header_be32(header, 16), zn_header_be16(transport, 2)}, protocol, key);
    return true;
}

static inline bool decode_v6(zn_cursor *c, const zn_hash_key *key, zn_packet *out)
{
    zn_span header = zn_cursor_take(c, V6_HEADER_BYTES), transport;
    zn_addr_words src, dst;
    uint32_t wire;
    uint16_t port[2];
    uint8_t protocol;
    if (header.n == 0 || zn_header_u8(header, 0) >> 4 != 6)
        return false;
    wire = zn_header_be16(header, 4);
    protocol = zn_header_u8(header, 6);
    if (wire == 0) /* a jumbogram, or too long before segmentation */
        return false;
    out->ip_id = 0;
    out->ttl = zn_header_u8(header, 7);
    narrow(c, wire);
    transport = read_transport(c, protocol, wire, out);
    if (transport.n == 0)
        return false;
    src = (zn_addr_words){zn_header_word(header, 8), zn_header_word(header, 16)};
    dst = (zn_addr_words){zn_header_word(header, 24), zn_header_word(header, 32)};
    port[0] = zn_header_be16(transport, 0);
    port[1] = zn_header_be16(transport, 2);
    zn_packet_set_tuple(out, src, dst, port, protocol, key);
    return true;
}

bool zn_packet_decode_usual(const zn_packet_input *in, const zn_hash_key *key, zn_packet *out)
{
    zn_cursor c = zn_cursor_over_span(in->bytes, false);
    unsigned version;
    if (in->link_type != LINKTYPE_ETHERNET)
        return false;
    out->encapsulations = skip_ethernet(&c, &version);
    out->tunnels.n = 0;
    out->fragment = 0;
    if (ZN_LIKELY(version == 4))
        return decode_v4(&c, key, out);
    return version == 6 && decode_v6(&c, key, out);
}
