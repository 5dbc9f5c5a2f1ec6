/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words, blanks and case in spans of text protocols. Everything borrows its input.
 */
#ifndef ZN_PROTO_ASCII_H
#define ZN_PROTO_ASCII_H

#include "util/cursor.h"

/* A space or a tab. */
static inline bool zn_ascii_is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* A-Z as a-z, every other byte as it is. */
static inline uint8_t zn_ascii_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

/* True when both spans hold the same text, whatever its case. */
bool zn_ascii_equal(zn_span a, zn_span b);

/* Takes the bytes before the first `stop`, which stays; or all bytes left if no byte is `stop`. */
zn_span zn_ascii_take_until(zn_cursor *c, uint8_t stop);

/* Takes the next line with its end; *line is without it. False when its LF is not there: *line then
 * holds all bytes that are left. */
bool zn_ascii_take_line(zn_cursor *c, zn_span *line);

/* The bytes [from, to) of a span, from <= to <= s.n. */
zn_span zn_ascii_part(zn_span s, size_t from, size_t to);

/* Returns the first byte, or 0 for an empty span. */
static inline uint8_t zn_ascii_first(zn_span s)
{
    zn_cursor c = zn_cursor_over_span(s, true);
    return zn_cursor_u8(&c);
}

/* The span without blanks at its ends. */
zn_span zn_ascii_trim(zn_span s);

#endif
