/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/table.h"

#include "util/arena.h"

#include <endian.h>

#define WORD_MAX_BYTES 32
#define NS_PER_US 1000            /* seconds have six decimals, as in texts */
#define FIRST_ROWS (65536 + 1024) /* rows taken at a time, and rows that may come until then */
/* Bytes behind each column, so that equal rows of different columns do not compete for the same
 * lines of the processor's cache. */
#define GAP 64

/* ---- blocks: where rows lie ---------------------------------------------------------------- */

size_t zn_table_width(zn_field_type type)
{
    switch (type) {
    case ZN_FIELD_BOOL:
        return 0;
    case ZN_FIELD_U8:
        return 1;
    case ZN_FIELD_U16:
        return 2;
    case ZN_FIELD_U32:
    case ZN_FIELD_TEXT:
        return 4;
    case ZN_FIELD_U64:
    case ZN_FIELD_I64:
    case ZN_FIELD_MS:
    case ZN_FIELD_SECONDS:
    case ZN_FIELD_TIME:
    case ZN_FIELD_TSTAT_ONLY: /* in no table */
        break;
    }
    return 8;
}

void zn_table_block_free(zn_table_block block)
{
    if (block.bytes != NULL)
        zn_block_free(block.bytes, block.size);
}

static uint8_t *next_bitmap(const zn_table_block *block, size_t *at)
{
    uint8_t *bitmap = block->bytes == NULL ? NULL : block->bytes + *at;
    *at += block->cap / 8 + GAP;
    return bitmap;
}

/* Lays out the columns in a block with this cap; returns the bytes that it takes, which need not be
 * there yet. */
static size_t lay_out(const zn_fields *fields, zn_table_block *block, zn_table_layout *layout)
{
    size_t at = 0;
    for (size_t i = 0; i < fields->n; i++) {
        zn_table_place *column = &layout->column[i];
        column->valid = column->values = NULL;
        if (fields->at[i].nullable)
            column->valid = next_bitmap(block, &at);
        if (fields->at[i].type == ZN_FIELD_BOOL)
            column->values = next_bitmap(block, &at);
    }
    block->bitmaps = at;
    for (size_t i = 0; i < fields->n; i++) {
        size_t width = zn_table_width(fields->at[i].type);
        if (width != 0 && block->bytes != NULL)
            layout->column[i].values = block->bytes + at;
        at += width == 0 ? 0 : width * block->cap + GAP;
    }
    return at;
}

static bool make_block(const zn_fields *fields, size_t cap, zn_table_block *block,
                       zn_table_layout *layout)
{
    *block = (zn_table_block){.cap = cap};
    block->size = lay_out(fields, block, layout);
    block->bytes = zn_block_alloc(block->size);
    lay_out(fields, block, layout);
    return block->bytes != NULL;
}

static void copy_bits(uint8_t *to, const uint8_t *from, size_t row, size_t rows)
{
    if (from != NULL)
        memcpy(to + row / 8, from, (rows + 7) / 8);
}

/* Copies rows from where a block begins; `row` is a multiple of ZN_TABLE_STAGING. */
static void copy_rows(const zn_fields *fields, const zn_table_layout *to, size_t row,
                      const zn_table_layout *from, size_t rows)
{
    for (size_t i = 0; i < fields->n; i++) {
        const zn_table_place *a = &from->column[i], *b = &to->column[i];
        size_t width = zn_table_width(fields->at[i].type);
        copy_bits(b->valid, a->valid, row, rows);
        if (width == 0)
            copy_bits(b->values, a->values, row, rows);
        else
            memcpy(b->values + row * width, a->values, rows * width);
    }
}

/* Moves `rows` rows into a larger block, or makes the first one. */
static bool grow(zn_table *t, size_t rows)
{
    zn_table_block bigger;
    zn_table_layout layout;
    size_t cap = t->block.bytes == NULL ? t->next_cap : 2 * t->block.cap;
    if (!make_block(&t->fields, cap, &bigger, &layout))
        return false;
    if (t->block.bytes != NULL)
        copy_rows(&t->fields, &layout, 0, &t->in_block, rows);
    zn_table_block_free(t->block);
    t->block = bigger;
    t->in_block = layout;
    t->next_cap = cap;
    return true;
}

