/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs whose first line names the columns: CSV, as NFStream writes it, and the logs of Tstat, whose
 * columns have single blanks between them.
 */
#include "rows/log.h"
#include "rows/log_form.h"

/* Returns 0 if the file's header is the header of the output, or if nothing was written yet. */
static int check_header(const zn_log_source *s, uint64_t line, zn_error *err)
{
    if (s->written.n != 0 &&
        (s->written.n != s->head.n || memcmp(s->written.bytes, s->head.bytes, s->head.n) != 0))
        return zn_log_source_fail(err, line,
                                  "the header differs from the header of the file before");
    return zn_log_source_check(s, line, err);
}

/* ---- CSV ---- */

static const zn_row_style csv_style = {
    .format = ZN_ROWS_CSV, .delimiter = ',', .quotes = true, .unit = ZN_TIME_NS};

static int read_csv_header(zn_log_source *s, uint8_t *line, size_t n, uint64_t number,
                           zn_error *err)
{
    zn_csv_fields f = {.delimiter = ',', .quotes = true};
    zn_row_fault fault = zn_csv_begin(&f, line, n);
    if (fault != ZN_FAULT_GOOD)
        return zn_log_source_fail(err, number, "the header is not text");
    for (s->fields = 0; f.more; s->fields++) {
        zn_span name;
        if (s->fields == ZN_LOG_CELLS_MAX)
            return zn_log_source_fail(err, number, "the header has too many columns");
        if (!zn_csv_next(&f, &name))
            return zn_log_source_fail(err, number, "a quote in the header is in the wrong place");
        if (!zn_log_source_field(s, s->fields, name))
            return zn_log_source_fail(err, number, "the header has a column twice");
        if (s->fields != 0)
            zn_text_char(&s->head, ',');
        zn_row_log_field(&s->head, &csv_style, name);
    }
    zn_text_char(&s->head, '\n');
    s->csv.columns = s->fields;
    s->laid_out = true;
    return check_header(s, number, err);
}

static zn_row_fault read_csv_row(const zn_log_source *s, uint8_t *row, size_t n, zn_log_line *out)
{
    zn_csv_fields f = {.delimiter = ',', .quotes = true};
    zn_row_fault fault = zn_csv_begin(&f, row, n);
    for (out->count = 0; fault == ZN_FAULT_GOOD && f.more; out->count++) {
        zn_span field;
        if (out->count == s->fields)
            return ZN_FAULT_COLUMNS;
        if (!zn_csv_next(&f, &field))
            return ZN_FAULT_QUOTES;
        out->cells[out->count] =
            (zn_log_cell){.text = field,
                          .role = s->role[out->count],
                          .kind = field.n == 0 ? ZN_LOG_CELL_NONE : ZN_LOG_CELL_TEXT};
    }
    if (fault == ZN_FAULT_GOOD && out->count != s->fields)
        fault = ZN_FAULT_COLUMNS;
    return fault;
}

static int read_csv(zn_log_source *s, uint8_t *line, size_t n, zn_log_line *out, zn_error *err)
{
    if (!s->laid_out)
        return read_csv_header(s, line, n, out->number, err);
    out->is_row = true;
    out->fault = read_csv_row(s, line, n, out);
    return 0;
}

static void write_csv(const zn_log_source *s, zn_text *out, const zn_gated_log *row)
{
    (void)s;
    for (size_t i = 0; i < row->count; i++) {
        if (i != 0)
            zn_text_char(out, ',');
        if (row->cells[i].kind != ZN_LOG_CELL_NONE)
            zn_row_log_field(out, &csv_style, row->cells[i].text);
    }
    zn_text_char(out, '\n');
}

const zn_log_form zn_log_form_csv = {
    .format = ZN_ROWS_CSV, .quotes = true, .separator = ',', .read = read_csv, .put = write_csv};

/* ---- Tstat ---- */

/* Takes the name of a column without its number: c_ip of "c_ip:1". */
static zn_span column_name(zn_span field)
{
    return zn_span_first(field, zn_span_find(field, ':'));
}

/* Reads "#c_ip:1 c_port:2 ...", with the number of the log's column sets and a # in front or
 * without. */
static int read_tstat_header(zn_log_source *s, zn_span line, uint64_t number, zn_error *err)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    size_t second;
    bool more = true;
    if (zn_cursor_u8(&c) != '#')
        return zn_log_source_fail(err, number, "the first line does not name Tstat's columns");
    second = zn_span_find(zn_span_after(line, 1), '#');
    if (second < line.n - 1)
        zn_cursor_skip(&c, second + 1);
    for (s->fields = 0; more; s->fields++) {
        zn_span field = zn_log_take_field(&c, ' ', &more);
        if (s->fields == ZN_LOG_CELLS_MAX)
            return zn_log_source_fail(err, number, "the header has too many columns");
        if (!zn_log_source_field(s, s->fields, column_name(field)))
            return zn_log_source_fail(err, number, "the header has a column twice");
    }
    zn_text_span(&s->head, line);
    zn_text_char(&s->head, '\n');
    s->laid_out = true;
    return check_header(s, number, err);
}

static zn_row_fault read_tstat_row(const zn_log_source *s, zn_span row, zn_log_line *out)
{
    zn_row_fault fault;
    out->count = zn_log_split(row, ' ', out->cells, s->fields, &fault);
    if (fault != ZN_FAULT_GOOD || out->count != s->fields)
        return fault != ZN_FAULT_GOOD ? fault : ZN_FAULT_COLUMNS;
    for (size_t i = 0; i < out->count; i++) {
        zn_log_cell *cell = &out->cells[i];
        zn_span text = cell->text;
        bool missing = text.n == 0 || (text.n == 1 && text.p[0] == '-');
        cell->name.n = 0;
        cell->role = s->role[i];
        cell->kind = missing ? ZN_LOG_CELL_NONE : ZN_LOG_CELL_TEXT;
        cell->number = zn_timestamp_is_number(text);
    }
    return ZN_FAULT_GOOD;
}

static int read_tstat(zn_log_source *s, uint8_t *line, size_t n, zn_log_line *out, zn_error *err)
{
    zn_span text = {line, n};
    if (n != 0 && line[n - 1] == '\r')
        text.n--;
    if (!s->laid_out && zn_utf8_check(text) != ZN_UTF8_FINE)
        return zn_log_source_fail(err, out->number, "the header is not text");
    if (!s->laid_out)
        return read_tstat_header(s, text, out->number, err);
    out->is_row = true;
    out->fault = read_tstat_row(s, text, out);
    return 0;
}

/* Writes a value. Tstat's readers expect a number where a number was, so 0 replaces a number that
 * is not written. */
static void write_tstat(const zn_log_source *s, zn_text *out, const zn_gated_log *row)
{
    (void)s;
    for (size_t i = 0; i < row->count; i++) {
        const zn_log_cell *cell = &row->cells[i];
        if (i != 0)
            zn_text_char(out, ' ');
        if (cell->kind != ZN_LOG_CELL_NONE)
            zn_text_span(out, cell->text);
        else
            zn_text_char(out, cell->number ? '0' : '-');
    }
    zn_text_char(out, '\n');
}

const zn_log_form zn_log_form_tstat = {
    .format = ZN_ROWS_CSV, .separator = ' ', .read = read_tstat, .put = write_tstat};
