/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffered release of whole rows: bytes of CSV or JSON Lines in, rows out that share their
 * quasi-identifiers, as written, with k users and have diverse sensitive values, in each release.
 *
 * A written row has the time of the release, the generalized quasi-identifiers, the sensitive
 * columns and the passed columns; no other column. The rows of a release are sorted by their bytes.
 * rows/window groups them; they are formatted, and release/tuple_gate counts them again in the very
 * bytes that would leave.
 *
 * A publisher belongs to one thread at a time. After an error the only calls that may follow are
 * zn_publisher_output, which returns the rows released before, zn_publisher_get_stats and
 * zn_publisher_close. No message holds a byte of a row.
 */
#ifndef ZN_ROWS_PUBLISHER_H
#define ZN_ROWS_PUBLISHER_H

#include "release/row_ladder.h"
#include "rows/reader.h"
#include "rows/window.h"

typedef struct zn_publisher zn_publisher;

typedef struct zn_publisher_config {
    zn_window_config window; /* leave and owner are set by the publisher */
    zn_row_format format;    /* ZN_ROWS_AUTO: JSON Lines where the first byte is '{', else CSV */
    zn_row_format to;        /* ZN_ROWS_AUTO: as the input */
    zn_time_unit unit;
    uint8_t delimiter; /* CSV's, an ASCII character */
    bool quotes;       /* CSV's fields can be quoted */
    /* Names in UTF-8, all different; copied: the time, with window.with_user the user, then the
     * quasi-identifiers, the sensitive columns, and those passed on. */
    zn_row_columns columns;
    zn_span header; /* for CSV without a header: the line it would have; copied */
    bool strict;    /* the first row that cannot be read is an error */
    zn_unknown unknown;
    bool pseudonyms; /* the user's column has a pseudonym, new for each release */
    uint64_t max_memory;
} zn_publisher_config;

/* Returns 0, or a negative zn_err with *err filled and *out NULL. */
int zn_publisher_open(zn_publisher **out, const zn_publisher_config *config, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_publisher_close(zn_publisher *p);

/*
 * Takes the next n bytes of a source. 0; -ZN_ERR_CONFIG when the columns or the unit of time do not
 * fit the input, -ZN_ERR_FORMAT when it cannot be read on, or another negative zn_err.
 */
int zn_publisher_feed(zn_publisher *p, const uint8_t *bytes, size_t n, zn_error *err);
/* The source has ended, with or without a line feed; another may follow. As zn_publisher_feed. */
int zn_publisher_end(zn_publisher *p, zn_error *err);
/* Nothing has come for a while: the open window closes. As zn_publisher_feed. */
int zn_publisher_idle(zn_publisher *p, zn_error *err);
/* No other source follows: the last window closes. As zn_publisher_feed. */
int zn_publisher_finish(zn_publisher *p, zn_error *err);

/* The text that may be published, to be read and emptied (n = 0) by the caller. */
zn_text *zn_publisher_output(zn_publisher *p);

/* Counters of the input, and the window with its own. */
const zn_row_reader_stats *zn_publisher_read_stats(const zn_publisher *p);
const zn_window *zn_publisher_window(const zn_publisher *p);
/* The format of the input; ZN_ROWS_AUTO while it is not known. */
zn_row_format zn_publisher_format(const zn_publisher *p);
/* Bytes of memory in use. */
size_t zn_publisher_memory(const zn_publisher *p);

#endif
