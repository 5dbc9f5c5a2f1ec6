/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, written in decimal, put into intervals of one width. All of it is done in whole numbers:
 * 0.3 lies at an edge of intervals of 0.1, which floating point does not know.
 */
#ifndef ZN_MICRODATA_INTERVAL_H
#define ZN_MICRODATA_INTERVAL_H

#include "util/cursor.h"

/* units x 10^-decimals. */
typedef struct zn_interval_width {
    uint64_t units;
    int decimals;
} zn_interval_width;

/* Takes a width above 0 of at most 15 decimals, whose units are below 2^53. Returns 0, or
 * -ZN_ERR_CONFIG for another number. */
int zn_interval_width_of(zn_interval_width *out, double width, zn_error *err);

/*
 * Sets *interval to the largest whole number <= value / width, or to the end of int64_t that is
 * nearest to it. False when the value is not [-]digits[.digits][e[+-]digits], or, with `whole`, is
 * no whole number.
 */
bool zn_interval_of(const zn_interval_width *width, bool whole, zn_span value, int64_t *interval);

#endif
