/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of resolvers, whose rows have no header: cell i of a row has the role of column i of the
 * preset. A row that is not exactly about a query of a client is not read.
 */
#ifndef ZN_ROWS_LOG_FIXED_H
#define ZN_ROWS_LOG_FIXED_H

#include "rows/log_form.h"

#define ZN_LOG_LITERAL(text) ((zn_span){(const uint8_t *)(text), sizeof(text) - 1})

/* Begins a row of all columns of the preset, without values. */
void zn_log_fixed_begin(const zn_log_source *s, zn_log_line *out);
/* Sets the value of a column. */
static inline void zn_log_fixed_set(zn_log_line *out, size_t column, zn_span text)
{
    out->cells[column].text = text;
    out->cells[column].kind = ZN_LOG_CELL_TEXT;
}

/* Takes the literal from the cursor, or leaves the cursor and returns false. */
bool zn_log_fixed_take(zn_cursor *c, zn_span literal);
/* Takes the bytes before `end` and `end` itself. Returns false, with the cursor unchanged, if there
 * is no `end` or nothing before it. */
bool zn_log_fixed_until(zn_cursor *c, uint8_t end, zn_span *out);
/* Returns true if there are 1 to 32 bytes, all of them letters, digits or bytes of `others`. */
bool zn_log_fixed_is_word(zn_span text, zn_span others);
/* Returns true for the text of an address. */
bool zn_log_fixed_is_address(zn_span text);

/* Number 1 to 12 of the month that the cursor has as "Jan", or 0. Takes three bytes. */
unsigned zn_log_fixed_take_month(zn_cursor *c);
/* Name of a month, three bytes. */
zn_span zn_log_fixed_month(unsigned month);
/* Takes a number of two digits; the first may be a blank. Fails the cursor for anything else. */
unsigned zn_log_fixed_take_two(zn_cursor *c);
/* Returns two digits at `at` of a text as a number; 0 if a byte is not a digit. */
unsigned zn_log_fixed_two_at(zn_span text, size_t at);

/* Appends the value of a column, or "-". */
void zn_log_fixed_put(zn_text *out, const zn_gated_log *row, size_t column);
static inline bool zn_log_fixed_has(const zn_gated_log *row, size_t column)
{
    return row->cells[column].kind != ZN_LOG_CELL_NONE;
}

#endif
