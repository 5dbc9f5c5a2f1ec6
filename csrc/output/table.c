/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/table.h"

#include "output/table_internal.h"

#define WORD_MAX_BYTES 32

static void make_plan(zn_table *t, uint8_t proto)
{
    uint32_t n = 0;
    for (zn_copy_kind kind = 0; kind < ZN_COPY_KINDS; kind++) {
        for (uint32_t i = 0; i < t->fields.n; i++) {
            zn_field_copy copy = zn_field_copy_of(&t->fields.at[i], proto);
            if (copy.kind == kind)
                t->plan.step[n++] =
                    (zn_table_step){copy.offset, copy.beside, i, t->in_staging.column[i].values};
            if (copy.kind == kind && kind == ZN_COPY_ADDRESS)
                t->staged_column[t->staged_columns++] = i;
            if (copy.kind == kind && kind == ZN_COPY_TEXT)
                t->text_column[t->text_columns++] = i;
        }
        t->plan.end[kind] = n;
    }
}

void zn_table_fill_words(zn_table *t)
{
    for (size_t i = 0; i < t->fields.n; i++) {
        size_t n;
        const char *const *words = zn_field_words(&t->fields.at[i], &n);
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
    rc = zn_table_staging_init(t, err);
    if (rc == 0)
        rc = zn_hash_key_random(&t->key, err);
    if (rc != 0)
        return rc;
    make_plan(t, proto);
    zn_table_fill_words(t);
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

/* A number that does not fit is told as the largest that does. */
static uint32_t clamped(uint64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static void put_number(uint8_t *values, size_t row, size_t width, uint64_t number)
{
    uint16_t in_16 = number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
    if (width == sizeof number)
        put_8(values, row, number);
    else if (width == sizeof(uint32_t))
        put_4(values, row, clamped(number));
    else if (width == sizeof in_16)
        memcpy(values + row * sizeof in_16, &in_16, sizeof in_16);
    else if (width == 1)
        values[row] = number < UINT8_MAX ? (uint8_t)number : UINT8_MAX;
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
        put_double(column->values, row, there ? (double)v->ns / 1e9 : 0);
        break;
    case ZN_FIELD_TIME:
        put_8(column->values, row, there ? (uint64_t)v->ns : 0);
        break;
    case ZN_FIELD_TEXT:
        put_text(t, i, row, v);
        break;
    default:
        put_number(column->values, row, zn_table_width(type), there ? v->number : 0);
        break;
    }
}

/* The numbers of a record that are copied as they are. Where nothing is copied the stage stays
 * 0. */
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

/* How a flow went is not told of one that is told roughly. */
static void put_flags(zn_table *t, const zn_table_plan *plan, size_t row, const zn_record *r)
{
    const char *record = (const char *)r;
    for (uint32_t i = plan->end[ZN_COPY_DISCLOSED]; i < plan->end[ZN_COPY_FLAG]; i++) {
        const zn_table_step *s = &plan->step[i];
        bool is = record[s->offset] != 0 && record[s->beside] == 0;
        t->nulls[s->column] += r->coarse;
        t->in_staging.column[s->column].valid[row / 8] |= (uint8_t)(!r->coarse << row % 8);
        s->to[row / 8] |= (uint8_t)((is && !r->coarse) << row % 8);
    }
}

static void put_words(zn_table *t, const zn_table_plan *plan, size_t row, const char *record)
{
    for (uint32_t i = plan->end[ZN_COPY_FLAG]; i < plan->end[ZN_COPY_WORD]; i++) {
        const zn_table_step *s = &plan->step[i];
        size_t n;
        const char *const *words = zn_field_words(&t->fields.at[s->column], &n);
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

/* Addresses wait on the stage: their numbers are found for all its rows together. */
static void put_addresses(zn_table *t, const zn_table_plan *plan, size_t row, const char *record)
{
    uint32_t first = plan->end[ZN_COPY_WORD];
    for (uint32_t i = first; i < plan->end[ZN_COPY_ADDRESS]; i++) {
        const zn_table_step *s = &plan->step[i];
        int disclosure;
        memcpy(&disclosure, record + s->beside, sizeof disclosure);
        t->nulls[s->column] += disclosure == ZN_DISCLOSURE_NONE;
        if (disclosure == ZN_DISCLOSURE_NONE)
            continue;
        memcpy(&t->staged[i - first][row], record + s->offset, sizeof(zn_addr));
        t->in_staging.column[s->column].valid[row / 8] |= (uint8_t)(1u << row % 8);
    }
}

/* Texts wait there too, in copies: what they are part of will be gone. */
static void put_texts(zn_table *t, const zn_table_plan *plan, size_t row, const zn_record *r)
{
    uint32_t first = plan->end[ZN_COPY_ADDRESS];
    for (uint32_t i = first; i < plan->end[ZN_COPY_TEXT]; i++) {
        const zn_table_step *s = &plan->step[i];
        zn_short_text *to = &t->texts[i - first][row];
        zn_span text;
        memcpy(&text, (const char *)r + s->offset, sizeof text);
        if (text.n == 0 || (s->beside != ZN_SOURCE_NONE && s->beside != (uint32_t)r->source)) {
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
        zn_field_value(&t->fields.at[s->column], r, &cell);
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
    put_flags(t, plan, row, r);
    put_words(t, plan, row, record);
    put_addresses(t, plan, row, record);
    put_texts(t, plan, row, r);
    put_cells(t, plan, row, r);
    if (t->failed)
        return;
    t->rows++;
    if (row + 1 == ZN_TABLE_STAGING)
        t->failed = !zn_table_staging_flush(t, ZN_TABLE_STAGING);
}

int zn_table_end(zn_table *t, zn_error *err)
{
    size_t left = t->rows % ZN_TABLE_STAGING;
    if (t->failed || (left != 0 && !zn_table_staging_flush(t, left))) {
        t->failed = true;
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for output; nothing cut was written");
    }
    return 0;
}

const uint8_t *zn_table_valid(const zn_table *t, size_t i)
{
    return t->nulls[i] == 0 ? NULL : t->in_block.column[i].valid;
}
