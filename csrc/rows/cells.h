/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of a table in memory, as Arrow and NumPy lay them out: chunks of cells, each a text, a
 * whole number, or missing. A column borrows all memory and copies nothing.
 *
 * Source of the layouts: https://arrow.apache.org/docs/format/Columnar.html
 */
#ifndef ZN_ROWS_CELLS_H
#define ZN_ROWS_CELLS_H

#include "util/text.h"

typedef enum zn_cells_kind {
    ZN_CELLS_NONE, /* every cell is missing */
    ZN_CELLS_I8,
    ZN_CELLS_I16,
    ZN_CELLS_I32,
    ZN_CELLS_I64,
    ZN_CELLS_U8,
    ZN_CELLS_U16,
    ZN_CELLS_U32,
    ZN_CELLS_U64,
    ZN_CELLS_TIME,   /* int64_t, of which INT64_MIN is missing */
    ZN_CELLS_BOOL,   /* bits, the lowest first; read as the texts "true" and "false" */
    ZN_CELLS_TEXT32, /* n + 1 offsets into `bytes`, int32_t */
    ZN_CELLS_TEXT64, /* n + 1 offsets into `bytes`, int64_t */
    ZN_CELLS_VIEW,   /* Arrow's views of 16 bytes, into `blocks` */
    ZN_CELLS_SPAN    /* zn_span; with p NULL it is missing */
} zn_cells_kind;

/* A chunk of a column. */
typedef struct zn_cells {
    zn_cells_kind kind;
    size_t n;      /* number of cells */
    size_t offset; /* number of cells before the first one, in `values` and in `valid` */
    const void *values;
    const uint8_t *valid;       /* a bit for each cell, the lowest first; NULL: all are valid */
    const uint8_t *bytes;       /* of TEXT32 and TEXT64 */
    const void *const *blocks;  /* of VIEW */
    const int64_t *block_bytes; /* size of each block */
    size_t block_count;
    const struct zn_cells *words; /* a dictionary, into which the numbers point; NULL: none */
} zn_cells;

/* A column, and the place of its next cell. */
typedef struct zn_cell_column {
    const zn_cells *chunks;
    size_t chunk_count;
    size_t chunk, at;
} zn_cell_column;

typedef enum zn_row_cell_kind { ZN_ROW_MISSING, ZN_ROW_NUMBER, ZN_ROW_TEXT } zn_row_cell_kind;

typedef struct zn_row_cell {
    zn_row_cell_kind kind;
    bool negative;
    union {
        uint64_t number; /* of a negative number: itself plus 2^64 */
        zn_span text;    /* any bytes */
    };
} zn_row_cell;

/*
 * Reads the next n cells; after the last cell of the column they are missing. A cell whose offsets
 * or index leave their array is missing, too, as far as the layout has sizes.
 */
void zn_cells_read(zn_cell_column *c, zn_row_cell *out, size_t n);

/* Returns the text of a cell, of a number its decimal digits, which are written to `digits`. */
zn_span zn_row_cell_text(const zn_row_cell *cell, char digits[ZN_DIGITS_MAX]);

/*
 * Sets *t_ns to the time of a cell that counts units of unit_ns ns since the Unix epoch. Returns
 * false if it is no time from 1970 to 2262.
 */
bool zn_row_cell_time(const zn_row_cell *cell, int64_t unit_ns, int64_t *t_ns);

/*
 * Copies the texts of a column as Arrow's large_utf8: each cell i with marks[i] != 0. A cell with
 * marks[i] < least becomes empty and missing. Returns the number of bytes. bytes NULL: only counts.
 * Else offsets has a place more than there are cells, and valid a zeroed bit for each cell.
 */
size_t zn_cells_copy(zn_cell_column column, const uint8_t *marks, size_t n, uint8_t least,
                     int64_t *offsets, uint8_t *valid, uint8_t *bytes);

/*
 * Converts n texts of `width` characters each, padded with zeros, into bytes with n + 1 offsets:
 * characters of 4 bytes (UCS-4, which becomes UTF-8) or, if is_wide is false, of one byte. `bytes`
 * has 4 * width or width bytes for each text.
 */
void zn_padded_texts(const void *values, size_t n, size_t width, bool is_wide, int64_t *offsets,
                     uint8_t *bytes);

#endif
