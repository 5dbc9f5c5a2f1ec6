/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/fields.h"

#include "util/protocol.h"

#define NAME_MAX_BYTES 32

static zn_field *find(zn_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->n; i++)
        if (strncmp(fields->at[i].name, name, NAME_MAX_BYTES) == 0)
            return &fields->at[i];
    return NULL;
}

/* Adds a column of flows of TCP, or of UDP, to the field of its name, which may be a new one. */
static void add(zn_fields *fields, const zn_column *c, bool udp)
{
    zn_field *field = find(fields, c->name);
    if (c->type == ZN_FIELD_TSTAT_ONLY)
        return;
    if (field == NULL) {
        field = &fields->at[fields->n++];
        *field = (zn_field){c->name, c->type, false, NULL, NULL};
    }
    *(udp ? &field->udp : &field->tcp) = c;
    field->nullable |= c->missing != NULL;
}

void zn_fields_init(zn_fields *fields, unsigned sets)
{
    const zn_column_group *flow = zn_column_group_of(ZN_COLUMN_GROUP_FLOW);
    zn_log_columns log;
    fields->n = 0;
    for (size_t i = 0; i < 2 * flow->n; i++)
        add(fields, &flow->at[i / 2], i % 2 != 0);
    zn_log_columns_tcp(&log, sets);
    for (size_t i = 0; i < log.n; i++)
        add(fields, log.at[i], false);
    zn_log_columns_udp(&log, sets);
    for (size_t i = 0; i < log.n; i++)
        add(fields, log.at[i], true);
}

void zn_fields_select(zn_fields *out, const zn_fields *fields, uint8_t proto)
{
    out->n = 0;
    for (size_t i = 0; i < fields->n; i++)
        if (zn_field_column(&fields->at[i], proto) != NULL)
            out->at[out->n++] = fields->at[i];
}

const zn_column *zn_field_column(const zn_field *field, uint8_t proto)
{
    return proto == ZN_PROTO_TCP ? field->tcp : field->udp;
}

void zn_field_value(const zn_field *field, const zn_record *r, zn_cell *v)
{
    const zn_column *c = zn_field_column(field, r->proto);
    v->kind = ZN_CELL_NONE;
    if (c != NULL)
        zn_column_cell(c, r, v);
}
