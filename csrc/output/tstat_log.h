/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tstat's text logs: log_tcp_complete, log_tcp_nocomplete and log_udp_complete, with the columns of
 * release/columns.h. A column that is not measured holds Tstat's text for a missing value.
 */
#ifndef ZN_OUTPUT_TSTAT_LOG_H
#define ZN_OUTPUT_TSTAT_LOG_H

#include "output/column_cell.h"
#include "output/format.h"

typedef enum zn_tstat_log {
    ZN_TSTAT_TCP_COMPLETE,
    ZN_TSTAT_TCP_NOCOMPLETE, /* core columns only */
    ZN_TSTAT_UDP_COMPLETE,
    ZN_TSTAT_LOGS
} zn_tstat_log;

/* The way to print a column's value; most are a number of the record. */
typedef enum zn_tstat_put {
    ZN_TSTAT_PUT_8, /* uint64_t */
    ZN_TSTAT_PUT_4,
    ZN_TSTAT_PUT_2,
    ZN_TSTAT_PUT_1,
    ZN_TSTAT_PUT_MS,   /* int64_t ns as ms */
    ZN_TSTAT_PUT_TIME, /* the same, the time when a flow began or ended */
    ZN_TSTAT_PUT_ZERO,
    ZN_TSTAT_PUT_DURATION,  /* of the record, as ms */
    ZN_TSTAT_PUT_PSEUDONYM, /* zn_disclosure: whether the address is one */
    ZN_TSTAT_PUT_CELL       /* not a plain number: through zn_column_cell */
} zn_tstat_put;

#define ZN_TSTAT_MISSING_MAX 16 /* most bytes of a missing value and its blank */

typedef struct zn_tstat_step {
    zn_tstat_put put;
    uint32_t offset; /* in a zn_record */
    uint32_t run;    /* ZN_TSTAT_PUT_8 and MS: how many follow one another from here on; else 1 */
    const zn_column *column;
    uint8_t missing_bytes;              /* length of `missing`; only of ZN_TSTAT_PUT_CELL */
    char missing[ZN_TSTAT_MISSING_MAX]; /* text of a missing value, and a blank */
} zn_tstat_step;

/* The time that was printed last: coarse ones are the same in line after line. */
typedef struct zn_tstat_time {
    int64_t ns;
    size_t n; /* bytes of text; 0: none was printed yet */
    char text[ZN_FIXED_MAX + 1];
} zn_tstat_time;

/* The columns of each log, for a run's column sets. */
typedef struct zn_tstat {
    unsigned number; /* the header's #NN# */
    size_t columns[ZN_TSTAT_LOGS];
    zn_tstat_step step[ZN_TSTAT_LOGS][ZN_COLUMNS_MAX];
    zn_tstat_time time;
} zn_tstat;

#endif
