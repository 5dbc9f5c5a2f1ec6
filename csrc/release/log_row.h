/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the logs of other tools, such as Zeek's: values with roles. Spans borrow the bytes from
 * which a row was read.
 */
#ifndef ZN_RELEASE_LOG_ROW_H
#define ZN_RELEASE_LOG_ROW_H

#include "release/row.h"

/*
 * Role of a value: X(NAME, "name", "disclosure"). The role decides what may be written of the value
 * if the row's names are released, and if they are not. A value without a role is never written.
 */
#define ZN_LOG_ROLES(X)                                                                            \
    X(CORRELATE, "correlate", "never written")                                                     \
    X(ALWAYS, "always", "written in every row")                                                    \
    X(DETAIL, "detail", "written with a released name only")                                       \
    X(TIME, "time", "written; without a released name down to the minute")                         \
    X(COUNT, "count", "written; without a released name up to a power of 4")                       \
    X(CLIENT, "client", "a pseudonym with a released name only")                                   \
    X(CLIENT_PORT, "client port", "0")                                                             \
    X(SERVER, "server", "written if z users share it, with a released name only")                  \
    X(SERVER_PORT, "server port", "written; without a released name 0 unless 53, 80, 443 or 853")  \
    X(NAME, "name", "written if z users share it")                                                 \
    X(DNS_NAME, "name of DNS", "written if z users share it in questions of DNS")                  \
    X(AGENT, "user agent", "written if z users share it, with a released name only")               \
    X(CERTIFICATE, "certificate", "written if z users share it, with a released name only")        \
    X(EVENT, "kind of event", "written in every row")                                              \
    X(ANSWERED, "evidence: any value", "written with a released name only")                        \
    X(ESTABLISHED, "evidence: true", "written with a released name only")                          \
    X(STATE, "evidence: a state with packets of both sides", "written with a released name only")  \
    X(HANDSHAKE, "evidence: handshake packets of both sides", "written with a released name only") \
    X(VERSION, "evidence: a version that the server chose", "written with a released name only")   \
    X(ANSWERS, "evidence: not 0", "as a count")                                                    \
    X(CLIENT_CODED, "flag of a client's pseudonym", "1 with a pseudonym, else 0")                  \
    X(SERVER_CODED, "flag of a server's pseudonym", "1 with a pseudonym, else 0")

typedef enum zn_log_role {
#define ZN_LOG_ROLE_ENUM(name, text, disclosure) ZN_LOG_##name,
    ZN_LOG_ROLES(ZN_LOG_ROLE_ENUM)
#undef ZN_LOG_ROLE_ENUM
        ZN_LOG_ROLE_COUNT
} zn_log_role;

typedef enum zn_log_cell_kind {
    ZN_LOG_CELL_NONE,  /* no value */
    ZN_LOG_CELL_EMPTY, /* Zeek's mark of an empty set or text */
    ZN_LOG_CELL_TEXT,
    ZN_LOG_CELL_JSON, /* a JSON number or literal */
    ZN_LOG_CELL_OPEN, /* the beginning of a JSON object or array */
    ZN_LOG_CELL_CLOSE /* its end */
} zn_log_cell_kind;

/* A value of a row. */
typedef struct zn_log_cell {
    zn_span name; /* of a JSON member, with its quotes; empty in arrays and in columns */
    zn_span text; /* as it is written in the log; of JSON texts what is between the quotes */
    uint8_t role; /* zn_log_role */
    uint8_t kind; /* zn_log_cell_kind; NONE after the gate if the value must not be written */
    bool number;  /* the column holds a number */
} zn_log_cell;

typedef struct zn_log_row {
    zn_log_cell *cells;
    size_t count;
} zn_log_row;

#define ZN_LOG_CELLS_MAX 1024 /* of a row */

#endif
