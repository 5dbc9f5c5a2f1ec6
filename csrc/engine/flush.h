/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a batch: decides the votes, and writes the records of closed flows. */
#ifndef ZN_ENGINE_FLUSH_H
#define ZN_ENGINE_FLUSH_H

#include "engine/engine_state.h"

/* Decides the votes cast so far and writes the records of closed flows until the outputs are full;
 * with `all`, every record. Returns 0, or a negative zn_err. */
int zn_engine_flush_votes(zn_engine *e, bool all, zn_error *err);
/* Flushes as zn_engine_flush does. If no record waits for the program afterwards, ends the minutes
 * before `minute` and emits the packets that are due before now_ns. */
int zn_engine_flush_until(zn_engine *e, int64_t now_ns, int64_t minute, zn_error *err);
/* Emits the packets that are due before now_ns, as zn_rewriter_emit does, and sets e->waiting if it
 * stopped early. Does nothing without packet output. */
void zn_engine_emit(zn_engine *e, int64_t now_ns, bool all);
/* Lets another thread write the records until zn_engine_write_all, in an engine with workers. */
void zn_engine_write_async(zn_engine *e);
/* Waits until all records are written. rc: the caller's result so far. Returns rc, or a negative
 * zn_err if rc was 0 or more and there was no memory for a record. */
int zn_engine_write_all(zn_engine *e, int rc, zn_error *err);

#endif
