/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "io/table.h"

#include "base/arena.h"
#include "base/packet.h"

#define FIRST_ROWS 4096

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

static size_t value_bytes(zn_field_type type, size_t rows)
{
    size_t width = zn_table_width(type);
    return width == 0 ? rows / 8 : rows * width;
}

int zn_table_init(zn_table *t, const zn_fields *fields, zn_error *err)
{
    t->fields = fields;
    return zn_hash_key_random(&t->key, err);
}

void zn_table_fini(zn_table *t)
{
    for (size_t i = 0; t->fields != NULL && i < t->fields->n; i++) {
        zn_heap_free(t->column[i].values);
        zn_heap_free(t->column[i].valid);
        zn_dictionary_fini(&t->column[i].dictionary);
    }
    memset(t, 0, sizeof *t);
}

/* Bits behind the used ones stay zero: they are set, never cleared. */
static bool grow_bits(uint8_t **bits, size_t from, size_t to)
{
    uint8_t *bigger = zn_heap_resize(*bits, to / 8);
    if (bigger == NULL)
        return false;
    memset(bigger + from / 8, 0, (to - from) / 8);
    *bits = bigger;
    return true;
}

static bool grow(zn_table *t)
{
    size_t cap = t->cap == 0 ? FIRST_ROWS : 2 * t->cap;
    for (size_t i = 0; i < t->fields->n; i++) {
        const zn_field *field = &t->fields->at[i];
        zn_table_column *column = &t->column[i];
        uint8_t *values;
        if (field->nullable && !grow_bits(&column->valid, t->cap, cap))
            return false;
        if (field->type == ZN_FIELD_BOOL) {
            if (!grow_bits(&column->values, t->cap, cap))
                return false;
            continue;
        }
        values = zn_heap_resize(column->values, value_bytes(field->type, cap));
        if (values == NULL)
            return false;
        column->values = values;
    }
    t->cap = cap;
    return true;
}

/* A number that does not fit is told as the largest that does. */
static void put_number(zn_table_column *column, size_t row, size_t width, uint64_t number)
{
    uint32_t in_32 = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    uint16_t in_16 = number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
    uint8_t in_8 = number < UINT8_MAX ? (uint8_t)number : UINT8_MAX;
    if (width == sizeof number)
        memcpy(column->values + row * sizeof number, &number, sizeof number);
    else if (width == sizeof in_32)
        memcpy(column->values + row * sizeof in_32, &in_32, sizeof in_32);
    else if (width == sizeof in_16)
        memcpy(column->values + row * sizeof in_16, &in_16, sizeof in_16);
    else
        column->values[row] = in_8;
}

static void put_double(zn_table_column *column, size_t row, double value)
{
    memcpy(column->values + row * sizeof value, &value, sizeof value);
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
        put_number(column, t->rows, sizeof index, index);
}

/* A missing value takes its place as 0. */
static void put_value(zn_table *t, size_t i, const zn_cell *v)
{
    zn_field_type type = t->fields->at[i].type;
    zn_table_column *column = &t->column[i];
    bool there = v->kind != ZN_CELL_NONE;
    uint8_t bit = (uint8_t)(1u << t->rows % 8);
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
        put_number(column, t->rows, sizeof v->ns, there ? (uint64_t)v->ns : 0);
        break;
    case ZN_FIELD_TEXT:
        put_text(t, column, v);
        break;
    default:
        put_number(column, t->rows, zn_table_width(type), there ? v->number : 0);
        break;
    }
}

void zn_table_add(zn_table *t, const zn_record *r)
{
    zn_cell value;
    if (t->failed || (t->rows == t->cap && !grow(t))) {
        t->failed = true;
        return;
    }
    for (size_t i = 0; i < t->fields->n; i++) {
        const zn_field *field = &t->fields->at[i];
        const zn_column *c = r->proto == ZN_PROTO_TCP ? field->tcp : field->udp;
        zn_table_column *column = &t->column[i];
        if (c != NULL && zn_column_is_number(c)) {
            column->valid[t->rows / 8] |= (uint8_t)(1u << t->rows % 8);
            put_number(column, t->rows, field->type == ZN_FIELD_U64 ? 8 : 4,
                       zn_column_number(c, r));
        } else {
            zn_field_value(field, r, &value);
            put_value(t, i, &value);
        }
    }
    t->rows += !t->failed;
}

void zn_table_clear(zn_table *t)
{
    for (size_t i = 0; t->cap != 0 && i < t->fields->n; i++) {
        zn_table_column *column = &t->column[i];
        if (column->valid != NULL)
            memset(column->valid, 0, t->cap / 8);
        if (t->fields->at[i].type == ZN_FIELD_BOOL)
            memset(column->values, 0, t->cap / 8);
        zn_dictionary_clear(&column->dictionary);
        column->nulls = 0;
    }
    t->rows = 0;
}

size_t zn_table_memory(const zn_table *t)
{
    size_t bytes = sizeof *t;
    for (size_t i = 0; t->cap != 0 && i < t->fields->n; i++)
        bytes += value_bytes(t->fields->at[i].type, t->cap) +
                 (t->column[i].valid != NULL ? t->cap / 8 : 0) +
                 zn_dictionary_memory(&t->column[i].dictionary);
    return bytes;
}
