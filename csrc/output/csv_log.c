/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comma-separated values (RFC 4180, with a line feed alone): every field of every flow, nothing
 * where a value is missing or withheld. Nothing is quoted but lists, which hold commas.
 */
#include "output/format_state.h"

static char end_of(const zn_fields *fields, size_t i)
{
    return i + 1 < fields->n ? ',' : '\n';
}

static void put_header(const zn_format_state *state, zn_text *out)
{
    const zn_fields *fields = &state->fields;
    for (size_t i = 0; i < fields->n; i++) {
        zn_column_put_word(out, fields->at[i].name);
        zn_text_char(out, end_of(fields, i));
    }
}

static bool put_record(zn_format_state *state, zn_text *out, const zn_record *r)
{
    const zn_fields *fields = &state->fields;
    zn_cell value;
    for (size_t i = 0; i < fields->n; i++) {
        bool quoted;
        zn_field_value(&fields->at[i], r, &value);
        quoted = value.kind == ZN_CELL_TEXT && memchr(value.text.p, ',', value.text.n) != NULL;
        if (quoted)
            zn_text_char(out, '"');
        zn_cell_put(out, &value);
        if (quoted)
            zn_text_char(out, '"');
        zn_text_char(out, end_of(fields, i));
    }
    return true;
}

const zn_format zn_format_csv = {
    .name = "csv", .stem = "flows", .suffix = ".csv", .header = put_header, .record = put_record};
