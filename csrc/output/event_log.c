/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/event_log.h"

#include "output/format_state.h"

#define NAME_FORMAT "S253"
#define WORD_BYTES 32 /* more than any name of a field has */
#define ROW_ALIGN 8
_Static_assert(ZN_EVENT_NAME_MAX == 253, "as the format says");

/* ---- a record -------------------------------------------------------------------------------- */

/* Fields of a row, in the row's order, without gaps: columns of row_columns, of every flow or of
 * levels. Words are stored as numbers. */
static const char *const record_fields[] = {
    "t_start_ns",  "t_end_ns",     "epoch",        "c_pkts",     "s_pkts",
    "c_bytes",     "s_bytes",      "client",       "server",     "client_port",
    "server_port", "client_shown", "server_shown", "proto",      "complete",
    "ech",         "name_status",  "name_source",  "name_level", "name",
};

#define ROW_COLUMN(field, member)                                                                  \
    {.name = field,                                                                                \
     .kind = ZN_COLUMN_CODE,                                                                       \
     .type = ZN_FIELD_U8,                                                                          \
     .offset = offsetof(zn_record, member),                                                        \
     .size = sizeof((const zn_record *)NULL)->member}

/* Columns that only rows have, of the type zn_disclosure. */
static const zn_column row_columns[] = {
    ROW_COLUMN("client_shown", client.disclosure),
    ROW_COLUMN("server_shown", server.disclosure),
};

static const zn_column *find(const zn_column *columns, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(columns[i].name, name, WORD_BYTES) == 0)
            return &columns[i];
    return NULL;
}

static const zn_column *column_of(const char *name)
{
    const zn_column_group *flow = zn_column_group_of(ZN_COLUMN_GROUP_FLOW);
    const zn_column_group *levels = zn_column_group_of(ZN_COLUMN_GROUP_LEVELS);
    const zn_column *own = find(row_columns, sizeof row_columns / sizeof row_columns[0], name);
    if (own == NULL)
        own = find(flow->at, flow->n, name);
    return own != NULL ? own : find(levels->at, levels->n, name);
}

/* Sets how a value lies in a row: durations are ns. */
static void set_format(zn_event_field *f)
{
    static const struct {
        const char *format;
        size_t size;
    } of_type[] = {
        [ZN_FIELD_BOOL] = {"u1", 1}, [ZN_FIELD_U8] = {"u1", 1},
        [ZN_FIELD_U16] = {"u2", 2},  [ZN_FIELD_U32] = {"u4", 4},
        [ZN_FIELD_U64] = {"u8", 8},  [ZN_FIELD_I64] = {"i8", 8},
        [ZN_FIELD_MS] = {"i8", 8},   [ZN_FIELD_SECONDS] = {"i8", 8},
        [ZN_FIELD_TIME] = {"i8", 8}, [ZN_FIELD_TEXT] = {NAME_FORMAT, ZN_EVENT_NAME_MAX},
    };
    size_t words;
    bool is_word = zn_column_words(f->column, &words) != NULL;
    f->format = of_type[is_word ? ZN_FIELD_U8 : f->column->type].format;
    f->size = of_type[is_word ? ZN_FIELD_U8 : f->column->type].size;
    if (f->column->kind == ZN_COLUMN_ADDRESS) {
        f->format = "16u1";
        f->size = sizeof(zn_addr);
    }
}

void zn_event_record_row(zn_event_row *out)
{
    memset(out, 0, sizeof *out);
    for (; out->count < sizeof record_fields / sizeof record_fields[0]; out->count++) {
        zn_event_field *f = &out->field[out->count];
        f->name = record_fields[out->count];
        f->column = column_of(f->name);
        f->offset = out->bytes;
        set_format(f);
        out->bytes += f->size;
    }
    out->bytes = (out->bytes + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
}

static void init_record(zn_format_state *state, unsigned sets)
{
    (void)sets;
    zn_event_record_row(&state->record_row);
}

/* Fills a field of a row of zeros; what is withheld stays zero, whatever lies in the record. */
static void put_field(uint8_t *to, const zn_event_field *f, const zn_record *r)
{
    zn_cell value;
    size_t words;
    zn_column_cell(f->column, r, &value);
    if (zn_column_words(f->column, &words) != NULL)
        zn_cell_store(to, f->size, zn_column_number(f->column, r));
    else if (value.kind == ZN_CELL_NUMBER)
        zn_cell_store(to, f->size, value.number);
    else if (value.kind == ZN_CELL_ADDRESS)
        memcpy(to, value.address->byte, sizeof value.address->byte);
    else if (value.kind == ZN_CELL_TEXT && value.text.n <= f->size)
        memcpy(to, value.text.p, value.text.n);
    else if (value.kind == ZN_CELL_NS || value.kind == ZN_CELL_MS || value.kind == ZN_CELL_SECONDS)
        memcpy(to, &value.ns, sizeof value.ns);
}

static bool put_record(zn_format_state *state, zn_text *out, const zn_record *r)
{
    const zn_event_row *row = &state->record_row;
    char *at = zn_text_reserve(out, row->bytes);
    if (at == NULL)
        return true;
    memset(at, 0, row->bytes); /* also between the fields */
    for (size_t i = 0; i < row->count; i++)
        put_field((uint8_t *)at + row->field[i].offset, &row->field[i], r);
    out->n += row->bytes;
    return true;
}

const zn_format zn_format_record_rows = {
    .name = "record_rows", .is_rows = true, .init = init_record, .record = put_record};

/* ---- an observation -------------------------------------------------------------------------- */

#define OBSERVATION(field, format)                                                                 \
    {#field, format, offsetof(zn_event_observation, field),                                        \
     sizeof((const zn_event_observation *)NULL)->field, NULL}

void zn_event_observation_row(zn_event_row *out)
{
    *out = (zn_event_row){.field = {OBSERVATION(t_ns, "i8"), OBSERVATION(client, "16u1"),
                                    OBSERVATION(client_shown, "u1"), OBSERVATION(name_source, "u1"),
                                    OBSERVATION(name_level, "u1"), OBSERVATION(namespace, "u1"),
                                    OBSERVATION(name, NAME_FORMAT)},
                          .bytes = sizeof(zn_event_observation)};
    while (out->field[out->count].name != NULL)
        out->count++;
}

static void put_release(zn_text *out, const zn_release *release)
{
    bool has_level = release->level != ZN_NAME_LEVEL_NONE; /* false in a run without levels */
    zn_event_observation row;
    memset(&row, 0, sizeof row); /* also between the fields */
    row.t_ns = release->t_ns;
    if (release->client_disclosure != ZN_DISCLOSURE_NONE)
        memcpy(row.client, release->client.byte, sizeof row.client);
    row.client_shown = (uint8_t)release->client_disclosure;
    row.name_source = (uint8_t)release->source;
    if (release->space < ZN_SPACE_ATTRIBUTE)
        row.name_level = (uint8_t)(has_level ? release->level : ZN_NAME_LEVEL_NAME);
    row.namespace = (uint8_t)release->space;
    if (release->name.n != 0 && release->name.n <= sizeof row.name)
        memcpy(row.name, release->name.p, release->name.n);
    zn_text_bytes(out, (const char *)&row, sizeof row);
}

const zn_format zn_format_observation_rows = {
    .name = "observation_rows", .is_rows = true, .release = put_release};
