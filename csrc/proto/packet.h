/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame to packet: link type, VLAN tags, IPv4 or IPv6 with options and extension headers, TCP or
 * UDP, into one zn_packet view. Whatever is not decoded is answered with the counter that names it.
 */
#ifndef ZN_PROTO_PACKET_H
#define ZN_PROTO_PACKET_H

#include "base/hash.h"
#include "base/packet.h"
#include "base/stats.h"

/* LINKTYPE_* values of the pcap registry that are decoded. */
enum {
    ZN_LINK_NULL = 0,
    ZN_LINK_ETHERNET = 1,
    ZN_LINK_RAW_BSD = 12, /* also written as 14 and 101 */
    ZN_LINK_RAW_OPENBSD = 14,
    ZN_LINK_RAW = 101,
    ZN_LINK_LOOP = 108,
    ZN_LINK_SLL = 113,
    ZN_LINK_IPV4 = 228,
    ZN_LINK_IPV6 = 229
};

/* What is decoded: captured bytes of one frame and how many there were on the wire. */
typedef struct zn_packet_input {
    zn_span bytes;
    uint32_t wire;
    uint32_t link_type;
} zn_packet_input;

/*
 * Decodes one frame into *out (all fields but t_ns) under the flow hash key. Returns ZN_STAT_COUNT
 * when out is a TCP or UDP packet, or else the ZN_STAT_DROP_* counter that says why it is not.
 */
zn_stat zn_packet_decode(const zn_packet_input *in, const zn_hash_key *key, zn_packet *out);

#endif
