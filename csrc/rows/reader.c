/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input gathers in one buffer, from which rows/splitter cuts rows. rows/csv or rows/json reads a
 * row in place, and its time is parsed. Only the next portion moves the buffer: rows borrow it.
 */
#include "rows/reader.h"

#include "crypto/keys.h"
#include "rows/json.h"
#include "util/arena.h"

#include <stdio.h>

#define MARK_BYTES 3 /* the byte order mark of UTF-8 */

/* ---- opening ---- */

/* A copy of `text` at *at, which moves after it. */
static zn_span copy_span(uint8_t **at, zn_span text)
{
    zn_span copy = {*at, text.n};
    if (text.n != 0)
        memcpy(*at, text.p, text.n);
    *at += text.n;
    return copy;
}

static int copy_names(zn_row_reader *r, zn_error *err)
{
    zn_row_reader_config *config = &r->config;
    size_t bytes = config->header.n + 1;
    uint8_t *at;
    for (size_t i = 0; i < config->columns.count; i++)
        bytes += config->columns.name[i].n;
    r->names = at = zn_heap_alloc(bytes);
    if (at == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the columns' names");
    for (size_t i = 0; i < config->columns.count; i++)
        config->columns.name[i] = copy_span(&at, config->columns.name[i]);
    config->header = copy_span(&at, config->header);
    return 0;
}

static int check_config(const zn_row_reader_config *config, zn_error *err)
{
    const zn_row_columns *columns = &config->columns;
    if (config->lines.take != NULL)
        return 0;
    if (config->required < 1 || columns->count < config->required ||
        columns->count > ZN_ROW_COLUMNS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%zu to %d columns can be read, not %zu",
                       config->required, ZN_ROW_COLUMNS_MAX, columns->count);
    for (size_t i = 0; i < columns->count; i++)
        for (size_t j = 0; j < i; j++)
            if (zn_span_equal(columns->name[i], columns->name[j]))
                return zn_fail(err, ZN_ERR_CONFIG, 0, "a column is named twice");
    return 0;
}

int zn_row_reader_init(zn_row_reader *r, const zn_row_reader_config *config, zn_error *err)
{
    int rc = check_config(config, err);
    if (rc != 0)
        return rc;
    r->config = *config;
    r->line = 1;
    r->splitter.delimiter = r->layout.delimiter = config->delimiter;
    r->layout.quotes = config->quotes;
    return copy_names(r, err);
}

/* Wipes and frees the buffer: it holds users and values that were not released. */
static void free_buffer(zn_row_reader *r)
{
    if (r->buffer != NULL)
        zn_wipe(r->buffer, r->cap);
    zn_heap_free(r->buffer);
}

void zn_row_reader_fini(zn_row_reader *r)
{
    free_buffer(r);
    zn_heap_free(r->names);
    r->buffer = r->names = NULL;
}

/* ---- a row ---- */

/* Counts the row as unreadable; in strict mode that is an error. */
static int count_fault_as(zn_row_reader *r, zn_row_fault fault, const char *text, zn_error *err)
{
    zn_row_stats_fault(&r->stats, fault, text, r->line);
    if (!r->config.strict)
        return 0;
    return zn_fail(err, ZN_ERR_FORMAT, 0, "line %llu: %s", (unsigned long long)r->line, text);
}

static int count_fault(zn_row_reader *r, zn_row_fault fault, zn_error *err)
{
    return count_fault_as(r, fault, zn_row_fault_text(fault), err);
}

/* A JSON number that has one spelling only: two spellings must not make two users. */
static bool is_whole_number(zn_span number)
{
    zn_cursor c = zn_cursor_over_span(number, true);
    bool negative = number.n > 1 && *number.p == '-';
    if (negative)
        zn_cursor_skip(&c, 1);
    if (negative && number.n == 2 && *c.p == '0')
        return false;
    while (zn_cursor_left(&c) != 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < '0' || byte > '9')
            return false;
    }
    return true;
}

/* Takes the texts that mean no value out of the row. */
static void drop_nulls(const zn_row_reader *r, zn_row *row)
{
    for (size_t i = 0; i < r->config.columns.scalars; i++)
        for (size_t j = 0; j < r->config.null_count; j++)
            if (row->value[i].kind == ZN_VALUE_TEXT &&
                zn_span_equal(row->value[i].text, r->config.nulls[j]))
                row->value[i] = (zn_value){{row->value[i].text.p, 0}, ZN_VALUE_NONE};
}

static bool is_missing(const zn_value *value)
{
    return value->kind == ZN_VALUE_NONE || value->text.n == 0;
}

