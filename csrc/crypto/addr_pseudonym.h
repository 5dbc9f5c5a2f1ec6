/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pseudonyms of addresses, one to one under a key. Crypto-PAn alone keeps every prefix that two
 * addresses share. So the trees of the clients of two epochs look alike, and a reader can link the
 * pseudonyms of both epochs. Here a permutation comes first, which keeps only the prefixes that the
 * operator chose:
 *
 *   networks    the kept internal networks (crypto/kept_networks.h). N is the longest that holds an
 *               address, of p bits, and U the bits of a user's prefix. Bits p to U are permuted
 *               under the first p bits, bits U to the end under the first U bits of the address,
 *               again while the result lies in a kept network inside N. Crypto-PAn then anonymizes
 *               the first bits: as many as the longest kept network inside N has, else p.
 *   crypto-pan  every block of P bits is kept: as above with P in place of p, and Crypto-PAn over P
 *               bits. With P the length of an address, Crypto-PAn as published.
 *   random      nothing is kept: one permutation of all bits.
 *
 * If a choice has roots, all three kinds keep the roots too, and a block of crypto-pan has at least
 * a root's bits. The pseudonyms of a root's own addresses share their first bits, as many as the
 * root has. The caller replaces these bits by the bits of the place that it chose. Pseudonyms of
 * addresses outside all roots have no meaning.
 *
 * A string is permuted by crypto/feistel.h. Its tweak block holds the address's bits before the
 * string, in the 16-byte form of util/addr.h, a one bit, and zeros.
 */
#ifndef ZN_CRYPTO_ADDR_PSEUDONYM_H
#define ZN_CRYPTO_ADDR_PSEUDONYM_H

#include "crypto/cryptopan.h"
#include "crypto/feistel.h"
#include "crypto/kept_networks.h"
#include "zanon/zanon.h"

/* Of one family. */
typedef struct zn_addr_scheme {
    zn_kept_networks kept;
    uint8_t width;      /* bits of an address */
    uint8_t user_bits;  /* U */
    uint8_t block_bits; /* P, of ZN_PSEUDONYMS_CRYPTO_PAN */
} zn_addr_scheme;

/* Structure that pseudonyms keep under every key. */
typedef struct zn_addr_plan {
    zn_pseudonyms pseudonyms;
    zn_addr_scheme v4, v6;
} zn_addr_plan;

/* The choice of an operator. */
typedef struct zn_addr_choice {
    zn_pseudonyms pseudonyms;
    uint8_t v4_block_bits, v6_block_bits; /* of ZN_PSEUDONYMS_CRYPTO_PAN: 1 .. 32, 1 .. 128 */
    uint8_t v4_user_bits, v6_user_bits;   /* of a user's prefix: 1 .. 32, 1 .. 128 */
    const zn_net *internal;               /* of ZN_PSEUDONYMS_NETWORKS; borrowed for the call */
    size_t internal_count;
    /* Networks that take the place of /0 (crypto/kept_networks.h); borrowed. None: it is /0. */
    const zn_prefix *v4_root, *v6_root;
    uint32_t v4_roots, v6_roots;
} zn_addr_choice;

/* 0, or a negative zn_err with *err filled. zn_addr_plan_fini frees in any case. */
int zn_addr_plan_init(zn_addr_plan *plan, const zn_addr_choice *choice, zn_error *err);
void zn_addr_plan_fini(zn_addr_plan *plan);

typedef struct zn_addr_pseudonym zn_addr_pseudonym;

/* Borrows the plan. 0, or -ZN_ERR_CRYPTO / -ZN_ERR_CAPACITY with *err filled and *out NULL. */
int zn_addr_pseudonym_open(zn_addr_pseudonym **out, const zn_addr_plan *plan,
                           const uint8_t pan_key[ZN_CRYPTOPAN_KEY_BYTES],
                           const uint8_t host_key[ZN_FEISTEL_KEY_BYTES], zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_addr_pseudonym_close(zn_addr_pseudonym *p);
/* Takes new keys in place of the old ones, which are wiped. */
int zn_addr_pseudonym_rekey(zn_addr_pseudonym *p, const uint8_t pan_key[ZN_CRYPTOPAN_KEY_BYTES],
                            const uint8_t host_key[ZN_FEISTEL_KEY_BYTES], zn_error *err);

/* The pseudonyms of n addresses of either family, in to out (which may be the same). 0, or
 * -ZN_ERR_CRYPTO; on failure no output byte holds an address. */
int zn_addr_pseudonym_make(zn_addr_pseudonym *p, const zn_addr *in, zn_addr *out, size_t n);

#endif
