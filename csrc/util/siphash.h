/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rounds of SipHash-1-3 (Aumasson and Bernstein 2012), for util/hash and for who hashes a fixed
 * number of words on the packet path: there the rounds stand in line and those of neighbouring
 * packets overlap.
 */
#ifndef ZN_UTIL_SIPHASH_H
#define ZN_UTIL_SIPHASH_H

#include "util/hash.h"

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

/* The hash of `n` words that were absorbed, as zn_hash_words gives it. */
static inline uint64_t zn_sip_words_end(zn_sip *s, size_t n)
{
    zn_sip_absorb(s, (uint64_t)n << 59);
    s->v2 ^= 0xff;
    return zn_sip_squeeze(s);
}

#endif
