/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Engine on network interfaces. */
#ifndef ZN_ENGINE_ENGINE_LIVE_H
#define ZN_ENGINE_ENGINE_LIVE_H

#include "capture/live_group.h"
#include "engine/engine.h"

/*
 * Takes the frames that the interfaces deliver: at least one batch, then more until no frame is
 * there, max_frames are reached or the outputs are full. Waits up to wait_ms for the first frame.
 * Returns the number of frames taken, 0 if no frame came, or a negative zn_err. -ZN_ERR_IO with
 * os_errno EINTR: a signal came, nothing is lost, and the call can be repeated.
 */
int zn_engine_run_live(zn_engine *e, zn_live_group *group, int max_frames, int wait_ms,
                       zn_error *err);

#endif
