/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of JSON Lines: the members whose paths a preset knows, with the objects and arrays around
 * them, in their order. The elements of an array have the path of the array. All other members are
 * checked and left out, with their names. A written object or array is left out if nothing in it
 * may be written.
 */
#include "rows/json_path.h"
#include "rows/log_form.h"
#include "util/text.h"

typedef struct walk {
    zn_json_reader r;
    const zn_log_preset *preset;
    zn_log_line *line;
    zn_json_path path;
    size_t hint; /* index after the last column that was found */
    struct {
        size_t base; /* of the path, inside of the object or array */
        bool object;
    } level[ZN_JSON_DEPTH_MAX];
    size_t depth, arrays;
    bool seen[ZN_LOG_COLUMNS_MAX];
} walk;

static bool add_cell(walk *w, zn_span name, zn_span text, zn_log_role role, zn_log_cell_kind kind)
{
    if (w->line->count == ZN_LOG_CELLS_MAX)
        return false;
    w->line->cells[w->line->count++] =
        (zn_log_cell){.name = name, .text = text, .role = (uint8_t)role, .kind = (uint8_t)kind};
    return true;
}

/* Returns true if the preset knows a member inside the path's object. */
static bool is_way(const walk *w)
{
    for (size_t i = 0; i < w->preset->count; i++)
        if (zn_json_path_holds(&w->path, w->preset->columns[i].name))
            return true;
    return false;
}

/* Opens an object or array that holds known members, or an array of known values. */
static zn_row_fault open_level(walk *w, zn_span name)
{
    bool object = zn_json_peek(&w->r) == '{';
    if (w->depth == ZN_JSON_DEPTH_MAX)
        return ZN_FAULT_JSON;
    if (!add_cell(w, name, (zn_span){w->r.p, 1}, ZN_LOG_CORRELATE, ZN_LOG_CELL_OPEN))
        return ZN_FAULT_LONG;
    w->r.p++;
    w->level[w->depth].base = w->path.base = w->path.n;
    w->level[w->depth++].object = object;
    w->arrays += !object;
    return ZN_FAULT_GOOD;
}

static zn_row_fault close_level(walk *w)
{
    w->depth--;
    w->arrays -= !w->level[w->depth].object;
    w->path.base = w->depth == 0 ? 0 : w->level[w->depth - 1].base;
    if (!add_cell(w, (zn_span){NULL, 0}, (zn_span){w->r.p - 1, 1}, ZN_LOG_CORRELATE,
                  ZN_LOG_CELL_CLOSE))
        return ZN_FAULT_LONG;
    return ZN_FAULT_GOOD;
}

/* Reads a text, number or literal of a known column. */
static zn_row_fault read_scalar(walk *w, zn_span name, zn_log_role role)
{
    uint8_t *start = w->r.p, kind = zn_json_peek(&w->r);
    zn_json_string string;
    zn_log_cell_kind cell = kind == 'n' ? ZN_LOG_CELL_NONE : ZN_LOG_CELL_JSON;
    zn_span text;
    if (kind == '"') {
        if (!zn_json_take_string(&w->r, &string))
            return ZN_FAULT_JSON;
        text = (zn_span){string.p, string.n};
        cell = ZN_LOG_CELL_TEXT;
    } else {
        if (!zn_json_skip_value(&w->r))
            return ZN_FAULT_JSON;
        text = (zn_span){start, (size_t)(w->r.p - start)};
    }
    if (w->r.controls && zn_utf8_check(text) != ZN_UTF8_FINE)
        return ZN_FAULT_CONTROL;
    return add_cell(w, name, text, role, cell) ? ZN_FAULT_GOOD : ZN_FAULT_LONG;
}

/* Reads a value whose path is set. Sets *entered if it opens an object or array. */
static zn_row_fault read_value(walk *w, zn_span name, bool *entered)
{
    zn_span path = zn_json_path_span(&w->path);
    size_t found = zn_log_preset_find(w->preset, path, w->hint);
    uint8_t kind = zn_json_peek(&w->r);
    bool known = path.n != 0 && found < w->preset->count;
    *entered = false;
    if (known && w->arrays == 0) {
        if (w->seen[found])
            return ZN_FAULT_TWICE;
        w->seen[found] = true;
    }
    if (known)
        w->hint = found + 1;
    *entered = kind == '[' ? known || is_way(w) : kind == '{' && is_way(w);
    if (*entered)
        return open_level(w, name);
    if (!known || kind == '{')
        return zn_json_skip_value(&w->r) ? ZN_FAULT_GOOD : ZN_FAULT_JSON;
    return read_scalar(w, name, w->preset->columns[found].role);
}

