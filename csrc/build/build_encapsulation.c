/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build_encapsulation.h"

#include <endian.h>

#define V4_ADDRESS 12u /* offset of an IPv4 address in a zn_addr */
#define NONE 0u        /* this kind of header cannot come here */

enum {
    ETHERTYPE_IPV4 = 0x0800,
    ETHERTYPE_BRIDGING = 0x6558,
    ETHERTYPE_IPV6 = 0x86dd,
    ETHERTYPE_PPP = 0x880b,
    ETHERTYPE_MPLS = 0x8847,
    ETHERTYPE_PPPOE = 0x8864
};
enum { GRE_KEY = 0x2000, VXLAN_NETWORK = 0x08, VXLAN_NEXT = 0x04, LISP_INSTANCE = 0x08 };

/* ---- announced headers ----------------------------------------------------------------------- */

static bool is_v6(const zn_build_layer *l)
{
    return (l->flags & ZN_BUILD_LAYER_V6) != 0;
}

/* Returns the EtherType of a header. */
static uint32_t ethertype(const zn_build_layer *next)
{
    switch ((zn_layer_kind)next->kind) {
    case ZN_LAYER_IP:
        return is_v6(next) ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
    case ZN_LAYER_VLAN:
        return next->number;
    case ZN_LAYER_MPLS:
        return ETHERTYPE_MPLS;
    case ZN_LAYER_PPPOE:
        return ETHERTYPE_PPPOE;
    case ZN_LAYER_PPP:
        return ETHERTYPE_PPP;
    case ZN_LAYER_ETHERNET:
        return ETHERTYPE_BRIDGING;
    default:
        return NONE;
    }
}

/* Returns the IP protocol number of a header. */
static uint32_t ip_protocol(const zn_build_layer *next)
{
    switch ((zn_layer_kind)next->kind) {
    case ZN_LAYER_IP:
        return is_v6(next) ? 41 : 4;
    case ZN_LAYER_UDP:
        return ZN_PROTO_UDP;
    case ZN_LAYER_GRE:
        return 47;
    case ZN_LAYER_ETHERIP:
        return 97;
    case ZN_LAYER_MPLS:
        return 137;
    case ZN_LAYER_ETHERNET:
        return 143;
    default:
        return NONE;
    }
}

static uint32_t ppp_protocol(const zn_build_layer *next)
{
    if (next->kind == ZN_LAYER_IP)
        return is_v6(next) ? 0x0057 : 0x0021;
    return next->kind == ZN_LAYER_MPLS ? 0x0281 : NONE;
}

/* Returns the next protocol of VXLAN, or 1 for headers that need no next protocol. */
static uint32_t vxlan_next(const zn_build_layer *before, const zn_build_layer *next)
{
    if ((before->flags & ZN_BUILD_LAYER_NEXT) == 0)
        return next->kind == ZN_LAYER_ETHERNET;
    switch ((zn_layer_kind)next->kind) {
    case ZN_LAYER_IP:
        return is_v6(next) ? 2 : 1;
    case ZN_LAYER_ETHERNET:
        return 3;
    case ZN_LAYER_MPLS:
        return 5;
    default:
        return NONE;
    }
}

static bool follows_udp(zn_layer_kind next)
{
    switch (next) {
    case ZN_LAYER_VXLAN:
    case ZN_LAYER_GENEVE:
    case ZN_LAYER_GTP:
    case ZN_LAYER_L2TP:
    case ZN_LAYER_CAPWAP:
    case ZN_LAYER_LISP:
    case ZN_LAYER_MPLS: /* RFC 7510 */
    case ZN_LAYER_GRE:  /* RFC 8086 */
    case ZN_LAYER_IP:   /* Teredo, RFC 4380 */
        return true;
    default:
        return false;
    }
}

/* Returns the number by which a header announces the next header, or 1 if it has no such number.
 * Returns NONE if the next header cannot come there. */
