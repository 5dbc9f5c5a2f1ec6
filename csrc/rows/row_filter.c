/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input gathers in one buffer, from which rows/row_frame cuts rows. rows/csv_row or rows/json_row
 * reads a row in place, its time is parsed, and when a batch is full, or there is no whole row
 * left, release/gate_rows decides the batch and rows/row_log writes what it lets out. Only then the
 * buffer is moved: rows borrow it.
 */
#include "crypto/keys.h"
#include "rows/row_filter_internal.h"
#include "util/arena.h"

#define MARK_BYTES 3 /* the byte order mark of UTF-8 */

/* ---- opening ---- */

/* A copy of `text` at *at, which moves behind it. */
static zn_span copy_span(uint8_t **at, zn_span text)
{
    zn_span copy = {*at, text.n};
    if (text.n != 0)
        memcpy(*at, text.p, text.n);
    *at += text.n;
    return copy;
}

static int copy_names(zn_row_filter *s, const zn_row_filter_config *config, zn_error *err)
{
    size_t bytes = config->header.n + 1;
    uint8_t *at;
    for (size_t i = 0; i < config->columns.count; i++)
        bytes += config->columns.name[i].n;
    s->names = at = zn_heap_alloc(bytes);
    if (at == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the columns' names");
    s->columns.count = config->columns.count;
    for (size_t i = 0; i < config->columns.count; i++)
        s->columns.name[i] = copy_span(&at, config->columns.name[i]);
    s->header = copy_span(&at, config->header);
    return 0;
}

static int check_config(const zn_row_filter_config *config, zn_error *err)
{
    size_t count = config->columns.count;
    if (count < ZN_ROW_PASS || count > ZN_ROW_COLUMNS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%d to %d columns can be read, not %zu", ZN_ROW_PASS,
                       ZN_ROW_COLUMNS_MAX, count);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (zn_span_equal(config->columns.name[i], config->columns.name[j]))
                return zn_fail(err, ZN_ERR_CONFIG, 0, "a column is named twice");
    return 0;
}

int zn_row_filter_open(zn_row_filter **out, const zn_row_filter_config *config, zn_error *err)
{
    zn_row_filter *s;
    int rc;
    *out = NULL;
    rc = check_config(config, err);
    if (rc != 0)
        return rc;
    s = zn_block_alloc(sizeof *s);
    if (s == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of rows");
    s->format = config->format;
    s->to = config->to;
    s->strict = config->strict;
    s->line = 1;
    s->frame.delimiter = s->layout.delimiter = s->style.delimiter = config->delimiter;
    s->style.unit = config->unit;
    s->style.with_user = config->gate.with_user;
    s->style.columns = &s->columns;
    rc = copy_names(s, config, err);
    if (rc == 0)
        rc = zn_row_gate_open(&s->gate, &config->gate, err);
    if (rc != 0)
        zn_row_filter_close(s);
    else
        *out = s;
    return rc;
}

void zn_row_filter_close(zn_row_filter *s)
{
    if (s == NULL)
        return;
    zn_row_gate_close(s->gate);
    if (s->buffer != NULL)
        zn_wipe(s->buffer, s->cap);
    zn_heap_free(s->buffer);
    zn_heap_free(s->names);
    zn_text_fini(&s->out);
    zn_block_free(s, sizeof *s);
}

/* ---- reading ---- */

/* The row being read exceeds the longest: gives up its bytes but the last, by which the frame sees
 * where a field begins. Within quotes there is no telling where the next row begins. */
static int skip_long(zn_row_filter *s, zn_error *err)
{
    int rc = 0;
    if (s->frame.inside)
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "line %llu: a quoted field does not end within 1 MiB; nothing after it can "
                       "be read",
                       (unsigned long long)s->line);
    if (!s->laid_out)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "line %llu: the header is longer than 1 MiB",
                       (unsigned long long)s->line);
    if (!s->skipping) {
        s->stats.rows++;
        rc = zn_row_filter_fault(s, ZN_FAULT_LONG, err);
    }
    s->skipping = true;
    s->at += ZN_ROW_FILTER_ROW_MAX - 1;
    s->frame.at = 1;
    return rc;
}

