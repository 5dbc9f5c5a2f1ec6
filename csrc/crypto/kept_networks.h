/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks whose place in the address tree the pseudonyms keep: the whole family (/0); each
 * internal network that is large enough for hosts to hide in it; and roots of any length. Each
 * address belongs to the longest kept network that contains it.
 *
 * A root is a network that its addresses' pseudonyms do not leave. Without roots, /0 is that
 * network.
 *
 * An address is a number of 128 bits, most significant bit first; an IPv4 address takes the first
 * 32 bits.
 */
#ifndef ZN_CRYPTO_KEPT_NETWORKS_H
#define ZN_CRYPTO_KEPT_NETWORKS_H

#include "util/addr.h"

#define ZN_MAPPED_BITS 96u /* of ::ffff:0:0/96, before an IPv4 address */

/* The number of an address. */
static inline zn_u128 zn_addr_number(const zn_addr *a)
{
    uint64_t words[2];
    zn_u128 x;
    memcpy(words, a->byte, sizeof words);
    x = (zn_u128)be64toh(words[0]) << 64 | be64toh(words[1]);
    return zn_addr_is_v4(a) ? x << ZN_MAPPED_BITS : x;
}

/* The address of IPv4 (v4) or IPv6 that has the number. */
static inline zn_addr zn_addr_of_number(zn_u128 x, bool v4)
{
    zn_u128 bytes = v4 ? x >> ZN_MAPPED_BITS | (zn_u128)0xffff << (128 - ZN_MAPPED_BITS) : x;
    uint64_t words[2] = {htobe64((uint64_t)(bytes >> 64)), htobe64((uint64_t)bytes)};
    zn_addr a;
    memcpy(a.byte, words, sizeof a.byte);
    return a;
}

/* All bits behind the first `bits` ones (0 .. 128). */
static inline zn_u128 zn_bits_after(unsigned bits)
{
    return bits >= 128 ? 0 : ~(zn_u128)0 >> bits;
}

/* A network: the number of its first address, and the bits of its prefix. */
typedef struct zn_prefix {
    zn_u128 first;
    uint8_t bits;
} zn_prefix;

/* Choice of the networks to keep of a family. */
typedef struct zn_kept_choice {
    const zn_net *internal; /* of both families */
    size_t internal_count;
    const zn_prefix *root; /* of this family; each once */
    uint32_t root_count;
    unsigned bits_max; /* of internal networks that are kept */
} zn_kept_choice;

typedef struct zn_kept_network {
    zn_u128 first, last;
    /* index of the longest other network that contains this network; /0 is its own parent */
    uint32_t parent;
    uint32_t root;      /* 1 + place of the longest root that holds it; 0: none does */
    uint8_t bits;       /* of its prefix */
    uint8_t inner_bits; /* of the longest kept network inside it, else its own */
} zn_kept_network;

#define ZN_KEPT_BYTES 256u
#define ZN_KEPT_MIXED UINT32_MAX /* addresses with this first byte belong to several networks */

/* Kept networks of one family, sorted by first address; a network precedes the networks inside it.
 * The first is /0. */
typedef struct zn_kept_networks {
    uint32_t of_byte[ZN_KEPT_BYTES]; /* index of a first byte's network, or ZN_KEPT_MIXED */
    zn_kept_network *network;
    uint32_t count;
    uint32_t left_out; /* internal networks that are too long to be kept */
    bool all_internal; /* /0 is an internal network */
} zn_kept_networks;

/* Chooses the kept ones, of IPv4 (v4) or IPv6. Returns 0, or -ZN_ERR_CAPACITY with *err filled;
 * zn_kept_networks_fini frees in any case. */
int zn_kept_networks_init(zn_kept_networks *kept, const zn_kept_choice *choice, bool v4,
                          zn_error *err);
void zn_kept_networks_fini(zn_kept_networks *kept);

/* Returns 0; or -ZN_ERR_CONFIG if kept networks leave some addresses, but less than 1/16, of a
 * network that contains them, because the permutation of these addresses would take long. With
 * roots, /0 is not checked, because no address outside the roots is permuted. */
int zn_kept_networks_check(const zn_kept_networks *kept, zn_error *err);

/* The first address of a kept network of IPv4 (v4) or IPv6. */
zn_addr zn_kept_network_address(const zn_kept_network *network, bool v4);

/* Returns the index of the longest kept network that contains the address. */
uint32_t zn_kept_networks_search(const zn_kept_networks *kept, zn_u128 address);

/* Returns the same index, from the address's first byte if that suffices. */
static inline uint32_t zn_kept_networks_find(const zn_kept_networks *kept, zn_u128 address)
{
    uint32_t found = kept->of_byte[(size_t)(address >> 120)];
    return ZN_LIKELY(found != ZN_KEPT_MIXED) ? found : zn_kept_networks_search(kept, address);
}

#endif
