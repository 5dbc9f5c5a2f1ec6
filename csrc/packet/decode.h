/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes a frame into one zn_packet: link type, tags and tunnels, IPv4 or IPv6 with options and
 * extension headers, TCP or UDP. The innermost IP packet is decoded. For a frame that cannot be
 * decoded, the counter of the reason is returned. docs/reference/decoding.md lists what is decoded.
 */
#ifndef ZN_PACKET_DECODE_H
#define ZN_PACKET_DECODE_H

#include "packet/decode_fast.h"
#include "packet/packet.h"
#include "util/hash.h"
#include "util/stats.h"

/* An IP fragment, or a datagram put together from fragments (offset 0, no more). `bytes`
 * borrows. */
typedef struct zn_fragment {
    zn_addr src, dst;
    uint32_t id;
    uint16_t offset;  /* of the bytes in the datagram */
    uint8_t protocol; /* of the datagram; with IPv6 only the first fragment's is valid */
    uint8_t ttl;
    bool v6;
    bool more;        /* further fragments follow it */
    uint16_t headers; /* bytes of the IP headers right before `bytes`; 0: they are gone */
    zn_span bytes;
} zn_fragment;

/* zn_packet_decode for frames of any kind, header by header: the slow path. */
zn_stat zn_packet_peel(const zn_packet_input *in, const zn_bucket_key *key, zn_packet *out,
                       zn_fragment *fragment);

/*
 * Decodes one frame into *out, all members but t_ns. out->outer must be set, with wants_layers true
 * if the layers are wanted. key: key of the flow hash. Returns ZN_STAT_COUNT if *out is a TCP or
 * UDP packet. Returns ZN_STAT_FRAGMENTS if *fragment is a whole fragment; *out then has only its
 * tunnels. Returns ZN_STAT_DROP_NOT_TCP_UDP if *out is an IP packet of another protocol, with the
 * protocol in its tuple, no ports, and its payload. Otherwise returns the ZN_STAT_DROP_* counter of
 * the reason. out->encapsulations is always set.
 *
 * A first fragment that the snapshot length cut cannot be reassembled: its captured part is
 * decoded.
 */
static inline zn_stat zn_packet_decode(const zn_packet_input *in, const zn_bucket_key *key,
                                       zn_packet *out, zn_fragment *fragment)
{
    return ZN_LIKELY(zn_packet_decode_fast(in, key, false, out))
               ? ZN_STAT_COUNT
               : zn_packet_peel(in, key, out, fragment);
}

/* Decodes a datagram reassembled from fragments as zn_packet_decode decodes a frame. The fragments
 * came in the tunnels that *out has. *fragment may be `datagram`. */
zn_stat zn_packet_decode_datagram(const zn_fragment *datagram, const zn_bucket_key *key,
                                  zn_packet *out, zn_fragment *fragment);

#endif
