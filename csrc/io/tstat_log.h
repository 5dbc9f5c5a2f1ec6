/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tstat's text logs: log_tcp_complete, log_tcp_nocomplete and log_udp_complete, columns and units as
 * Tstat 3.3 writes them, from one table a log. Columns that are not measured hold what Tstat prints
 * for "missing".
 */
#ifndef ZN_IO_TSTAT_LOG_H
#define ZN_IO_TSTAT_LOG_H

#include "base/record.h"
#include "base/text.h"

typedef enum zn_tstat_log {
    ZN_TSTAT_TCP_COMPLETE,
    ZN_TSTAT_TCP_NOCOMPLETE, /* core columns only */
    ZN_TSTAT_UDP_COMPLETE,
    ZN_TSTAT_NONE /* Tstat logs no such flow */
} zn_tstat_log;

/* The log a record belongs to. */
zn_tstat_log zn_tstat_log_of(const zn_record *r);
/* The header line of a log, with or without the LAYER7 columns. */
void zn_tstat_header(zn_text *out, zn_tstat_log log, bool layer7);
/* One line. */
void zn_tstat_line(zn_text *out, zn_tstat_log log, bool layer7, const zn_record *r);

/* For other text forms: columns of the core (and LAYER7) TCP set behind the addresses and ports, as
 * `"name":value` pairs with a comma before each; text values quoted. */
void zn_tstat_json_members(zn_text *out, bool layer7, const zn_record *r);

#endif
