/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes most frames inline, without peeling: an Ethernet header with at most one VLAN tag, IPv4
 * without options or IPv6 without extension headers, no fragment, and TCP, or UDP between ports
 * that no tunnel uses.
 */
#ifndef ZN_PACKET_DECODE_FAST_H
#define ZN_PACKET_DECODE_FAST_H

#include "packet/layers.h"
#include "packet/tuple.h"

/* One frame: its captured bytes, and how many bytes there were on the wire. */
typedef struct zn_packet_input {
    zn_span bytes;
    uint32_t wire;
    uint32_t link_type; /* LINKTYPE_* of the pcap registry */
} zn_packet_input;

#define ZN_FAST_LINK 1
#define ZN_FAST_ETHERTYPE_IPV4 0x0800
#define ZN_FAST_ETHERTYPE_IPV6 0x86dd
#define ZN_FAST_ETHERTYPE_VLAN 0x8100
#define ZN_FAST_ETHERNET_BYTES 14u
#define ZN_FAST_VLAN_TAG_BYTES 4u
#define ZN_FAST_V4_HEADER_BYTES 20u
#define ZN_FAST_V6_HEADER_BYTES 40u
#define ZN_FAST_TCP_HEADER_BYTES 20u
#define ZN_FAST_UDP_HEADER_BYTES 8u
#define ZN_FAST_LEAST_BYTES                                                                        \
    (ZN_FAST_ETHERNET_BYTES + ZN_FAST_VLAN_TAG_BYTES + ZN_FAST_V4_HEADER_BYTES)
#define ZN_FAST_V4_START 0x45       /* version 4, a header without options */
#define ZN_FAST_V4_FRAGMENT 0x3fffu /* the bits of more fragments and of the offset */

/* Decodes the header and payload of a TCP segment that had `wire` bytes; false when it is no valid
 * one, or cut inside its first 20 bytes. */
static inline bool zn_decode_fast_tcp(zn_span segment, uint32_t wire, zn_packet *out)
{
    uint32_t header;
    size_t captured;
    if (segment.n < ZN_FAST_TCP_HEADER_BYTES)
        return false;
    captured = header = (uint32_t)(zn_header_u8(segment, 12) >> 4) * 4u;
    if (header < ZN_FAST_TCP_HEADER_BYTES)
        return false;
    if (ZN_UNLIKELY(header > segment.n)) { /* cut, or longer than the segment */
        if (header > wire)
            return false;
        captured = segment.n;
    }
    out->seq = zn_header_be32(segment, 4);
    out->ack = zn_header_be32(segment, 8);
    out->tcp_flags = zn_header_u8(segment, 13);
    out->window = zn_header_be16(segment, 14);
    zn_packet_set_payload(out, zn_span_after(segment, captured));
    out->payload_len = wire - header;
    out->options = (uint8_t)(captured - ZN_FAST_TCP_HEADER_BYTES);
    return true;
}

/* Decodes a UDP datagram as the function above decodes a TCP segment. Returns false also if a port
 * belongs to a tunnel. */
static inline bool zn_decode_fast_udp(zn_span datagram, uint32_t wire, zn_packet *out)
{
    const zn_tunnel_ports *ports = out->outer->ports;
    uint16_t length;
    if (datagram.n < ZN_FAST_UDP_HEADER_BYTES)
        return false;
    length = zn_header_be16(datagram, 4);
    if (length < ZN_FAST_UDP_HEADER_BYTES || length > wire ||
        zn_layers_port(ports, zn_header_be16(datagram, 0)) != ZN_HEADER_TRANSPORT ||
        zn_layers_port(ports, zn_header_be16(datagram, 2)) != ZN_HEADER_TRANSPORT)
        return false;
    out->seq = out->ack = 0;
    out->window = 0;
    out->tcp_flags = 0;
    out->payload_len = length - ZN_FAST_UDP_HEADER_BYTES;
    out->options = 0;
    zn_packet_set_payload(
        out, zn_span_first(zn_span_after(datagram, ZN_FAST_UDP_HEADER_BYTES), out->payload_len));
    return true;
}

