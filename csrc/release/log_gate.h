/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate of the rows of other tools' logs. It alone decides what is written of a row, by the rules
 * for the record of a flow:
 *
 *   names        released if z users share them. A row whose every name is released is exact.
 *   server       votes in a namespace of its own. An internal address, or the address of a client,
 *                is replaced by a pseudonym and never votes.
 *   client       a pseudonym of the address (crypto/addr_pseudonym.h), port 0.
 *   user agent,  vote in namespaces of their own
 *   certificate
 *   all else     by its role (release/log_row.h)
 *
 * A row without a released name is suppressed. It leaves only with keep_suppressed, as a coarse
 * row: no client, server and details, the time down to the minute, counts up to a power of 4.
 *
 * A row votes only if the log shows that the server answered (the roles of evidence), and if its
 * user is the client: the user is the internal end, or the client if no end is internal.
 */
#ifndef ZN_RELEASE_LOG_GATE_H
#define ZN_RELEASE_LOG_GATE_H

#include "release/log_row.h"
#include "util/timestamp.h"
#include "zanon/zanon.h"
#include "zanon/ztable.h"

typedef struct zn_log_gate zn_log_gate;

typedef struct zn_log_gate_config {
    uint32_t z;
    int64_t window_ns, rotate_ns;
    const char *key_file; /* NULL: a random key that lives in memory only */
    uint32_t max_tuples, max_attributes;
    bool with_user;       /* pseudonyms are made */
    bool keep_suppressed; /* suppressed rows leave as coarse rows */
    bool established;     /* votes need evidence */
    bool server_decides;  /* the log has no names: the server's address is the attribute */
    bool has_evidence;    /* a column of the log can show evidence */
    zn_time_unit unit;    /* of times that are plain numbers */
    const zn_span *never; /* suffixes of names that are never released */
    size_t never_count;
    const zn_net *internal; /* copied; NULL: the private networks */
    size_t internal_count;
    uint8_t user_v4_bits, user_v6_bits; /* of the prefix that is one user */
} zn_log_gate_config;

/* Reasons why a row is suppressed: X(NAME, "text"). The first reasons equal zn_decision. */
#define ZN_LOG_REASONS(X)                                                                          \
    X(RELEASED, "released")                                                                        \
    X(BELOW_Z, "exposed by fewer than z users")                                                    \
    X(TOO_LATE, "older than the window")                                                           \
    X(LATE_DEEP, "too far out of order")                                                           \
    X(NO_ROOM, "the table was full")                                                               \
    X(NO_ATTRIBUTE, "no name in the row")                                                          \
    X(UNCONFIRMED, "no sign that the server answered")                                             \
    X(INVALID, "not a hostname")                                                                   \
    X(HOME, "an address or a home, as a name")                                                     \
    X(NEVER, "below a suffix of --never")                                                          \
    X(NOT_LISTED, "below no suffix of --only")                                                     \
    X(SKIPPED, "below a suffix of --skip, or in its category")                                     \
    X(OUTSIDE, "the client is not a user of the internal networks")

typedef enum zn_log_reason {
#define ZN_LOG_REASON_ENUM(name, text) ZN_LOG_##name,
    ZN_LOG_REASONS(ZN_LOG_REASON_ENUM)
#undef ZN_LOG_REASON_ENUM
        ZN_LOG_REASON_COUNT
} zn_log_reason;

typedef struct zn_log_gate_stats {
    uint64_t rows[ZN_LOG_REASON_COUNT]; /* by reason */
} zn_log_gate_stats;

/* A row as it may be written. Only the gate fills one. */
typedef struct zn_gated_log {
    const zn_log_cell *cells;
    size_t count;
    int64_t minute; /* of the row's time, since the Unix epoch */
    bool coarse;    /* the row's place among other rows must not show when it was written */
} zn_gated_log;

/* Returns 0, or a negative zn_err with *err filled and *out NULL. */
int zn_log_gate_open(zn_log_gate **out, const zn_log_gate_config *config, zn_error *err);
/* Wipes and frees a gate; NULL is fine. */
void zn_log_gate_close(zn_log_gate *g);

/* Takes a row into the batch, and sets *t_ns to its time. The row's cells stay valid until the
 * batch is decided. Returns ZN_FAULT_GOOD, or the fault of a row that cannot be read; it is not
 * taken. */
zn_row_fault zn_log_gate_take(zn_log_gate *g, const zn_log_row *row, int64_t *t_ns);
/* Returns true if the batch has no space for another row. */
bool zn_log_gate_is_full(const zn_log_gate *g);
/* Decides the batch. zn_log_gate_decided then returns the rows that may be written, in their order.
 * Returns 0, or a negative zn_err with *err filled and no row to write. */
int zn_log_gate_decide(zn_log_gate *g, zn_error *err);
/* Returns the rows that may be written, and sets *count. They are valid until the next row is
 * taken. */
const zn_gated_log *zn_log_gate_decided(const zn_log_gate *g, size_t *count);

zn_log_gate_stats zn_log_gate_get_stats(const zn_log_gate *g);
/* The z-table's counts, with observations and decisions counted by rows. */
zn_ztable_stats zn_log_gate_table_stats(const zn_log_gate *g);
/* Bytes of memory in use. */
size_t zn_log_gate_memory(const zn_log_gate *g);

/* A reason's name, as in "ZN_LOG_name", and its text, for 0 <= reason < ZN_LOG_REASON_COUNT. */
const char *zn_log_reason_name(zn_log_reason reason);
const char *zn_log_reason_text(zn_log_reason reason);

#endif
