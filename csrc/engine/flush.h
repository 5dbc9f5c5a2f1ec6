/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a batch: decides the votes, and writes the records of closed flows. */
#ifndef ZN_ENGINE_FLUSH_H
#define ZN_ENGINE_FLUSH_H

#include "engine/engine_state.h"

/* Decides the votes cast so far and writes the records of closed flows until the outputs are full;
 * with `all`, every record. Returns 0, or a negative zn_err. */
int zn_engine_flush_votes(zn_engine *e, bool all, zn_error *err);
/* Write what waited for the end of minutes before `minute`, and begin a period of the outputs; when
 * all before is written, all closed flows being looked at. Return 0, or a negative zn_err. */
int zn_engine_end_minutes(zn_engine *e, int64_t minute, zn_error *err);
int zn_engine_begin_period(zn_engine *e, int64_t start_ns, zn_error *err);
/* zn_engine_flush, and when no record waits for the program any more, zn_engine_end_minutes, and
 * the packets leave that are due before now_ns. */
int zn_engine_flush_until(zn_engine *e, int64_t now_ns, int64_t minute, zn_error *err);
/* Has another thread write the records until zn_engine_write_all, in an engine that has one. */
void zn_engine_write_async(zn_engine *e);
/* Waits until all records are written. `rc` is the caller's result so far. Returns it, or a
 * negative zn_err where it was 0 or more and there was no memory for a record. */
int zn_engine_write_all(zn_engine *e, int rc, zn_error *err);

#endif
