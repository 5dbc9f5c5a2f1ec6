/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds Ethernet frames of IPv4 (RFC 791) or IPv6 (RFC 8200) with TCP (RFC 9293) or UDP (RFC 768)
 * from their fields, and fragments of UDP datagrams. The only IPv6 extension header is the fragment
 * header, and IPv4 options are not built. Checksums are computed over the written bytes and never
 * copied.
 */
#ifndef ZN_BUILD_BUILD_IP_H
#define ZN_BUILD_BUILD_IP_H

#include "util/addr.h"
#include "util/cursor.h"
#include "util/protocol.h"

#define ZN_BUILD_ETHERNET_BYTES 14u
#define ZN_BUILD_FRAME_MIN 60u /* bytes of the shortest frame, without its check sequence */
#define ZN_BUILD_OPTIONS_MAX 40u
#define ZN_BUILD_MAC_BYTES 6u
/* most bytes that zn_build_headers_put writes */
#define ZN_BUILD_HEADERS_MAX (ZN_BUILD_ETHERNET_BYTES + 40u + 20u + ZN_BUILD_OPTIONS_MAX)

/* Fields of a frame. Both addresses have the same IP version. */
typedef struct zn_build_headers {
    const uint8_t *mac[2]; /* source and destination, ZN_BUILD_MAC_BYTES each */
    zn_addr src, dst;
    uint16_t src_port, dst_port;
    uint16_t ip_id; /* IPv4 */
    uint8_t proto;  /* other protocols than TCP and UDP have no transport header */
    uint8_t tos;    /* DSCP and ECN */
    uint8_t ttl;    /* or hop limit */
    bool dont_fragment;
    /* TCP */
    uint8_t tcp_flags;
    uint8_t option_bytes; /* a multiple of 4, <= ZN_BUILD_OPTIONS_MAX */
    const uint8_t *options;
    uint16_t window;
    uint32_t seq, ack;
    uint32_t payload_bytes;
    /* Fragment. Only the first fragment has a UDP header. The payload of all fragments is zeros. */
    uint32_t datagram_bytes; /* bytes of the whole datagram; 0: not a fragment */
    uint32_t fragment_id;
    uint16_t fragment_offset; /* a multiple of 8 */
    bool more_fragments;
} zn_build_headers;

#define ZN_BUILD_FRAGMENT_BYTES 8u /* bytes of an IPv6 fragment header */
#define ZN_BUILD_UDP_BYTES 8u

/* Returns the bytes of the IP headers of a frame. */
static inline uint32_t zn_build_ip_bytes(const zn_build_headers *h)
{
    return zn_addr_is_v4(&h->src) ? 20u
                                  : 40u + (h->datagram_bytes != 0 ? ZN_BUILD_FRAGMENT_BYTES : 0u);
}

/* Returns the bytes of all headers of a frame. */
static inline uint32_t zn_build_headers_bytes(const zn_build_headers *h)
{
    uint32_t transport = h->fragment_offset != 0    ? 0u
                         : h->proto == ZN_PROTO_TCP ? 20u + h->option_bytes
                         : h->proto == ZN_PROTO_UDP ? ZN_BUILD_UDP_BYTES
                                                    : 0u;
    return ZN_BUILD_ETHERNET_BYTES + zn_build_ip_bytes(h) + transport;
}

/* Returns true if the length fields can hold the length of the packet. */
static inline bool zn_build_headers_fit(const zn_build_headers *h)
{
    uint32_t bytes = zn_build_headers_bytes(h) - ZN_BUILD_ETHERNET_BYTES + h->payload_bytes;
    return bytes <= UINT16_MAX + (zn_addr_is_v4(&h->src) ? 0u : 40u);
}

/* Writes the headers, zn_build_headers_bytes bytes. sum is zn_build_sum of the payload, 0 for a
 * payload of zeros. Returns the end of the headers. */
uint8_t *zn_build_headers_put(const zn_build_headers *h, uint32_t sum, uint8_t *out);

/* Adds the 16-bit words of n bytes at p to a sum for a checksum (RFC 1071). An odd last byte counts
 * as the first byte of a word. */
uint32_t zn_build_sum(uint32_t sum, const uint8_t *p, size_t n);
/* Returns the checksum of a sum. */
uint16_t zn_build_checksum(uint32_t sum);

#endif
