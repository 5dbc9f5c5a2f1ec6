/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zeek's TSV logs. Lines that begin with '#' are the header: the separator, the marks of unset and
 * empty fields, the names and types of the fields. A new header may come at any line, because logs
 * are rotated and concatenated. Nothing is quoted: Zeek writes a separator in a value as \x09, and
 * such escapes stay as they are. Zeek writes JSON Lines, too: a log whose first row begins with '{'
 * is read by rows/log_members.
 */
#include "rows/log_form.h"

#define HEAD_MAX ((size_t)1 << 20)
#define KEY(text) ((zn_span){(const uint8_t *)(text), sizeof(text) - 1})

/* Takes the key and its separator from the start of a line. Returns false for another line. */
static bool take_key(zn_cursor *line, zn_span key, uint8_t separator)
{
    zn_cursor next = *line;
    if (!zn_span_equal(zn_cursor_take(&next, key.n), key) || zn_cursor_u8(&next) != separator)
        return false;
    *line = next;
    return true;
}

static uint8_t hex_value(uint8_t digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - (uint8_t)'0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? (uint8_t)(digit - 'a' + 10) : 16;
}

/* Reads "\x09" or a character. Returns 0 for any separator that a written value could
 * hold. */
static uint8_t read_separator(zn_span text)
{
    uint8_t byte = text.n == 1 ? text.p[0] : 0;
    if (text.n == 4 && text.p[0] == '\\' && text.p[1] == 'x' && hex_value(text.p[2]) < 16 &&
        hex_value(text.p[3]) < 16)
        byte = (uint8_t)(hex_value(text.p[2]) << 4 | hex_value(text.p[3]));
    return byte == '\t' || byte == ' ' || byte == ',' || byte == ';' || byte == '|' ? byte : 0;
}

static bool set_mark(zn_log_mark *mark, zn_span text, uint8_t separator)
{
    if (text.n > sizeof mark->text || zn_span_find(text, separator) != text.n)
        return false;
    memcpy(mark->text, text.p, text.n);
    mark->n = text.n;
    return true;
}

static void put_line(zn_text *out, zn_span line)
{
    zn_text_span(out, line);
    zn_text_char(out, '\n');
}

/* Refuses the log of another preset. */
static int check_path(const zn_log_source *s, zn_span path, uint64_t line, zn_error *err)
{
    size_t count;
    const zn_log_preset *presets = zn_log_presets(&count);
    for (size_t i = 0; i < count; i++) {
        zn_span other = presets[i].path;
        if (&presets[i] != s->preset && other.n != 0 && zn_span_equal(path, other))
            return zn_fail(err, ZN_ERR_CONFIG, 0,
                           "line %llu: this is another log of Zeek; read it with --preset %s",
                           (unsigned long long)line, presets[i].name);
    }
    return 0;
}

static int read_fields(zn_log_source *s, zn_cursor line, uint64_t number, zn_error *err)
{
    bool more = true;
    for (s->fields = 0; more; s->fields++) {
        zn_span name = zn_log_take_field(&line, s->separator, &more);
        if (s->fields == ZN_LOG_FIELDS_MAX)
            return zn_log_source_fail(err, number, "the header has too many fields");
        if (!zn_log_source_field(s, s->fields, name))
            return zn_log_source_fail(err, number, "the header has a column twice");
    }
    s->laid_out = true;
    return zn_log_source_check(s, number, err);
}

static int check_types(const zn_log_source *s, zn_span types, uint64_t number, zn_error *err)
{
    size_t count = 1;
    for (size_t i = 0; i < types.n; i++)
        count += types.p[i] == s->separator;
    if (!s->laid_out || count != s->fields)
        return zn_log_source_fail(err, number, "the header has not as many types as fields");
    return 0;
}

static int begin_header(zn_log_source *s, zn_span line, zn_span separator, uint64_t number,
                        zn_error *err)
{
    zn_log_source_begin(s);
    s->was_tsv = true;
    if (s->closed.n != 0) {
        s->ended.n = 0;
        zn_text_bytes(&s->ended, s->closed.bytes, s->closed.n);
        s->closed.n = 0;
    }
    s->separator = read_separator(separator);
    if (s->separator == 0)
        return zn_log_source_fail(err, number,
                                  "the separator is not a tab, a blank or one of , ; |");
    put_line(&s->head, line);
    return 0;
}

