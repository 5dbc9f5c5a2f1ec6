/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/columns.h"

#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    {name,                                                                                         \
     ZN_COLUMN_##kind,                                                                             \
     ZN_FIELD_##type,                                                                              \
     offsetof(zn_record, member),                                                                  \
     sizeof((const zn_record *)NULL)->member,                                                      \
     unit,                                                                                         \
     missing,                                                                                      \
     #disclosure,                                                                                  \
     description},
#define GROUP_ARRAY(group, columns) static const zn_column columns_##group[] = {columns(COLUMN)};
ZN_COLUMN_GROUPS(GROUP_ARRAY)

#define GROUP(group, columns)                                                                      \
    [ZN_COLUMN_GROUP_##group] = {#group, columns_##group,                                          \
                                 sizeof columns_##group / sizeof columns_##group[0]},
static const zn_column_group groups[] = {ZN_COLUMN_GROUPS(GROUP)};

const zn_column_group *zn_column_group_of(zn_column_group_id id)
{
    return &groups[id];
}

static void append(zn_log_columns *out, zn_column_group_id id)
{
    for (size_t i = 0; i < groups[id].n; i++)
        out->at[out->n++] = &groups[id].at[i];
}

/* Appends the columns of the wanted attributes. */
static void append_attributes(zn_log_columns *out, unsigned sets)
{
    for (size_t i = 0; i < groups[ZN_COLUMN_GROUP_ATTRIBUTES].n; i++)
        if ((sets & ZN_SET_ATTRIBUTE(i)) != 0)
            out->at[out->n++] = &groups[ZN_COLUMN_GROUP_ATTRIBUTES].at[i];
}

void zn_log_columns_tcp(zn_log_columns *out, unsigned sets)
{
    out->n = 0;
    append(out, ZN_COLUMN_GROUP_TCP);
    if ((sets & ZN_SET_E2E) != 0)
        append(out, ZN_COLUMN_GROUP_E2E);
    if ((sets & ZN_SET_P2P) != 0)
        append(out, ZN_COLUMN_GROUP_P2P);
    if ((sets & ZN_SET_OPTIONS) != 0)
        append(out, ZN_COLUMN_GROUP_OPTIONS);
    if ((sets & ZN_SET_LAYER7) != 0)
        append(out, ZN_COLUMN_GROUP_LAYER7);
    if ((sets & ZN_SET_LEVELS) != 0)
        append(out, ZN_COLUMN_GROUP_LEVELS);
    append_attributes(out, sets);
}

void zn_log_columns_udp(zn_log_columns *out, unsigned sets)
{
    out->n = 0;
    append(out, ZN_COLUMN_GROUP_UDP);
    if ((sets & ZN_SET_LEVELS) != 0)
        append(out, ZN_COLUMN_GROUP_LEVELS);
    append_attributes(out, sets);
}