/* The staged rows that have a value, the first in the lowest bit. */
static uint64_t with_value(const zn_table_place *column)
{
    uint64_t bits;
    memcpy(&bits, column->valid, sizeof bits);
    return le64toh(bits);
}

/* Finds the numbers of the staged addresses and texts. */
static bool number_staged(zn_table *t)
{
    for (unsigned i = 0; i < t->text_columns; i++) {
        const zn_table_place *column = &t->in_staging.column[t->text_column[i]];
        uint32_t numbers[ZN_TABLE_STAGING];
        if (!zn_dictionary_texts(&t->dictionary[t->text_column[i]], &t->key, t->texts[i],
                                 with_value(column), numbers))
            return false;
        memcpy(column->values, numbers, sizeof numbers);
    }
    for (unsigned i = 0; i < t->staged_columns; i++) {
        const zn_table_place *column = &t->in_staging.column[t->staged_column[i]];
        uint32_t numbers[ZN_TABLE_STAGING];
        if (!zn_dictionary_addresses(&t->dictionary[t->staged_column[i]], &t->key, t->staged[i],
                                     with_value(column), numbers))
            return false;
        memcpy(column->values, numbers, sizeof numbers);
    }
    return true;
}

static bool flush_staging(zn_table *t, size_t n)
{
    size_t row = t->rows - n;
    if (!number_staged(t) || (row == t->block.cap && !grow(t, row)))
        return false;
    copy_rows(&t->fields, &t->in_block, row, &t->in_staging, n);
    memset(t->staging.bytes, 0, t->staging.bitmaps); /* bits are set, never cleared */
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_8(uint8_t *values, size_t row, uint64_t value)
{
    memcpy(values + row * sizeof value, &value, sizeof value);
}

static void put_4(uint8_t *values, size_t row, uint32_t value)
{
    memcpy(values + row * sizeof value, &value, sizeof value);
}

static void put_double(uint8_t *values, size_t row, double value)
{
    memcpy(values + row * sizeof value, &value, sizeof value);
}

/* A number that does not fit becomes the largest that does. */
static uint32_t clamped(uint64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static void put_text(zn_table *t, size_t i, size_t row, const zn_cell *v)
{
    uint32_t index = 0;
    if (v->kind == ZN_CELL_TEXT)
        index = zn_dictionary_text(&t->dictionary[i], &t->key, v->text);
    if (index == ZN_DICTIONARY_FULL)
        t->failed = true;
    else
        put_4(t->in_staging.column[i].values, row, index);
}

/* A missing value takes its place as 0. */
static void put_cell(zn_table *t, size_t i, size_t row, const zn_cell *v)
{
    zn_field_type type = t->fields.at[i].type;
    const zn_table_place *column = &t->in_staging.column[i];
    bool there = v->kind != ZN_CELL_NONE;
    uint8_t bit = (uint8_t)(1u << row % 8);
    ZN_ASSERT(there || column->valid != NULL);
    if (there && column->valid != NULL)
        column->valid[row / 8] |= bit;
    t->nulls[i] += !there;
    switch (type) {
    case ZN_FIELD_BOOL:
        if (there && v->number != 0)
            column->values[row / 8] |= bit;
        break;
    case ZN_FIELD_MS:
        put_double(column->values, row, there ? (double)v->ns / 1e6 : 0);
        break;
    case ZN_FIELD_SECONDS:
        put_double(column->values, row, there ? (double)(v->ns / NS_PER_US) / 1e6 : 0);
        break;
    case ZN_FIELD_TIME:
        put_8(column->values, row, there ? (uint64_t)v->ns : 0);
        break;
    case ZN_FIELD_TEXT:
        put_text(t, i, row, v);
        break;
    default:
        zn_cell_store(column->values + row * zn_table_width(type), zn_table_width(type),
                      there ? v->number : 0);
        break;
    }
}

/* Copies the numbers of a record that need no conversion. Fields without a copied number stay 0 in
 * the staging block. */
static void put_numbers(const zn_table_plan *plan, size_t row, const char *record)
{
    const zn_table_step *s = plan->step + plan->end[ZN_COPY_NOTHING];
    for (; s < plan->step + plan->end[ZN_COPY_8]; s++)
        memcpy(s->to + row * 8, record + s->offset, 8);
    for (; s < plan->step + plan->end[ZN_COPY_4]; s++)
        memcpy(s->to + row * 4, record + s->offset, 4);
    for (; s < plan->step + plan->end[ZN_COPY_2]; s++)
        memcpy(s->to + row * 2, record + s->offset, 2);
    for (; s < plan->step + plan->end[ZN_COPY_1]; s++)
        s->to[row] = (uint8_t)record[s->offset];
    for (; s < plan->step + plan->end[ZN_COPY_COUNT]; s++) {
        uint64_t number;
        memcpy(&number, record + s->offset, sizeof number);
        put_4(s->to, row, clamped(number));
    }
    for (; s < plan->step + plan->end[ZN_COPY_MS]; s++) {
        int64_t ns;
        memcpy(&ns, record + s->offset, sizeof ns);
        put_double(s->to, row, (double)ns / 1e6);
    }
}

static void put_durations(const zn_table_plan *plan, size_t row, const zn_record *r)
{
    for (uint32_t i = plan->end[ZN_COPY_MS]; i < plan->end[ZN_COPY_DURATION]; i++)
        put_double(plan->step[i].to, row, (double)(r->last_ns - r->first_ns) / 1e6);
}

static void put_bits(const zn_table_plan *plan, size_t row, const char *record)
{
    const zn_table_step *s = plan->step + plan->end[ZN_COPY_DURATION];
    for (; s < plan->step + plan->end[ZN_COPY_BIT]; s++)
        s->to[row / 8] |= (uint8_t)((record[s->offset] != 0) << row % 8);
    for (; s < plan->step + plan->end[ZN_COPY_DISCLOSED]; s++) {
        int disclosure;
        memcpy(&disclosure, record + s->offset, sizeof disclosure);
        s->to[row / 8] |= (uint8_t)((disclosure == ZN_DISCLOSURE_PSEUDONYM) << row % 8);
    }
}

static void put_flags(zn_table *t, const zn_table_plan *plan, size_t row, const char *record)
{
    for (uint32_t i = plan->end[ZN_COPY_DISCLOSED]; i < plan->end[ZN_COPY_FLAG]; i++) {
        const zn_table_step *s = &plan->step[i];
        int flag;
        bool there;
        memcpy(&flag, record + s->offset, sizeof flag);
        there = flag != ZN_FLAG_UNKNOWN;
        t->nulls[s->column] += !there;
        t->in_staging.column[s->column].valid[row / 8] |= (uint8_t)(there << row % 8);
        s->to[row / 8] |= (uint8_t)((flag == ZN_FLAG_YES) << row % 8);
    }
}

static void put_words(zn_table *t, const zn_table_plan *plan, size_t row, const char *record)
{
    for (uint32_t i = plan->end[ZN_COPY_FLAG]; i < plan->end[ZN_COPY_WORD]; i++) {
        const zn_table_step *s = &plan->step[i];
        size_t n;
        const char *const *words = zn_column_words(t->column[s->column], &n);
        bool first_is_nothing = words[0] == NULL;
        int number;
        memcpy(&number, record + s->offset, sizeof number);
        if (words[number] == NULL)
            t->nulls[s->column]++;
        else if (t->in_staging.column[s->column].valid != NULL)
            t->in_staging.column[s->column].valid[row / 8] |= (uint8_t)(1u << row % 8);
        put_4(s->to, row, (uint32_t)(words[number] == NULL ? 0 : number - first_is_nothing));
    }
}

/* Addresses wait in staging: their numbers are found for all its rows together. */
static void put_addresses(zn_table *t, const zn_table_plan *plan, size_t row, const char *record)
{
    uint32_t first = plan->end[ZN_COPY_WORD];
    for (uint32_t i = first; i < plan->end[ZN_COPY_ADDRESS]; i++) {
        const zn_table_step *s = &plan->step[i];
        int disclosure;
        memcpy(&disclosure, record + s->offset + sizeof(zn_addr), sizeof disclosure);
        t->nulls[s->column] += disclosure == ZN_DISCLOSURE_NONE;
        if (disclosure == ZN_DISCLOSURE_NONE)
            continue;
        memcpy(&t->staged[i - first][row], record + s->offset, sizeof(zn_addr));
        t->in_staging.column[s->column].valid[row / 8] |= (uint8_t)(1u << row % 8);
    }
}

/* Texts wait there too, in copies, as their records will be gone. */
static void put_texts(zn_table *t, const zn_table_plan *plan, size_t row, const zn_record *r)
{
    uint32_t first = plan->end[ZN_COPY_ADDRESS];
    for (uint32_t i = first; i < plan->end[ZN_COPY_TEXT]; i++) {
        const zn_table_step *s = &plan->step[i];
        zn_short_text *to = &t->texts[i - first][row];
        zn_span text;
        memcpy(&text, (const char *)r + s->offset, sizeof text);
        if (text.n == 0 || (s->source != ZN_SOURCE_NONE && s->source != r->source)) {
            t->nulls[s->column]++;
            continue;
        }
        ZN_ASSERT(text.n <= ZN_SHORT_TEXT_MAX);
        to->n = (uint8_t)text.n;
        memcpy(to->text, text.p, to->n);
        t->in_staging.column[s->column].valid[row / 8] |= (uint8_t)(1u << row % 8);
    }
}

static void put_cells(zn_table *t, const zn_table_plan *plan, size_t row, const zn_record *r)
{
    for (uint32_t i = plan->end[ZN_COPY_TEXT]; i < plan->end[ZN_COPY_CELL]; i++) {
        const zn_table_step *s = &plan->step[i];
        zn_cell cell;
        zn_column_cell(t->column[s->column], r, &cell);
        put_cell(t, s->column, row, &cell);
    }
}

void zn_table_add(zn_table *t, const zn_record *r)
{
    size_t row = t->rows % ZN_TABLE_STAGING;
    const zn_table_plan *plan = &t->plan;
    const char *record = (const char *)r;
    if (t->failed)
        return;
    put_numbers(plan, row, record);
    put_durations(plan, row, r);
    put_bits(plan, row, record);
    put_flags(t, plan, row, record);
    put_words(t, plan, row, record);
    put_addresses(t, plan, row, record);
    put_texts(t, plan, row, r);
    put_cells(t, plan, row, r);
    if (t->failed)
        return;
    t->rows++;
    if (row + 1 == ZN_TABLE_STAGING)
        t->failed = !flush_staging(t, ZN_TABLE_STAGING);
}

int zn_table_end(zn_table *t, zn_error *err)
{
    size_t left = t->rows % ZN_TABLE_STAGING;
    if (t->failed || (left != 0 && !flush_staging(t, left))) {
        t->failed = true;
        return zn_fail(err, ZN_ERR_CAPACITY, 0,
                       "no memory for output; nothing incomplete was written");
    }
    return 0;
}

const uint8_t *zn_table_valid(const zn_table *t, size_t i)
{
    return t->nulls[i] == 0 ? NULL : t->in_block.column[i].valid;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Checks that the columns of addresses and the columns of texts of a table fit into staging. */
#define IN_TABLE(kind, type, wanted)                                                               \
    +(ZN_COLUMN_##kind == ZN_COLUMN_##wanted && ZN_FIELD_##type != ZN_FIELD_TSTAT_ONLY)
#define ADDRESSES(name, kind, type, ...) IN_TABLE(kind, type, ADDRESS)
#define TEXTS(name, kind, type, ...)                                                               \
    IN_TABLE(kind, type, TEXT)                                                                     \
    IN_TABLE(kind, type, NAME_TLS) IN_TABLE(kind, type, NAME_HTTP) IN_TABLE(kind, type, NAME_QUIC)
#define ALL_TCP(X)                                                                                 \
    ZN_COLUMNS_FLOW(X)                                                                             \
    ZN_COLUMNS_TCP(X)                                                                              \
    ZN_COLUMNS_E2E(X)                                                                              \
    ZN_COLUMNS_P2P(X) ZN_COLUMNS_OPTIONS(X) ZN_COLUMNS_LAYER7(X) ZN_COLUMNS_ATTRIBUTES(X)
#define ALL_UDP(X) ZN_COLUMNS_FLOW(X) ZN_COLUMNS_UDP(X) ZN_COLUMNS_ATTRIBUTES(X)
_Static_assert((ALL_TCP(ADDRESSES)) <= ZN_TABLE_ADDRESSES &&
                   (ALL_UDP(ADDRESSES)) <= ZN_TABLE_ADDRESSES,
               "addresses of a row wait in staging");
_Static_assert((ALL_TCP(TEXTS)) <= ZN_TABLE_TEXTS && (ALL_UDP(TEXTS)) <= ZN_TABLE_TEXTS,
               "texts of a row wait in staging");

static void make_plan(zn_table *t)
{
    uint32_t n = 0;
    for (zn_copy_kind kind = 0; kind < ZN_COPY_KINDS; kind++) {
        for (uint32_t i = 0; i < t->fields.n; i++) {
            zn_field_copy copy = zn_field_copy_of(t->column[i]);
            if (copy.kind == kind)
                t->plan.step[n++] =
                    (zn_table_step){copy.offset, copy.source, i, t->in_staging.column[i].values};
            if (copy.kind == kind && kind == ZN_COPY_ADDRESS)
                t->staged_column[t->staged_columns++] = i;
            if (copy.kind == kind && kind == ZN_COPY_TEXT)
                t->text_column[t->text_columns++] = i;
        }
        t->plan.end[kind] = n;
    }
}

static void fill_words(zn_table *t)
{
    for (size_t i = 0; i < t->fields.n; i++) {
        size_t n;
        const char *const *words = zn_column_words(t->column[i], &n);
        for (size_t word = 0; word < n; word++) {
            zn_span text = {(const uint8_t *)words[word], 0};
            if (text.p == NULL)
                continue;
            text.n = strnlen(words[word], WORD_MAX_BYTES);
            if (zn_dictionary_text(&t->dictionary[i], &t->key, text) == ZN_DICTIONARY_FULL)
                t->failed = true;
        }
    }
}

int zn_table_init(zn_table *t, const zn_fields *fields, uint8_t proto, zn_error *err)
{
    int rc;
    zn_fields_select(&t->fields, fields, proto);
    for (size_t i = 0; i < t->fields.n; i++)
        t->column[i] = zn_field_column(&t->fields.at[i], proto);
    t->next_cap = FIRST_ROWS;
    if (!make_block(&t->fields, ZN_TABLE_STAGING, &t->staging, &t->in_staging))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for columns");
    rc = zn_hash_key_random(&t->key, err);
    if (rc != 0)
        return rc;
    make_plan(t);
    fill_words(t);
    return 0;
}

void zn_table_fini(zn_table *t)
{
    zn_table_block_free(t->block);
    zn_table_block_free(t->staging);
    for (size_t i = 0; i < t->fields.n; i++)
        zn_dictionary_fini(&t->dictionary[i]);
    memset(t, 0, sizeof *t);
}

zn_table_block zn_table_take(zn_table *t)
{
    zn_table_block block = t->block;
    for (size_t i = 0; i < t->fields.n; i++) {
        zn_dictionary_clear(&t->dictionary[i]);
        t->nulls[i] = 0;
    }
    t->rows = 0;
    t->block = (zn_table_block){.bytes = NULL};
    fill_words(t);
    return block;
}

void zn_table_give(zn_table *t, zn_table_block block)
{
    if (t->block.bytes != NULL || block.cap != t->next_cap) {
        zn_table_block_free(block);
        return;
    }
    t->block = block;
    lay_out(&t->fields, &t->block, &t->in_block);
}

size_t zn_table_memory(const zn_table *t)
{
    size_t bytes = sizeof *t + t->block.size + t->staging.size;
    for (size_t i = 0; i < t->fields.n; i++)
        bytes += zn_dictionary_memory(&t->dictionary[i]);
    return bytes;
}
