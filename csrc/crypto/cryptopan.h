/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crypto-PAn (Xu, Fan, Ammar, Moon 2002): prefix-preserving pseudonyms of IP addresses, on
 * libcrypto's AES-128. IPv4 over 32 bits, IPv6 over 128 bits.
 *
 * Bit i of a pseudonym is bit i of the address xor the first bit of AES(prefix of i bits | pad).
 * Every block depends on the original prefix only, so one address is one batch of blocks; the
 * blocks of the first ZN_CRYPTOPAN_TABLE_BITS bits are shared by all addresses of both families and
 * are computed once for each key.
 *
 * Holds key material: zn_cryptopan_close wipes it.
 */
#ifndef ZN_CRYPTO_CRYPTOPAN_H
#define ZN_CRYPTO_CRYPTOPAN_H

#include "util/addr.h"

/* 16 bytes of AES key, then 16 bytes that are encrypted to get the pad */
#define ZN_CRYPTOPAN_KEY_BYTES 32
#define ZN_CRYPTOPAN_TABLE_BITS 16

typedef struct zn_cryptopan zn_cryptopan;

/* Returns 0, or -ZN_ERR_CRYPTO / -ZN_ERR_CAPACITY with *err filled and *out NULL. */
int zn_cryptopan_open(zn_cryptopan **out, const uint8_t key[ZN_CRYPTOPAN_KEY_BYTES], zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_cryptopan_close(zn_cryptopan *p);
/* Takes a new key in place of the old one, which is wiped. */
int zn_cryptopan_rekey(zn_cryptopan *p, const uint8_t key[ZN_CRYPTOPAN_KEY_BYTES], zn_error *err);

/* n addresses of either family, in to out (which may be the same). 0 or -ZN_ERR_CRYPTO; on failure
 * no output byte holds an address. */
int zn_cryptopan_addrs(zn_cryptopan *p, const zn_addr *in, zn_addr *out, size_t n);
/* n IPv4 addresses as host-order integers. */
int zn_cryptopan_v4(zn_cryptopan *p, const uint32_t *in, uint32_t *out, size_t n);
/* n IPv6 addresses of 16 network-order bytes each. */
int zn_cryptopan_v6(zn_cryptopan *p, const uint8_t *in, uint8_t *out, size_t n);

/* Anonymizes the first bits[i] bits of each of n addresses in place and leaves the others as they
 * are. An address is a number whose first bit is the most significant of 128; an IPv4 address takes
 * the first 32, and at most 32 of its bits are anonymized. On failure all are zero. */
int zn_cryptopan_prefixes(zn_cryptopan *p, zn_u128 *addresses, const uint8_t *bits, size_t n);

#endif
