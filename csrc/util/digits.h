/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as decimal digits, written to where there is room for them; each function returns the end
 * of what it wrote. For lines made of many small numbers: util/text asks for room each time.
 */
#ifndef ZN_UTIL_DIGITS_H
#define ZN_UTIL_DIGITS_H

#include "util/base.h"

#include <string.h>

#define ZN_DIGITS_MAX 20 /* of 64 bits, or with a sign */
#define ZN_FIXED_MAX (ZN_DIGITS_MAX + 8)

/* "00" to "99", as one string. */
extern const char zn_digit_pairs[201];

/* Of a number of at least 100. */
char *zn_digits_many(char *at, uint64_t value);

static inline char *zn_digits_pair(char *at, uint32_t below_100)
{
    memcpy(at, zn_digit_pairs + 2 * below_100, 2);
    return at + 2;
}

static inline char *zn_digits_put(char *at, uint64_t value)
{
    if (ZN_LIKELY(value < 10)) {
        *at = (char)('0' + value);
        return at + 1;
    }
    return value < 100 ? zn_digits_pair(at, (uint32_t)value) : zn_digits_many(at, value);
}

/* value / 10^6 with six digits behind the point, such as ns as ms. */
static inline char *zn_digits_put_millionths(char *at, int64_t value)
{
    uint64_t left = (uint64_t)value;
    uint32_t rest;
    if (value == 0) { /* what never happened */
        memcpy(at, "0.000000", 8);
        return at + 8;
    }
    if (value < 0) {
        *at++ = '-';
        left = UINT64_C(0) - left;
    }
    at = zn_digits_put(at, left / 1000000);
    rest = (uint32_t)(left % 1000000);
    *at++ = '.';
    at = zn_digits_pair(at, rest / 10000);
    at = zn_digits_pair(at, rest / 100 % 100);
    return zn_digits_pair(at, rest % 100);
}

#endif