/* Reads a member's name, and sets the path. */
static zn_row_fault read_name(walk *w, zn_span *name)
{
    zn_json_string string;
    if (!zn_json_take_name(&w->r, &string))
        return ZN_FAULT_JSON;
    *name = (zn_span){string.p - 1, string.n + 2};
    zn_json_path_enter(&w->path, (zn_span){string.p, string.n});
    return ZN_FAULT_GOOD;
}

static zn_row_fault read_members(walk *w)
{
    bool fresh = true; /* an object or array was opened, and has no value yet */
    while (w->depth != 0) {
        bool object = w->level[w->depth - 1].object;
        zn_row_fault fault = ZN_FAULT_GOOD;
        zn_span name = {NULL, 0};
        zn_json_skip_blanks(&w->r);
        if (zn_json_accept(&w->r, object ? '}' : ']')) {
            fault = close_level(w);
            fresh = false;
        } else {
            if (!fresh && !zn_json_accept(&w->r, ','))
                return ZN_FAULT_JSON;
            zn_json_skip_blanks(&w->r);
            w->path.n = w->path.base;
            fault = object ? read_name(w, &name) : ZN_FAULT_GOOD;
            if (fault == ZN_FAULT_GOOD)
                fault = read_value(w, name, &fresh);
        }
        if (fault != ZN_FAULT_GOOD)
            return fault;
    }
    zn_json_skip_blanks(&w->r);
    return w->r.p == w->r.end ? ZN_FAULT_GOOD : ZN_FAULT_JSON;
}

static zn_row_fault read_row(const zn_log_source *s, uint8_t *row, size_t n, zn_log_line *out)
{
    walk w = {.r = {row, n == 0 ? row : row + n, false}, .preset = s->preset, .line = out};
    zn_utf8 found = zn_utf8_check((zn_span){row, n});
    zn_row_fault fault;
    if (found == ZN_UTF8_INVALID)
        return ZN_FAULT_UTF8;
    w.r.controls = found == ZN_UTF8_CONTROL;
    zn_json_skip_blanks(&w.r);
    if (zn_json_peek(&w.r) != '{')
        return ZN_FAULT_JSON;
    fault = open_level(&w, (zn_span){NULL, 0});
    return fault == ZN_FAULT_GOOD ? read_members(&w) : fault;
}

static int read_line(zn_log_source *s, uint8_t *line, size_t n, zn_log_line *out, zn_error *err)
{
    (void)err;
    if (n != 0 && line[0] == '#') /* a comment that a test of Zeek puts before the first row */
        return 0;
    out->is_row = true;
    out->fault = read_row(s, line, n, out);
    return 0;
}

/* Writes a value with its name, after a comma unless it is the first of its object. */
static void put_value(zn_text *out, const zn_log_cell *cell, bool first)
{
    if (!first)
        zn_text_char(out, ',');
    if (cell->name.n != 0) {
        zn_text_span(out, cell->name);
        zn_text_char(out, ':');
    }
    if (cell->kind == ZN_LOG_CELL_TEXT)
        zn_text_char(out, '"');
    zn_text_span(out, cell->text);
    if (cell->kind == ZN_LOG_CELL_TEXT)
        zn_text_char(out, '"');
}

static void write_row(const zn_log_source *s, zn_text *out, const zn_gated_log *row)
{
    struct {
        size_t n; /* of the output before the object or array */
        bool first;
    } outer[ZN_JSON_DEPTH_MAX];
    size_t depth = 0;
    bool first = true;
    (void)s;
    for (size_t i = 0; i < row->count; i++) {
        const zn_log_cell *cell = &row->cells[i];
        if (cell->kind == ZN_LOG_CELL_NONE || cell->kind == ZN_LOG_CELL_EMPTY)
            continue;
        if (cell->kind == ZN_LOG_CELL_CLOSE) {
            depth--;
            if (first && depth != 0) { /* nothing is in it */
                out->n = outer[depth].n;
                first = outer[depth].first;
                continue;
            }
            zn_text_span(out, cell->text);
            first = false;
            continue;
        }
        if (cell->kind == ZN_LOG_CELL_OPEN) {
            outer[depth].n = out->n;
            outer[depth++].first = first;
        }
        put_value(out, cell, first);
        first = cell->kind == ZN_LOG_CELL_OPEN;
    }
    zn_text_char(out, '\n');
}

const zn_log_form zn_log_form_members = {
    .format = ZN_ROWS_JSONL, .separator = ',', .read = read_line, .put = write_row};
