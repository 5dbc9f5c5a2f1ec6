/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame is peeled from the outside: the link header leaves the cursor at the IP header, the IP
 * layer leaves it at the transport header. Each layer takes a cursor and says what comes next, so
 * that an encapsulation can be one more turn, never a nested call.
 *
 * An unreadable header ends the packet with a counter. A readable one whose data was cut off by the
 * snapshot length does not: lengths come from the headers, and the payload is what is there of it.
 */
#include "proto/packet.h"

#include "proto/ip.h"

#define VLAN_TAGS_MAX 2u
#define TCP_HEADER_BYTES 20u
#define UDP_HEADER_BYTES 8u

enum {
    ETHERTYPE_LENGTH_MAX = 1500, /* up to here the field is IEEE 802.3's length, and LLC follows */
    ETHERTYPE_IPV4 = 0x0800,
    ETHERTYPE_VLAN = 0x8100,
    ETHERTYPE_IPV6 = 0x86dd,
    ETHERTYPE_SERVICE_VLAN = 0x88a8,
    ETHERTYPE_OLD_SERVICE_VLAN = 0x9100
};

enum {
    PROTOCOL_IPIP = 4,
    PROTOCOL_IPV6 = 41,
    PROTOCOL_GRE = 47,
    PROTOCOL_ETHERIP = 97,
    PROTOCOL_L2TP = 115,
    PROTOCOL_MPLS = 137
};

/* What an IEEE 802.2 header announces: an EtherType, 0 when it is none of ours. */
static uint16_t read_llc(zn_cursor *c)
{
    uint32_t sap_and_control = zn_cursor_be24(c);
    uint32_t organization;
    if (sap_and_control == 0x060603) /* IP by its own SAP (RFC 948) */
        return ETHERTYPE_IPV4;
    if (sap_and_control != 0xaaaa03)
        return 0;
    organization = zn_cursor_be24(c); /* SNAP (RFC 1042), or 802.1H's tunnelled Ethernet */
    return organization == 0 || organization == 0x0000f8 ? zn_cursor_be16(c) : 0;
}

/* From an EtherType field to the IP header: VLAN tags and LLC. */
static zn_stat skip_to_ip(zn_cursor *c)
{
    for (unsigned tags = 0;; tags++) {
        uint16_t type = zn_cursor_be16(c);
        if (type <= ETHERTYPE_LENGTH_MAX)
            type = read_llc(c);
        if (!zn_cursor_ok(c))
            return ZN_STAT_DROP_LINK_TRUNCATED;
        if (type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6)
            return ZN_STAT_COUNT;
        if (type != ETHERTYPE_VLAN && type != ETHERTYPE_SERVICE_VLAN &&
            type != ETHERTYPE_OLD_SERVICE_VLAN)
            return ZN_STAT_DROP_NOT_IP;
        if (tags == VLAN_TAGS_MAX)
            return ZN_STAT_DROP_VLAN_DEPTH;
        zn_cursor_skip(c, 2);
    }
}

/* BSD loopback: an address family in the byte order of the machine that wrote the capture. */
static zn_stat skip_family(zn_cursor *c)
{
    uint32_t family = zn_cursor_be32(c);
    if (!zn_cursor_ok(c))
        return ZN_STAT_DROP_LINK_TRUNCATED;
    switch (family > UINT16_MAX ? __builtin_bswap32(family) : family) {
    case 2:  /* AF_INET everywhere */
    case 10: /* AF_INET6 of Linux, */
    case 24: /* of NetBSD and OpenBSD, */
    case 28: /* of FreeBSD, */
    case 30: /* of macOS */
        return ZN_STAT_COUNT;
    default:
        return ZN_STAT_DROP_NOT_IP;
    }
}

/* Leaves the cursor at the IP header. */
static zn_stat skip_link(uint32_t link_type, zn_cursor *c)
{
    switch (link_type) {
    case ZN_LINK_ETHERNET:
        zn_cursor_skip(c, 12); /* two MAC addresses */
        return skip_to_ip(c);
    case ZN_LINK_SLL:
        zn_cursor_skip(c, 14); /* packet type, ARPHRD type, address length, address */
        return skip_to_ip(c);
    case ZN_LINK_NULL:
    case ZN_LINK_LOOP:
        return skip_family(c);
    case ZN_LINK_RAW:
    case ZN_LINK_RAW_BSD:
    case ZN_LINK_RAW_OPENBSD:
    case ZN_LINK_IPV4:
    case ZN_LINK_IPV6:
        return ZN_STAT_COUNT;
    default:
        return ZN_STAT_DROP_LINK_TYPE;
    }
}

/* Sets the tuple, its hash and the side that sent the packet. */
static void set_tuple(const zn_ip *ip, const uint16_t port[2], const zn_hash_key *key,
                      zn_packet *out)
{
    int order = memcmp(ip->src.byte, ip->dst.byte, sizeof ip->src.byte);
    uint8_t sender = order > 0 || (order == 0 && port[0] > port[1]);
    uint64_t words[sizeof out->tuple / sizeof(uint64_t)];

    out->sender = sender;
    out->tuple.addr[sender] = ip->src;
    out->tuple.addr[sender ^ 1] = ip->dst;
    out->tuple.port[sender] = port[0];
    out->tuple.port[sender ^ 1] = port[1];
    out->tuple.proto = ip->protocol;
    memcpy(words, &out->tuple, sizeof words);
    out->hash = zn_hash_words(key, words, sizeof words / sizeof words[0]);
}

