/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame to packet: link type, tags and tunnels, IPv4 or IPv6 with options and extension headers,
 * TCP or UDP, into one zn_packet view. The innermost IP packet is the one that counts. Whatever is
 * not decoded is answered with the counter that names it. docs/reference/decoding.md lists what is.
 */
#ifndef ZN_PACKET_DECODE_H
#define ZN_PACKET_DECODE_H

#include "packet/decode_fast.h"
#include "packet/packet.h"
#include "util/hash.h"
#include "util/stats.h"

/* A fragment, or a datagram put together (offset 0, no more). `bytes` borrows. */
typedef struct zn_fragment {
    zn_addr src, dst;
    uint32_t id;
    uint16_t offset;  /* of the bytes in the datagram */
    uint8_t protocol; /* of the datagram; of IPv6 only the first fragment's counts */
    uint8_t ttl;
    bool v6;
    bool more; /* not the last */
    zn_span bytes;
} zn_fragment;

/* zn_packet_decode header by header, whatever the frame is. */
zn_stat zn_packet_peel(const zn_packet_input *in, const zn_bucket_key *key, zn_packet *out,
                       zn_fragment *fragment);

/*
 * Decodes one frame into *out (all fields but t_ns; its `tunnels` points to room) under the flow
 * hash key. Returns ZN_STAT_COUNT when out is a TCP or UDP packet; ZN_STAT_FRAGMENTS when *fragment
 * is one, whole, and *out only says in which tunnels; or else the ZN_STAT_DROP_* counter that says
 * why it is neither. In every case out->encapsulations is set.
 *
 * A first fragment that was cut cannot be put together: it is decoded as far as it goes.
 */
static inline zn_stat zn_packet_decode(const zn_packet_input *in, const zn_bucket_key *key,
                                       zn_packet *out, zn_fragment *fragment)
{
    return ZN_LIKELY(zn_packet_decode_fast(in, key, out)) ? ZN_STAT_COUNT
                                                          : zn_packet_peel(in, key, out, fragment);
}

/* As zn_packet_decode, of a datagram put together that came in the tunnels that *out names.
 * *fragment may be `datagram`. */
zn_stat zn_packet_decode_datagram(const zn_fragment *datagram, const zn_bucket_key *key,
                                  zn_packet *out, zn_fragment *fragment);

#endif
