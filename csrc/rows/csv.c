/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/csv.h"

#include "util/block.h"
#include "util/text.h"

/* After a field: nothing, or a delimiter and another field. */
static bool end_field(zn_csv_fields *f)
{
    f->more = f->p != f->end;
    if (f->more && *f->p != f->delimiter)
        return false;
    f->p += f->more;
    return true;
}

/* A field whose opening quote is taken; doubled quotes become one, in place. */
static bool quoted_field(zn_csv_fields *f, zn_span *out)
{
    uint8_t *start = f->p, *to = f->p;
    for (;;) {
        uint8_t *quote = memchr(f->p, '"', (size_t)(f->end - f->p));
        size_t n;
        if (quote == NULL)
            return false;
        n = (size_t)(quote - f->p);
        if (to != f->p && !f->keep)
            memmove(to, f->p, n);
        to += n;
        f->p = quote + 1;
        if (f->p == f->end || *f->p != '"')
            break;
        if (!f->keep)
            *to = '"';
        to++;
        f->p++;
    }
    out->p = start;
    out->n = (size_t)(to - start);
    return end_field(f);
}

bool zn_csv_next(zn_csv_fields *f, zn_span *out)
{
    const uint8_t *start = f->p;
    if (f->quotes && f->p != f->end && *f->p == '"') {
        f->p++;
        return quoted_field(f, out);
    }
    for (; f->p != f->end && *f->p != f->delimiter; f->p++)
        if (*f->p == '\r' || (*f->p == '"' && f->quotes))
            return false;
    out->p = start;
    out->n = (size_t)(f->p - start);
    return end_field(f);
}

/* Sets the fields of a row, without the carriage return at its end. */
static void set_row(zn_csv_fields *f, uint8_t *row, size_t n)
{
    if (n != 0 && row[n - 1] == '\r')
        n--;
    f->p = row;
    f->end = n == 0 ? row : row + n;
    f->more = true;
}

static zn_row_fault check_text(zn_span text)
{
    switch (zn_utf8_check(text)) {
    case ZN_UTF8_INVALID:
        return ZN_FAULT_UTF8;
    case ZN_UTF8_CONTROL:
        return ZN_FAULT_CONTROL;
    case ZN_UTF8_FINE:
        break;
    }
    return ZN_FAULT_GOOD;
}

zn_row_fault zn_csv_begin(zn_csv_fields *f, uint8_t *row, size_t n)
{
    set_row(f, row, n);
    return check_text((zn_span){row, n});
}

/* Finds the first wanted column that the header lacks, or has twice; MISSING, TWICE or GOOD. */
static zn_row_fault check_layout(const size_t *found, size_t wanted_count, size_t *which)
{
    for (size_t i = 0; i < wanted_count; i++) {
        *which = i;
        if (found[i] != 1)
            return found[i] == 0 ? ZN_FAULT_MISSING : ZN_FAULT_TWICE;
    }
    return ZN_FAULT_GOOD;
}

zn_row_fault zn_csv_header(zn_csv_layout *layout, uint8_t *row, size_t n,
                           const zn_row_columns *wanted, size_t *which)
{
    size_t found[ZN_ROW_COLUMNS_MAX] = {0};
    zn_csv_fields f = {.delimiter = layout->delimiter, .quotes = layout->quotes};
    zn_row_fault fault = zn_csv_begin(&f, row, n);
    if (fault != ZN_FAULT_GOOD)
        return fault;
    for (layout->columns = 0; f.more; layout->columns++) {
        zn_span name;
        if (layout->columns == ZN_CSV_COLUMNS_MAX)
            return ZN_FAULT_COLUMNS;
        if (!zn_csv_next(&f, &name))
            return ZN_FAULT_QUOTES;
        layout->slot[layout->columns] = ZN_CSV_UNUSED;
        for (size_t i = 0; i < wanted->count; i++) {
            if (zn_span_equal(name, wanted->name[i])) {
                layout->slot[layout->columns] = (uint8_t)i;
                found[i]++;
            }
        }
    }
    return check_layout(found, wanted->count, which);
}

