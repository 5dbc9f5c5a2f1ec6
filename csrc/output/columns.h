/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of the flow logs, in one table: names and order as Tstat 3.3 has them, where each
 * value is in a record, and how it is printed. Every format takes its columns from here.
 */
#ifndef ZN_OUTPUT_COLUMNS_H
#define ZN_OUTPUT_COLUMNS_H

#include "release/record.h"
#include "util/text.h"
#include "zanon/zanon.h"

#define ZN_COLUMNS_MAX 144 /* of one log, with every set */

/* What a column holds, and so how it is found. */
typedef enum zn_column_kind {
    ZN_COLUMN_ADDRESS,  /* of a side */
    ZN_COLUMN_PORT,     /* of a side */
    ZN_COLUMN_COUNT,    /* uint64_t of a side */
    ZN_COLUMN_BYTES,    /* the same, where more than 32 bits can be needed */
    ZN_COLUMN_TOTAL,    /* uint64_t of the record */
    ZN_COLUMN_MS,       /* int64_t ns of a side, printed as ms */
    ZN_COLUMN_START_MS, /* the record's first_ns, ms since the epoch */
    ZN_COLUMN_END_MS,
    ZN_COLUMN_DURATION_MS,
    ZN_COLUMN_INTERNAL,   /* of a side, 0 or 1 */
    ZN_COLUMN_ENCRYPTED,  /* of a side, 0 or 1 */
    ZN_COLUMN_CONNECTION, /* con_t */
    ZN_COLUMN_METHOD,     /* http_t */
    ZN_COLUMN_STATUS,     /* http_res */
    ZN_COLUMN_VERSIONS,   /* of a side: TLS versions in hexadecimal */
    ZN_COLUMN_NAME_TLS,
    ZN_COLUMN_NAME_HTTP,
    ZN_COLUMN_NAME_QUIC,
    ZN_COLUMN_TEXT, /* of the record: fqdn, s_tls_SCN, quic_UA */
    ZN_COLUMN_RESOLVER,
    ZN_COLUMN_RESOLVER_ENCRYPTED,
    ZN_COLUMN_WHEN,            /* int64_t ns of the record, printed as ms; 0: never */
    ZN_COLUMN_QUIC_VERSION,    /* of a side: 0x and eight hexadecimal digits */
    ZN_COLUMN_SIDE_START_MS,   /* UDP: first datagram of a side, ms since the epoch */
    ZN_COLUMN_SIDE_DURATION_S, /* UDP */
    ZN_COLUMN_UDP_TYPE,
    ZN_COLUMN_NO_COUNT /* always 0 */
} zn_column_kind;

typedef struct zn_column {
    const char *name;
    zn_column_kind kind;
    char side;           /* 'c', 's' or 0 */
    size_t offset;       /* of its value, in that side or in the record */
    const char *missing; /* what Tstat prints when there is no value, NULL: there always is */
} zn_column;

/* Columns of one log, in their order. */
typedef struct zn_log_columns {
    const zn_column *at[ZN_COLUMNS_MAX];
    size_t n;
} zn_log_columns;

/* The columns of a TCP log with these sets (ZN_SET_*) beside the core. */
void zn_log_columns_tcp(zn_log_columns *out, unsigned sets);
void zn_log_columns_udp(zn_log_columns *out);

typedef enum zn_cell_kind {
    ZN_CELL_NONE,
    ZN_CELL_COUNT,   /* number */
    ZN_CELL_FLAG,    /* number, 0 or 1 */
    ZN_CELL_MS,      /* ns, to be told in ms */
    ZN_CELL_SECONDS, /* ns, to be told in seconds with six decimals */
    ZN_CELL_TIME,    /* ns since the Unix epoch, to be told in ms */
    ZN_CELL_TEXT,    /* text, never empty */
    ZN_CELL_ADDRESS  /* *address */
} zn_cell_kind;

#define ZN_CELL_BYTES (5 * ZN_RECORD_VERSIONS)

/* The value of a column in one record; borrows from the record and from itself. */
typedef struct zn_cell {
    zn_cell_kind kind;
    uint64_t number;
    int64_t ns;
    zn_span text;
    const zn_addr *address;
    uint8_t room[ZN_CELL_BYTES]; /* for text that is put together */
} zn_cell;

void zn_column_cell(const zn_column *column, const zn_record *r, zn_cell *out);

/* Where in a record the column's value is, or what its value is made of. */
static inline uint32_t zn_column_place(const zn_column *column)
{
    size_t side = column->side == 'c'   ? offsetof(zn_record, client)
                  : column->side == 's' ? offsetof(zn_record, server)
                                        : 0;
    return (uint32_t)(side + column->offset);
}

/* A value of any kind but NONE as Tstat prints it: no blank, no control character, never empty. */
void zn_cell_put(zn_text *out, const zn_cell *value);
/* Appends text of ours that ends with NUL. */
void zn_column_put_word(zn_text *out, const char *word);

#endif
