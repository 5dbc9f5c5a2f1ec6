/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of rows: bytes of CSV or JSON Lines in portions of any size, rows with their times out,
 * one by one. A row that cannot be read is counted, with its line, and passed over; with `strict`
 * it is an error. Memory is bounded by the longest row and the largest portion.
 *
 * A row of several lines whose quotes or columns are wrong, or that does not end within 1 MiB or at
 * the end of its source, costs its first line only: a quote opened a field by mistake. The lines
 * behind the first, up to the one where the mistake showed, are then read as a row each. So no byte
 * is looked at more than a few times.
 *
 * Rows borrow the reader's buffer, until the next portion. No message holds a byte of the input but
 * names of columns that its owner gave.
 */
#ifndef ZN_ROWS_READER_H
#define ZN_ROWS_READER_H

#include "release/row.h"
#include "rows/csv.h"
#include "rows/splitter.h"
#include "util/timestamp.h"

#define ZN_ROW_BYTES_MAX ((size_t)1 << 20) /* that a row may have */

/* A line of a source, without its line feed. */
typedef struct zn_row_line {
    uint8_t *bytes;
    size_t n;
    uint64_t number; /* from 1 */
} zn_row_line;

/* Kind and content of a line. */
typedef struct zn_row_taken {
    bool is_row;        /* false: a header, or nothing */
    zn_row_fault fault; /* of a row */
    int64_t t_ns;       /* time of a row without a fault, in ns since the Unix epoch */
} zn_row_taken;

/* Functions that read the lines of a log, in place of the columns of the config. */
typedef struct zn_row_lines {
    /* A source begins. Returns 0, or a negative zn_err. NULL: the config's columns are read. */
    int (*begin)(void *owner, zn_error *err);
    /* Takes a line, and may write over it. The bytes stay where they are until the next portion.
     * Returns 0, or a negative zn_err. */
    int (*take)(void *owner, const zn_row_line *line, zn_row_taken *taken, zn_error *err);
    /* Returns the fault of a row of several lines, which it must not change. */
    zn_row_fault (*check)(void *owner, uint8_t *row, size_t n);
    void *owner;
} zn_row_lines;

typedef struct zn_row_reader_config {
    zn_row_format format; /* ZN_ROWS_AUTO: JSON Lines where the first byte is '{', else CSV */
    zn_time_unit unit;
    uint8_t delimiter; /* CSV's, an ASCII character */
    bool quotes;       /* CSV's fields can be quoted, and then span lines */
    /* names in UTF-8, all different, the column of the time first; copied */
    zn_row_columns columns;
    size_t required; /* the first columns, which hold a value in every row; at least 1 */
    bool with_user;  /* the second column is the user's: a text or a whole number */
    bool may_lack;   /* the third column may be empty, and then the second may be, too */
    const char *option[ZN_ROW_COLUMNS_MAX]; /* that names each column, for messages; borrowed */
    zn_span header;       /* for CSV without a header: the line it would have; copied */
    bool strict;          /* the first row that cannot be read is an error */
    const zn_span *nulls; /* texts that mean no value in the first `scalars` columns; borrowed */
    size_t null_count;
    zn_row_lines lines; /* all zeros: rows have the config's columns */
} zn_row_reader_config;

typedef struct zn_row_reader_stats {
    uint64_t rows;                   /* read, also those with a fault; no headers, no blank lines */
    uint64_t observations;           /* those without a fault */
    uint64_t without_offset;         /* times without an offset, taken for UTC */
    uint64_t faults[ZN_FAULT_COUNT]; /* rows dropped, by reason */
    const char *first_fault;         /* problem of the first of them; NULL: none */
    uint64_t first_fault_line;       /* in its source, from 1 */
    int64_t first_ns, last_ns; /* times of the earliest and latest observation, if there is one */
} zn_row_reader_stats;

/* Counts an observation of time t_ns. */
static inline void zn_row_stats_observation(zn_row_reader_stats *stats, int64_t t_ns)
{
    if (stats->observations == 0 || t_ns < stats->first_ns)
        stats->first_ns = t_ns;
    if (stats->observations == 0 || t_ns > stats->last_ns)
        stats->last_ns = t_ns;
    stats->observations++;
}

/* Counts a row that cannot be read, with the text of its fault and its line. */
static inline void zn_row_stats_fault(zn_row_reader_stats *stats, zn_row_fault fault,
                                      const char *text, uint64_t line)
{
    stats->faults[fault]++;
    if (stats->first_fault == NULL) {
        stats->first_fault = text;
        stats->first_fault_line = line;
    }
}

/* A reader is a part of its owner; all zeros is a closed one. */
typedef struct zn_row_reader {
    zn_row_reader_config config; /* columns.name and header point into `names` */
    uint8_t *names;
    zn_row_splitter splitter;
    zn_csv_layout layout;
    bool marked;   /* this source's byte order mark was skipped, or is absent */
    bool begun;    /* its format is known */
    bool laid_out; /* its columns are known */
    bool skipping; /* a line that is too long */
    size_t single; /* bytes from `at` on in which each line is a row */
    uint8_t *buffer;
    /* offsets of the current row, of the end of the bytes, and of the end of the buffer */
    size_t at, n, cap;
    size_t blanks;     /* bytes at the source's start that are blank, until `begun` */
    uint64_t line;     /* of the row being read */
    uint64_t row_line; /* of the last row that was returned */
    zn_row_reader_stats stats;
} zn_row_reader;

/* Result of zn_row_reader_next. With config.lines the owner has the row, and zn_row is NULL. */
typedef enum zn_row_found {
    ZN_FOUND_ROW,    /* *row is an observation */
    ZN_FOUND_HEADER, /* a header line or, in JSON Lines, the beginning: the format is known now */
    ZN_FOUND_NONE    /* no whole row is left */
} zn_row_found;

/* Opens r, which is all zeros. Returns 0, or a negative zn_err with *err filled; zn_row_reader_fini
 * is due then, too. */
int zn_row_reader_init(zn_row_reader *r, const zn_row_reader_config *config, zn_error *err);
/* Wipes and frees. */
void zn_row_reader_fini(zn_row_reader *r);

/* Takes the next n bytes of a source; rows from before are gone. Returns 0 or -ZN_ERR_CAPACITY. */
int zn_row_reader_append(zn_row_reader *r, const uint8_t *bytes, size_t n, zn_error *err);
/*
 * Reads the next row of the available bytes. final: the source has ended, so that the bytes after
 * its last line feed are a row. Returns 0; -ZN_ERR_CONFIG if the columns or the unit of time do not
 * fit the input; -ZN_ERR_FORMAT if the rest of the input cannot be read; or another negative
 * zn_err.
 */
int zn_row_reader_next(zn_row_reader *r, bool final, zn_row *row, zn_row_found *what,
                       zn_error *err);
/* Ends the source: what is left of it is gone, and another may follow. */
void zn_row_reader_end(zn_row_reader *r);

/* Returns the format of the input; ZN_ROWS_AUTO while the format is unknown. */
static inline zn_row_format zn_row_reader_format(const zn_row_reader *r)
{
    return r->config.format;
}

/* A fault's name, as in "ZN_FAULT_name", and its text, for 0 <= fault < ZN_FAULT_COUNT. */
const char *zn_row_fault_name(zn_row_fault fault);
const char *zn_row_fault_text(zn_row_fault fault);

#endif
