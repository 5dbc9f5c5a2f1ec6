/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points in time as text: a decimal number of s, ms, us or ns since the Unix epoch, or ISO 8601.
 *
 * Numbers: digits, then at will a point and more digits; no sign, no exponent. ISO 8601: a date
 * YYYY-MM-DD, then at will 'T' or a blank and HH:MM[:SS[.fraction]], then at will an offset 'Z',
 * +HH:MM, +HHMM or +HH (RFC 3339 with fewer demands). A date alone is its midnight, a time without
 * offset is UTC. What is finer than a nanosecond is cut.
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
    bool has_offset; /* false: it was taken for UTC; a number always has one */
} zn_timestamp;

/* False when the whole text is not a time from 1970 to 2262 in this unit. */
bool zn_timestamp_parse(zn_span text, zn_time_unit unit, zn_timestamp *out);
/* True when the text is a number, whatever it counts. */
bool zn_timestamp_is_number(zn_span text);
/* Writes t_ns >= 0 in the unit, exactly: a number with as many decimals as it needs, or ISO 8601 in
 * UTC with none, 3, 6 or 9. */
void zn_timestamp_put(zn_text *out, int64_t t_ns, zn_time_unit unit);

#endif
