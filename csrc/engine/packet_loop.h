/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Frames through the flows, by batches. */
#ifndef ZN_ENGINE_PACKET_LOOP_H
#define ZN_ENGINE_PACKET_LOOP_H

#include "engine/engine_state.h"

/* Takes n frames. Groups and batches are counted in frames, whatever portions they come in: what is
 * put out does not depend on them. With `d` they were decoded before, and are those from `at` on.
 * 0, or a negative zn_err. */
int zn_engine_take_frames(zn_engine *e, const zn_frame *frames, zn_decoded *d, size_t at, size_t n,
                          zn_error *err);
/* How many of n frames come before the end of a window, and of the batch. */
size_t zn_engine_until_window(zn_engine *e, const zn_frame *frames, size_t n);
/* Takes pending frames, up to the end of the batch or a window; all votes of before are decided
 * then. 0, or a negative zn_err. */
int zn_engine_take_pending(zn_engine *e, zn_error *err);
/* Ends a batch: what its packets left to be done is done. `all`: also records for which the outputs
 * have no room. 0, or a negative zn_err. */
int zn_engine_flush_batch(zn_engine *e, bool all, zn_error *err);
/* Decides and writes what frames of a batch that is not full have left. 0, or a negative zn_err. */
int zn_engine_end_batch(zn_engine *e, zn_error *err);

#endif