/* Sets the time of a row that is an observation; returns the fault of any other row. */
static zn_row_fault normalise(zn_row_reader *r, zn_row *row)
{
    zn_timestamp timestamp;
    if (r->config.null_count != 0)
        drop_nulls(r, row);
    for (size_t i = 0; i < r->config.required; i++)
        if (is_missing(&row->value[i]) &&
            (i != ZN_ROW_USER || !r->config.may_lack || !is_missing(&row->value[ZN_ROW_ATTRIBUTE])))
            return ZN_FAULT_MISSING;
    if (r->config.with_user && row->value[ZN_ROW_USER].kind == ZN_VALUE_JSON &&
        !is_whole_number(row->value[ZN_ROW_USER].text))
        return ZN_FAULT_USER;
    if (!zn_timestamp_parse(row->value[ZN_ROW_TIME].text, r->config.unit, &timestamp))
        return ZN_FAULT_TIME;
    r->stats.without_offset += !timestamp.has_offset;
    row->t_ns = timestamp.t_ns;
    return ZN_FAULT_GOOD;
}

/* Returns true when the first time of all is a plain number where ISO 8601 was expected: its unit
 * is not known, and a guess could be wrong by a factor of a thousand. */
static bool unit_missing(const zn_row_reader *r, const zn_row *row)
{
    return r->config.unit == ZN_TIME_ISO && r->stats.observations == 0 &&
           zn_timestamp_is_number(row->value[ZN_ROW_TIME].text);
}

/* Lays out the columns by a header line, which it writes over. */
static int take_header(zn_row_reader *r, uint8_t *line, size_t n, zn_error *err)
{
    static const char zeek[] = "#separator ";
    size_t which = 0;
    bool is_zeek = n > sizeof zeek && memcmp(line, zeek, sizeof zeek - 1) == 0;
    zn_row_fault fault = zn_csv_header(&r->layout, line, n, &r->config.columns, &which);
    char header[sizeof "line 18446744073709551615: the header"] = "--header";
    zn_span name = r->config.columns.name[which];
    int name_bytes = (int)(name.n > 60 ? 60 : name.n);
    r->laid_out = true;
    if (fault == ZN_FAULT_GOOD)
        return 0;
    if (r->config.header.n == 0)
        (void)snprintf(header, sizeof header, "line %llu: the header", (unsigned long long)r->line);
    if (fault == ZN_FAULT_MISSING && is_zeek)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "line %llu: this is a log of Zeek; read it with --preset zeek-dns, or the "
                       "preset of its kind",
                       (unsigned long long)r->line);
    if (fault == ZN_FAULT_MISSING && r->layout.columns == 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "%s is a single column; choose the --delimiter between its columns", header);
    if (fault == ZN_FAULT_MISSING)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%s has no column '%.*s'; name the right one with %s",
                       header, name_bytes, (const char *)name.p, r->config.option[which]);
    if (fault == ZN_FAULT_TWICE)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%s has two columns '%.*s'", header, name_bytes,
                       (const char *)name.p);
    return zn_fail(err, r->config.header.n == 0 ? ZN_ERR_FORMAT : ZN_ERR_CONFIG, 0,
                   "%s cannot be read: %s", header, zn_row_fault_text(fault));
}

/* An empty line; in JSON Lines also one of blanks, which in CSV are a field. */
static bool is_blank_row(const zn_row_reader *r, zn_span row)
{
    size_t i = 0;
    if (r->config.format == ZN_ROWS_JSONL)
        while (i < row.n && (row.p[i] == ' ' || row.p[i] == '\t'))
            i++;
    return i == row.n || (i + 1 == row.n && row.p[i] == '\r');
}

/* Has the owner read a line of a log; sets *what to its kind. */
static int take_line(zn_row_reader *r, uint8_t *bytes, size_t n, zn_row_found *what, zn_error *err)
{
    zn_row_line line = {bytes, n, r->line};
    zn_row_taken taken = {0};
    int rc = r->config.lines.take(r->config.lines.owner, &line, &taken, err);
    if (rc != 0 || !taken.is_row)
        return rc;
    r->stats.rows++;
    if (taken.fault != ZN_FAULT_GOOD)
        return count_fault(r, taken.fault, err);
    zn_row_stats_observation(&r->stats, taken.t_ns);
    *what = ZN_FOUND_ROW;
    return 0;
}

