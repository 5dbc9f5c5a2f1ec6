/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The 5-tuple of a packet and its hash: shared by packet.c and packet_usual.c. */
#ifndef ZN_PROTO_PACKET_TUPLE_H
#define ZN_PROTO_PACKET_TUPLE_H

#include "base/packet.h"
#include "base/siphash.h"

#include <endian.h>

/* An address as its two words in memory order. */
typedef struct zn_addr_words {
    uint64_t high, low;
} zn_addr_words;

/* The first eight bytes are zero and the next four those of an IPv4-mapped address. */
static inline bool zn_addr_words_are_v4(zn_addr_words a)
{
    return a.high == 0 && be64toh(a.low) >> 32 == 0xffff;
}

/* a comes behind b, as memcmp orders the bytes. */
static inline bool zn_addr_words_behind(zn_addr_words a, zn_addr_words b)
{
    if (a.high != b.high)
        return be64toh(a.high) > be64toh(b.high);
    return be64toh(a.low) > be64toh(b.low);
}

/* SipHash-1-3 of a tuple: of two IPv4 addresses only the bytes that are not the same in all. */
static inline uint64_t zn_tuple_hash(const zn_hash_key *key, zn_addr_words a, zn_addr_words b,
                                     uint64_t ports_and_proto)
{
    zn_sip s = zn_sip_start(key);
    if (zn_addr_words_are_v4(a) && zn_addr_words_are_v4(b)) {
        zn_sip_absorb(&s, be64toh(a.low) << 32 | (be64toh(b.low) & UINT32_MAX));
        zn_sip_absorb(&s, ports_and_proto);
        return zn_sip_words_end(&s, 2);
    }
    zn_sip_absorb(&s, a.high);
    zn_sip_absorb(&s, a.low);
    zn_sip_absorb(&s, b.high);
    zn_sip_absorb(&s, b.low);
    zn_sip_absorb(&s, ports_and_proto);
    return zn_sip_words_end(&s, 5);
}

/* Sets the tuple, its hash and the side that sent the packet. Word by word in registers: reading a
 * value back right after it was stored in parts costs more than all the rest of this function. */
static inline void zn_packet_set_tuple(zn_packet *out, zn_addr_words src, zn_addr_words dst,
                                       const uint16_t port[2], uint32_t proto,
                                       const zn_hash_key *key)
{
    bool same = src.high == dst.high && src.low == dst.low;
    bool sender = same ? port[0] > port[1] : zn_addr_words_behind(src, dst);
    zn_addr_words first, second;
    uint16_t first_port = sender ? port[1] : port[0], second_port = sender ? port[0] : port[1];
    uint8_t *at = out->tuple.addr[0].byte, *behind = out->tuple.addr[1].byte;
    first.high = sender ? dst.high : src.high;
    first.low = sender ? dst.low : src.low;
    second.high = sender ? src.high : dst.high;
    second.low = sender ? src.low : dst.low;
    memcpy(at, &first.high, sizeof first.high);
    memcpy(at + sizeof first.high, &first.low, sizeof first.low);
    memcpy(behind, &second.high, sizeof second.high);
    memcpy(behind + sizeof second.high, &second.low, sizeof second.low);
    out->sender = sender;
    out->tuple.port[0] = first_port;
    out->tuple.port[1] = second_port;
    out->tuple.proto = proto;
    out->hash = zn_tuple_hash(key, first, second,
                              (uint64_t)proto << 32 | (uint64_t)first_port << 16 | second_port);
}

#endif
