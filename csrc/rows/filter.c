/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input gathers in one buffer, from which rows/splitter cuts rows. rows/csv or rows/json reads a
 * row in place, its time is parsed, and when a batch is full, or there is no whole row left,
 * release/row_gate decides the batch and rows/log writes what it lets out. Only then the buffer is
 * moved: rows borrow it.
 */
#include "rows/filter.h"

#include "crypto/keys.h"
#include "rows/csv.h"
#include "rows/json.h"
#include "rows/log.h"
#include "rows/splitter.h"
#include "util/arena.h"

#include <stdio.h>

#define MARK_BYTES 3 /* the byte order mark of UTF-8 */

struct zn_row_filter {
    zn_row_format format, to;
    bool strict;
    uint8_t *names; /* columns.name and header point into it */
    zn_row_columns columns;
    zn_span header;
    zn_row_gate *gate;
    zn_row_style style;
    zn_row_splitter splitter;
    zn_csv_layout layout;
    bool marked;   /* this source's byte order mark is passed, or it has none */
    bool begun;    /* its format is known */
    bool laid_out; /* its columns are known */
    bool skipping; /* a row that is too long */
    bool headed;   /* the output has its header */
    uint8_t *buffer;
    size_t at, n, cap; /* the row being read, the end of what is there, and of the buffer */
    size_t blanks;     /* bytes at the source's start that are blank, until `begun` */
    uint64_t line;     /* of the row being read */
    zn_row rows[ZN_ROW_BATCH];
    size_t row_count;
    zn_text out;
    zn_row_filter_stats stats;
};

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
    s->splitter.delimiter = s->layout.delimiter = s->style.delimiter = config->delimiter;
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

/* Wipes and frees the buffer: it holds users and attributes that were not released. */
static void free_buffer(zn_row_filter *s)
{
    if (s->buffer != NULL)
        zn_wipe(s->buffer, s->cap);
    zn_heap_free(s->buffer);
}

void zn_row_filter_close(zn_row_filter *s)
{
    if (s == NULL)
        return;
    zn_row_gate_close(s->gate);
    free_buffer(s);
    zn_heap_free(s->names);
    zn_text_fini(&s->out);
    zn_block_free(s, sizeof *s);
}

/* ---- a row ---- */

static const char *const options[] = {"--time", "--user", "--attribute", "--pass"};

/* Decides and writes the rows that were read. */
static int flush(zn_row_filter *s, zn_error *err)
{
    const zn_gated_row *gated;
    size_t count;
    int rc = s->row_count == 0 ? 0 : zn_row_gate_decide(s->gate, s->rows, s->row_count, err);
    if (rc != 0 || s->row_count == 0)
        return rc;
    s->row_count = 0;
    gated = zn_row_gate_decided(s->gate, &count);
    for (size_t i = 0; i < count; i++)
        zn_row_log_write(&s->out, &s->style, &gated[i]);
    s->stats.written += count;
    return s->out.failed ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the output") : 0;
}

