/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Lines: flow records, and released observations, (t, f(u, t), a) of Jha et al. 2022, each at
 * the moment of its decision. One object a line. A missing or withheld value is null; times are
 * integer ns since the Unix epoch where the name says so, and in Tstat's columns as Tstat prints
 * them. Nothing needs escaping: names arrive normalised.
 */
#include "output/format_state.h"

static void put_json(zn_text *out, const zn_field *field, const zn_cell *v)
{
    bool quoted = field->type == ZN_FIELD_TEXT;
    if (v->kind == ZN_CELL_NONE) {
        zn_text_literal(out, "null");
        return;
    }
    if (quoted)
        zn_text_char(out, '"');
    zn_cell_put(out, v);
    if (quoted)
        zn_text_char(out, '"');
}

static bool put_record(zn_format_state *state, zn_text *out, const zn_record *r)
{
    const zn_fields *fields = &state->fields;
    zn_cell value;
    char separator = '{';
    for (size_t i = 0; i < fields->n; i++) {
        const zn_field *field = &fields->at[i];
        if (zn_field_column(field, r->proto) == NULL)
            continue;
        zn_text_char(out, separator);
        zn_text_char(out, '"');
        zn_column_put_word(out, field->name);
        zn_text_literal(out, "\":");
        zn_field_value(field, r, &value);
        put_json(out, field, &value);
        separator = ',';
    }
    zn_text_literal(out, "}\n");
    return true;
}

/* A flow a line, with the fields that its protocol has. */
const zn_format zn_format_jsonl = {
    .name = "jsonl", .stem = "flows", .suffix = ".jsonl", .record = put_record};

static void put_text(zn_text *out, zn_span text)
{
    zn_text_char(out, '"');
    zn_text_span(out, text);
    zn_text_char(out, '"');
}

/* Appends a member: its name in JSON with the quote that begins its value, and a word. */
static void put_word(zn_text *out, const char *name, const char *word)
{
    zn_column_put_word(out, name);
    zn_column_put_word(out, word);
    zn_text_char(out, '"');
}

static void put_release(zn_text *out, const zn_release *release)
{
    const char *source = zn_name_source_word(release->source);
    const char *level = zn_name_level_word(release->level);
    const char *space = zn_space_word(release->space);
    zn_cell client = {.kind = ZN_CELL_ADDRESS, .address = &release->client};
    zn_text_literal(out, "{\"t_ns\":");
    zn_text_i64(out, release->t_ns);
    zn_text_literal(out, ",\"client\":");
    if (release->client_disclosure == ZN_DISCLOSURE_NONE) {
        zn_text_literal(out, "null");
    } else {
        zn_text_char(out, '"');
        zn_cell_put(out, &client);
        zn_text_char(out, '"');
    }
    zn_text_literal(out, ",\"name\":");
    put_text(out, release->name);
    if (source != NULL)
        put_word(out, ",\"name_source\":\"", source);
    else
        zn_text_literal(out, ",\"name_source\":null");
    if (level != NULL)
        put_word(out, ",\"name_level\":\"", level);
    if (space != NULL)
        put_word(out, ",\"namespace\":\"", space);
    zn_text_literal(out, "}\n");
}

/* {"t_ns":..,"client":..,"name":..,"name_source":..} a release, with "name_level" in a run with
 * levels, and "namespace" in a run with attributes. */
const zn_format zn_format_observations = {
    .name = "observations", .stem = "observations", .suffix = ".jsonl", .release = put_release};
