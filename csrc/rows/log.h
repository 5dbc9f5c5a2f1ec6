/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gated rows as lines of CSV (RFC 4180, with line feeds) or JSON Lines. Whatever a value holds, a
 * line parses back to the same columns: CSV fields are quoted where a reader could take them apart,
 * JSON strings escape every character that some reader takes for an end of line. Without quoting, a
 * delimiter, a carriage return or a line feed in a value is written as Zeek writes it: \x09, \x0a.
 */
#ifndef ZN_ROWS_LOG_H
#define ZN_ROWS_LOG_H

#include "release/row.h"
#include "util/timestamp.h"

/* The form in which rows are written. */
typedef struct zn_row_style {
    zn_row_format format; /* not ZN_ROWS_AUTO */
    uint8_t delimiter;    /* CSV's, an ASCII character */
    bool quotes;          /* CSV's fields can be quoted */
    zn_time_unit unit;
    bool with_user;
    const zn_row_columns *columns; /* their names; borrowed */
} zn_row_style;

/* Append parts of a line: what stands before column i (CSV's delimiter; JSON's comma, name and
 * colon); a time; a field of CSV; a value. */
void zn_row_log_before(zn_text *out, const zn_row_style *style, size_t i);
void zn_row_log_time(zn_text *out, const zn_row_style *style, int64_t t_ns);
void zn_row_log_field(zn_text *out, const zn_row_style *style, zn_span field);
void zn_row_log_value(zn_text *out, const zn_row_style *style, const zn_value *value);

/* Appends CSV's line of column names. */
void zn_row_log_header(zn_text *out, const zn_row_style *style);
/* Appends one row as a line. */
void zn_row_log_write(zn_text *out, const zn_row_style *style, const zn_gated_row *row);

#endif
