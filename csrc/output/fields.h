/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of a flow in the formats that have TCP and UDP flows in one table: CSV, JSON Lines and the
 * columns for Parquet. The first fields are the group FLOW of release/columns.h, which every flow
 * has. Tstat's columns follow, without the TSTAT_ONLY columns. A flow has no value in a column that
 * is not in its protocol's log.
 */
#ifndef ZN_OUTPUT_FIELDS_H
#define ZN_OUTPUT_FIELDS_H

#include "output/column_cell.h"

typedef struct zn_field {
    const char *name;
    zn_field_type type;
    bool nullable;              /* a flow to which it applies may have no value */
    const zn_column *tcp, *udp; /* NULL: that protocol's flows have no value */
} zn_field;

typedef struct zn_fields {
    zn_field at[ZN_COLUMNS_MAX];
    size_t n;
} zn_fields;

/* The fields with these sets of columns (ZN_SET_*). */
void zn_fields_init(zn_fields *fields, unsigned sets);
/* Selects those fields that apply to flows of a protocol. */
void zn_fields_select(zn_fields *out, const zn_fields *fields, uint8_t proto);
/* The column that holds a field of this protocol's flows; NULL: they have no value. */
const zn_column *zn_field_column(const zn_field *field, uint8_t proto);
/* Reads the value of a field in a record into *out; none where the field does not apply. */
void zn_field_value(const zn_field *field, const zn_record *r, zn_cell *out);

#endif
