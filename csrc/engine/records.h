/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Writes records and observations into the outputs, at once or when their minute is over. */
#ifndef ZN_ENGINE_RECORDS_H
#define ZN_ENGINE_RECORDS_H

#include "engine/engine_state.h"

/* Writes the observations that the gate released last. Returns 0, or a negative zn_err. */
int zn_engine_write_releases(zn_engine *e, zn_error *err);
/* Writes the record of a closed flow, whose votes are decided and which may be freed then.
 * `server`: what zn_flow_record_prefetch returned, or 0. Returns 0, or a negative zn_err. */
int zn_engine_write_record(zn_engine *e, uint32_t flow, uint64_t server, zn_error *err);
/* Writes what waited for the end of minutes before `before`, in its order. Returns 0, or a negative
 * zn_err. */
int zn_engine_write_held(zn_engine *e, int64_t before, zn_error *err);
/* Begins a period of the outputs: all records so far belong to the one before. Returns 0, or a
 * negative zn_err. */
int zn_engine_mark_period(zn_engine *e, int64_t start_ns, zn_error *err);
/* Returns what zn_outputs_full will return when all records are written. */
bool zn_engine_outputs_full(zn_engine *e);

#endif