static uint32_t announce(const zn_build_layer *before, const zn_build_layer *next)
{
    zn_layer_kind kind = (zn_layer_kind)next->kind;
    switch ((zn_layer_kind)before->kind) {
    case ZN_LAYER_ETHERNET:
    case ZN_LAYER_VLAN:
    case ZN_LAYER_GRE:
    case ZN_LAYER_GENEVE:
        return ethertype(next);
    case ZN_LAYER_MPLS:
        return kind == ZN_LAYER_MPLS || kind == ZN_LAYER_IP || kind == ZN_LAYER_CONTROL ||
               kind == ZN_LAYER_ETHERNET;
    case ZN_LAYER_IP:
        return ip_protocol(next);
    case ZN_LAYER_PPP:
        return ppp_protocol(next);
    case ZN_LAYER_PPPOE:
    case ZN_LAYER_L2TP:
        return kind == ZN_LAYER_PPP;
    case ZN_LAYER_UDP:
        return follows_udp(kind);
    case ZN_LAYER_VXLAN:
        return vxlan_next(before, next);
    case ZN_LAYER_CONTROL:
    case ZN_LAYER_ETHERIP:
    case ZN_LAYER_CAPWAP:
        return kind == ZN_LAYER_ETHERNET;
    case ZN_LAYER_GTP:
    case ZN_LAYER_LISP:
        return kind == ZN_LAYER_IP;
    case ZN_LAYER_NONE:
    case ZN_LAYER_OTHER:
        break;
    }
    return NONE;
}

static const zn_build_layer frame_start = {.kind = ZN_LAYER_ETHERNET};

bool zn_build_layer_follows(const zn_build_layer *before, const zn_build_layer *next)
{
    return announce(before != NULL ? before : &frame_start, next) != NONE;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint32_t bytes_of(const zn_build_layer *l)
{
    switch ((zn_layer_kind)l->kind) {
    case ZN_LAYER_ETHERNET:
        return ZN_BUILD_ETHERNET_BYTES;
    case ZN_LAYER_VLAN:
    case ZN_LAYER_MPLS:
    case ZN_LAYER_CONTROL:
        return 4;
    case ZN_LAYER_PPP:
        return (l->flags & ZN_BUILD_LAYER_FRAMED) != 0 ? 4 : 2;
    case ZN_LAYER_IP:
        return is_v6(l) ? 40 : 20;
    case ZN_LAYER_GRE:
        return (l->flags & ZN_BUILD_LAYER_HAS_ID) != 0 ? 8 : 4;
    case ZN_LAYER_ETHERIP:
        return 2;
    case ZN_LAYER_PPPOE:
    case ZN_LAYER_L2TP:
        return 6;
    case ZN_LAYER_UDP:
    case ZN_LAYER_VXLAN:
    case ZN_LAYER_GENEVE:
    case ZN_LAYER_GTP:
    case ZN_LAYER_CAPWAP:
    case ZN_LAYER_LISP:
        return 8;
    case ZN_LAYER_NONE:
    case ZN_LAYER_OTHER:
        break;
    }
    return 0;
}

uint32_t zn_build_encapsulation_bytes(const zn_build_encapsulation *e)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < ZN_LAYERS_MAX && e->layer[i].kind != ZN_LAYER_NONE; i++)
        n += bytes_of(&e->layer[i]);
    return n;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint8_t *put_be16(uint8_t *at, uint32_t value)
{
    uint16_t big = htobe16((uint16_t)value);
    memcpy(at, &big, sizeof big);
    return at + sizeof big;
}

static uint8_t *put_be32(uint8_t *at, uint32_t value)
{
    uint32_t big = htobe32(value);
    memcpy(at, &big, sizeof big);
    return at + sizeof big;
}

