/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What most frames are, decoded at one go and in line: an Ethernet header with at most one VLAN tag, IPv4
 * without options or IPv6 without extension headers, no fragment, and TCP, or UDP between ports that no
 * tunnel uses.
 */
#ifndef ZN_PROTO_PACKET_USUAL_H
#define ZN_PROTO_PACKET_USUAL_H

#include "proto/layers.h"
#include "proto/packet_tuple.h"

/* What is decoded: captured bytes of one frame and how many there were on the wire. */
typedef struct zn_packet_input {
    zn_span bytes;
    uint32_t wire;
    uint32_t link_type; /* LINKTYPE_* of the pcap registry */
} zn_packet_input;

#define ZN_USUAL_LINK 1
#define ZN_USUAL_ETHERTYPE_IPV4 0x0800
#define ZN_USUAL_ETHERTYPE_IPV6 0x86dd
#define ZN_USUAL_ETHERTYPE_VLAN 0x8100
#define ZN_USUAL_ETHERNET_BYTES 14u
#define ZN_USUAL_VLAN_TAG_BYTES 4u
#define ZN_USUAL_V4_HEADER_BYTES 20u
#define ZN_USUAL_V6_HEADER_BYTES 40u
#define ZN_USUAL_TCP_HEADER_BYTES 20u
#define ZN_USUAL_UDP_HEADER_BYTES 8u
#define ZN_USUAL_V4_START 0x45       /* version 4, a header without options */
#define ZN_USUAL_V4_FRAGMENT 0x3fffu /* more fragments, or an offset */

/* The next n bytes, or as many of them as were captured. */
static inline zn_span zn_usual_take_captured(zn_cursor *c, size_t n)
{
    size_t left = zn_cursor_left(c);
    return zn_cursor_take(c, n < left ? n : left);
}

/* Behind the Ethernet header; *version is that of the IP header there, 0 when none comes. */
static inline uint64_t zn_usual_skip_ethernet(zn_cursor *c, unsigned *version)
{
    zn_span header = zn_cursor_take(c, ZN_USUAL_ETHERNET_BYTES);
    uint16_t type = header.n == 0 ? 0 : zn_header_be16(header, 12);
    uint64_t seen = 0;
    if (type == ZN_USUAL_ETHERTYPE_VLAN) {
        header = zn_cursor_take(c, ZN_USUAL_VLAN_TAG_BYTES);
        type = header.n == 0 ? 0 : zn_header_be16(header, 2);
        seen = UINT64_C(1) << (ZN_STAT_IN_VLAN - ZN_STAT_IN_FIRST);
    }
    *version = type == ZN_USUAL_ETHERTYPE_IPV4 ? 4 : type == ZN_USUAL_ETHERTYPE_IPV6 ? 6 : 0;
    return seen;
}

/* Narrows the cursor to the payload of an IP header. */
static inline void zn_usual_narrow(zn_cursor *c, uint32_t payload_wire)
{
    *c = zn_cursor_over_span(zn_usual_take_captured(c, payload_wire), true);
}

/* TCP's header, or nothing: an empty span. */
static inline zn_span zn_usual_read_tcp(zn_cursor *c, uint32_t wire, zn_packet *out)
{
    zn_span header = zn_cursor_take(c, ZN_USUAL_TCP_HEADER_BYTES);
    uint32_t bytes;
    if (header.n == 0)
        return header;
    bytes = (uint32_t)(zn_header_u8(header, 12) >> 4) * 4u;
    out->seq = zn_header_be32(header, 4);
    out->ack = zn_header_be32(header, 8);
    out->tcp_flags = zn_header_u8(header, 13);
    out->window = zn_header_be16(header, 14);
    if (ZN_UNLIKELY(bytes < ZN_USUAL_TCP_HEADER_BYTES || bytes > wire))
        header.n = 0;
    out->tcp_options = zn_usual_take_captured(c, bytes - ZN_USUAL_TCP_HEADER_BYTES);
    out->payload = zn_cursor_rest(c);
    out->payload_len = wire - bytes;
    return header;
}

