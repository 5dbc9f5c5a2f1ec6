/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of one address family in which the pseudonyms in packets lie. No host of the Internet has
 * an address in a block.
 *
 * A root (crypto/kept_networks.h) is a network that an internal address and its pseudonym share,
 * except for the root's place:
 *
 *   range       10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16 or fc00::/7, where an
 *               internal network lies in it or holds it. Its place is its own.
 *   slot        An internal network that lies in no range and in no other internal network. Its
 *               place is drawn, in the ranges that hold no internal address: aligned, as long as
 *               the network, apart from the others.
 *
 * Slots of IPv6 are drawn in fd00::/8, or in fc00::/8 where an internal network has addresses in
 * fd00::/8; the other half alone is the range then. An address belongs to the longest root that
 * holds it.
 *
 * Sizes are powers of two, the sizes of the ranges differ, and the largest slots are drawn first.
 * So every slot finds a place as long as the slots together have no more addresses than the free
 * ranges.
 */
#ifndef ZN_CRYPTO_ADDR_BLOCKS_H
#define ZN_CRYPTO_ADDR_BLOCKS_H

#include "crypto/kept_networks.h"

#define ZN_ADDR_RANGES_MAX 4 /* of a family */

typedef struct zn_addr_blocks {
    zn_prefix *root;  /* ranges by address; then slots, the largest first, then by address */
    zn_prefix *drawn; /* of zn_addr_blocks_draw: places that are taken, by address */
    uint32_t count, slots;
    uint32_t spaces;
    zn_prefix space[ZN_ADDR_RANGES_MAX]; /* where slots are drawn, by address */
} zn_addr_blocks;

/*
 * Finds the blocks of n internal networks, of IPv4 (v4) or IPv6. Returns 0; -ZN_ERR_CONFIG where
 * /0 is an internal network, or slots take more addresses than are free; -ZN_ERR_CAPACITY; with
 * *err filled. zn_addr_blocks_fini frees in any case.
 */
int zn_addr_blocks_init(zn_addr_blocks *blocks, const zn_net *internal, size_t n, bool v4,
                        zn_error *err);
void zn_addr_blocks_fini(zn_addr_blocks *blocks);

/*
 * Writes the first address of each root's place to place[0 .. count). random: a number for each
 * slot, in the order of the slots. The place of a slot is entry (random modulo n) of its n free
 * places, sorted by address.
 */
void zn_addr_blocks_draw(zn_addr_blocks *blocks, const zn_u128 *random, zn_u128 *place);

#endif
