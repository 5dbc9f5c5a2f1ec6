/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IP addresses of both families in one 16-byte value, and lists of networks.
 *
 * An IPv4 address is held as its IPv4-mapped IPv6 address (::ffff:a.b.c.d, RFC 4291 2.5.5.2), so
 * the value alone says which family it is. Bytes are in network order.
 */
#ifndef ZN_UTIL_ADDR_H
#define ZN_UTIL_ADDR_H

#include "util/cursor.h"

#include <endian.h>
#include <string.h>

#define ZN_ADDR_TEXT_MAX 46 /* longest text form with its final NUL, as INET6_ADDRSTRLEN */

static inline zn_addr zn_addr_from_v4(const uint8_t *four)
{
    uint64_t words[2] = {0, 0}; /* written as whole words, which are read as such right after */
    uint32_t last;
    zn_addr a;
    memcpy(&last, four, sizeof last);
    words[1] = htobe64(UINT64_C(0xffff) << 32 | be32toh(last));
    memcpy(a.byte, words, sizeof a.byte);
    return a;
}

static inline bool zn_addr_equal(const zn_addr *a, const zn_addr *b)
{
    return memcmp(a->byte, b->byte, sizeof a->byte) == 0;
}

/* Returns true when all bytes are zero: no address was set. */
static inline bool zn_addr_is_unset(const zn_addr *a)
{
    static const zn_addr none;
    return zn_addr_equal(a, &none);
}

/* Returns true for an IPv4 address; its four bytes are then at byte + 12. */
static inline bool zn_addr_is_v4(const zn_addr *a)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(a->byte, mapped, sizeof mapped) == 0;
}

/* Returns true for an unspecified, loopback, link-local, multicast or broadcast address, which is
 * not one host's own. */
bool zn_addr_is_special(const zn_addr *a);

/* Returns true for a multicast group. */
bool zn_addr_is_group(const zn_addr *a);
/* Returns true for a group that is registered for all hosts: 224.0.0.0/24, the groups that IANA has
 * registered in 224.0.1.0/24, and the permanent groups of one link that RFC 4291 2.7.1 and IANA
 * list (ff01:: and ff02::, the last 32 bits up to ff or from 1:1 to 1:7). */
bool zn_addr_is_known_group(const zn_addr *a);
/* Returns true for a group that holds a part of another address: of a network's prefix (RFC 6034,
 * RFC 3306, RFC 3956), or of a host's address or its name's hash (RFC 4291 2.7.1, RFC 4620 5). */
bool zn_addr_is_derived_group(const zn_addr *a);

/* Returns the IPv4 address inside an IPv6 one, and any other address as it is. IPv6 holds IPv4 by
 * NAT64 (RFC 6052's 64:ff9b::/96, and RFC 8215's 64:ff9b:1::/48 in its last bytes), 6to4 (RFC
 * 3056), Teredo (RFC 4380: the client's), ISATAP (RFC 5214), or after zeros (RFC 4291 2.5.5.1, RFC
 * 2765 2.1). */
zn_addr zn_addr_carried(const zn_addr *a);

/* Returns the address with only its first v4_bits (0 .. 32) or v6_bits (0 .. 128) bits, the rest
 * zero. */
zn_addr zn_addr_cut(const zn_addr *a, unsigned v4_bits, unsigned v6_bits);

/* Writes the text form (RFC 5952) and its NUL into out[ZN_ADDR_TEXT_MAX]; returns its length. */
size_t zn_addr_text(const zn_addr *a, char *out);

/* Reads the text of an IPv4 address in four decimal numbers, or of an IPv6 address (RFC 4291 2.2).
 * Returns false, with *a unchanged, if the text is neither. */
bool zn_addr_parse(zn_span text, zn_addr *a);

/* Returns true when `a` lies in one of the n networks. */
bool zn_nets_contain(const zn_net *nets, size_t n, const zn_addr *a);

static inline zn_span zn_addr_span(const zn_addr *a)
{
    return (zn_span){a->byte, sizeof a->byte};
}

#endif