zn_row_fault zn_csv_check(const zn_csv_layout *layout, uint8_t *row, size_t n)
{
    zn_csv_fields f = {.delimiter = layout->delimiter, .quotes = layout->quotes, .keep = true};
    size_t columns = 0;
    zn_span field;
    set_row(&f, row, n);
    for (; f.more; columns++)
        if (!zn_csv_next(&f, &field))
            return ZN_FAULT_QUOTES;
    return columns == layout->columns ? ZN_FAULT_GOOD : ZN_FAULT_COLUMNS;
}

static inline void take_field(const zn_csv_layout *layout, size_t column, zn_span field,
                              zn_row *out)
{
    zn_value *value;
    if (column >= layout->columns || layout->slot[column] == ZN_CSV_UNUSED)
        return;
    value = &out->value[layout->slot[column]];
    value->text = field;
    value->kind = ZN_VALUE_TEXT;
}

static zn_row_fault row_by_fields(const zn_csv_layout *layout, uint8_t *row, size_t n, zn_row *out)
{
    zn_csv_fields f = {.delimiter = layout->delimiter, .quotes = layout->quotes};
    zn_row_fault fault = zn_csv_begin(&f, row, n);
    size_t column;
    if (fault != ZN_FAULT_GOOD)
        return fault;
    for (column = 0; f.more; column++) {
        zn_span field;
        if (column == layout->columns)
            return ZN_FAULT_COLUMNS;
        if (!zn_csv_next(&f, &field))
            return ZN_FAULT_QUOTES;
        take_field(layout, column, field, out);
    }
    return column == layout->columns ? ZN_FAULT_GOOD : ZN_FAULT_COLUMNS;
}

/* A row that is read block by block. */
typedef struct blocks {
    const zn_csv_layout *layout;
    zn_span row;
    zn_row *out;
    size_t column, from; /* from: offset of the current field */
    uint32_t odd;        /* not 0: a byte is not printable ASCII */
} blocks;

/* Takes the fields that end in the block at offset `at`, whose first `seen` bytes were seen before.
 * Returns false if a byte there needs row_by_fields. */
static inline bool take_block(blocks *b, size_t at, size_t seen)
{
    zn_block block = zn_block_load(b->row.p + at);
    uint32_t fresh = ~UINT32_C(0) << seen;
    uint32_t ends = zn_block_equal(block, b->layout->delimiter) & fresh;
    uint32_t stops = zn_block_equal(block, '\r');
    if (b->layout->quotes)
        stops |= zn_block_equal(block, '"');
    b->odd |= zn_block_odd(block) & fresh & ~ends;
    for (; ends != 0; ends &= ends - 1) {
        size_t end = at + (size_t)__builtin_ctz(ends);
        take_field(b->layout, b->column++, zn_span_part(b->row, b->from, end), b->out);
        b->from = end + 1;
    }
    return stops == 0;
}

zn_row_fault zn_csv_row(const zn_csv_layout *layout, uint8_t *row, size_t n, zn_row *out)
{
    blocks b = {.layout = layout, .row = {row, n}, .out = out};
    size_t at = 0;
    if (n != 0 && row[n - 1] == '\r')
        b.row.n--;
    if (b.row.n < ZN_BLOCK_BYTES)
        return row_by_fields(layout, row, n, out);
    for (; at + ZN_BLOCK_BYTES <= b.row.n; at += ZN_BLOCK_BYTES)
        if (!take_block(&b, at, 0))
            return row_by_fields(layout, row, n, out);
    if (at != b.row.n && !take_block(&b, b.row.n - ZN_BLOCK_BYTES, at + ZN_BLOCK_BYTES - b.row.n))
        return row_by_fields(layout, row, n, out);
    take_field(layout, b.column++, zn_span_part(b.row, b.from, b.row.n), out);
    if (ZN_UNLIKELY(b.odd != 0)) {
        zn_row_fault fault = check_text(b.row);
        if (fault != ZN_FAULT_GOOD)
            return fault;
    }
    return b.column == layout->columns ? ZN_FAULT_GOOD : ZN_FAULT_COLUMNS;
}
