/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of observations, as `zanon-net filter` reads and writes them: a time, a user, an attribute,
 * and columns that are passed on as they are. Spans borrow the bytes the row was read from.
 */
#ifndef ZN_RELEASE_ROW_H
#define ZN_RELEASE_ROW_H

#include "crypto/row_pseudonym.h"

typedef enum zn_row_format { ZN_ROWS_AUTO, ZN_ROWS_CSV, ZN_ROWS_JSONL } zn_row_format;

/* The columns of a row of `filter`, in this order; those passed on come last. */
enum { ZN_ROW_TIME, ZN_ROW_USER, ZN_ROW_ATTRIBUTE, ZN_ROW_PASS, ZN_ROW_COLUMNS_MAX = 32 };

/* The names of the columns that are read. */
typedef struct zn_row_columns {
    zn_span name[ZN_ROW_COLUMNS_MAX];
    size_t count;
    size_t scalars; /* the first columns, whose values are no objects or arrays */
} zn_row_columns;

/* Why a row cannot be read: X(NAME, "text"). Such a row is dropped whole and counted. */
#define ZN_ROW_FAULTS(X)                                                                           \
    X(GOOD, "no fault")                                                                            \
    X(COLUMNS, "not as many columns as the header")                                                \
    X(QUOTES, "a quote or a line break in the wrong place")                                        \
    X(UTF8, "not UTF-8")                                                                           \
    X(CONTROL, "a control character")                                                              \
    X(JSON, "not a JSON object")                                                                   \
    X(MISSING, "no text or number in a named column")                                              \
    X(TWICE, "a named column twice")                                                               \
    X(USER, "a user that is neither a text nor a whole number")                                    \
    X(ADDRESS, "no IP address in the client's column")                                             \
    X(TIME, "not a time from 1970 to 2262")                                                        \
    X(OTHER, "not about a query of a client")                                                      \
    X(LONG, "longer than 1 MiB")

typedef enum zn_row_fault {
#define ZN_ROW_FAULT_ENUM(name, text) ZN_FAULT_##name,
    ZN_ROW_FAULTS(ZN_ROW_FAULT_ENUM)
#undef ZN_ROW_FAULT_ENUM
        ZN_FAULT_COUNT
} zn_row_fault;

typedef enum zn_value_kind {
    ZN_VALUE_NONE, /* absent or null */
    ZN_VALUE_TEXT, /* UTF-8, without the quotes and escapes of its format */
    ZN_VALUE_JSON  /* a JSON number or literal, or any JSON in a column passed on, as it came */
} zn_value_kind;

typedef struct zn_value {
    zn_span text;
    zn_value_kind kind;
} zn_value;

typedef struct zn_row {
    int64_t t_ns; /* ns since the Unix epoch */
    zn_value value[ZN_ROW_COLUMNS_MAX];
} zn_row;

/* A row as it may be written. Only the gate fills one. */
typedef struct zn_gated_row {
    size_t place; /* of the row in its batch */
    int64_t t_ns;
    char pseudonym[ZN_PSEUDONYM_CHARS]; /* the user's pseudonym */
    zn_value attribute;                 /* ZN_VALUE_NONE unless it is released */
    const zn_value *pass;               /* further attributes, and the columns passed on */
} zn_gated_row;

#endif
