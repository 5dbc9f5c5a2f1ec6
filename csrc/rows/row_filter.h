/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of observations through the z-table, behind one handle: bytes of CSV or JSON Lines in, rows
 * that may be published out.
 *
 * Bytes are taken in pieces of any size; every row that a piece completes is decided before the
 * call returns. A row that cannot be read is dropped and counted, and nothing of it leaves. Output
 * gathers in a buffer that the caller empties after each call. Memory is bounded by the longest row
 * and by the z-table's caps.
 *
 * A sieve belongs to one thread at a time. After an error it only takes zn_sieve_output, with what
 * was decided before, zn_sieve_get_stats and zn_sieve_close. No message holds a byte of the input.
 */
#ifndef ZN_SIEVE_H
#define ZN_SIEVE_H

#include "release/gate_rows.h"
#include "util/timestamp.h"
#include "release/row.h"
#include "util/text.h"

#define ZN_SIEVE_ROW_MAX ((size_t)1 << 20) /* bytes a row may have */

typedef struct zn_sieve zn_sieve;

typedef struct zn_sieve_config {
    zn_row_gate_config gate;
    zn_row_format format; /* ZN_ROWS_AUTO: JSON Lines where the first byte is '{', else CSV */
    zn_row_format to;     /* ZN_ROWS_AUTO: as the input */
    zn_time_unit unit;
    uint8_t delimiter;      /* CSV's, an ASCII character */
    zn_row_columns columns; /* names in UTF-8, each another; copied */
    zn_span header;         /* for CSV without a header: the line it would have; copied */
    bool strict;            /* the first row that cannot be read is an error */
} zn_sieve_config;

typedef struct zn_sieve_stats {
    uint64_t rows;                   /* read, also those with a fault; no headers, no blank lines */
    uint64_t observations;           /* those without a fault */
    uint64_t written;                /* to the output */
    uint64_t without_offset;         /* times that were taken for UTC */
    uint64_t faults[ZN_FAULT_COUNT]; /* rows dropped, by reason */
    zn_row_fault first_fault;        /* of the first of them; ZN_FAULT_GOOD: none */
    uint64_t first_fault_line;       /* in its source, from 1 */
    int64_t first_ns, last_ns; /* the times of all observations lie between; observations > 0 */
} zn_sieve_stats;

/* Returns 0, or a negative zn_err with *err filled and *out NULL. */
int zn_sieve_open(zn_sieve **out, const zn_sieve_config *config, zn_error *err);
void zn_sieve_close(zn_sieve *s);

/*
 * Takes the next n bytes of a source. 0; -ZN_ERR_CONFIG when the columns or the unit of time do not
 * fit the input, -ZN_ERR_FORMAT when it cannot be read on, or another negative zn_err.
 */
int zn_sieve_feed(zn_sieve *s, const uint8_t *bytes, size_t n, zn_error *err);
/* The source has ended, with or without a line feed; another may follow. As zn_sieve_feed. */
int zn_sieve_end(zn_sieve *s, zn_error *err);
/* No other source follows: closes the window that is being counted. 0, or -ZN_ERR_CAPACITY. */
int zn_sieve_finish(zn_sieve *s, zn_error *err);

/* What may be published, to be read and emptied (n = 0) by the caller. */
zn_text *zn_sieve_output(zn_sieve *s);

/* With config.gate.popularity, the windows that have ended: `kept`, to be read and emptied
 * (kept_count = 0) by the caller. */
zn_popularity *zn_sieve_popularity(zn_sieve *s);

const zn_sieve_stats *zn_sieve_get_stats(const zn_sieve *s);
zn_ztable_stats zn_sieve_table_stats(const zn_sieve *s);
/* The format that is read; ZN_ROWS_AUTO while nothing says which. */
zn_row_format zn_sieve_format(const zn_sieve *s);
/* Bytes of memory in use. */
size_t zn_sieve_memory(const zn_sieve *s);
/* A fault's name, as in "ZN_FAULT_name", and its text, for 0 <= fault < ZN_FAULT_COUNT. */
const char *zn_row_fault_name(zn_row_fault fault);
const char *zn_row_fault_text(zn_row_fault fault);

#endif