/* The same of UDP, between ports that no tunnel uses. */
static inline zn_span zn_usual_read_udp(zn_cursor *c, uint32_t wire, zn_packet *out)
{
    zn_span header = zn_cursor_take(c, ZN_USUAL_UDP_HEADER_BYTES);
    uint16_t length;
    if (header.n == 0)
        return header;
    length = zn_header_be16(header, 4);
    if (length < ZN_USUAL_UDP_HEADER_BYTES || length > wire ||
        zn_layers_port(zn_header_be16(header, 0)) != ZN_HEADER_TRANSPORT ||
        zn_layers_port(zn_header_be16(header, 2)) != ZN_HEADER_TRANSPORT)
        header.n = 0;
    out->seq = out->ack = 0;
    out->window = 0;
    out->tcp_flags = 0;
    out->tcp_options = (zn_span){c->p, 0};
    out->payload_len = length - ZN_USUAL_UDP_HEADER_BYTES;
    out->payload = zn_usual_take_captured(c, out->payload_len);
    return header;
}

/* The transport header behind the cursor, or nothing. */
static inline zn_span zn_usual_read_transport(zn_cursor *c, uint8_t protocol, uint32_t wire,
                                              zn_packet *out)
{
    if (ZN_LIKELY(protocol == ZN_PROTO_TCP))
        return zn_usual_read_tcp(c, wire, out);
    return protocol == ZN_PROTO_UDP ? zn_usual_read_udp(c, wire, out) : (zn_span){c->p, 0};
}

static inline bool zn_usual_v4(zn_cursor *c, const zn_bucket_key *key, zn_packet *out)
{
    zn_span header = zn_cursor_take(c, ZN_USUAL_V4_HEADER_BYTES), transport;
    uint32_t wire;
    uint8_t protocol;
    if (header.n == 0 || zn_header_u8(header, 0) != ZN_USUAL_V4_START ||
        (zn_header_be16(header, 6) & ZN_USUAL_V4_FRAGMENT) != 0)
        return false;
    wire = zn_header_be16(header, 2);
    protocol = zn_header_u8(header, 9);
    if (wire < ZN_USUAL_V4_HEADER_BYTES)
        return false;
    wire -= ZN_USUAL_V4_HEADER_BYTES;
    out->ip_id = zn_header_be16(header, 4);
    out->ttl = zn_header_u8(header, 8);
    zn_usual_narrow(c, wire);
    transport = zn_usual_read_transport(c, protocol, wire, out);
    if (transport.n == 0)
        return false;
    zn_packet_set_tuple_v4(
        out, (zn_v4_end){zn_header_be32(header, 12), zn_header_be16(transport, 0)},
        (zn_v4_end){zn_header_be32(header, 16), zn_header_be16(transport, 2)}, protocol, key);
    return true;
}

static inline bool zn_usual_v6(zn_cursor *c, const zn_bucket_key *key, zn_packet *out)
{
    zn_span header = zn_cursor_take(c, ZN_USUAL_V6_HEADER_BYTES), transport;
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
    zn_usual_narrow(c, wire);
    transport = zn_usual_read_transport(c, protocol, wire, out);
    if (transport.n == 0)
        return false;
    src = (zn_addr_words){zn_header_word(header, 8), zn_header_word(header, 16)};
    dst = (zn_addr_words){zn_header_word(header, 24), zn_header_word(header, 32)};
    port[0] = zn_header_be16(transport, 0);
    port[1] = zn_header_be16(transport, 2);
    zn_packet_set_tuple(out, src, dst, port, protocol, key);
    return true;
}

/* As zn_packet_decode when that would return ZN_STAT_COUNT for a frame of this kind. False, and *out
 * means nothing, for every other frame: also for one that something is wrong with. */
static inline bool zn_packet_decode_usual(const zn_packet_input *in, const zn_bucket_key *key,
                                          zn_packet *out)
{
    zn_cursor c = zn_cursor_over_span(in->bytes, false);
    unsigned version;
    if (in->link_type != ZN_USUAL_LINK)
        return false;
    out->encapsulations = zn_usual_skip_ethernet(&c, &version);
    out->tunnel_count = 0;
    out->fragment = 0;
    if (ZN_LIKELY(version == 4))
        return zn_usual_v4(&c, key, out);
    return version == 6 && zn_usual_v6(&c, key, out);
}

#endif
