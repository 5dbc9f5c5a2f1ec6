/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One decoded packet: what proto/packet finds, and state/ and anon/ work on. A view: spans borrow
 * the frame's bytes.
 *
 * The 5-tuple is canonical: both directions of a flow give the same zn_tuple, with the smaller
 * (address, port) pair as side 0. `sender` says which side sent this packet.
 */
#ifndef ZN_BASE_PACKET_H
#define ZN_BASE_PACKET_H

#include "base/addr.h"
#include "base/cursor.h"

#define ZN_PROTO_TCP 6
#define ZN_PROTO_UDP 17

enum {
    ZN_TCP_FIN = 0x01,
    ZN_TCP_SYN = 0x02,
    ZN_TCP_RST = 0x04,
    ZN_TCP_PSH = 0x08,
    ZN_TCP_ACK = 0x10
};

/* Hashed as 5 whole words, so it has no padding. */
typedef struct zn_tuple {
    zn_addr addr[2];
    uint16_t port[2];
    uint32_t proto; /* ZN_PROTO_TCP or ZN_PROTO_UDP */
} zn_tuple;
_Static_assert(sizeof(zn_tuple) == 40, "zn_tuple is hashed as five words");

#define ZN_TUNNELS_MAX 3 /* IP headers around the innermost one */

/* The addresses of an IP header around the innermost one. */
typedef struct zn_tunnel {
    zn_addr end[2]; /* source and destination */
} zn_tunnel;

/* Two cache lines: packets are handed from one processor to another. */
typedef struct zn_packet {
    int64_t t_ns; /* ns since the Unix epoch */
    zn_tuple tuple;
    uint64_t hash;        /* keyed hash of the tuple; the same for both directions */
    uint8_t sender;       /* 0 or 1: index into tuple.addr and tuple.port */
    uint8_t ttl;          /* IPv4 TTL or IPv6 hop limit */
    uint8_t tcp_flags;    /* ZN_TCP_*; 0 for UDP */
    uint8_t fragment;     /* 1: first fragment of a datagram, cut, so that the rest is of no use */
    uint16_t window;      /* TCP window as sent, unscaled */
    uint16_t ip_id;       /* IPv4 identification; 0 for IPv6 */
    uint32_t seq, ack;    /* TCP, host order */
    uint32_t payload_len; /* bytes of transport payload on the wire, from the IP header */
    uint32_t tunnel_count;
    zn_span payload; /* the captured part of it: payload.n <= payload_len */
    zn_span tcp_options;
    uint64_t encapsulations; /* bit i: counter ZN_STAT_IN_FIRST + i has one more frame */
    zn_tunnel *tunnels;      /* the outermost first: ZN_TUNNELS_MAX places, set before decoding */
} zn_packet;
_Static_assert(sizeof(zn_packet) == 128, "a packet takes two cache lines");

/* True when every payload byte that was on the wire was captured. */
static inline bool zn_packet_payload_whole(const zn_packet *p)
{
    return p->payload.n == p->payload_len && p->fragment == 0;
}

#endif
