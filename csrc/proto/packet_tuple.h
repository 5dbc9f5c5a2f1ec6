/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The 5-tuple of a packet and its hash: shared by packet.c and packet_usual.h. */
#ifndef ZN_PROTO_PACKET_TUPLE_H
#define ZN_PROTO_PACKET_TUPLE_H

#include "base/bucket_hash.h"
#include "base/packet.h"

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

#define ZN_TUPLE_V4_BYTES 13 /* of its two addresses, ports and protocol */
#define ZN_TUPLE_V6_BYTES 37

/* The ports, the protocol and how many bytes a tuple has: what is hashed beside its addresses, of which
 * those of IPv4 are hashed without the bytes that are the same in all. */
static inline uint64_t zn_tuple_last_word(uint64_t bytes, uint32_t proto, uint16_t first_port,
                                          uint16_t second_port)
{
    return bytes << 56 | (uint64_t)proto << 32 | (uint64_t)first_port << 16 | second_port;
}

/* One end of a packet of IPv4. */
typedef struct zn_v4_end {
    uint32_t address;
    uint16_t port;
} zn_v4_end;

/* zn_packet_set_tuple for IPv4. */
static inline void zn_packet_set_tuple_v4(zn_packet *out, zn_v4_end src, zn_v4_end dst,
                                          uint32_t proto, const zn_bucket_key *key)
{
    uint64_t from = (uint64_t)src.address << 16 | src.port;
    uint64_t to = (uint64_t)dst.address << 16 | dst.port;
    uint64_t first = from > to ? to : from, second = from > to ? from : to;
    uint64_t a = htobe64(UINT64_C(0xffff) << 32 | first >> 16);
    uint64_t b = htobe64(UINT64_C(0xffff) << 32 | second >> 16);
    uint64_t both = first >> 16 << 32 | second >> 16;
    uint8_t *at = out->tuple.addr[0].byte, *behind = out->tuple.addr[1].byte;
    memset(at, 0, sizeof a);
    memcpy(at + sizeof a, &a, sizeof a);
    memset(behind, 0, sizeof b);
    memcpy(behind + sizeof b, &b, sizeof b);
    out->sender = from > to;
    out->tuple.port[0] = (uint16_t)first;
    out->tuple.port[1] = (uint16_t)second;
    out->tuple.proto = proto;
    out->hash = zn_bucket_hash2(
        key, both, zn_tuple_last_word(ZN_TUPLE_V4_BYTES, proto, (uint16_t)first, (uint16_t)second));
}

/* Sets the tuple, its hash and the side that sent the packet. */
static inline void zn_packet_set_tuple(zn_packet *out, zn_addr_words src, zn_addr_words dst,
                                       const uint16_t port[2], uint32_t proto,
                                       const zn_bucket_key *key)
{
    bool same = src.high == dst.high && src.low == dst.low;
    bool sender = same ? port[0] > port[1] : zn_addr_words_behind(src, dst);
    zn_addr_words first = sender ? dst : src, second = sender ? src : dst;
    uint64_t words[] = {first.high, first.low, second.high, second.low};
    uint16_t first_port = port[sender], second_port = port[1 - sender];
    if (zn_addr_words_are_v4(src) && zn_addr_words_are_v4(dst)) {
        zn_packet_set_tuple_v4(out, (zn_v4_end){(uint32_t)be64toh(src.low), port[0]},
                               (zn_v4_end){(uint32_t)be64toh(dst.low), port[1]}, proto, key);
        return;
    }
    memcpy(out->tuple.addr[0].byte, &words[0], 2 * sizeof words[0]);
    memcpy(out->tuple.addr[1].byte, &words[2], 2 * sizeof words[0]);
    out->sender = sender;
    out->tuple.port[0] = first_port;
    out->tuple.port[1] = second_port;
    out->tuple.proto = proto;
    out->hash = zn_bucket_hash5(
        key, words, zn_tuple_last_word(ZN_TUPLE_V6_BYTES, proto, first_port, second_port));
}

#endif
