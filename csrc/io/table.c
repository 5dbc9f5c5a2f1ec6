/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "io/table.h"

#include "base/arena.h"
#include "base/packet.h"

#include <stdlib.h>

#define FIRST_ROWS 4096
/* Behind each column, so that equal rows of different columns do not compete for the same lines of
 * the processor's cache. */
#define GAP 64

enum { TCP, UDP };

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

static int by_kind(const void *left, const void *right)
{
    const zn_table_step *a = left, *b = right;
    if (a->copy.kind != b->copy.kind)
        return a->copy.kind < b->copy.kind ? -1 : 1;
    return a->column < b->column ? -1 : 1;
}

int zn_table_init(zn_table *t, const zn_fields *fields, zn_error *err)
{
    static const uint8_t proto[] = {[TCP] = ZN_PROTO_TCP, [UDP] = ZN_PROTO_UDP};
    t->fields = fields;
    t->next_cap = FIRST_ROWS;
    for (unsigned which = TCP; which <= UDP; which++) {
        for (uint32_t i = 0; i < fields->n; i++)
            t->step[which][i] = (zn_table_step){zn_field_copy_of(&fields->at[i], proto[which]), i};
        qsort(t->step[which], fields->n, sizeof t->step[which][0], by_kind);
    }
    return zn_hash_key_random(&t->key, err);
}

void zn_table_block_free(zn_table_block block)
{
    if (block.bytes != NULL)
        zn_block_free(block.bytes, block.size);
}

void zn_table_fini(zn_table *t)
{
    zn_table_block_free(t->block);
    for (size_t i = 0; t->fields != NULL && i < t->fields->n; i++)
        zn_dictionary_fini(&t->column[i].dictionary);
    memset(t, 0, sizeof *t);
}

static uint8_t *next_bitmap(const zn_table_block *block, size_t *at)
{
    uint8_t *bitmap = block->bytes == NULL ? NULL : block->bytes + *at;
    *at += block->cap / 8 + GAP;
    return bitmap;
}

/* Where each column lies in a block with this cap, whose bytes may not be there yet; returns the
 * bytes it takes. */
static size_t lay_out(zn_table *t, zn_table_block *block)
{
    size_t at = 0;
    for (unsigned which = TCP; which <= UDP; which++)
        t->is[which] = next_bitmap(block, &at);
    for (size_t i = 0; i < t->fields->n; i++) {
        t->column[i].valid = t->column[i].values = NULL;
        if (t->fields->at[i].presence == ZN_PRESENT_SOME)
            t->column[i].valid = next_bitmap(block, &at);
        if (t->fields->at[i].type == ZN_FIELD_BOOL)
            t->column[i].values = next_bitmap(block, &at);
    }
    block->bitmaps = at;
    for (size_t i = 0; i < t->fields->n; i++) {
        size_t width = zn_table_width(t->fields->at[i].type);
        if (width != 0 && block->bytes != NULL)
            t->column[i].values = block->bytes + at;
        at += width == 0 ? 0 : width * block->cap + GAP;
    }
    return at;
}

static void copy_rows(uint8_t *to, const uint8_t *from, size_t width, size_t rows)
{
    size_t bytes = width == 0 ? (rows + 7) / 8 : rows * width;
    if (to != NULL && from != NULL)
        memcpy(to, from, bytes);
}

/* Moves the rows into a larger block. */
static bool grow(zn_table *t)
{
    zn_table_block old = t->block, bigger = {.cap = old.cap == 0 ? t->next_cap : 2 * old.cap};
    zn_table_column *from = zn_heap_alloc(sizeof t->column);
    const uint8_t *is[] = {t->is[TCP], t->is[UDP]};
    if (from == NULL)
        return false;
    memcpy(from, t->column, sizeof t->column);
    bigger.size = lay_out(t, &bigger);
    bigger.bytes = zn_block_alloc(bigger.size);
    if (bigger.bytes == NULL) {
        memcpy(t->column, from, sizeof t->column);
        zn_heap_free(from);
        return false;
    }
    lay_out(t, &bigger);
    for (unsigned which = TCP; which <= UDP; which++)
        copy_rows(t->is[which], is[which], 0, t->rows);
    for (size_t i = 0; i < t->fields->n; i++) {
        copy_rows(t->column[i].valid, from[i].valid, 0, t->rows);
        copy_rows(t->column[i].values, from[i].values, zn_table_width(t->fields->at[i].type),
                  t->rows);
    }
    zn_heap_free(from);
    zn_table_block_free(old);
    t->block = bigger;
    t->next_cap = bigger.cap;
    return true;
}

static void put_8(zn_table_column *column, size_t row, uint64_t value)
{
    memcpy(column->values + row * sizeof value, &value, sizeof value);
}

static void put_4(zn_table_column *column, size_t row, uint32_t value)
{
    memcpy(column->values + row * sizeof value, &value, sizeof value);
}

static void put_double(zn_table_column *column, size_t row, double value)
{
    memcpy(column->values + row * sizeof value, &value, sizeof value);
}

/* A number that does not fit is told as the largest that does. */
static void put_number(zn_table_column *column, size_t row, size_t width, uint64_t number)
{
    uint16_t in_16 = number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
    if (width == sizeof number)
        put_8(column, row, number);
    else if (width == sizeof(uint32_t))
        put_4(column, row, number < UINT32_MAX ? (uint32_t)number : UINT32_MAX);
    else if (width == sizeof in_16)
        memcpy(column->values + row * sizeof in_16, &in_16, sizeof in_16);
    else if (width == 1)
        column->values[row] = number < UINT8_MAX ? (uint8_t)number : UINT8_MAX;
}

