/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a flow in the formats that hold TCP and UDP flows in one table: CSV, JSON Lines and
 * the columns for Parquet. First what every flow has, under names of our own; then Tstat's columns,
 * but for addresses and ports, under Tstat's names. A flow has no value in a column that is not in
 * its protocol's log.
 */
#ifndef ZN_OUTPUT_FIELDS_H
#define ZN_OUTPUT_FIELDS_H

#include "output/columns.h"

/* The type that holds every value of a field. */
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
    ZN_FIELD_TEXT
} zn_field_type;

typedef enum zn_common {
    ZN_COMMON_T_START,
    ZN_COMMON_T_END,
    ZN_COMMON_PROTO,
    ZN_COMMON_CLIENT,
    ZN_COMMON_SERVER,
    ZN_COMMON_CLIENT_PORT,
    ZN_COMMON_SERVER_PORT,
    ZN_COMMON_NAME,
    ZN_COMMON_NAME_SOURCE,
    ZN_COMMON_NAME_STATUS,
    ZN_COMMON_ECH,
    ZN_COMMON_EPOCH,
    ZN_COMMON_C_PACKETS,
    ZN_COMMON_S_PACKETS,
    ZN_COMMON_C_BYTES,
    ZN_COMMON_S_BYTES,
    ZN_COMMON_COMPLETE,
    ZN_COMMON_MIDSTREAM,
    ZN_COMMON_EVICTED,
    ZN_COMMON_COUNT
} zn_common;

typedef struct zn_field {
    const char *name;
    zn_field_type type;
    bool nullable;              /* a flow to which it applies may have no value */
    zn_common common;           /* ZN_COMMON_COUNT: a column of Tstat's */
    const zn_column *tcp, *udp; /* NULL: that protocol's flows have no value */
} zn_field;

#define ZN_FIELDS_MAX (ZN_COMMON_COUNT + ZN_COLUMNS_MAX + 32)

typedef struct zn_fields {
    zn_field at[ZN_FIELDS_MAX];
    size_t n;
} zn_fields;

/* The fields with these sets of columns (ZN_SET_*). */
void zn_fields_init(zn_fields *fields, unsigned sets);
/* Those of them that apply to flows of a protocol. */
void zn_fields_select(zn_fields *out, const zn_fields *fields, uint8_t proto);
/* A flow of this protocol can have a value. */
bool zn_field_applies(const zn_field *field, uint8_t proto);
void zn_field_value(const zn_field *field, const zn_record *r, zn_cell *out);

/* Appends a value of any kind but NONE: text as it is, a time in ns where the field's name says so,
 * anything else as Tstat prints it. */
void zn_field_put(zn_text *out, const zn_field *field, const zn_cell *value);

/* What a field whose values are words can say, by number, NULL: nothing. NULL for any other
 * field. */
const char *const *zn_field_words(const zn_field *field, size_t *n);

/* "tls" and so on, NULL for none. */
const char *zn_name_source_word(zn_name_source source);

#endif