/* Takes one whole row of n bytes, without its line feed; sets *what to its kind. */
static int take_row(zn_row_reader *r, uint8_t *bytes, size_t n, zn_row *row, zn_row_found *what,
                    zn_error *err)
{
    zn_row_fault fault;
    *what = ZN_FOUND_NONE;
    if (is_blank_row(r, (zn_span){bytes, n}))
        return 0;
    if (r->config.lines.take != NULL)
        return take_line(r, bytes, n, what, err);
    if (!r->laid_out) {
        *what = ZN_FOUND_HEADER;
        return take_header(r, bytes, n, err);
    }
    r->stats.rows++;
    fault = r->config.format == ZN_ROWS_CSV ? zn_csv_row(&r->layout, bytes, n, row)
                                            : zn_json_row(bytes, n, &r->config.columns, row);
    if (fault == ZN_FAULT_GOOD)
        fault = normalise(r, row);
    if (fault == ZN_FAULT_TIME && unit_missing(r, row))
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "line %llu: the time is a plain number; say what it counts with --time-unit",
                       (unsigned long long)r->line);
    if (fault == ZN_FAULT_TIME)
        return count_fault_as(
            r, fault, zn_timestamp_problem(row->value[ZN_ROW_TIME].text, r->config.unit), err);
    if (fault != ZN_FAULT_GOOD)
        return count_fault(r, fault, err);
    zn_row_stats_observation(&r->stats, row->t_ns);
    r->row_line = r->line;
    *what = ZN_FOUND_ROW;
    return 0;
}

/* ---- the input ---- */

/* Moves behind the next n bytes, and behind the `lines` line feeds in them. */
static void advance(zn_row_reader *r, size_t n, size_t lines)
{
    r->at += n;
    r->line += lines;
    r->single -= n < r->single ? n : r->single;
    zn_row_splitter_reset(&r->splitter);
}

/* Number of bytes up to the last line feed, with it. */
static size_t whole_lines(zn_span text)
{
    while (text.n != 0 && text.p[text.n - 1] != '\n')
        text.n--;
    return text.n;
}

/*
 * Drops the first line of a row of several lines, `seen` so far. The lines behind it have a row
 * each up to the last one, in which another quoted field may begin.
 */
static int drop_first_line(zn_row_reader *r, zn_span seen, zn_row_fault fault, zn_error *err)
{
    const uint8_t *first = memchr(seen.p, '\n', seen.n);
    int rc;
    r->stats.rows++;
    rc = count_fault(r, fault, err);
    r->single = whole_lines(seen);
    advance(r, (size_t)(first - seen.p) + 1, 1);
    return rc;
}

/* Drops what is there of a row that is too long, n bytes. */
static int skip_long(zn_row_reader *r, size_t n, zn_error *err)
{
    zn_row_fault fault = r->splitter.inside ? ZN_FAULT_QUOTES : ZN_FAULT_LONG;
    int rc = 0;
    if (!r->laid_out)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "line %llu: the header is longer than 1 MiB",
                       (unsigned long long)r->line);
    if (r->splitter.lines != 0)
        return drop_first_line(r, (zn_span){r->buffer + r->at, n}, fault, err);
    if (!r->skipping) {
        r->stats.rows++;
        rc = count_fault(r, ZN_FAULT_LONG, err);
    }
    r->skipping = true;
    advance(r, n, 0);
    return rc;
}

/* Returns the fault of a row of several lines. */
static zn_row_fault check_lines(zn_row_reader *r, uint8_t *row, size_t n)
{
    const zn_row_lines *lines = &r->config.lines;
    return lines->take != NULL ? lines->check(lines->owner, row, n)
                               : zn_csv_check(&r->layout, row, n);
}

/* Takes the row being read, the last one of a source when `final`; *done when it is not all there.
 */
