/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits bytes into rows. A row ends at a line feed, in CSV (RFC 4180) at a line feed outside of
 * quotes. A quote opens a quoted field only at the field's beginning, and two quotes in the field
 * mean a quote. Every byte is looked at a bounded number of times, however the input is cut into
 * portions.
 */
#ifndef ZN_ROWS_SPLITTER_H
#define ZN_ROWS_SPLITTER_H

#include "util/cursor.h"

typedef struct zn_row_splitter {
    bool quotes;       /* fields can be quoted; may change between rows */
    uint8_t delimiter; /* CSV's, an ASCII character */
    bool inside;       /* in a quoted field */
    size_t at;         /* bytes of the row looked at */
    size_t lines;      /* line feeds in its quoted fields */
} zn_row_splitter;

/*
 * Goes on looking for the end of the row that begins at `row`, which holds the bytes of the last
 * call and perhaps more. Returns true when the end is there, after *bytes bytes with the line feed,
 * over *lines lines; the splitter is then ready for the next row.
 */
bool zn_row_splitter_next(zn_row_splitter *f, zn_span row, size_t *bytes, size_t *lines);
/* Forgets this row, and is ready for another one. */
void zn_row_splitter_reset(zn_row_splitter *f);

#endif
