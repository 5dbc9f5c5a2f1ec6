/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers modulo the prime p = 2^127 - 1, in which shares are computed.
 *
 * A secret is one such number. An attacker who guesses keys has 2^127 of them to try, half as many
 * as for AES-128, and a share fits into 16 bytes. As p is one less than a power of two, a product
 * is reduced by a shift and an addition. A pair of numbers modulo 2^61 - 1 would save a
 * multiplication, but has 122 bits only. 2^128 - 159 would have one bit more, but carries would not
 * fit into two words.
 */
#ifndef ZN_CRYPTO_FIELD127_H
#define ZN_CRYPTO_FIELD127_H

#include "util/base.h"

/* Always less than the prime. */
typedef zn_u128 zn_f127;

#define ZN_F127_PRIME (((zn_u128)1 << 127) - 1)
#define ZN_F127_BYTES 16

/* Returns a number of at most 2^127 that is x modulo the prime. */
static inline zn_u128 zn_f127_fold(zn_u128 x)
{
    return (x & ZN_F127_PRIME) + (x >> 127);
}

/* Returns any number of 128 bits modulo the prime. */
static inline zn_f127 zn_f127_of(zn_u128 x)
{
    x = zn_f127_fold(x);
    return x >= ZN_F127_PRIME ? x - ZN_F127_PRIME : x;
}

static inline zn_f127 zn_f127_add(zn_f127 a, zn_f127 b)
{
    return zn_f127_of(a + b);
}

static inline zn_f127 zn_f127_negative(zn_f127 a)
{
    return a == 0 ? 0 : ZN_F127_PRIME - a;
}

/* Returns a number of 128 bits that is a * b modulo the prime. The product has 192 bits; its upper
 * 65 bits are added to its lower 127 bits. a: any number of 128 bits. */
static inline zn_u128 zn_f127_product(zn_u128 a, uint64_t b)
{
    zn_u128 low = (zn_u128)(uint64_t)a * b;
    zn_u128 high = (a >> 64) * b + (low >> 64);
    return (((high & (UINT64_MAX >> 1)) << 64) | (uint64_t)low) + (high >> 63);
}

/* Returns a * b. */
static inline zn_f127 zn_f127_times_word(zn_f127 a, uint64_t b)
{
    return zn_f127_of(zn_f127_product(a, b));
}

/* Returns a * b, one word of b after the other: 2^64 a is a shift by 64 bits, modulo 2^127 - 1. */
static inline zn_f127 zn_f127_times(zn_f127 a, zn_f127 b)
{
    zn_f127 shifted = zn_f127_of(((a << 64) & ZN_F127_PRIME) + (a >> 63));
    return zn_f127_add(zn_f127_times_word(a, (uint64_t)b),
                       zn_f127_times_word(shifted, (uint64_t)(b >> 64)));
}

/* Returns 1 / a, by a^(p - 2) (Fermat); 0 for 0. */
static inline zn_f127 zn_f127_inverse(zn_f127 a)
{
    zn_f127 power = a, result = 1;
    for (zn_u128 e = ZN_F127_PRIME - 2; e != 0; e >>= 1) {
        if ((e & 1) != 0)
            result = zn_f127_times(result, power);
        power = zn_f127_times(power, power);
    }
    return result;
}

#endif
