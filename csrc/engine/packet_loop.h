/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Takes frames through the flows, in batches. */
#ifndef ZN_ENGINE_PACKET_LOOP_H
#define ZN_ENGINE_PACKET_LOOP_H

#include "engine/engine_state.h"

/* Takes the n frames frames[at .. at + n - 1]. d: the frames decoded ahead, or NULL. Groups and
 * batches count frames, so the output does not depend on the portions in which frames come. Returns
 * 0, or a negative zn_err. */
int zn_engine_take_frames(zn_engine *e, const zn_frame *frames, zn_decoded *d, size_t at, size_t n,
                          zn_error *err);
/* Returns the number of frames, of n, before the end of the window and of the batch. */
size_t zn_engine_until_window(zn_engine *e, const zn_frame *frames, size_t n);
/* Takes pending frames up to the end of the batch or of the window. All votes are decided before a
 * window ends. Returns 0, or a negative zn_err. */
int zn_engine_take_pending(zn_engine *e, zn_error *err);
/* Ends a batch: decides its votes and writes records until the outputs are full, or all records
 * with `all`. Returns 0, or a negative zn_err. */
int zn_engine_flush_batch(zn_engine *e, bool all, zn_error *err);
/* Ends a batch that is not full, if one has begun. Returns 0, or a negative zn_err. */
int zn_engine_end_batch(zn_engine *e, zn_error *err);

#endif