/* Counts the row as one that cannot be read; in strict mode that is an error. */
static int count_fault(zn_row_filter *s, zn_row_fault fault, zn_error *err)
{
    s->stats.faults[fault]++;
    if (s->stats.first_fault == ZN_FAULT_GOOD) {
        s->stats.first_fault = fault;
        s->stats.first_fault_line = s->line;
    }
    if (!s->strict)
        return 0;
    return zn_fail(err, ZN_ERR_FORMAT, 0, "line %llu: %s", (unsigned long long)s->line,
                   zn_row_fault_text(fault));
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

/* Sets the time of a row that is an observation; returns the fault of one that is none. */
static zn_row_fault normalise(zn_row_filter *s, zn_row *row)
{
    const zn_value *user = &row->value[ZN_ROW_USER];
    zn_timestamp timestamp;
    for (size_t i = 0; i < ZN_ROW_PASS; i++)
        if (row->value[i].kind == ZN_VALUE_NONE || row->value[i].text.n == 0)
            return ZN_FAULT_MISSING;
    if (user->kind == ZN_VALUE_JSON && !is_whole_number(user->text))
        return ZN_FAULT_USER;
    if (!zn_timestamp_parse(row->value[ZN_ROW_TIME].text, s->style.unit, &timestamp))
        return ZN_FAULT_TIME;
    s->stats.without_offset += !timestamp.has_offset;
    row->t_ns = timestamp.t_ns;
    return ZN_FAULT_GOOD;
}

/* Returns true when the first time of all is a plain number where ISO 8601 was expected: its unit
 * is not known, and a guess could be wrong by a factor of a thousand. */
static bool unit_missing(const zn_row_filter *s, const zn_row *row)
{
    return s->style.unit == ZN_TIME_ISO && s->stats.observations == 0 &&
           zn_timestamp_is_number(row->value[ZN_ROW_TIME].text);
}

static void count_observation(zn_row_filter_stats *stats, int64_t t_ns)
{
    if (stats->observations == 0 || t_ns < stats->first_ns)
        stats->first_ns = t_ns;
    if (stats->observations == 0 || t_ns > stats->last_ns)
        stats->last_ns = t_ns;
    stats->observations++;
}

static void write_header(zn_row_filter *s)
{
    if (!s->headed && s->style.format == ZN_ROWS_CSV)
        zn_row_log_header(&s->out, &s->style);
    s->headed = true;
}

/* Lays out the columns by a header line, which it writes over. */
static int take_header(zn_row_filter *s, uint8_t *line, size_t n, zn_error *err)
{
    size_t which = 0;
    zn_row_fault fault = zn_csv_header(&s->layout, line, n, &s->columns, &which);
    char header[sizeof "line 18446744073709551615: the header"] = "--header";
    zn_span name = s->columns.name[which];
    int name_bytes = (int)(name.n > 60 ? 60 : name.n);
    s->laid_out = true;
    if (fault == ZN_FAULT_GOOD)
        return 0;
    if (s->header.n == 0)
        (void)snprintf(header, sizeof header, "line %llu: the header", (unsigned long long)s->line);
    if (fault == ZN_FAULT_MISSING && s->layout.columns == 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "%s is a single column; choose the --delimiter between its columns", header);
    if (fault == ZN_FAULT_MISSING)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%s has no column '%.*s'; name the right one with %s",
                       header, name_bytes, (const char *)name.p, options[which < 3 ? which : 3]);
    if (fault == ZN_FAULT_TWICE)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%s has two columns '%.*s'", header, name_bytes,
                       (const char *)name.p);
    return zn_fail(err, s->header.n == 0 ? ZN_ERR_FORMAT : ZN_ERR_CONFIG, 0,
                   "%s cannot be read: %s", header, zn_row_fault_text(fault));
}

/* An empty line; in JSON Lines also one of blanks, which in CSV are a field. */
static bool is_blank_row(const zn_row_filter *s, zn_span row)
{
    size_t i = 0;
    if (s->format == ZN_ROWS_JSONL)
        while (i < row.n && (row.p[i] == ' ' || row.p[i] == '\t'))
            i++;
    return i == row.n || (i + 1 == row.n && row.p[i] == '\r');
}

/* Takes one whole row of n bytes, without its line feed. */
static int take_row(zn_row_filter *s, uint8_t *bytes, size_t n, zn_error *err)
{
    zn_row *row = &s->rows[s->row_count];
    zn_row_fault fault;
    if (is_blank_row(s, (zn_span){bytes, n}))
        return 0;
    if (!s->laid_out) {
        int rc = take_header(s, bytes, n, err);
        if (rc == 0)
            write_header(s);
        return rc;
    }
    s->stats.rows++;
    fault = s->format == ZN_ROWS_CSV ? zn_csv_row(&s->layout, bytes, n, row)
                                     : zn_json_row(bytes, n, &s->columns, row);
    if (fault == ZN_FAULT_GOOD)
        fault = normalise(s, row);
    if (fault == ZN_FAULT_TIME && unit_missing(s, row))
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "line %llu: the time is a plain number; say what it counts with --time-unit",
                       (unsigned long long)s->line);
    if (fault != ZN_FAULT_GOOD)
        return count_fault(s, fault, err);
    count_observation(&s->stats, row->t_ns);
    s->row_count++;
    return s->row_count == ZN_ROW_BATCH ? flush(s, err) : 0;
}

