/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keyed hashes. Every hash that chooses a bucket or replaces an identity has a key. Without a key,
 * a sender who picks names and addresses could flood a table.
 *
 * SipHash-1-3 (Aumasson and Bernstein 2012) replaces identities. Its rounds are inline here for the
 * packet path, where the rounds of neighbouring packets overlap.
 *
 * The bucket hash only chooses a bucket, once for each packet. It multiplies and folds the halves
 * of the product (after wyhash, Wang Yi 2019), at a fifth of SipHash's cost. A sender cannot aim at
 * a bucket without the key; the entries of the bucket have to be compared.
 */
#ifndef ZN_UTIL_HASH_H
#define ZN_UTIL_HASH_H

#include "util/base.h"

/* ---- SipHash ---- */

static inline bool zn_id_equal(zn_id a, zn_id b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

typedef struct zn_sip {
    uint64_t v0, v1, v2, v3;
} zn_sip;

static inline uint64_t zn_sip_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void zn_sip_round(zn_sip *s)
{
    s->v0 += s->v1;
    s->v1 = zn_sip_rotate(s->v1, 13) ^ s->v0;
    s->v0 = zn_sip_rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = zn_sip_rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = zn_sip_rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = zn_sip_rotate(s->v1, 17) ^ s->v2;
    s->v2 = zn_sip_rotate(s->v2, 32);
}

static inline zn_sip zn_sip_start(const zn_hash_key *key)
{
    zn_sip s = {key->k0 ^ UINT64_C(0x736f6d6570736575), key->k1 ^ UINT64_C(0x646f72616e646f6d),
                key->k0 ^ UINT64_C(0x6c7967656e657261), key->k1 ^ UINT64_C(0x7465646279746573)};
    return s;
}

static inline void zn_sip_absorb(zn_sip *s, uint64_t word)
{
    s->v3 ^= word;
    zn_sip_round(s);
    s->v0 ^= word;
}

static inline uint64_t zn_sip_squeeze(zn_sip *s)
{
    zn_sip_round(s);
    zn_sip_round(s);
    zn_sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* Returns the hash of the n words absorbed so far, as zn_hash_words does. */
static inline uint64_t zn_sip_words_end(zn_sip *s, size_t n)
{
    zn_sip_absorb(s, (uint64_t)n << 59);
    s->v2 ^= 0xff;
    return zn_sip_squeeze(s);
}

/* ---- the bucket hash ---- */

/* The random key of a bucket hash. */
typedef struct zn_bucket_key {
    uint64_t word[8];
} zn_bucket_key;

/* Fills *key with random bytes from the kernel. Returns 0, or -ZN_ERR_IO with *err filled. */
int zn_bucket_key_random(zn_bucket_key *key, zn_error *err);

__extension__ typedef unsigned __int128 zn_product;

/* Returns the exclusive or of both halves of a * b. */
static inline uint64_t zn_fold(uint64_t a, uint64_t b)
{
    zn_product p = (zn_product)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Returns the hash of two words. */
static inline uint64_t zn_bucket_hash2(const zn_bucket_key *key, uint64_t a, uint64_t b)
{
    zn_product p = (zn_product)(a ^ key->word[0]) * (b ^ key->word[1]);
    return zn_fold((uint64_t)p ^ key->word[2], (uint64_t)(p >> 64) ^ key->word[3]);
}

/* Returns the hash of five words. */
static inline uint64_t zn_bucket_hash5(const zn_bucket_key *key, const uint64_t words[4],
                                       uint64_t last)
{
    uint64_t first = zn_fold(words[0] ^ key->word[4], words[1] ^ key->word[5]);
    uint64_t second = zn_fold(words[2] ^ key->word[6], words[3] ^ key->word[7]);
    return zn_bucket_hash2(key, first ^ second, last);
}

#endif
