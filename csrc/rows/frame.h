/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of observations in columns through the z-table by one handle. Decides each row as
 * rows/filter decides the row of CSV with the same texts, and a number as its decimal digits. The
 * caller selects the rows of its table by the marks.
 *
 * A filter belongs to one thread at a time. No message holds a byte of the input.
 */
#ifndef ZN_ROWS_FRAME_H
#define ZN_ROWS_FRAME_H

#include "rows/cells.h"
#include "rows/filter.h"

typedef struct zn_frame_filter zn_frame_filter;

/* Fate of a row. */
typedef enum zn_row_mark {
    ZN_MARK_DROP,   /* not written */
    ZN_MARK_BLANK,  /* written without its attribute */
    ZN_MARK_RELEASE /* written */
} zn_row_mark;

/* Columns with n cells each. */
typedef struct zn_row_frame {
    zn_cell_column time, user, attribute;
    int64_t unit_ns; /* of the times, in ns */
    size_t n;
} zn_row_frame;

/* The decisions on a frame. */
typedef struct zn_row_marks {
    uint8_t *marks; /* of each row, a zn_row_mark */
    char
        *pseudonyms; /* of each row that is written, ZN_PSEUDONYM_CHARS each; NULL: without users */
    size_t written;  /* number of rows that are written */
} zn_row_marks;

/* Opens a filter with the gate and the `strict` of *config. Returns 0, or a negative zn_err with
 * *err filled and *out NULL. */
int zn_frame_filter_open(zn_frame_filter **out, const zn_row_filter_config *config, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_frame_filter_close(zn_frame_filter *f);

/*
 * Decides the next rows of a stream. A row without a time, a row with an attribute but no user, and
 * a row that cannot be read is dropped and counted. A row without an attribute is suppressed.
 * Returns 0; -ZN_ERR_FORMAT if a row cannot be read and `strict` is set; or another negative
 * zn_err. After an error the marks mean nothing.
 */
int zn_frame_filter_decide(zn_frame_filter *f, const zn_row_frame *frame, zn_row_marks *out,
                           zn_error *err);

/* first_fault_line is the row's place in the stream, from 0. */
zn_row_filter_stats zn_frame_filter_get_stats(const zn_frame_filter *f);
zn_ztable_stats zn_frame_filter_table_stats(const zn_frame_filter *f);
/* Bytes of memory in use. */
size_t zn_frame_filter_memory(const zn_frame_filter *f);

#endif
