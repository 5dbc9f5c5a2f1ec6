/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shamir's secret sharing (1979) modulo 2^127 - 1: a secret is the constant term of a polynomial of
 * degree z - 1, a share its value at a point that is not 0. z shares give the secret; z - 1 say
 * nothing about it.
 */
#ifndef ZN_CRYPTO_SHAMIR_H
#define ZN_CRYPTO_SHAMIR_H

#include "crypto/field127.h"

/* A share: the value at a point, 1 .. 2^63 - 1. */
typedef struct zn_share {
    zn_f127 y;
    uint64_t x;
} zn_share;

/* Returns the value at x of the polynomial with these z >= 1 coefficients, the constant first. */
zn_f127 zn_shamir_share(const zn_f127 *coefficients, uint32_t z, uint64_t x);

/* Returns the secret of z shares at points that differ. `scratch` has memory for 2 z numbers. */
zn_f127 zn_shamir_secret(const zn_share *shares, uint32_t z, zn_f127 *scratch);

#endif
