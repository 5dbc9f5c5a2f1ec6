/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One decoded packet, which packet/decode fills and flow/ and analyzer/ read. Its spans borrow the
 * frame's bytes.
 *
 * The 5-tuple is canonical: both directions of a flow give the same zn_tuple, with the smaller
 * (address, port) pair as side 0. `sender` is the side that sent this packet.
 */
#ifndef ZN_PACKET_PACKET_H
#define ZN_PACKET_PACKET_H

#include "packet/layer_stack.h"
#include "util/addr.h"
#include "util/cursor.h"
#include "util/protocol.h"

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

/* UDP ports that carry a tunnel, beside the ports that are always known. */
#define ZN_TUNNEL_PORTS_MAX 16
typedef struct zn_tunnel_ports {
    uint32_t n;
    uint16_t port[ZN_TUNNEL_PORTS_MAX];
    uint8_t header[ZN_TUNNEL_PORTS_MAX]; /* zn_header of the tunnel */
} zn_tunnel_ports;

/* Headers around the innermost IP packet. */
typedef struct zn_packet_outer {
    const zn_tunnel_ports *ports;      /* set before decoding; NULL: no further ports */
    zn_tunnel tunnels[ZN_TUNNELS_MAX]; /* the outermost first */
    bool wants_layers;                 /* set before decoding */
    zn_layer_stack layers; /* with wants_layers, and of a packet that has encapsulations */
} zn_packet_outer;

/* Number of first bytes of a payload that show which protocol begins, if any. */
#define ZN_PACKET_START 12

/* Two cache lines, as packets are handed from one processor to another. */
typedef struct zn_packet {
    int64_t t_ns; /* ns since the Unix epoch */
    zn_tuple tuple;
    uint64_t hash;     /* keyed hash of the tuple, equal for both directions */
    uint8_t sender;    /* 0 or 1: index into tuple.addr and tuple.port */
    uint8_t ttl;       /* IPv4 TTL or IPv6 hop limit */
    uint8_t tcp_flags; /* ZN_TCP_*; 0 for UDP */
    uint8_t fragment;  /* 1: a first fragment that was cut, so its datagram is never put together */
    uint8_t tunnel_count;
    uint8_t options;   /* bytes of TCP options, right before the payload */
    uint16_t window;   /* TCP window as sent, unscaled */
    uint16_t ip_id;    /* IPv4 identification; 0 for IPv6 */
    uint16_t ip_bytes; /* IP headers right before the transport header; 0: these bytes are gone */
    uint32_t seq, ack; /* TCP, host order */
    uint32_t payload_len;          /* bytes of transport payload on the wire, from the IP header */
    zn_span payload;               /* its captured part: payload.n <= payload_len */
    const uint8_t *start;          /* payload.p, or `copy` */
    zn_packet_outer *outer;        /* set before decoding */
    uint32_t encapsulations;       /* bit i: the frame counts in counter ZN_STAT_IN_FIRST + i */
    uint8_t copy[ZN_PACKET_START]; /* the payload's first bytes, when `start` points here */
} zn_packet;
_Static_assert(sizeof(zn_packet) == 2 * ZN_CACHE_LINE, "a packet takes two cache lines");

/* Returns whether the packet is of a protocol that has flows. */
static inline bool zn_packet_is_of_flow(const zn_packet *p)
{
    return p->tuple.proto == ZN_PROTO_TCP || p->tuple.proto == ZN_PROTO_UDP;
}

static inline void zn_packet_set_payload(zn_packet *p, zn_span payload)
{
    p->payload = payload;
    p->start = payload.p;
}

/* Copies the payload's first bytes into the packet. Most payloads are not read further, and their
 * bytes lie in the cache of the processor that decoded the packet. */
static inline void zn_packet_copy_start(zn_packet *p)
{
    if (ZN_LIKELY(p->payload.n >= ZN_PACKET_START)) {
        memcpy(p->copy, p->payload.p, ZN_PACKET_START);
        p->start = p->copy;
    }
}

/* Returns the payload's first bytes, up to ZN_PACKET_START. Readers that need no more use this
 * instead of the payload. */
static inline zn_span zn_packet_start(const zn_packet *p)
{
    return zn_span_first((zn_span){p->start, p->payload.n}, ZN_PACKET_START);
}

static inline zn_span zn_packet_tcp_options(const zn_packet *p)
{
    return (zn_span){p->payload.p - p->options, p->options};
}

/* Returns the headers of the IP packet that carries the transport header, or what else; empty when
 * their bytes are gone, as a datagram was put together from fragments. */
static inline zn_span zn_packet_ip_headers(const zn_packet *p)
{
    size_t transport = p->tuple.proto == ZN_PROTO_TCP   ? 20u + p->options
                       : p->tuple.proto == ZN_PROTO_UDP ? 8u
                                                        : 0u;
    if (p->ip_bytes == 0)
        return (zn_span){NULL, 0};
    return (zn_span){p->payload.p - transport - p->ip_bytes, p->ip_bytes};
}

/* Returns how far a TCP sequence number is ahead of another; negative: behind it. Numbers wrap (RFC
 * 9293 3.4), so the answer has no meaning for numbers that are 2^31 or more apart. */
static inline int32_t zn_seq_ahead(uint32_t seq, uint32_t of)
{
    return (int32_t)(seq - of);
}

/* Returns true when every payload byte on the wire was captured. */
static inline bool zn_packet_payload_whole(const zn_packet *p)
{
    return p->payload.n == p->payload_len && p->fragment == 0;
}

#endif