/* Decodes the transport header and payload in an IP packet's payload, which had `wire` bytes. */
static inline bool zn_decode_fast_transport(zn_span payload, uint8_t protocol, uint32_t wire,
                                            zn_packet *out)
{
    if (ZN_LIKELY(protocol == ZN_PROTO_TCP))
        return zn_decode_fast_tcp(payload, wire, out);
    return protocol == ZN_PROTO_UDP && zn_decode_fast_udp(payload, wire, out);
}

/* `packet` has at least ZN_FAST_V4_HEADER_BYTES. */
static inline bool zn_decode_fast_v4(zn_span packet, const zn_bucket_key *key, zn_packet *out)
{
    zn_span payload = zn_span_after(packet, ZN_FAST_V4_HEADER_BYTES);
    uint32_t bytes = zn_header_be16(packet, 2), wire = bytes - ZN_FAST_V4_HEADER_BYTES;
    uint8_t protocol = zn_header_u8(packet, 9);
    if (zn_header_u8(packet, 0) != ZN_FAST_V4_START || bytes < ZN_FAST_V4_HEADER_BYTES ||
        (zn_header_be16(packet, 6) & ZN_FAST_V4_FRAGMENT) != 0 ||
        !zn_decode_fast_transport(zn_span_first(payload, wire), protocol, wire, out))
        return false;
    out->ip_id = zn_header_be16(packet, 4);
    out->ip_bytes = ZN_FAST_V4_HEADER_BYTES;
    out->ttl = zn_header_u8(packet, 8);
    zn_packet_set_tuple_v4(out, be64toh(zn_header_word(packet, 12)), zn_header_be32(payload, 0),
                           protocol, key);
    return true;
}

static inline bool zn_decode_fast_v6(zn_span packet, const zn_bucket_key *key, zn_packet *out)
{
    zn_span payload;
    zn_addr_words src, dst;
    uint32_t wire;
    uint8_t protocol;
    if (packet.n < ZN_FAST_V6_HEADER_BYTES || zn_header_u8(packet, 0) >> 4 != 6)
        return false;
    payload = zn_span_after(packet, ZN_FAST_V6_HEADER_BYTES);
    wire = zn_header_be16(packet, 4);
    protocol = zn_header_u8(packet, 6);
    if (wire == 0 || /* a jumbogram, or too long before segmentation */
        !zn_decode_fast_transport(zn_span_first(payload, wire), protocol, wire, out))
        return false;
    out->ip_id = 0;
    out->ip_bytes = ZN_FAST_V6_HEADER_BYTES;
    out->ttl = zn_header_u8(packet, 7);
    src = (zn_addr_words){zn_header_word(packet, 8), zn_header_word(packet, 16)};
    dst = (zn_addr_words){zn_header_word(packet, 24), zn_header_word(packet, 32)};
    zn_packet_set_tuple(out, src, dst, zn_header_be32(payload, 0), protocol, key);
    return true;
}

/* Decodes a frame of this kind as zn_packet_decode does when that returns ZN_STAT_COUNT. Returns
 * false, and leaves *out without meaning, for every other frame: also for a malformed one, and for
 * one with a tag where layers are noted, which this does not. */
static inline bool zn_packet_decode_fast(const zn_packet_input *in, const zn_bucket_key *key,
                                         bool notes_layers, zn_packet *out)
{
    size_t header = ZN_FAST_ETHERNET_BYTES;
    uint32_t seen = 0;
    uint16_t type;
    zn_span packet;
    if (in->link_type != ZN_FAST_LINK || in->bytes.n < ZN_FAST_LEAST_BYTES)
        return false;
    type = zn_header_be16(in->bytes, 12);
    if (ZN_UNLIKELY(type == ZN_FAST_ETHERTYPE_VLAN)) {
        if (notes_layers)
            return false;
        type = zn_header_be16(in->bytes, 16);
        header += ZN_FAST_VLAN_TAG_BYTES;
        seen = UINT32_C(1) << (ZN_STAT_IN_VLAN - ZN_STAT_IN_FIRST);
    }
    packet = zn_span_after(in->bytes, header);
    out->encapsulations = seen;
    out->tunnel_count = 0;
    out->fragment = 0;
    if (ZN_LIKELY(type == ZN_FAST_ETHERTYPE_IPV4))
        return zn_decode_fast_v4(packet, key, out);
    return type == ZN_FAST_ETHERTYPE_IPV6 && zn_decode_fast_v6(packet, key, out);
}

#endif
