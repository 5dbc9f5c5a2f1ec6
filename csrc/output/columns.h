/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of release/columns.h as a table: each format takes its columns from here, by groups. Tstat's
 * groups have the names and the order of Tstat 3.3.
 */
#ifndef ZN_OUTPUT_COLUMNS_H
#define ZN_OUTPUT_COLUMNS_H

#include "release/record.h"
#include "zanon/zanon.h"

#define ZN_COLUMN_ONE(...) +1
enum { ZN_COLUMNS_MAX = 0 ZN_COLUMNS(ZN_COLUMN_ONE) }; /* more than one log has */
#undef ZN_COLUMN_ONE

/* The type of a column's values in Arrow. */
typedef enum zn_field_type {
    ZN_FIELD_BOOL,
    ZN_FIELD_U8,
    ZN_FIELD_U16,
    ZN_FIELD_U32,
    ZN_FIELD_U64,
    ZN_FIELD_I64,
    ZN_FIELD_MS,      /* a duration: double, ms */
    ZN_FIELD_SECONDS, /* a duration: double, s */
    ZN_FIELD_TIME,    /* int64_t, ns since the Unix epoch */
    ZN_FIELD_TEXT,
    ZN_FIELD_TSTAT_ONLY /* in Tstat's logs alone */
} zn_field_type;

typedef struct zn_column {
    const char *name;
    zn_column_kind kind;
    zn_field_type type;
    uint32_t offset, size;   /* of the member in a zn_record */
    const char *unit;        /* "": none */
    const char *missing;     /* Tstat's text for a missing value, NULL: none is missing */
    const char *disclosure;  /* the class, as in release/columns.h */
    const char *description; /* for people */
} zn_column;

typedef enum zn_column_group_id {
#define ZN_COLUMN_GROUP_ENUM(group, columns) ZN_COLUMN_GROUP_##group,
    ZN_COLUMN_GROUPS(ZN_COLUMN_GROUP_ENUM)
#undef ZN_COLUMN_GROUP_ENUM
        ZN_COLUMN_GROUP_COUNT
} zn_column_group_id;

/* Columns in their order. */
typedef struct zn_column_group {
    const char *name; /* as in release/columns.h */
    const zn_column *at;
    size_t n;
} zn_column_group;

/* The columns of one group. */
const zn_column_group *zn_column_group_of(zn_column_group_id id);

/* Columns of one log, in their order. */
typedef struct zn_log_columns {
    const zn_column *at[ZN_COLUMNS_MAX];
    size_t n;
} zn_log_columns;

/* The column of a zn_attribute in a set of columns, next to the bits ZN_SET_*. */
#define ZN_SET_ATTRIBUTE(attribute) (1u << (8 + (attribute)))

/* The columns of a TCP log with these sets (ZN_SET_*) beside the core. */
void zn_log_columns_tcp(zn_log_columns *out, unsigned sets);
/* The columns of a UDP log with these sets. */
void zn_log_columns_udp(zn_log_columns *out, unsigned sets);

#endif
