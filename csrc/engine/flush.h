/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a batch: decides the votes, and writes the records of closed flows. */
#ifndef ZN_ENGINE_FLUSH_H
#define ZN_ENGINE_FLUSH_H

#include "engine/engine_state.h"

/* Decides the votes cast so far and writes the records of closed flows until the outputs are full;
 * with `all`, every record. Returns 0, or a negative zn_err. */
int zn_engine_flush_votes(zn_engine *e, bool all, zn_error *err);
/* Writes what waited for the end of minutes before `before`, in its order. Returns 0, or a negative
 * zn_err. */
int zn_engine_write_held(zn_engine *e, int64_t before, zn_error *err);
/* zn_engine_flush, and when no record waits for the program any more, zn_engine_write_held, and the
 * packets leave that are due before now_ns. */
int zn_engine_flush_until(zn_engine *e, int64_t now_ns, int64_t minute, zn_error *err);
/* Returns what zn_outputs_full will return when all records are written. */
bool zn_engine_outputs_full(zn_engine *e);
/* Has another thread write the records until zn_engine_write_all, in an engine that has one. */
void zn_engine_write_async(zn_engine *e);
/* Waits until all records are written. `rc` is the caller's result so far. Returns it, or a
 * negative zn_err where it was 0 or more and there was no memory for a record. */
int zn_engine_write_all(zn_engine *e, int rc, zn_error *err);

#endif
