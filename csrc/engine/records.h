/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Writes records and observations into the outputs, at once or when their minute is over. */
#ifndef ZN_ENGINE_RECORDS_H
#define ZN_ENGINE_RECORDS_H

#include "engine/engine_state.h"

/* Writes the observations that the gate released last. Returns 0, or a negative zn_err. */
int zn_engine_write_releases(zn_engine *e, zn_error *err);
/* Writes the record of a closed flow, whose votes are decided. The flow may be freed. server:
 * result of zn_flow_record_prefetch, or 0. Returns 0, or a negative zn_err. */
int zn_engine_write_record(zn_engine *e, uint32_t flow, uint64_t server, zn_error *err);
/* Writes the queues of minutes before `before`, in their order. Returns 0, or a negative zn_err. */
int zn_engine_write_held(zn_engine *e, int64_t before, zn_error *err);
/* Begins a period of the outputs. All records so far belong to the previous period. Returns 0, or a
 * negative zn_err. */
int zn_engine_mark_period(zn_engine *e, int64_t start_ns, zn_error *err);
/* Returns the result that zn_outputs_full will have when all records are written. */
bool zn_engine_outputs_full(zn_engine *e);

#endif
