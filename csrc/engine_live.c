/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_live.h"

int zn_engine_run_live(zn_engine *e, zn_live_group *group, int max_frames, int wait_ms,
                       zn_error *err)
{
    int taken = 0;
    while (taken < max_frames) {
        const zn_frame *frames;
        int n = zn_live_group_next(group, &frames, taken == 0 ? wait_ms : 0, err);
        int rc;
        if (n <= 0)
            return n < 0 && taken == 0 ? n : taken;
        rc = zn_engine_feed(e, frames, (size_t)n, err);
        if (rc != 0)
            return rc;
        taken += n;
        if (zn_engine_waiting(e) || zn_outputs_full(zn_engine_outputs(e)))
            break;
    }
    return taken;
}
