/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keyed hashing (SipHash-1-3, Aumasson and Bernstein 2012): nothing unkeyed may choose a bucket or
 * stand for an identity, or a sender who picks names and addresses could flood a table. Where a
 * hash only chooses a bucket, for every packet, it is util/bucket_hash's.
 *
 * A zn_hash_key is a per-process random secret. A zn_id is the 128-bit identity of an attribute
 * under it: wide enough that two attributes sharing one is not a practical event.
 */
#ifndef ZN_UTIL_HASH_H
#define ZN_UTIL_HASH_H

#include "util/base.h"

typedef struct zn_hash_key {
    uint64_t k0, k1;
} zn_hash_key;

typedef struct zn_id {
    uint64_t lo, hi;
} zn_id;

/* A fresh random key from the kernel; returns 0, or -ZN_ERR_IO and fills *err. */
int zn_hash_key_random(zn_hash_key *key, zn_error *err);

/* SipHash-1-3 of n bytes. */
uint64_t zn_hash64(const zn_hash_key *key, const void *bytes, size_t n);
/* SipHash-1-3 with 128-bit output of n bytes; `domain` keeps namespaces apart. */
zn_id zn_hash128(const zn_hash_key *key, uint8_t domain, const void *bytes, size_t n);
/* SipHash-1-3 of whole 64-bit words: the fast path for fixed-size keys such as a 5-tuple. */
uint64_t zn_hash_words(const zn_hash_key *key, const uint64_t *words, size_t n);

static inline bool zn_id_equal(zn_id a, zn_id b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

#endif
