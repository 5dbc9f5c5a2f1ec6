/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The 5-tuple of a packet and its hash, for decode.c and decode_fast.h. */
#ifndef ZN_PACKET_TUPLE_H
#define ZN_PACKET_TUPLE_H

#include "packet/packet.h"
#include "util/hash.h"

#include <endian.h>

/* An address as two words in memory order. */
typedef struct zn_addr_words {
    uint64_t high, low;
} zn_addr_words;

static inline void zn_addr_set_words(zn_addr *a, zn_addr_words words)
{
    memcpy(a->byte, &words.high, sizeof words.high);
    memcpy(a->byte + sizeof words.high, &words.low, sizeof words.low);
}

/* Returns true for an IPv4-mapped address. */
static inline bool zn_addr_words_are_v4(zn_addr_words a)
{
    return a.high == 0 && be64toh(a.low) >> 32 == 0xffff;
}

/* Returns true when a comes after b in the order of memcmp. */
static inline bool zn_addr_words_after(zn_addr_words a, zn_addr_words b)
{
    if (a.high != b.high)
        return be64toh(a.high) > be64toh(b.high);
    return be64toh(a.low) > be64toh(b.low);
}

#define ZN_TUPLE_V4_BYTES 13 /* bytes of two addresses, two ports and the protocol */
#define ZN_TUPLE_V6_BYTES 37

/* Returns the last word to hash, after the addresses: ports, protocol, and the number of bytes that
 * are hashed. The bytes that are the same in all IPv4 addresses are not hashed. */
static inline uint64_t zn_tuple_last_word(uint64_t bytes, uint32_t proto, uint32_t ports)
{
    return bytes << 56 | (uint64_t)proto << 32 | ports;
}

/* Exchange both ports of a packet, or both IPv4 addresses, in one number with the source's first:
 * by a rotation by half of it, or by 0, without a branch that no processor could predict. */
static inline uint32_t zn_ports_exchange(uint32_t ports, bool exchange)
{
    unsigned by = exchange ? 16 : 0;
    return ports >> by | ports << (-by & 31);
}

static inline uint64_t zn_v4_ends_exchange(uint64_t ends, bool exchange)
{
    unsigned by = exchange ? 32 : 0;
    return ends >> by | ends << (-by & 63);
}

/* Sets ports, protocol and sender. Returns the last word to hash; `bytes`: how many bytes of the
 * tuple are hashed. */
static inline uint64_t zn_packet_set_ends(zn_packet *out, bool sender, uint32_t ports,
                                          uint32_t proto, uint64_t bytes)
{
    ports = zn_ports_exchange(ports, sender);
    out->sender = sender;
    out->tuple.port[0] = (uint16_t)(ports >> 16);
    out->tuple.port[1] = (uint16_t)ports;
    out->tuple.proto = proto;
    return zn_tuple_last_word(bytes, proto, ports);
}

/* zn_packet_set_tuple for IPv4, with both addresses in one number, the source's first. */
static inline void zn_packet_set_tuple_v4(zn_packet *out, uint64_t addresses, uint32_t ports,
                                          uint32_t proto, const zn_bucket_key *key)
{
    uint64_t back = zn_v4_ends_exchange(addresses, true);
    bool sender = addresses == back ? ports > zn_ports_exchange(ports, true) : addresses > back;
    uint64_t both = zn_v4_ends_exchange(addresses, sender);
    uint64_t a = htobe64(UINT64_C(0xffff) << 32 | both >> 32);
    uint64_t b = htobe64(UINT64_C(0xffff) << 32 | (uint32_t)both);
    uint8_t *first = out->tuple.addr[0].byte, *second = out->tuple.addr[1].byte;
    memset(first, 0, sizeof a);
    memcpy(first + sizeof a, &a, sizeof a);
    memset(second, 0, sizeof b);
    memcpy(second + sizeof b, &b, sizeof b);
    out->hash = zn_bucket_hash2(key, both,
                                zn_packet_set_ends(out, sender, ports, proto, ZN_TUPLE_V4_BYTES));
}

/* Sets the tuple, its hash and the side that sent the packet. `ports` has the source's in its upper
 * half. */
static inline void zn_packet_set_tuple(zn_packet *out, zn_addr_words src, zn_addr_words dst,
                                       uint32_t ports, uint32_t proto, const zn_bucket_key *key)
{
    bool same = src.high == dst.high && src.low == dst.low;
    bool sender = same ? ports > zn_ports_exchange(ports, true) : zn_addr_words_after(src, dst);
    uint64_t high = (src.high ^ dst.high) & (0 - (uint64_t)sender); /* the ends' difference */
    uint64_t low = (src.low ^ dst.low) & (0 - (uint64_t)sender);
    zn_addr_words first = {src.high ^ high, src.low ^ low},
                  second = {dst.high ^ high, dst.low ^ low};
    if (zn_addr_words_are_v4(src) && zn_addr_words_are_v4(dst)) {
        zn_packet_set_tuple_v4(out, be64toh(src.low) << 32 | (uint32_t)be64toh(dst.low), ports,
                               proto, key);
        return;
    }
    zn_addr_set_words(&out->tuple.addr[0], first);
    zn_addr_set_words(&out->tuple.addr[1], second);
    out->hash = zn_bucket_hash5(key, (uint64_t[]){first.high, first.low, second.high, second.low},
                                zn_packet_set_ends(out, sender, ports, proto, ZN_TUPLE_V6_BYTES));
}

#endif
