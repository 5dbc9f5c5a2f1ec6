/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/ascii.h"

bool zn_ascii_equal(zn_span a, zn_span b)
{
    zn_cursor left = zn_cursor_over_span(a, true), right = zn_cursor_over_span(b, true);
    bool equal = a.n == b.n;
    while (equal && zn_cursor_left(&left) > 0)
        equal = zn_ascii_lower(zn_cursor_u8(&left)) == zn_ascii_lower(zn_cursor_u8(&right));
    return equal;
}

zn_span zn_ascii_take_until(zn_cursor *c, uint8_t stop)
{
    zn_cursor peek = *c;
    return zn_cursor_take(c, zn_span_find(zn_cursor_rest(&peek), stop));
}

bool zn_ascii_take_line(zn_cursor *c, zn_span *line)
{
    zn_span all = zn_ascii_take_until(c, '\n');
    bool complete = zn_cursor_left(c) > 0;
    zn_cursor last = zn_cursor_over_span(all, true);
    if (complete)
        zn_cursor_skip(c, 1);
    *line = all;
    if (all.n > 0) {
        zn_cursor_skip(&last, all.n - 1);
        line->n -= zn_cursor_u8(&last) == '\r';
    }
    return complete;
}

zn_span zn_ascii_part(zn_span s, size_t from, size_t to)
{
    zn_cursor c = zn_cursor_over_span(s, true);
    zn_cursor_skip(&c, from);
    return zn_cursor_take(&c, to - from);
}

zn_span zn_ascii_trim(zn_span s)
{
    zn_cursor c = zn_cursor_over_span(s, true);
    size_t from = 0, to = 0; /* of what lies between the first and the last byte to keep */
    for (size_t i = 1; zn_cursor_left(&c) > 0; i++) {
        if (zn_ascii_is_blank(zn_cursor_u8(&c)))
            continue;
        if (to == 0)
            from = i - 1;
        to = i;
    }
    return zn_ascii_part(s, from, to);
}
