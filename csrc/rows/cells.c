/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/cells.h"

#define VIEW_INLINE 12 /* bytes of a text that its view holds itself */

/* Arrow's view of a text. */
typedef struct view {
    int32_t n;
    uint8_t start[4]; /* of the text; a short text continues in the place of block and offset */
    int32_t block, offset;
} view;

static bool bit_of(const uint8_t *bits, size_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

/* The functions below fill the members one by one, because a cell that is returned is written twice
 * and read in between. */

static inline void put_text(zn_row_cell *out, const uint8_t *bytes, int64_t start, int64_t end)
{
    if (start < 0 || end < start) {
        out->kind = ZN_ROW_MISSING;
        return;
    }
    out->kind = ZN_ROW_TEXT;
    out->text.p = end == start ? (const uint8_t *)"" : bytes + start;
    out->text.n = (size_t)(end - start);
}

static void put_view(const zn_cells *c, size_t i, zn_row_cell *out)
{
    const view *v = (const view *)c->values + i;
    if (v->n <= VIEW_INLINE)
        put_text(out, (const uint8_t *)v + offsetof(view, start), 0, v->n);
    else if (v->block < 0 || (size_t)v->block >= c->block_count || v->offset < 0 ||
             (int64_t)v->offset + v->n > c->block_bytes[v->block])
        out->kind = ZN_ROW_MISSING;
    else
        put_text(out, c->blocks[v->block], v->offset, (int64_t)v->offset + v->n);
}

static void put_span(zn_row_cell *out, zn_span text)
{
    out->kind = text.p == NULL ? ZN_ROW_MISSING : ZN_ROW_TEXT;
    out->text = text;
}

static void put_bool(zn_row_cell *out, bool value)
{
    const char *text = value ? "true" : "false";
    put_text(out, (const uint8_t *)text, 0, value ? 4 : 5);
}

static inline void put_unsigned(zn_row_cell *out, uint64_t value)
{
    out->kind = ZN_ROW_NUMBER;
    out->negative = false;
    out->number = value;
}

static inline void put_signed(zn_row_cell *out, int64_t value)
{
    put_unsigned(out, (uint64_t)value);
    out->negative = value < 0;
}

static inline void put_time(zn_row_cell *out, int64_t value)
{
    put_signed(out, value);
    if (value == INT64_MIN)
        out->kind = ZN_ROW_MISSING;
}

/* Reads cell i, counted from the beginning of the arrays. */
static inline void value_at(const zn_cells *c, size_t i, zn_row_cell *out)
{
    out->kind = ZN_ROW_MISSING;
    switch (c->kind) {
    case ZN_CELLS_NONE:
        break;
    case ZN_CELLS_I8:
        put_signed(out, ((const int8_t *)c->values)[i]);
        break;
    case ZN_CELLS_I16:
        put_signed(out, ((const int16_t *)c->values)[i]);
        break;
    case ZN_CELLS_I32:
        put_signed(out, ((const int32_t *)c->values)[i]);
        break;
    case ZN_CELLS_I64:
        put_signed(out, ((const int64_t *)c->values)[i]);
        break;
    case ZN_CELLS_U8:
        put_unsigned(out, ((const uint8_t *)c->values)[i]);
        break;
    case ZN_CELLS_U16:
        put_unsigned(out, ((const uint16_t *)c->values)[i]);
        break;
    case ZN_CELLS_U32:
        put_unsigned(out, ((const uint32_t *)c->values)[i]);
        break;
    case ZN_CELLS_U64:
        put_unsigned(out, ((const uint64_t *)c->values)[i]);
        break;
    case ZN_CELLS_TIME:
        put_time(out, ((const int64_t *)c->values)[i]);
        break;
    case ZN_CELLS_BOOL:
        put_bool(out, bit_of(c->values, i));
        break;
    case ZN_CELLS_TEXT32: {
        const int32_t *offsets = (const int32_t *)c->values + i;
        put_text(out, c->bytes, offsets[0], offsets[1]);
        break;
    }
    case ZN_CELLS_TEXT64: {
        const int64_t *offsets = (const int64_t *)c->values + i;
        put_text(out, c->bytes, offsets[0], offsets[1]);
        break;
    }
    case ZN_CELLS_VIEW:
        put_view(c, i, out);
        break;
    case ZN_CELLS_SPAN:
        put_span(out, ((const zn_span *)c->values)[i]);
        break;
    }
}

/* Reads cell i < n of a chunk, without its dictionary. */
static inline void cell_at(const zn_cells *c, size_t i, zn_row_cell *out)
{
    size_t place = c->offset + i;
    if (c->valid != NULL && !bit_of(c->valid, place))
        out->kind = ZN_ROW_MISSING;
    else
        value_at(c, place, out);
}

static inline void word_at(const zn_cells *c, size_t i, zn_row_cell *out)
{
    cell_at(c, i, out);
    if (c->words == NULL || out->kind != ZN_ROW_NUMBER)
        return;
    if (out->number < c->words->n)
        cell_at(c->words, out->number, out);
    else
        out->kind = ZN_ROW_MISSING;
}

/* Reads `run` cells of a chunk from cell `at` on. Numbers that cannot be missing are fastest. */
static void read_run(const zn_cells *chunk, size_t at, zn_row_cell *out, size_t run)
{
    bool is_plain = chunk->valid == NULL && chunk->words == NULL;
    if (chunk->kind == ZN_CELLS_I64 && is_plain)
        for (size_t i = 0; i < run; i++)
            put_signed(out + i, ((const int64_t *)chunk->values)[chunk->offset + at + i]);
    else
        for (size_t i = 0; i < run; i++)
            word_at(chunk, at + i, out + i);
}

void zn_cells_read(zn_cell_column *c, zn_row_cell *out, size_t n)
{
    while (n != 0 && c->chunk < c->chunk_count) {
        const zn_cells *chunk = &c->chunks[c->chunk];
        size_t left = chunk->n - c->at, run = left < n ? left : n;
        read_run(chunk, c->at, out, run);
        out += run;
        n -= run;
        c->at += run;
        if (c->at == chunk->n) {
            c->chunk++;
            c->at = 0;
        }
    }
    for (size_t i = 0; i < n; i++)
        out[i].kind = ZN_ROW_MISSING;
}

zn_span zn_row_cell_text(const zn_row_cell *cell, char digits[ZN_DIGITS_MAX])
{
    char *at = digits;
    zn_span none = {NULL, 0};
    uint64_t size;
    if (cell->kind != ZN_ROW_NUMBER)
        return cell->kind == ZN_ROW_TEXT ? cell->text : none;
    size = cell->negative ? UINT64_C(0) - cell->number : cell->number;
    if (cell->negative)
        *at++ = '-';
    return (zn_span){(const uint8_t *)digits, (size_t)(zn_digits_put(at, size) - digits)};
}

bool zn_row_cell_time(const zn_row_cell *cell, int64_t unit_ns, int64_t *t_ns)
{
    return cell->kind == ZN_ROW_NUMBER && !cell->negative && cell->number <= INT64_MAX &&
           !__builtin_mul_overflow((int64_t)cell->number, unit_ns, t_ns);
}

size_t zn_cells_copy(zn_cell_column column, const uint8_t *marks, size_t n, uint8_t least,
                     int64_t *offsets, uint8_t *valid, uint8_t *bytes)
{
    size_t count = 0, total = 0;
    for (size_t i = 0; i < n; i++) {
        zn_row_cell cell;
        bool copied;
        zn_cells_read(&column, &cell, 1);
        copied = cell.kind == ZN_ROW_TEXT && marks[i] >= least;
        if (marks[i] == 0)
            continue;
        if (bytes != NULL) {
            offsets[count] = (int64_t)total;
            valid[count / 8] |= (uint8_t)(copied << count % 8);
            if (copied && cell.text.n != 0)
                memcpy(bytes + total, cell.text.p, cell.text.n);
        }
        count++;
        total += copied ? cell.text.n : 0;
    }
    if (bytes != NULL)
        offsets[count] = (int64_t)total;
    return total;
}

void zn_padded_texts(const void *values, size_t n, size_t width, bool is_wide, int64_t *offsets,
                     uint8_t *bytes)
{
    const uint32_t *wide = values;
    const uint8_t *narrow = values;
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        size_t used = width;
        while (used != 0 &&
               (is_wide ? wide[i * width + used - 1] : narrow[i * width + used - 1]) == 0)
            used--;
        offsets[i] = (int64_t)total;
        for (size_t j = 0; j < used; j++) {
            if (is_wide)
                total += zn_utf8_put(bytes + total, wide[i * width + j]);
            else
                bytes[total++] = narrow[i * width + j];
        }
    }
    offsets[n] = (int64_t)total;
}
