/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of logs: lines of a log to rows of cells, and gated rows back to lines of the same form. A
 * form is a file with a zn_log_form and a row of log_form_of() in rows/log_filter.c.
 */
#ifndef ZN_ROWS_LOG_FORM_H
#define ZN_ROWS_LOG_FORM_H

#include "release/log_gate.h"
#include "rows/log_presets.h"
#include "rows/reader.h"

#define ZN_LOG_FIELDS_MAX 4096
#define ZN_LOG_MARK_MAX 32 /* bytes of Zeek's mark of an unset or empty field */

/* Zeek's mark of a missing value. */
typedef struct zn_log_mark {
    uint8_t text[ZN_LOG_MARK_MAX];
    size_t n;
} zn_log_mark;

/* State of a log: the columns of the current file, and lines that wait for the output. */
typedef struct zn_log_source {
    const zn_log_preset *preset;
    zn_text head;              /* header of the current file, as it is written again */
    zn_text written;           /* header that the output has */
    zn_text opened;            /* Zeek's line with the time at which the log was opened */
    zn_text closed;            /* Zeek's line at the end of the log; empty before that line */
    zn_text ended;             /* the same line of the log before */
    bool laid_out;             /* the columns are known */
    bool members;              /* Zeek's log is JSON Lines */
    bool was_tsv, was_members; /* form of the files so far */
    size_t fields_at;          /* offset of the names of the fields in `head` */
    uint8_t separator;
    zn_log_mark unset, empty;
    size_t fields;
    uint8_t role[ZN_LOG_FIELDS_MAX]; /* zn_log_role of each field */
    bool framed;                     /* a stream of frames has begun */
    zn_text partial;                 /* bytes of a frame that has not come completely */
    unsigned year, month;            /* of the last row, if times have no year; 0: none */
    zn_csv_layout csv;               /* number of columns, to check rows of several lines */
} zn_log_source;

/* A line that was read. */
typedef struct zn_log_line {
    uint64_t number; /* of the line, from 1, for messages */
    bool is_row;
    zn_row_fault fault; /* of a row that cannot be read */
    zn_log_cell *cells; /* with space for ZN_LOG_CELLS_MAX */
    size_t count;
} zn_log_line;

typedef struct zn_log_form {
    /* Appends the lines of the next bytes of a binary log to *lines; `final`: no other bytes
     * follow. Returns 0, or a negative zn_err. NULL: the log has lines. */
    int (*decode)(zn_log_source *s, zn_span bytes, bool final, zn_text *lines, zn_error *err);
    zn_row_format format; /* by which the reader splits lines */
    bool quotes;          /* fields can be quoted, and then span lines */
    uint8_t separator;    /* of quoted fields */
    /* Reads a line of n bytes without its line feed; it may write over the line. Returns 0, or a
     * negative zn_err if the header does not fit the preset. */
    int (*read)(zn_log_source *s, uint8_t *line, size_t n, zn_log_line *out, zn_error *err);
    /* Writes a row as a line. */
    void (*put)(const zn_log_source *s, zn_text *out, const zn_gated_log *row);
} zn_log_form;

extern const zn_log_form zn_log_form_zeek, zn_log_form_members, zn_log_form_csv, zn_log_form_tstat;
extern const zn_log_form zn_log_form_dnstap, zn_log_form_bind, zn_log_form_unbound;

/* Forgets the columns of the last file. */
void zn_log_source_begin(zn_log_source *s);
/* Wipes and frees the texts. */
void zn_log_source_fini(zn_log_source *s);

/* Gives field i of the header its role. Returns false if a column of the preset comes twice. */
bool zn_log_source_field(zn_log_source *s, size_t i, zn_span name);
/* Returns 0 if the header has each column that the preset needs, or -ZN_ERR_CONFIG. */
int zn_log_source_check(const zn_log_source *s, uint64_t line, zn_error *err);

/* Takes the bytes up to the separator, and the separator. Sets *more to whether there was one. */
static inline zn_span zn_log_take_field(zn_cursor *c, uint8_t separator, bool *more)
{
    zn_span rest = {c->p, zn_cursor_left(c)};
    zn_span field = zn_cursor_take(c, zn_span_find(rest, separator));
    *more = zn_cursor_left(c) != 0;
    zn_cursor_skip(c, *more);
    return field;
}

/*
 * Splits a row at its separators into the texts of at most `max` cells. Returns the number of
 * fields, max + 1 if there are more. *fault is ZN_FAULT_UTF8 or ZN_FAULT_CONTROL if the row is not
 * text without control characters; tabs are text.
 */
size_t zn_log_split(zn_span row, uint8_t separator, zn_log_cell *cells, size_t max,
                    zn_row_fault *fault);

/* Returns -ZN_ERR_FORMAT, with `problem` about a line of the header. */
int zn_log_source_fail(zn_error *err, uint64_t line, const char *problem);

#endif
