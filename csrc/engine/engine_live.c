/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_live.h"

#include "engine/flush.h"
#include "engine/packet_loop.h"
#include "engine/records.h"

int zn_engine_run_live(zn_engine *e, zn_live_group *group, int max_frames, int wait_ms,
                       zn_error *err)
{
    int taken = 0, before, n = 1, rc = 0;
    if (e->pending.capture != 0) /* frames of a capture that may be closed */
        e->pending.count = 0;
    e->pending.capture = 0;
    before = (int)e->pending.count;
    if (e->pool != NULL)
        rc = zn_pool_begin(e->pool, err);
    zn_popularity_next(&e->popularity);
    zn_live_group_share(group, e->pool);
    e->decoder.live = true;
    zn_engine_write_async(e);
    while (rc == 0 && (taken < max_frames || e->pending.count != 0)) {
        if (e->pending.count == 0) {
            n = zn_live_group_next(group, &e->pending.frames, taken == 0 ? wait_ms : 0, err);
            if (n <= 0)
                break;
            e->pending.count = (size_t)n;
            taken += n;
        }
        rc = zn_engine_take_pending(e, err);
        if (e->popularity.due || e->waiting || zn_engine_outputs_full(e))
            break;
    }
    if (rc == 0)
        rc = zn_engine_end_batch(e, err);
    rc = zn_engine_write_all(e, rc, err);
    zn_live_group_share(group, NULL);
    e->decoder.live = false;
    e->stats.n[ZN_STAT_FRAMES_MERGED] += zn_live_group_take_merged(group);
    if (rc != 0)
        return rc;
    taken += before;
    return n < 0 && taken == 0 ? n : taken;
}
