/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks whose place in the address tree pseudonyms keep: the whole family (/0), and each
 * internal network that is short enough for hosts to hide in it. Each address belongs to the
 * longest kept network that holds it.
 *
 * An address is a number whose first bit is the most significant of 128; an IPv4 address takes the
 * first 32 of them.
 */
#ifndef ZN_CRYPTO_KEPT_NETWORKS_H
#define ZN_CRYPTO_KEPT_NETWORKS_H

#include "util/addr.h"

typedef struct zn_kept_network {
    zn_u128 first, last;
    uint32_t parent;    /* place of the longest other one that holds it; /0 is its own */
    uint8_t bits;       /* of its prefix */
    uint8_t inner_bits; /* of the longest kept network inside it, else its own */
} zn_kept_network;

/* The kept networks of one family, by their first addresses, a longer one behind one that holds it.
 * The first is /0. */
typedef struct zn_kept_networks {
    zn_kept_network *network;
    uint32_t count;
    uint32_t left_out; /* internal networks that are too long to be kept */
} zn_kept_networks;

/*
 * Chooses the kept ones of n internal networks, of IPv4 (v4) or IPv6: those of at most bits_max
 * bits. Returns 0; -ZN_ERR_CONFIG where kept networks leave less than 1/16 of one that holds them,
 * but not nothing; -ZN_ERR_CAPACITY. zn_kept_networks_fini frees in any case.
 */
int zn_kept_networks_init(zn_kept_networks *kept, const zn_net *internal, size_t n, bool v4,
                          unsigned bits_max, zn_error *err);
void zn_kept_networks_fini(zn_kept_networks *kept);

/* The first address of a kept network of IPv4 (v4) or IPv6. */
zn_addr zn_kept_network_address(const zn_kept_network *network, bool v4);

/* The place of the longest kept network that holds the address. */
uint32_t zn_kept_networks_find(const zn_kept_networks *kept, zn_u128 address);

#endif