/* Writes the bytes of an address in its IP version. */
static uint8_t *put_address(uint8_t *at, const zn_addr *a, bool v6)
{
    size_t from = v6 ? 0 : V4_ADDRESS, n = sizeof a->byte - from;
    memcpy(at, a->byte + from, n);
    return at + n;
}

static uint8_t *put_ethernet(uint8_t *at, const zn_build_headers *h, uint32_t type)
{
    memcpy(at, h->mac[1], ZN_BUILD_MAC_BYTES);
    memcpy(at + ZN_BUILD_MAC_BYTES, h->mac[0], ZN_BUILD_MAC_BYTES);
    return put_be16(at + 2 * ZN_BUILD_MAC_BYTES, type);
}

/* Writes an IP header with a payload of `bytes` bytes. next is the protocol number of the
 * payload. */
static uint8_t *put_ip(uint8_t *at, const zn_build_layer *l, const zn_addr ends[2], uint32_t next,
                       uint32_t bytes)
{
    uint8_t *start = at;
    uint32_t tos = l->number >> 8, ttl = l->number & 0xff;
    if (is_v6(l)) {
        at = put_be32(at, UINT32_C(6) << 28 | tos << 20);
        at = put_be16(at, bytes);
        at = put_be16(at, next << 8 | ttl);
        at = put_address(at, &ends[0], true);
        return put_address(at, &ends[1], true);
    }
    at = put_be16(at, 0x4500 | tos);
    at = put_be16(at, bytes + 20);
    at = put_be16(at, 0); /* identification (RFC 6864 4.1) */
    at = put_be16(at, (l->flags & ZN_BUILD_LAYER_DONT_FRAGMENT) != 0 ? 0x4000 : 0);
    at = put_be16(at, ttl << 8 | next);
    at = put_be16(at, 0);
    at = put_address(at, &ends[0], false);
    at = put_address(at, &ends[1], false);
    (void)put_be16(start + 10, zn_build_checksum(zn_build_sum(0, start, 20)));
    return at;
}

/* Writes a header with an identifier, which announces `next` and is followed by `bytes` bytes. */
static uint8_t *put_tunnel(uint8_t *at, const zn_build_layer *l, uint32_t next, uint32_t bytes)
{
    bool has_id = (l->flags & ZN_BUILD_LAYER_HAS_ID) != 0;
    bool has_next = (l->flags & ZN_BUILD_LAYER_NEXT) != 0;
    switch ((zn_layer_kind)l->kind) {
    case ZN_LAYER_GRE:
        at = put_be32(at, (has_id ? (uint32_t)GRE_KEY : 0u) << 16 | next);
        return has_id ? put_be32(at, l->id) : at;
    case ZN_LAYER_VXLAN:
        at = put_be16(at, (VXLAN_NETWORK | (has_next ? VXLAN_NEXT : 0u)) << 8);
        at = put_be16(at, has_next ? next : 0);
        return put_be32(at, l->id << 8);
    case ZN_LAYER_GENEVE:
        at = put_be32(at, next);
        return put_be32(at, l->id << 8);
    case ZN_LAYER_GTP:
        at = put_be16(at, 0x30ff); /* version 1, packet of a user */
        at = put_be16(at, bytes);
        return put_be32(at, l->id);
    case ZN_LAYER_L2TP:
        at = put_be16(at, 0x0002); /* version 2, data */
        return put_be32(at, l->id);
    case ZN_LAYER_CAPWAP:
        at = put_be32(at, 0x00100200); /* two words, binding of 802.11; frames of 802.3 */
        return put_be32(at, 0);
    default: /* LISP */
        at = put_be32(at, has_id ? (uint32_t)LISP_INSTANCE << 24 : 0);
        return put_be32(at, has_id ? l->id << 8 : 0);
    }
}

