/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* An engine on network interfaces. */
#ifndef ZN_ENGINE_ENGINE_LIVE_H
#define ZN_ENGINE_ENGINE_LIVE_H

#include "capture/live_group.h"
#include "engine/engine.h"

/*
 * Takes the frames that the interfaces deliver: at least one batch, then more until none is there,
 * max_frames are reached or the outputs are full. Waits up to wait_ms for the first. Returns how
 * many frames it took, 0 when none came, or a negative zn_err. -ZN_ERR_IO with os_errno EINTR: a
 * signal came, nothing is lost, and the call can be made again.
 */
int zn_engine_run_live(zn_engine *e, zn_live_group *group, int max_frames, int wait_ms,
                       zn_error *err);

#endif
