/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/table_internal.h"
#include "util/arena.h"

#include <endian.h>

#define FIRST_ROWS (65536 + 1024) /* what is taken at a time, and what comes until it is */
/* Behind each column, so that equal rows of different columns do not compete for the same lines of
 * the processor's cache. */
#define GAP 64

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

/* Where each column lies in a block with this cap; returns the bytes it takes, which need not be
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

int zn_table_staging_init(zn_table *t, zn_error *err)
{
    t->next_cap = FIRST_ROWS;
    if (!make_block(&t->fields, ZN_TABLE_STAGING, &t->staging, &t->in_staging))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for columns");
    return 0;
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

/* The rows of the stage that have a value, the first in the lowest bit. */
static uint64_t with_value(const zn_table_place *column)
{
    uint64_t bits;
    memcpy(&bits, column->valid, sizeof bits);
    return le64toh(bits);
}

/* Finds the numbers of the addresses and texts on the stage. */
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

bool zn_table_staging_flush(zn_table *t, size_t n)
{
    size_t row = t->rows - n;
    if (!number_staged(t) || (row == t->block.cap && !grow(t, row)))
        return false;
    copy_rows(&t->fields, &t->in_block, row, &t->in_staging, n);
    memset(t->staging.bytes, 0, t->staging.bitmaps); /* bits are set, never cleared */
    return true;
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
    zn_table_fill_words(t);
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
