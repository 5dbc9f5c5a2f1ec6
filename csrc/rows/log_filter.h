/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of other tools through the z-table by one handle: bytes of a log in, the anonymized log
 * out. rows/filter.h opens it for `--preset`, and says how the functions behave.
 */
#ifndef ZN_ROWS_LOG_FILTER_H
#define ZN_ROWS_LOG_FILTER_H

#include "rows/log_form.h"

typedef struct zn_log_filter zn_log_filter;

/* Opens a filter. gate: its unit, server_decides and has_evidence come from the preset, but a unit
 * other than ISO wins. Returns 0, or a negative zn_err with *err filled and *out NULL. */
int zn_log_filter_open(zn_log_filter **out, const zn_log_preset *preset,
                       const zn_log_gate_config *gate, bool strict, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_log_filter_close(zn_log_filter *s);

int zn_log_filter_feed(zn_log_filter *s, const uint8_t *bytes, size_t n, zn_error *err);
int zn_log_filter_end(zn_log_filter *s, zn_error *err);
/* No other source follows: writes the end of the log. */
int zn_log_filter_finish(zn_log_filter *s, zn_error *err);
zn_text *zn_log_filter_output(zn_log_filter *s);

/* Results; as the functions of rows/filter.h. */
const zn_row_reader_stats *zn_log_filter_read_stats(const zn_log_filter *s);
uint64_t zn_log_filter_written(const zn_log_filter *s);
/* Returns the number of coarse rows that left before their minute ended. */
uint64_t zn_log_filter_hold_full(const zn_log_filter *s);
const zn_log_gate *zn_log_filter_gate(const zn_log_filter *s);
size_t zn_log_filter_memory(const zn_log_filter *s);

#endif
