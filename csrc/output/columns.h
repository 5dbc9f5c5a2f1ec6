/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of release/columns.h as a table: each format takes its columns from here, by groups. The
 * names and the order of Tstat's groups are those of Tstat 3.3.
 */
#ifndef ZN_OUTPUT_COLUMNS_H
#define ZN_OUTPUT_COLUMNS_H

#include "release/record.h"
#include "zanon/zanon.h"

#define ZN_COLUMN_ONE(...) +1
enum { ZN_COLUMNS_MAX = 0 ZN_COLUMNS(ZN_COLUMN_ONE) }; /* more than one log has */
#undef ZN_COLUMN_ONE

/* The way in which a value is made of its member. */
typedef enum zn_column_kind {
    ZN_COLUMN_NUMBER,        /* a whole number of 1, 2, 4 or 8 bytes */
    ZN_COLUMN_NS,            /* int64_t ns since the Unix epoch, printed as it is */
    ZN_COLUMN_TIME,          /* the same, printed as ms */
    ZN_COLUMN_WHEN,          /* the same as TIME; 0: never */
    ZN_COLUMN_MS,            /* a duration in int64_t ns, printed as ms */
    ZN_COLUMN_DURATION_MS,   /* the record's last_ns less its first_ns */
    ZN_COLUMN_SIDE_START,    /* of a side: first_data_ns as a time, printed as ms */
    ZN_COLUMN_SIDE_DURATION, /* of a side: last_data_ns less first_data_ns, printed as seconds */
    ZN_COLUMN_ADDRESS,
    ZN_COLUMN_PSEUDONYM, /* zn_disclosure: whether the address is a pseudonym */
    ZN_COLUMN_FLAG,      /* zn_flag */
    ZN_COLUMN_NAME_SOURCE,
    ZN_COLUMN_NAME_STATUS,
    ZN_COLUMN_ECH,
    ZN_COLUMN_TEXT,     /* zn_span */
    ZN_COLUMN_DIGITS,   /* the same, a few digits */
    ZN_COLUMN_NAME_TLS, /* the same, if the record's name came by TLS */
    ZN_COLUMN_NAME_HTTP,
    ZN_COLUMN_NAME_QUIC,
    ZN_COLUMN_VERSIONS,     /* of a side: TLS versions in hexadecimal */
    ZN_COLUMN_QUIC_VERSION, /* 0x and eight hexadecimal digits; 0: none */
    ZN_COLUMN_UDP_TYPE,     /* of a side */
    ZN_COLUMN_UNMEASURED    /* always 0 */
} zn_column_kind;

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

/* The columns of a TCP log with these sets (ZN_SET_*) beside the core. */
void zn_log_columns_tcp(zn_log_columns *out, unsigned sets);
/* The columns of a UDP log. */
void zn_log_columns_udp(zn_log_columns *out);

#endif
