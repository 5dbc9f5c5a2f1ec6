/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "microdata/interval.h"

#include <math.h>

#define DECIMALS_MAX 15
#define UNITS_MAX 9007199254740991.0 /* whole numbers up to here are exact */
#define EXPONENT_MAX 100000          /* largest exponent that is distinguished from larger ones */

int zn_interval_width_of(zn_interval_width *out, double width, zn_error *err)
{
    double power = 1;
    for (int i = 0; width > 0 && i <= DECIMALS_MAX; i++, power *= 10) {
        double whole = nearbyint(width * power);
        if (!(whole <= UNITS_MAX))
            break;
        if (whole >= 1 && whole / power == width) {
            out->units = (uint64_t)whole;
            out->decimals = i;
            return 0;
        }
    }
    return zn_fail(err, ZN_ERR_CONFIG, 0,
                   "the width of intervals is above 0 and has at most %d decimals", DECIMALS_MAX);
}

/* (negative ? -1 : 1) x digits x 10^exponent */
typedef struct decimal {
    bool negative;
    bool cut; /* digits other than 0 follow that had no room */
    zn_u128 digits;
    int64_t exponent;
} decimal;

#define DIGITS_ROOM (((zn_u128) - 1) / 10 - 1) /* one more digit fits below it */

static bool take_digits(zn_cursor *c, decimal *d, bool decimals)
{
    const uint8_t *start = c->p;
    while (c->p != c->end && *c->p >= '0' && *c->p <= '9') {
        bool fits = d->digits < DIGITS_ROOM;
        uint8_t digit = (uint8_t)(*c->p - '0');
        if (fits)
            d->digits = d->digits * 10 + digit;
        d->cut |= !fits && digit != 0;
        d->exponent += (fits ? 0 : 1) - (decimals ? 1 : 0);
        c->p++;
    }
    return c->p != start;
}

static bool take(zn_cursor *c, char byte)
{
    if (c->p == c->end || *c->p != (uint8_t)byte)
        return false;
    c->p++;
    return true;
}

static bool take_exponent(zn_cursor *c, decimal *d)
{
    bool negative = take(c, '-');
    int64_t exponent = 0;
    const uint8_t *start;
    if (!negative)
        (void)take(c, '+');
    start = c->p;
    for (; c->p != c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (exponent < EXPONENT_MAX)
            exponent = exponent * 10 + (*c->p - '0');
    d->exponent += negative ? -exponent : exponent;
    return c->p != start;
}

/* Reads [-]digits[.digits][e[+-]digits], and nothing else. */
static bool parse_decimal(zn_span text, decimal *d)
{
    zn_cursor c = zn_cursor_over_span(text, true);
    *d = (decimal){.negative = take(&c, '-')};
    if (!take_digits(&c, d, false))
        return false;
    if (take(&c, '.') && !take_digits(&c, d, true))
        return false;
    if ((take(&c, 'e') || take(&c, 'E')) && !take_exponent(&c, d))
        return false;
    return c.p == c.end;
}

/* Returns n x 10^times, or the largest number where that is larger. */
static zn_u128 scaled(zn_u128 n, int64_t times)
{
    for (; times > 0 && n != 0; times--) {
        if (n > ((zn_u128)-1) / 10)
            return (zn_u128)-1;
        n *= 10;
    }
    return n;
}

static bool is_whole(const decimal *d)
{
    if (d->exponent >= 0)
        return true;
    return !d->cut && d->digits % scaled(1, -d->exponent) == 0;
}

/* The largest whole number <= d / width, within the range of int64_t. */
static int64_t interval_of(const zn_interval_width *w, const decimal *d)
{
    int64_t scale = d->exponent + w->decimals;
    zn_u128 digits = scale > 0 ? scaled(d->digits, scale) : d->digits;
    zn_u128 width = scale < 0 ? scaled(w->units, -scale) : w->units;
    zn_u128 whole = digits / width;
    if (d->negative && (d->cut || digits % width != 0))
        whole++;
    if (whole > INT64_MAX)
        return d->negative ? INT64_MIN : INT64_MAX;
    return d->negative ? -(int64_t)whole : (int64_t)whole;
}

bool zn_interval_of(const zn_interval_width *width, bool whole, zn_span value, int64_t *interval)
{
    decimal d;
    if (!parse_decimal(value, &d) || (whole && !is_whole(&d)))
        return false;
    *interval = interval_of(width, &d);
    return true;
}
