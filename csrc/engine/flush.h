/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What comes behind a batch: votes are decided, and the records of closed flows written. */
#ifndef ZN_ENGINE_FLUSH_H
#define ZN_ENGINE_FLUSH_H

#include "engine/engine_state.h"

/* Decides the votes cast so far and writes what may be written; `all`: also records for which the
 * outputs have no room. 0, or a negative zn_err. */
int zn_engine_flush_votes(zn_engine *e, bool all, zn_error *err);
/* What zn_outputs_full says once all records are written. */
bool zn_engine_outputs_full(zn_engine *e);
/* From now on, and until zn_engine_write_all, records are written by others, where there are
 * any. */
void zn_engine_write_async(zn_engine *e);
/* All records are written when this returns. `rc` is how it went so far: 0 or more becomes a
 * negative zn_err where memory for them was out. */
int zn_engine_write_all(zn_engine *e, int rc, zn_error *err);

#endif