/* Takes the row being read; *done when it is not all there. */
static int step(zn_row_filter *s, bool *done, zn_error *err)
{
    size_t left = s->n - s->at, bytes, lines;
    zn_span rest = {s->buffer + s->at, left < ZN_ROW_FILTER_ROW_MAX ? left : ZN_ROW_FILTER_ROW_MAX};
    int rc = 0;
    if (!zn_row_frame_end(&s->frame, rest, &bytes, &lines)) {
        *done = rest.n < ZN_ROW_FILTER_ROW_MAX;
        return *done ? 0 : skip_long(s, err);
    }
    if (!s->skipping)
        rc = zn_row_filter_take_row(s, s->buffer + s->at, bytes - 1, err);
    s->skipping = false;
    s->at += bytes;
    s->line += lines;
    return rc;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* The source's first byte that is not blank, a blank where it has none; false when it may come
 * yet. */
static bool first_byte(const zn_row_filter *s, bool final, uint8_t *first)
{
    size_t i = s->at;
    while (i < s->n && is_blank(s->buffer[i]))
        i++;
    *first = i < s->n ? s->buffer[i] : ' ';
    return i < s->n || final || i - s->at >= ZN_ROW_FILTER_ROW_MAX;
}

/* Passes over a byte order mark; false when it may not be all there yet. */
static bool pass_mark(zn_row_filter *s, bool final)
{
    static const uint8_t mark[MARK_BYTES] = {0xef, 0xbb, 0xbf};
    size_t n = s->n < MARK_BYTES ? s->n : MARK_BYTES;
    if (!s->marked && memcmp(s->buffer, mark, n) == 0) {
        if (n < MARK_BYTES)
            return final;
        s->at = MARK_BYTES;
    }
    s->marked = true;
    return true;
}

/* Fixes the formats, and for CSV without a header the columns. */
static int begin(zn_row_filter *s, uint8_t first, zn_error *err)
{
    int rc = 0;
    if (s->format == ZN_ROWS_AUTO && first == '[')
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "a JSON array is not JSON Lines, which have an object a line; "
                       "jq -c '.[]' makes them");
    if (s->format == ZN_ROWS_AUTO)
        s->format = first == '{' ? ZN_ROWS_JSONL : ZN_ROWS_CSV;
    s->style.format = s->to == ZN_ROWS_AUTO ? s->format : s->to;
    s->frame.quotes = s->format == ZN_ROWS_CSV;
    s->begun = true;
    s->laid_out = s->format == ZN_ROWS_JSONL;
    if (s->laid_out)
        zn_row_filter_write_header(s);
    else if (s->header.n != 0) {
        uint8_t *line = zn_heap_alloc(s->header.n);
        if (line == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a header");
        memcpy(line, s->header.p, s->header.n);
        rc = zn_row_filter_take_header(s, line, s->header.n, err);
        zn_heap_free(line);
    }
    return rc;
}

/* Takes all rows that are there; `final`: also what is behind the last line feed. */
static int consume(zn_row_filter *s, bool final, zn_error *err)
{
    uint8_t first;
    bool done = false;
    int rc = 0;
    if (!s->begun) {
        if (!pass_mark(s, final) || !first_byte(s, final, &first))
            return 0;
        if (final && first == ' ')
            return 0;
        rc = begin(s, first, err);
    }
    while (rc == 0 && !done)
        rc = step(s, &done, err);
    if (rc == 0 && final && !s->skipping)
        rc = zn_row_filter_take_row(s, s->buffer + s->at, s->n - s->at, err);
    if (rc != 0) {
        (void)zn_row_filter_flush(s, NULL); /* what came before the error counts */
        return rc;
    }
    return zn_row_filter_flush(s, err);
}

static int append(zn_row_filter *s, const uint8_t *bytes, size_t n, zn_error *err)
{
    if (s->at != 0) {
        s->n -= s->at;
        memmove(s->buffer, s->buffer + s->at, s->n);
        s->at = 0;
    }
    if (s->cap - s->n < n) {
        uint8_t *larger = zn_heap_resize(s->buffer, s->n + n);
        if (larger == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the input");
        s->buffer = larger;
        s->cap = s->n + n;
    }
    memcpy(s->buffer + s->n, bytes, n);
    s->n += n;
    return 0;
}

int zn_row_filter_feed(zn_row_filter *s, const uint8_t *bytes, size_t n, zn_error *err)
{
    int rc = n == 0 ? 0 : append(s, bytes, n, err);
    return rc != 0 || n == 0 ? rc : consume(s, false, err);
}

int zn_row_filter_end(zn_row_filter *s, zn_error *err)
{
    int rc = s->n != 0 ? consume(s, true, err) : 0;
    zn_row_frame_reset(&s->frame);
    s->marked = s->begun = s->laid_out = s->skipping = false;
    s->at = s->n = 0;
    s->line = 1;
    return rc;
}

int zn_row_filter_finish(zn_row_filter *s, zn_error *err)
{
    return zn_row_gate_finish(s->gate, err);
}

/* ---- telling ---- */

zn_text *zn_row_filter_output(zn_row_filter *s)
{
    return &s->out;
}

zn_popularity *zn_row_filter_popularity(zn_row_filter *s)
{
    return zn_row_gate_popularity(s->gate);
}

const zn_row_filter_stats *zn_row_filter_get_stats(const zn_row_filter *s)
{
    return &s->stats;
}

zn_ztable_stats zn_row_filter_table_stats(const zn_row_filter *s)
{
    return zn_row_gate_stats(s->gate);
}

zn_row_format zn_row_filter_format(const zn_row_filter *s)
{
    return s->format;
}

size_t zn_row_filter_memory(const zn_row_filter *s)
{
    return zn_row_gate_memory(s->gate) + sizeof *s + s->cap + s->out.cap;
}