/* ---- the input ---- */

/*
 * Gives up the bytes of a row that is too long, but the last one, by which the splitter sees where
 * a field begins. Within quotes it is not known where the next row begins.
 */
static int skip_long(zn_row_filter *s, zn_error *err)
{
    int rc = 0;
    if (s->splitter.inside)
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "line %llu: a quoted field does not end within 1 MiB; nothing after it can "
                       "be read",
                       (unsigned long long)s->line);
    if (!s->laid_out)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "line %llu: the header is longer than 1 MiB",
                       (unsigned long long)s->line);
    if (!s->skipping) {
        s->stats.rows++;
        rc = count_fault(s, ZN_FAULT_LONG, err);
    }
    s->skipping = true;
    s->at += ZN_ROW_FILTER_ROW_MAX - 1;
    s->splitter.at = 1;
    return rc;
}

/* Takes the row being read; *done when it is not all there. */
static int step(zn_row_filter *s, bool *done, zn_error *err)
{
    size_t left = s->n - s->at, bytes, lines;
    zn_span rest = {s->buffer + s->at, left < ZN_ROW_FILTER_ROW_MAX ? left : ZN_ROW_FILTER_ROW_MAX};
    int rc = 0;
    if (!zn_row_splitter_next(&s->splitter, rest, &bytes, &lines)) {
        *done = rest.n < ZN_ROW_FILTER_ROW_MAX;
        return *done ? 0 : skip_long(s, err);
    }
    if (!s->skipping)
        rc = take_row(s, s->buffer + s->at, bytes - 1, err);
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
static bool first_byte(zn_row_filter *s, bool final, uint8_t *first)
{
    while (s->at + s->blanks < s->n && is_blank(s->buffer[s->at + s->blanks]))
        s->blanks++;
    *first = s->at + s->blanks < s->n ? s->buffer[s->at + s->blanks] : ' ';
    return s->at + s->blanks < s->n || final || s->blanks >= ZN_ROW_FILTER_ROW_MAX;
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
    s->splitter.quotes = s->format == ZN_ROWS_CSV;
    s->begun = true;
    s->laid_out = s->format == ZN_ROWS_JSONL;
    if (s->laid_out)
        write_header(s);
    else if (s->header.n != 0) {
        uint8_t *line = zn_heap_alloc(s->header.n);
        if (line == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a header");
        memcpy(line, s->header.p, s->header.n);
        rc = take_header(s, line, s->header.n, err);
        zn_heap_free(line);
    }
    return rc;
}

/* Takes all rows that are there; `final`: also the bytes after the last line feed. */
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
        rc = take_row(s, s->buffer + s->at, s->n - s->at, err);
    if (rc != 0) {
        (void)flush(s, NULL); /* rows before the error count */
        return rc;
    }
    return flush(s, err);
}

static int append(zn_row_filter *s, const uint8_t *bytes, size_t n, zn_error *err)
{
    if (s->at != 0) {
        s->n -= s->at;
        memmove(s->buffer, s->buffer + s->at, s->n);
        s->at = 0;
    }
    if (s->cap - s->n < n) {
        uint8_t *larger = zn_heap_alloc(s->n + n);
        if (larger == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the input");
        if (s->n != 0)
            memcpy(larger, s->buffer, s->n);
        free_buffer(s);
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
    zn_row_splitter_reset(&s->splitter);
    s->marked = s->begun = s->laid_out = s->skipping = false;
    s->at = s->n = s->blanks = 0;
    s->line = 1;
    return rc;
}

int zn_row_filter_finish(zn_row_filter *s, zn_error *err)
{
    return zn_row_gate_finish(s->gate, err);
}

/* ---- results ---- */

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
