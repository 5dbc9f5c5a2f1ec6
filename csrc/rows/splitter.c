/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/splitter.h"

void zn_row_splitter_reset(zn_row_splitter *f)
{
    f->inside = false;
    f->at = 0;
    f->lines = 0;
}

/* Returns the offset of the next `byte` from f->at on; row.n if there is no such byte. */
static size_t find(const zn_row_splitter *f, zn_span row, uint8_t byte, size_t end)
{
    const uint8_t *found;
    if (f->at >= end)
        return row.n;
    found = memchr(row.p + f->at, byte, end - f->at);
    return found == NULL ? row.n : (size_t)(found - row.p);
}

static bool opens_field(const zn_row_splitter *f, zn_span row, size_t quote)
{
    return quote == 0 || row.p[quote - 1] == f->delimiter;
}

/* Moves to `end`, past the line feeds of a quoted field. */
static void pass_lines(zn_row_splitter *f, zn_span row, size_t end)
{
    size_t line;
    while ((line = find(f, row, '\n', end)) < end) {
        f->lines++;
        f->at = line + 1;
    }
    f->at = end;
}

/* Leaves the quoted field; false when the bytes end before it is known to be closed. */
static bool leave_quotes(zn_row_splitter *f, zn_span row)
{
    while (f->at < row.n) {
        size_t quote = find(f, row, '"', row.n);
        pass_lines(f, row, quote);
        if (row.n - quote < 2)
            return false;
        if (row.p[quote + 1] != '"') {
            f->inside = false;
            f->at = quote + 1;
            return true;
        }
        f->at = quote + 2;
    }
    return false;
}

bool zn_row_splitter_next(zn_row_splitter *f, zn_span row, size_t *bytes, size_t *lines)
{
    size_t line = 0;
    for (;;) {
        size_t quote;
        if (f->inside && !leave_quotes(f, row))
            return false;
        if (line < f->at || line == 0)
            line = find(f, row, '\n', row.n);
        quote = f->quotes ? find(f, row, '"', line) : row.n;
        if (quote >= line)
            break;
        f->inside = opens_field(f, row, quote);
        f->at = quote + 1;
    }
    f->at = line;
    if (line == row.n)
        return false;
    *bytes = line + 1;
    *lines = f->lines + 1;
    zn_row_splitter_reset(f);
    return true;
}
