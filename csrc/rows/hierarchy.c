/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/hierarchy.h"

#include "rows/csv.h"
#include "rows/reader.h"
#include "rows/splitter.h"
#include "util/arena.h"

#define FIRST_LINES 64 /* lines for which there is room at first */

typedef struct lines {
    zn_span *labels; /* count x levels */
    size_t count, levels, cap;
    uint8_t delimiter;
} lines;

static int fail_line(zn_error *err, size_t line, const char *text)
{
    return zn_fail(err, ZN_ERR_FORMAT, 0, "line %zu: %s", line, text);
}

static int grow(lines *l, zn_error *err)
{
    size_t cap = l->cap == 0 ? FIRST_LINES : 2 * l->cap;
    zn_span *larger;
    if (l->count == ZN_TAXONOMY_NODES_MAX)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "a hierarchy has at most %u lines",
                       ZN_TAXONOMY_NODES_MAX);
    if (l->count < l->cap)
        return 0;
    larger = zn_heap_resize(l->labels, cap * l->levels * sizeof *larger);
    if (larger == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy's lines");
    l->labels = larger;
    l->cap = cap;
    return 0;
}

/* Adds a line of n bytes, without its line feed. */
static int take_line(lines *l, uint8_t *bytes, size_t n, zn_error *err)
{
    zn_span label[ZN_TAXONOMY_LEVELS_MAX];
    size_t levels = 0, line = l->count + 1;
    zn_csv_fields f = {.delimiter = l->delimiter, .quotes = true};
    zn_row_fault fault = zn_csv_begin(&f, bytes, n);
    int rc;
    if (fault != ZN_FAULT_GOOD)
        return fail_line(err, line, zn_row_fault_text(fault));
    while (f.more) {
        if (levels == ZN_TAXONOMY_LEVELS_MAX)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "line %zu: a hierarchy has at most %u columns",
                           line, ZN_TAXONOMY_LEVELS_MAX);
        if (!zn_csv_next(&f, &label[levels++]))
            return fail_line(err, line, zn_row_fault_text(ZN_FAULT_QUOTES));
    }
    if (l->count == 0)
        l->levels = levels;
    if (levels != l->levels)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "line %zu has %zu columns, the first one has %zu",
                       line, levels, l->levels);
    rc = grow(l, err);
    if (rc == 0)
        memcpy(&l->labels[l->count++ * levels], label, levels * sizeof *label);
    return rc;
}

static bool is_empty(const uint8_t *bytes, size_t n)
{
    return n == 0 || (n == 1 && *bytes == '\r');
}

/* Cuts the file into lines. Each value is on one line, and no line follows an empty line, so a
 * value has the number of its line. */
static int take_lines(lines *l, uint8_t *at, size_t left, zn_error *err)
{
    zn_row_splitter splitter = {.quotes = true, .delimiter = l->delimiter};
    bool ended = false;
    int rc = 0;
    while (left != 0 && rc == 0) {
        size_t bytes, line_feeds = 1, n;
        bool whole = zn_row_splitter_next(&splitter, (zn_span){at, left}, &bytes, &line_feeds);
        if (!whole)
            bytes = left;
        n = bytes - whole;
        if (line_feeds != 1)
            return fail_line(err, l->count + 1, "a line break in a value");
        if (is_empty(at, n))
            ended = true;
        else if (ended)
            return fail_line(err, l->count + 1, "an empty line");
        else
            rc = take_line(l, at, n, err);
        at += bytes;
        left -= bytes;
    }
    return rc;
}

int zn_hierarchy_read(zn_taxonomy **out, zn_span file, uint8_t delimiter, zn_taxonomy_notes *notes,
                      zn_error *err)
{
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf};
    lines l = {.delimiter = delimiter};
    uint8_t *copy;
    int rc;
    *out = NULL;
    if (file.n >= sizeof mark && memcmp(file.p, mark, sizeof mark) == 0)
        file = zn_span_after(file, sizeof mark);
    if (file.n > ZN_HIERARCHY_BYTES_MAX)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "a hierarchy's file has at most %zu MiB",
                       ZN_HIERARCHY_BYTES_MAX >> 20);
    copy = zn_heap_alloc(file.n + 1);
    if (copy == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy's file");
    if (file.n != 0)
        memcpy(copy, file.p, file.n);
    rc = take_lines(&l, copy, file.n, err);
    if (rc == 0) {
        zn_taxonomy_config config = {.labels = l.labels, .lines = l.count, .levels = l.levels};
        rc = zn_taxonomy_open(out, &config, notes, err);
    }
    zn_heap_free(l.labels);
    zn_heap_free(copy);
    return rc;
}