static void put_text(zn_table *t, zn_table_column *column, const zn_cell *v)
{
    uint32_t index = 0;
    if (v->kind == ZN_CELL_TEXT)
        index = zn_dictionary_text(&column->dictionary, &t->key, v->text);
    else if (v->kind == ZN_CELL_ADDRESS)
        index = zn_dictionary_address(&column->dictionary, &t->key, v->address);
    if (index == ZN_DICTIONARY_FULL)
        t->failed = true;
    else
        put_4(column, t->rows, index);
}

/* A missing value takes its place as 0. */
static void put_cell(zn_table *t, size_t i, const zn_cell *v)
{
    zn_field_type type = t->fields->at[i].type;
    zn_table_column *column = &t->column[i];
    bool there = v->kind != ZN_CELL_NONE;
    uint8_t bit = (uint8_t)(1u << t->rows % 8);
    ZN_ASSERT(there || column->valid != NULL);
    if (there && column->valid != NULL)
        column->valid[t->rows / 8] |= bit;
    column->nulls += !there;
    switch (type) {
    case ZN_FIELD_BOOL:
        if (there && v->number != 0)
            column->values[t->rows / 8] |= bit;
        break;
    case ZN_FIELD_MS:
        put_double(column, t->rows, there ? (double)v->ns / 1e6 : 0);
        break;
    case ZN_FIELD_SECONDS:
        put_double(column, t->rows, there ? (double)v->ns / 1e9 : 0);
        break;
    case ZN_FIELD_TIME:
        put_8(column, t->rows, there ? (uint64_t)v->ns : 0);
        break;
    case ZN_FIELD_TEXT:
        put_text(t, column, v);
        break;
    default:
        put_number(column, t->rows, zn_table_width(type), there ? v->number : 0);
        break;
    }
}

static void put_step(zn_table *t, const zn_table_step *step, const zn_record *r)
{
    zn_table_column *column = &t->column[step->column];
    const zn_field *field = &t->fields->at[step->column];
    const char *from = (const char *)r + step->copy.offset;
    uint64_t number;
    int64_t ns;
    zn_cell cell;
    switch (step->copy.kind) {
    case ZN_COPY_NOTHING:
        column->nulls += column->valid != NULL;
        put_number(column, t->rows, zn_table_width(field->type), 0);
        break;
    case ZN_COPY_8:
        memcpy(column->values + t->rows * 8, from, 8);
        break;
    case ZN_COPY_4:
        memcpy(column->values + t->rows * 4, from, 4);
        break;
    case ZN_COPY_2:
        memcpy(column->values + t->rows * 2, from, 2);
        break;
    case ZN_COPY_1:
        memcpy(column->values + t->rows, from, 1);
        break;
    case ZN_COPY_COUNT:
        memcpy(&number, from, sizeof number);
        put_4(column, t->rows, number < UINT32_MAX ? (uint32_t)number : UINT32_MAX);
        break;
    case ZN_COPY_MS:
        memcpy(&ns, from, sizeof ns);
        put_double(column, t->rows, (double)ns / 1e6);
        break;
    case ZN_COPY_CELL:
        zn_field_value(field, r, &cell);
        put_cell(t, step->column, &cell);
        break;
    }
}

void zn_table_add(zn_table *t, const zn_record *r)
{
    unsigned which = r->proto == ZN_PROTO_TCP ? TCP : UDP;
    if (t->failed || (t->rows == t->block.cap && !grow(t))) {
        t->failed = true;
        return;
    }
    for (size_t i = 0; i < t->fields->n; i++)
        put_step(t, &t->step[which][i], r);
    if (t->failed)
        return;
    t->is[which][t->rows / 8] |= (uint8_t)(1u << t->rows % 8);
    t->rows_of[which]++;
    t->rows++;
}

const uint8_t *zn_table_valid(const zn_table *t, size_t i)
{
    switch (t->fields->at[i].presence) {
    case ZN_PRESENT_ALWAYS:
        break;
    case ZN_PRESENT_TCP:
        return t->rows_of[UDP] == 0 ? NULL : t->is[TCP];
    case ZN_PRESENT_UDP:
        return t->rows_of[TCP] == 0 ? NULL : t->is[UDP];
    case ZN_PRESENT_SOME:
        return t->column[i].nulls == 0 ? NULL : t->column[i].valid;
    }
    return NULL;
}

zn_table_block zn_table_take(zn_table *t)
{
    zn_table_block block = t->block;
    for (size_t i = 0; i < t->fields->n; i++) {
        zn_dictionary_clear(&t->column[i].dictionary);
        t->column[i].nulls = 0;
    }
    t->rows = t->rows_of[TCP] = t->rows_of[UDP] = 0;
    t->block = (zn_table_block){.bytes = NULL};
    return block;
}

void zn_table_give(zn_table *t, zn_table_block block)
{
    if (t->block.bytes != NULL || block.cap != t->next_cap) {
        zn_table_block_free(block);
        return;
    }
    memset(block.bytes, 0, block.bitmaps); /* bits are set, never cleared */
    t->block = block;
    lay_out(t, &t->block);
}

size_t zn_table_memory(const zn_table *t)
{
    size_t bytes = sizeof *t + t->block.size;
    for (size_t i = 0; i < t->fields->n; i++)
        bytes += zn_dictionary_memory(&t->column[i].dictionary);
    return bytes;
}
