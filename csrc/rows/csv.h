/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CSV row by RFC 4180: fields between delimiters, quoted fields with doubled quotes. Stricter
 * than many readers, so that no two can disagree on where a field ends: nothing follows a closing
 * quote, and no quote or carriage return stands in a field without quotes. In a file without
 * quoting, such as Zeek's, a quote is a character of its field.
 */
#ifndef ZN_ROWS_CSV_H
#define ZN_ROWS_CSV_H

#include "release/row.h"

/* The rest of a row. */
typedef struct zn_csv_fields {
    uint8_t *p, *end;
    uint8_t delimiter;
    bool quotes; /* fields can be quoted */
    bool keep;   /* the row's bytes stay as they are: doubled quotes are not joined */
    bool more;   /* another field follows, perhaps an empty one */
} zn_csv_fields;

/* Begins a row, n bytes at `row` without line feed. f->delimiter and f->quotes are set by the
 * caller. Returns ZN_FAULT_GOOD, ZN_FAULT_UTF8 or ZN_FAULT_CONTROL. */
zn_row_fault zn_csv_begin(zn_csv_fields *f, uint8_t *row, size_t n);
/* The next field; false when a quote or a carriage return is where none can be. Writes over the
 * row. */
bool zn_csv_next(zn_csv_fields *f, zn_span *out);

#define ZN_CSV_COLUMNS_MAX 4096

/* The value of a row that each column of the file holds. */
typedef struct zn_csv_layout {
    uint8_t delimiter;
    bool quotes; /* fields can be quoted */
    size_t columns;
    uint8_t slot[ZN_CSV_COLUMNS_MAX]; /* an index into zn_row.value, or ZN_CSV_UNUSED */
} zn_csv_layout;

#define ZN_CSV_UNUSED 0xff

/*
 * Lays out a header row, n bytes at `row` without line feed, for `wanted` columns. On success
 * returns ZN_FAULT_GOOD; ZN_FAULT_MISSING or ZN_FAULT_TWICE with the wanted column at fault in
 * *which; or another fault of the row. Writes over the row.
 */
zn_row_fault zn_csv_header(zn_csv_layout *layout, uint8_t *row, size_t n,
                           const zn_row_columns *wanted, size_t *which);

/* Returns ZN_FAULT_GOOD if a row's quotes are in place and it has as many columns as the layout,
 * else ZN_FAULT_QUOTES or ZN_FAULT_COLUMNS. Reads no value and writes nothing. */
zn_row_fault zn_csv_check(const zn_csv_layout *layout, uint8_t *row, size_t n);

/* Reads a row the same way into out->value; the other values of `out` stay. */
zn_row_fault zn_csv_row(const zn_csv_layout *layout, uint8_t *row, size_t n, zn_row *out);

#endif
