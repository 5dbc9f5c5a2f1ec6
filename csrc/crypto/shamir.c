/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/shamir.h"

zn_f127 zn_shamir_share(const zn_f127 *coefficients, uint32_t z, uint64_t x)
{
    zn_u128 y = coefficients[z - 1];
    for (uint32_t i = z - 1; i-- > 0;)
        y = zn_f127_fold(zn_f127_product(y, x)) + coefficients[i];
    return zn_f127_of(y);
}

/* Returns x_i times the product of x_j - x_i over all other j. */
static zn_f127 denominator(const zn_share *shares, uint32_t z, uint32_t i)
{
    zn_f127 product = shares[i].x;
    bool negative = false;
    for (uint32_t j = 0; j < z; j++) {
        if (j == i)
            continue;
        if (shares[j].x > shares[i].x) {
            product = zn_f127_times_word(product, shares[j].x - shares[i].x);
        } else {
            product = zn_f127_times_word(product, shares[i].x - shares[j].x);
            negative = !negative;
        }
    }
    return negative ? zn_f127_negative(product) : product;
}

/*
 * Lagrange's formula at 0: the sum over i of y_i X / d_i, with X the product of all points and d_i
 * as above. One inversion serves all d_i (Montgomery's trick): the product of all d_i is inverted,
 * and the inverse of each d_i is split off, from the last to the first.
 */
zn_f127 zn_shamir_secret(const zn_share *shares, uint32_t z, zn_f127 *scratch)
{
    zn_f127 *each = scratch, *upto = scratch + z, points = 1, product = 1, inverse, sum = 0;
    for (uint32_t i = 0; i < z; i++) {
        points = zn_f127_times_word(points, shares[i].x);
        each[i] = denominator(shares, z, i);
        upto[i] = product;
        product = zn_f127_times(product, each[i]);
    }
    inverse = zn_f127_inverse(product);
    for (uint32_t i = z; i-- > 0;) {
        sum = zn_f127_add(sum, zn_f127_times(shares[i].y, zn_f127_times(inverse, upto[i])));
        inverse = zn_f127_times(inverse, each[i]);
    }
    return zn_f127_times(points, sum);
}
