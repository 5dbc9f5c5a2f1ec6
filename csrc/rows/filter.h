/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of observations through the z-table by one handle: bytes of CSV or JSON Lines in, rows
 * that may be published out.
 *
 * Bytes are taken in portions of any size; every row that a portion completes is decided before the
 * call returns. A row that cannot be read is dropped and counted, and nothing of it leaves. Output
 * gathers in a buffer that the caller empties after each call. Memory is bounded by the longest row
 * and by the z-table's caps.
 *
 * A filter belongs to one thread at a time. After an error the only calls that may follow are
 * zn_row_filter_output, which returns the rows released before, zn_row_filter_get_stats and
 * zn_row_filter_close. No message holds a byte of the input.
 */
#ifndef ZN_ROWS_FILTER_H
#define ZN_ROWS_FILTER_H

#include "release/row_gate.h"
#include "rows/log_filter.h"
#include "rows/reader.h"

typedef struct zn_row_filter zn_row_filter;

typedef struct zn_row_filter_config {
    zn_row_gate_config gate;
    zn_row_format format; /* ZN_ROWS_AUTO: JSON Lines where the first byte is '{', else CSV */
    zn_row_format to;     /* ZN_ROWS_AUTO: as the input */
    zn_time_unit unit;
    uint8_t delimiter;      /* CSV's, an ASCII character */
    bool quotes;            /* CSV's fields can be quoted */
    zn_row_columns columns; /* names in UTF-8, all different; copied */
    zn_span header;         /* for CSV without a header: the line it would have; copied */
    bool strict;            /* the first row that cannot be read is an error */
    const zn_span *nulls;   /* texts that mean no value; copied */
    size_t null_count;
    /* 0, or 1 and the index of a preset (rows/log_presets.h): the input is a log of another tool,
     * and leaves in its own form. A preset takes `gate`, `unit`, `strict` and the settings below,
     * and ignores all others. */
    size_t preset;
    bool established;       /* votes need evidence */
    const zn_net *internal; /* copied; NULL: the private networks */
    size_t internal_count;
    uint8_t user_v4_bits, user_v6_bits; /* of the prefix that is one user */
} zn_row_filter_config;

typedef struct zn_row_filter_stats {
    zn_row_reader_stats read;
    uint64_t written;                      /* rows, to the output */
    uint64_t reasons[ZN_LOG_REASON_COUNT]; /* rows by the reason of their suppression */
    uint64_t hold_full;                    /* coarse rows that left before their minute ended */
} zn_row_filter_stats;

/* Returns 0, or a negative zn_err with *err filled and *out NULL. */
int zn_row_filter_open(zn_row_filter **out, const zn_row_filter_config *config, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_row_filter_close(zn_row_filter *s);

/*
 * Takes the next n bytes of a source. 0; -ZN_ERR_CONFIG when the columns or the unit of time do not
 * fit the input, -ZN_ERR_FORMAT when it cannot be read on, or another negative zn_err.
 */
int zn_row_filter_feed(zn_row_filter *s, const uint8_t *bytes, size_t n, zn_error *err);
/* The source has ended, with or without a line feed; another may follow. As zn_row_filter_feed. */
int zn_row_filter_end(zn_row_filter *s, zn_error *err);
/* No other source follows: closes the window that is being counted. 0, or -ZN_ERR_CAPACITY. */
int zn_row_filter_finish(zn_row_filter *s, zn_error *err);

/* The text that may be published, to be read and emptied (n = 0) by the caller. */
zn_text *zn_row_filter_output(zn_row_filter *s);

/* With config.gate.popularity, the windows that have ended: `stored`, to be read and emptied
 * (stored_count = 0) by the caller. NULL with a preset. */
zn_popularity *zn_row_filter_popularity(zn_row_filter *s);

zn_row_filter_stats zn_row_filter_get_stats(const zn_row_filter *s);
zn_ztable_stats zn_row_filter_table_stats(const zn_row_filter *s);
/* NULL without a ladder. */
const zn_row_ladder_stats *zn_row_filter_ladder_stats(const zn_row_filter *s);
/* NULL without labels. */
const zn_row_labels *zn_row_filter_labels(const zn_row_filter *s);
/* NULL without a ladder and without labels. */
const zn_levels *zn_row_filter_levels(const zn_row_filter *s);
/* The format of the input; ZN_ROWS_AUTO while it is not known. */
zn_row_format zn_row_filter_format(const zn_row_filter *s);
/* Bytes of memory in use. */
size_t zn_row_filter_memory(const zn_row_filter *s);

#endif