static int step(zn_row_reader *r, bool final, zn_row *row, zn_row_found *what, bool *done,
                zn_error *err)
{
    size_t left = r->n - r->at, bytes, lines;
    zn_span rest = {r->buffer + r->at, left < ZN_ROW_BYTES_MAX ? left : ZN_ROW_BYTES_MAX};
    zn_row_fault fault = ZN_FAULT_GOOD;
    bool ended;
    int rc = 0;
    r->splitter.quotes =
        r->layout.quotes && r->config.format == ZN_ROWS_CSV && r->single == 0 && !r->skipping;
    ended = zn_row_splitter_next(&r->splitter, rest, &bytes, &lines);
    if (!ended && rest.n == ZN_ROW_BYTES_MAX)
        return skip_long(r, rest.n, err);
    if (!ended && (!final || rest.n == 0)) {
        *done = true;
        return 0;
    }
    if (!ended) {
        bytes = rest.n;
        lines = r->splitter.lines + 1;
    }
    if (lines > 1 && r->laid_out)
        fault = check_lines(r, r->buffer + r->at, bytes - ended);
    if (fault != ZN_FAULT_GOOD)
        return drop_first_line(r, (zn_span){rest.p, bytes - ended}, fault, err);
    if (!r->skipping)
        rc = take_row(r, r->buffer + r->at, bytes - ended, row, what, err);
    r->skipping = false;
    advance(r, bytes, lines);
    return rc;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Finds the source's first byte that is not blank, or a blank if all are; returns false if the byte
 * may still come. */
static bool first_byte(zn_row_reader *r, bool final, uint8_t *first)
{
    while (r->at + r->blanks < r->n && is_blank(r->buffer[r->at + r->blanks]))
        r->blanks++;
    *first = r->at + r->blanks < r->n ? r->buffer[r->at + r->blanks] : ' ';
    return r->at + r->blanks < r->n || final || r->blanks >= ZN_ROW_BYTES_MAX;
}

/* Passes over a byte order mark; false when it may not be all there yet. */
static bool pass_mark(zn_row_reader *r, bool final)
{
    static const uint8_t mark[MARK_BYTES] = {0xef, 0xbb, 0xbf};
    size_t n = r->n < MARK_BYTES ? r->n : MARK_BYTES;
    if (!r->marked && memcmp(r->buffer, mark, n) == 0) {
        if (n < MARK_BYTES)
            return final;
        r->at = MARK_BYTES;
    }
    r->marked = true;
    return true;
}

/* Fixes the format, and for CSV without a header the columns. */
static int begin(zn_row_reader *r, uint8_t first, zn_row_found *what, zn_error *err)
{
    zn_row_reader_config *config = &r->config;
    int rc = 0;
    if (config->lines.take != NULL) {
        r->begun = r->laid_out = true;
        return config->lines.begin(config->lines.owner, err);
    }
    if (config->format == ZN_ROWS_AUTO && first == '[')
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "a JSON array is not JSON Lines, which have an object a line; "
                       "jq -c '.[]' makes them");
    if (config->format == ZN_ROWS_AUTO)
        config->format = first == '{' ? ZN_ROWS_JSONL : ZN_ROWS_CSV;
    r->begun = true;
    r->laid_out = config->format == ZN_ROWS_JSONL;
    if (r->laid_out)
        *what = ZN_FOUND_HEADER;
    else if (config->header.n != 0) {
        uint8_t *line = zn_heap_alloc(config->header.n);
        if (line == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a header");
        memcpy(line, config->header.p, config->header.n);
        rc = take_header(r, line, config->header.n, err);
        zn_heap_free(line);
    }
    return rc;
}

int zn_row_reader_next(zn_row_reader *r, bool final, zn_row *row, zn_row_found *what, zn_error *err)
{
    bool done = false;
    int rc = 0;
    *what = ZN_FOUND_NONE;
    if (!r->begun) {
        uint8_t first;
        if (r->n == 0 || !pass_mark(r, final) || !first_byte(r, final, &first))
            return 0;
        if (final && first == ' ')
            return 0;
        rc = begin(r, first, what, err);
    }
    while (rc == 0 && !done && *what == ZN_FOUND_NONE)
        rc = step(r, final, row, what, &done, err);
    return rc;
}

int zn_row_reader_append(zn_row_reader *r, const uint8_t *bytes, size_t n, zn_error *err)
{
    if (r->at != 0) {
        r->n -= r->at;
        memmove(r->buffer, r->buffer + r->at, r->n);
        r->at = 0;
    }
    if (r->cap - r->n < n) {
        uint8_t *larger = zn_heap_alloc(r->n + n);
        if (larger == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the input");
        if (r->n != 0)
            memcpy(larger, r->buffer, r->n);
        free_buffer(r);
        r->buffer = larger;
        r->cap = r->n + n;
    }
    memcpy(r->buffer + r->n, bytes, n);
    r->n += n;
    return 0;
}

void zn_row_reader_end(zn_row_reader *r)
{
    zn_row_splitter_reset(&r->splitter);
    r->marked = r->begun = r->laid_out = r->skipping = false;
    r->at = r->n = r->blanks = r->single = 0;
    r->line = 1;
}

/* ---- faults ---- */

const char *zn_row_fault_name(zn_row_fault fault)
{
    static const char *const names[] = {
#define ZN_ROW_FAULT_NAME(name, text) #name,
        ZN_ROW_FAULTS(ZN_ROW_FAULT_NAME)
#undef ZN_ROW_FAULT_NAME
    };
    return names[fault];
}

const char *zn_row_fault_text(zn_row_fault fault)
{
    static const char *const texts[] = {
#define ZN_ROW_FAULT_TEXT(name, text) text,
        ZN_ROW_FAULTS(ZN_ROW_FAULT_TEXT)
#undef ZN_ROW_FAULT_TEXT
    };
    return texts[fault];
}