/* Reads a line of the header. A line with another key is a comment, and left out. */
static int read_header(zn_log_source *s, zn_span line, uint64_t number, zn_error *err)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    uint8_t separator = s->separator;
    int rc = 0;
    if (take_key(&c, KEY("#separator"), ' '))
        return begin_header(s, line, zn_cursor_rest(&c), number, err);
    if (take_key(&c, KEY("#close"), separator)) {
        s->closed.n = 0;
        put_line(&s->closed, line);
        return 0;
    }
    if (take_key(&c, KEY("#open"), separator)) {
        s->opened.n = 0;
        put_line(&s->opened, line);
        return 0;
    }
    if (take_key(&c, KEY("#fields"), separator)) {
        s->fields_at = s->head.n;
        rc = read_fields(s, c, number, err);
    } else if (take_key(&c, KEY("#types"), separator))
        rc = check_types(s, zn_cursor_rest(&c), number, err);
    else if (take_key(&c, KEY("#path"), separator))
        rc = check_path(s, zn_cursor_rest(&c), number, err);
    else if (take_key(&c, KEY("#unset_field"), separator))
        rc = set_mark(&s->unset, zn_cursor_rest(&c), separator)
                 ? 0
                 : zn_log_source_fail(err, number, "the mark of unset fields cannot be read");
    else if (take_key(&c, KEY("#empty_field"), separator))
        rc = set_mark(&s->empty, zn_cursor_rest(&c), separator)
                 ? 0
                 : zn_log_source_fail(err, number, "the mark of empty fields cannot be read");
    else if (!take_key(&c, KEY("#set_separator"), separator))
        return 0;
    put_line(&s->head, line);
    if (rc == 0 && s->head.n > HEAD_MAX)
        return zn_log_source_fail(err, number, "the header is longer than 1 MiB");
    return rc;
}

/* Most marks are one byte, and a call of memcmp costs more. */
static inline bool is_mark(zn_span field, const zn_log_mark *mark)
{
    if (field.n != mark->n)
        return false;
    return field.n == 1 ? field.p[0] == mark->text[0] : memcmp(field.p, mark->text, mark->n) == 0;
}

static zn_row_fault read_row(const zn_log_source *s, zn_span row, zn_log_line *out)
{
    zn_row_fault fault;
    out->count = zn_log_split(row, s->separator, out->cells, s->fields, &fault);
    if (fault != ZN_FAULT_GOOD || out->count != s->fields)
        return fault != ZN_FAULT_GOOD ? fault : ZN_FAULT_COLUMNS;
    for (size_t i = 0; i < out->count; i++) {
        zn_log_cell *cell = &out->cells[i];
        cell->name.n = 0;
        cell->role = s->role[i];
        cell->kind = is_mark(cell->text, &s->unset)   ? ZN_LOG_CELL_NONE
                     : is_mark(cell->text, &s->empty) ? ZN_LOG_CELL_EMPTY
                                                      : ZN_LOG_CELL_TEXT;
    }
    return ZN_FAULT_GOOD;
}

static int read_line(zn_log_source *s, uint8_t *line, size_t n, zn_log_line *out, zn_error *err)
{
    zn_span text = {line, n};
    if (n != 0 && line[n - 1] == '\r')
        text.n--;
    if (!s->laid_out && text.n != 0 && text.p[0] == '{')
        s->members = s->was_members = true;
    if (s->was_tsv && s->was_members)
        return zn_log_source_fail(err, out->number, "TSV and JSON Lines cannot be read as one log");
    if (s->members)
        return zn_log_form_members.read(s, line, n, out, err);
    if (text.n != 0 && text.p[0] == '#') {
        if (zn_utf8_check(text) != ZN_UTF8_FINE)
            return zn_log_source_fail(err, out->number, "the header is not text");
        return read_header(s, text, out->number, err);
    }
    if (!s->laid_out)
        return zn_log_source_fail(err, out->number,
                                  "rows come before a line of #fields; this is no log of Zeek");
    if (s->fields > ZN_LOG_CELLS_MAX)
        return zn_log_source_fail(err, out->number, "the header has too many fields");
    out->is_row = true;
    out->fault = read_row(s, text, out);
    return 0;
}

/* Copies a text to `at`; returns the end. Most texts are short, and a call of memcpy costs more. */
static inline char *copy_text(char *at, zn_span text)
{
    uint64_t first, last;
    uint32_t begin, end;
    if (text.n > 16) {
        memcpy(at, text.p, text.n);
    } else if (text.n >= 8) {
        memcpy(&first, text.p, 8);
        memcpy(&last, text.p + text.n - 8, 8);
        memcpy(at, &first, 8);
        memcpy(at + text.n - 8, &last, 8);
    } else if (text.n >= 4) {
        memcpy(&begin, text.p, 4);
        memcpy(&end, text.p + text.n - 4, 4);
        memcpy(at, &begin, 4);
        memcpy(at + text.n - 4, &end, 4);
    } else {
        for (size_t i = 0; i < text.n; i++)
            at[i] = (char)text.p[i];
    }
    return at + text.n;
}

static void write_row(const zn_log_source *s, zn_text *out, const zn_gated_log *row)
{
    zn_span unset = {s->unset.text, s->unset.n};
    size_t most = row->count * (unset.n + 1) + 1;
    char *start, *at;
    if (s->members) {
        zn_log_form_members.put(s, out, row);
        return;
    }
    for (size_t i = 0; i < row->count; i++)
        most += row->cells[i].text.n;
    start = at = zn_text_reserve(out, most);
    if (start == NULL)
        return;
    for (size_t i = 0; i < row->count; i++) {
        const zn_log_cell *cell = &row->cells[i];
        if (i != 0)
            *at++ = (char)s->separator;
        at = copy_text(at, cell->kind == ZN_LOG_CELL_NONE ? unset : cell->text);
    }
    *at++ = '\n';
    out->n += (size_t)(at - start);
}

const zn_log_form zn_log_form_zeek = {
    .format = ZN_ROWS_CSV, .separator = '\t', .read = read_line, .put = write_row};
