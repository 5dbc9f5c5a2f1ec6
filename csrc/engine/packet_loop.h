/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Takes frames through the flows, in batches. */
#ifndef ZN_ENGINE_PACKET_LOOP_H
#define ZN_ENGINE_PACKET_LOOP_H

#include "engine/engine_state.h"

/* Takes n frames. Groups and batches count frames, so the output does not depend on the portions in
 * which frames come. With `d` the frames were decoded ahead and are those of *d from `at` on;
 * without, they are frames[at .. ]. Returns 0, or a negative zn_err. */
int zn_engine_take_frames(zn_engine *e, const zn_frame *frames, zn_decoded *d, size_t at, size_t n,
                          zn_error *err);
/* Returns how many of n frames come before the end of the window and of the batch. */
size_t zn_engine_until_window(zn_engine *e, const zn_frame *frames, size_t n);
/* Takes pending frames up to the end of the batch or of the window; before the latter all votes are
 * decided. Returns 0, or a negative zn_err. */
int zn_engine_take_pending(zn_engine *e, zn_error *err);
/* Ends a batch: decides its votes and writes records until the outputs are full; with `all`, every
 * record. Returns 0, or a negative zn_err. */
int zn_engine_flush_batch(zn_engine *e, bool all, zn_error *err);
/* Ends a batch that is not full, if one has begun. Returns 0, or a negative zn_err. */
int zn_engine_end_batch(zn_engine *e, zn_error *err);

#endif
