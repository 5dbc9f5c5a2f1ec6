/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points in time as text: a decimal number of s, ms, us or ns since the Unix epoch, or ISO 8601.
 *
 * A number is digits, optionally with a point and more digits, and optionally with a power of ten:
 * 1715677200.5, 1.7156772005e9. It has no sign. ISO 8601 is a date YYYY-MM-DD, optionally with 'T'
 * or a blank and HH:MM[:SS[.fraction]], where a comma may replace the point, and then optionally an
 * offset. An offset is 'Z', 'UTC', or + or - and HH:MM, HHMM or HH, optionally after a blank (RFC
 * 3339 with fewer demands). A date alone is its midnight, a time without offset is UTC. Digits
 * beyond the nanosecond are cut off.
 */
#ifndef ZN_UTIL_TIMESTAMP_H
#define ZN_UTIL_TIMESTAMP_H

#include "util/text.h"

typedef enum zn_time_unit {
    ZN_TIME_S,
    ZN_TIME_MS,
    ZN_TIME_US,
    ZN_TIME_NS,
    ZN_TIME_ISO
} zn_time_unit;

typedef struct zn_timestamp {
    int64_t t_ns;    /* ns since the Unix epoch, 0 .. INT64_MAX */
    bool has_offset; /* false: the text had none and was read as UTC; true for a number */
} zn_timestamp;

/* Reads a time in this unit into *out; false when the whole text is not one from 1970 to 2262. */
bool zn_timestamp_parse(zn_span text, zn_time_unit unit, zn_timestamp *out);
/* Returns true when the text is a number, of whatever unit. */
bool zn_timestamp_is_number(zn_span text);
/* Returns the problem of a text that zn_timestamp_parse refuses, with a time that it would read. */
const char *zn_timestamp_problem(zn_span text, zn_time_unit unit);
/* Appends t_ns (>= 0) in this unit, exactly: a number with as many decimals as it needs, or ISO
 * 8601 in UTC with 0, 3, 6 or 9. */
void zn_timestamp_put(zn_text *out, int64_t t_ns, zn_time_unit unit);

#endif
