/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keyed hash of a few words that chooses a bucket, for every packet: multiplications whose halves
 * are folded (after wyhash, Wang Yi 2019), a fifth of the price of SipHash. Without the key nobody
 * can aim at a bucket. What it finds has to be compared: where a hash stands for an identity it is
 * util/hash's.
 */
#ifndef ZN_UTIL_BUCKET_HASH_H
#define ZN_UTIL_BUCKET_HASH_H

#include "util/base.h"

/* A per-process random secret. */
typedef struct zn_bucket_key {
    uint64_t word[8];
} zn_bucket_key;

/* A fresh one from the kernel; returns 0, or -ZN_ERR_IO and fills *err. */
int zn_bucket_key_random(zn_bucket_key *key, zn_error *err);

__extension__ typedef unsigned __int128 zn_product;

/* Both halves of a product, one over the other. */
static inline uint64_t zn_fold(uint64_t a, uint64_t b)
{
    zn_product p = (zn_product)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* The hash of two words. */
static inline uint64_t zn_bucket_hash2(const zn_bucket_key *key, uint64_t a, uint64_t b)
{
    zn_product p = (zn_product)(a ^ key->word[0]) * (b ^ key->word[1]);
    return zn_fold((uint64_t)p ^ key->word[2], (uint64_t)(p >> 64) ^ key->word[3]);
}

/* The hash of four words and one more. */
static inline uint64_t zn_bucket_hash5(const zn_bucket_key *key, const uint64_t words[4],
                                       uint64_t last)
{
    uint64_t first = zn_fold(words[0] ^ key->word[4], words[1] ^ key->word[5]);
    uint64_t second = zn_fold(words[2] ^ key->word[6], words[3] ^ key->word[7]);
    return zn_bucket_hash2(key, first ^ second, last);
}

#endif
