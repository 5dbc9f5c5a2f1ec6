/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the sieve share: sieve.c has the bytes, sieve_row.c the rows. */
#ifndef ZN_ROWS_ROW_FILTER_INTERNAL_H
#define ZN_ROWS_ROW_FILTER_INTERNAL_H

#include "rows/csv_row.h"
#include "rows/row_filter.h"
#include "rows/row_frame.h"
#include "rows/row_log.h"

struct zn_row_filter {
    zn_row_format format, to;
    bool strict;
    uint8_t *names; /* what columns.name and header point to */
    zn_row_columns columns;
    zn_span header;
    zn_row_gate *gate;
    zn_row_style style;
    zn_row_frame frame;
    zn_csv_layout layout;
    bool marked;   /* this source's byte order mark is passed, or it has none */
    bool begun;    /* its format is known */
    bool laid_out; /* its columns are */
    bool skipping; /* a row that is too long */
    bool headed;   /* the output has its header */
    uint8_t *buffer;
    size_t at, n, cap; /* the row being read, the end of what is there, and of the buffer */
    uint64_t line;     /* of the row being read */
    zn_row rows[ZN_ROW_BATCH];
    size_t row_count;
    zn_text out;
    zn_row_filter_stats stats;
};

/* Lays out the columns by a header line of n bytes without line feed, which it writes over. */
int zn_row_filter_take_header(zn_row_filter *s, uint8_t *line, size_t n, zn_error *err);
/* Writes the output's header, once, where its format has one. */
void zn_row_filter_write_header(zn_row_filter *s);
/* Takes one whole row in the same form, or the header where there was none yet. */
int zn_row_filter_take_row(zn_row_filter *s, uint8_t *bytes, size_t n, zn_error *err);
/* Counts the row being read as one that cannot be; an error where that is to end the reading. */
int zn_row_filter_fault(zn_row_filter *s, zn_row_fault fault, zn_error *err);
/* Decides and writes the rows that were read. */
int zn_row_filter_flush(zn_row_filter *s, zn_error *err);

#endif