/* Writes a header that announces `next` and is followed by `bytes` bytes. */
static uint8_t *put_layer(uint8_t *at, const zn_build_layer *l, const zn_build_headers *h,
                          uint32_t next, uint32_t bytes)
{
    switch ((zn_layer_kind)l->kind) {
    case ZN_LAYER_ETHERNET:
        return put_ethernet(at, h, next);
    case ZN_LAYER_VLAN:
        at = put_be16(at, l->id);
        return put_be16(at, next);
    case ZN_LAYER_MPLS:
        return put_be32(at, l->id);
    case ZN_LAYER_CONTROL:
        return put_be32(at, 0); /* no sequence number */
    case ZN_LAYER_PPPOE:
        at = put_be16(at, 0x1100); /* version 1, type 1, data of a session */
        at = put_be16(at, l->number);
        return put_be16(at, bytes);
    case ZN_LAYER_PPP:
        if ((l->flags & ZN_BUILD_LAYER_FRAMED) != 0)
            at = put_be16(at, 0xff03);
        return put_be16(at, next);
    case ZN_LAYER_UDP:
        at = put_be32(at, l->id);
        at = put_be16(at, bytes + ZN_BUILD_UDP_BYTES);
        return put_be16(at, 0);
    case ZN_LAYER_ETHERIP:
        return put_be16(at, 0x3000);
    default:
        return put_tunnel(at, l, next, bytes);
    }
}

/* UDP header whose checksum is not written yet. */
typedef struct open_udp {
    uint8_t *at;
    const zn_addr *ends; /* addresses of the IP header before it */
    bool v6;
} open_udp;

/* Writes the checksum of a datagram whose headers end at `end`. sum is the sum of the payload
 * behind them. */
static void close_udp(const open_udp *udp, const uint8_t *end, uint32_t sum)
{
    uint16_t bytes, checksum;
    size_t from = udp->v6 ? 0 : V4_ADDRESS;
    memcpy(&bytes, udp->at + 4, sizeof bytes);
    for (unsigned i = 0; i < 2; i++)
        sum = zn_build_sum(sum, udp->ends[i].byte + from, sizeof udp->ends[i].byte - from);
    sum = zn_build_sum(sum + ZN_PROTO_UDP + be16toh(bytes), udp->at, (size_t)(end - udp->at));
    checksum = zn_build_checksum(sum);
    (void)put_be16(udp->at + 6, checksum == 0 ? 0xffff : checksum); /* 0: no sum (RFC 768) */
}

void zn_build_encapsulation_put(const zn_build_encapsulation *e, const zn_build_headers *h,
                                uint32_t sum, uint8_t *out)
{
    const zn_build_layer packet = {.kind = ZN_LAYER_IP,
                                   .flags = zn_addr_is_v4(&h->src) ? 0 : ZN_BUILD_LAYER_V6};
    uint32_t headers = zn_build_encapsulation_bytes(e) + zn_build_headers_bytes(h);
    const uint8_t *headers_end = out + headers, *end = headers_end + h->payload_bytes;
    const zn_addr *ends = e->address;
    open_udp udp[ZN_LAYERS_MAX];
    unsigned udps = 0, n = 0;
    while (n < ZN_LAYERS_MAX && e->layer[n].kind != ZN_LAYER_NONE)
        n++;
    out = put_ethernet(out, h, ethertype(n != 0 ? &e->layer[0] : &packet));
    for (unsigned i = 0; i < n; i++) {
        const zn_build_layer *l = &e->layer[i], *next = i + 1 < n ? l + 1 : &packet;
        uint32_t bytes = (uint32_t)(end - out) - bytes_of(l), number = announce(l, next);
        if (l->kind == ZN_LAYER_IP) {
            out = put_ip(out, l, ends, number, bytes);
            ends += 2;
            continue;
        }
        if (l->kind == ZN_LAYER_UDP)
            udp[udps++] = (open_udp){out, ends - 2, is_v6(l - 1)};
        out = put_layer(out, l, h, number, bytes);
    }
    while (udps-- != 0) /* an outer checksum covers the inner checksums */
        close_udp(&udp[udps], headers_end, sum);
}
