/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tstat's text logs: log_tcp_complete, log_tcp_nocomplete and log_udp_complete, with the columns of
 * io/columns.h. What is not measured holds what Tstat prints for "missing".
 */
#ifndef ZN_IO_TSTAT_LOG_H
#define ZN_IO_TSTAT_LOG_H

#include "io/columns.h"

typedef enum zn_tstat_log {
    ZN_TSTAT_TCP_COMPLETE,
    ZN_TSTAT_TCP_NOCOMPLETE, /* core columns only */
    ZN_TSTAT_UDP_COMPLETE,
    ZN_TSTAT_NONE /* Tstat logs no such flow */
} zn_tstat_log;

/* The columns of each log, for a run's column sets. */
typedef struct zn_tstat {
    unsigned number; /* the header's #NN# */
    zn_log_columns columns[ZN_TSTAT_NONE];
} zn_tstat;

void zn_tstat_init(zn_tstat *t, unsigned sets);
/* The log a record belongs to. */
zn_tstat_log zn_tstat_log_of(const zn_record *r);
/* The header line of a log. */
void zn_tstat_header(zn_text *out, const zn_tstat *t, zn_tstat_log log);
/* One line. */
void zn_tstat_line(zn_text *out, const zn_tstat *t, zn_tstat_log log, const zn_record *r);

#endif