/* Why a transport header that does not fit its bytes is not decoded. */
static zn_stat misfit(const zn_ip *ip, const zn_cursor *c)
{
    if (ip->fragment)
        return ZN_STAT_DROP_IP_FRAGMENT;
    return c->state == ZN_CURSOR_SHORT ? ZN_STAT_DROP_TRANSPORT_TRUNCATED
                                       : ZN_STAT_DROP_TRANSPORT_MALFORMED;
}

/* The next n bytes, or as many of them as were captured. */
static zn_span take_captured(zn_cursor *c, size_t n)
{
    size_t left = zn_cursor_left(c);
    return zn_cursor_take(c, n < left ? n : left);
}

static zn_stat decode_tcp(const zn_ip *ip, uint16_t port[2], zn_packet *out)
{
    zn_cursor c = ip->payload;
    uint32_t header;
    uint16_t offset_and_flags;

    port[0] = zn_cursor_be16(&c);
    port[1] = zn_cursor_be16(&c);
    out->seq = zn_cursor_be32(&c);
    out->ack = zn_cursor_be32(&c);
    offset_and_flags = zn_cursor_be16(&c);
    out->window = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 4);
    header = (uint32_t)(offset_and_flags >> 12) * 4u;
    if (!zn_cursor_ok(&c))
        return misfit(ip, &c);
    if (header < TCP_HEADER_BYTES)
        return ZN_STAT_DROP_TRANSPORT_MALFORMED;
    if (header > ip->payload_wire)
        return misfit(ip, &c);
    out->tcp_flags = (uint8_t)offset_and_flags;
    out->tcp_options = take_captured(&c, header - TCP_HEADER_BYTES);
    out->payload = zn_cursor_rest(&c);
    out->payload_len = ip->payload_wire - header;
    return ZN_STAT_COUNT;
}

static zn_stat decode_udp(const zn_ip *ip, uint16_t port[2], zn_packet *out)
{
    zn_cursor c = ip->payload;
    uint32_t length;

    port[0] = zn_cursor_be16(&c);
    port[1] = zn_cursor_be16(&c);
    length = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 2);
    if (!zn_cursor_ok(&c))
        return misfit(ip, &c);
    if (length == 0 || (ip->fragment && length > ip->payload_wire)) /* RFC 2675: a jumbogram */
        length = ip->payload_wire;
    /* A receiver drops a datagram that is longer than the packet it came in: so do we. */
    if (length < UDP_HEADER_BYTES || length > ip->payload_wire)
        return ZN_STAT_DROP_TRANSPORT_MALFORMED;
    out->seq = out->ack = 0;
    out->window = 0;
    out->tcp_flags = 0;
    out->tcp_options = (zn_span){c.p, 0};
    out->payload_len = length - UDP_HEADER_BYTES;
    out->payload = take_captured(&c, out->payload_len);
    return ZN_STAT_COUNT;
}

/* What the IP packet carries, as a transport header. */
static zn_stat decode_transport(const zn_ip *ip, uint16_t port[2], zn_packet *out)
{
    switch (ip->protocol) {
    case ZN_PROTO_TCP:
        return decode_tcp(ip, port, out);
    case ZN_PROTO_UDP:
        return decode_udp(ip, port, out);
    case PROTOCOL_IPIP:
    case PROTOCOL_IPV6:
    case PROTOCOL_GRE:
    case PROTOCOL_ETHERIP:
    case PROTOCOL_L2TP:
    case PROTOCOL_MPLS:
        return ZN_STAT_DROP_IP_ENCAPSULATED;
    default:
        return ZN_STAT_DROP_NOT_TCP_UDP;
    }
}

zn_stat zn_packet_decode(const zn_packet_input *in, const zn_hash_key *key, zn_packet *out)
{
    uint32_t captured = (uint32_t)in->bytes.n;
    uint32_t wire = in->wire > captured ? in->wire : captured;
    zn_cursor c = zn_cursor_over_span(in->bytes, wire == captured);
    uint16_t port[2];
    zn_ip ip;
    zn_stat why;

    why = skip_link(in->link_type, &c);
    if (why != ZN_STAT_COUNT)
        return why;
    why = zn_ip_decode(&c, wire - (captured - (uint32_t)zn_cursor_left(&c)), &ip);
    if (why != ZN_STAT_COUNT)
        return why;
    why = decode_transport(&ip, port, out);
    if (why != ZN_STAT_COUNT)
        return why;
    out->ttl = ip.ttl;
    out->ip_id = ip.id;
    out->fragment = ip.fragment;
    set_tuple(&ip, port, key, out);
    return ZN_STAT_COUNT;
}
