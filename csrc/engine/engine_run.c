/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Takes frames from a source into batches. The frames are read when they are needed, or ahead by
 * another thread. */
#include "engine/decider.h"
#include "engine/engine_state.h"
#include "engine/flush.h"
#include "engine/packet_loop.h"
#include "engine/records.h"

#include <errno.h>

/* Returns true if the caller must run before more frames are taken. Outputs stop a call only at the
 * end of a batch, because the output must not depend on the portions in which frames come. */
static bool must_stop(zn_engine *e)
{
    if (e->decider->must_wait(e))
        return true;
    return e->popularity.due || (e->batched == 0 && (e->waiting || zn_engine_outputs_full(e)));
}

/* Reads the next frames of the source into the pending frames. Returns their number. */
static int read_frames(zn_engine *e, zn_source *source, int want, zn_error *err)
{
    int n;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_READ);
    n = zn_source_read(source, e->pending.buffer, want, &e->pending.count, err);
    e->pending.frames = e->pending.buffer;
    e->pending.capture = zn_capture_number(source->capture);
    if (n > 0)
        e->stats.n[ZN_STAT_FRAMES_FILTERED] += (uint64_t)n - e->pending.count;
    return n;
}

/* Returns true if the file has no frames for now. Later frames belong to the same batch. */
static bool is_pause(const zn_source *source, int n, const zn_error *err)
{
    return n < 0 && !zn_capture_may_wait(source->capture) && err != NULL && err->os_errno == EINTR;
}

/* Returns the number of frames taken, or the zn_err for which reading failed. The batch ends with
 * the source, or where a stream has no more for now; not with the call. */
static int run_here(zn_engine *e, zn_source *source, int max_frames, zn_error *err)
{
    int taken = e->pending.interrupted + (int)e->pending.count, n = 1, rc = 0;
    /* a stream has no more frames for now: they are decided before the batch is full */
    bool drained = false;
    e->pending.interrupted = 0;
    while (rc == 0 && !(drained && e->pending.count == 0) &&
           (taken < max_frames || e->pending.count != 0)) {
        int want = max_frames - taken < ZN_ENGINE_BATCH ? max_frames - taken : ZN_ENGINE_BATCH;
        if (e->pending.count == 0) {
            n = read_frames(e, source, want, err);
            if (n <= 0)
                break;
            taken += n;
            drained = n < want && zn_capture_may_wait(source->capture);
        }
        rc = zn_engine_take_pending(e, err);
        if (must_stop(e))
            break;
    }
    if (rc == 0 && is_pause(source, n, err))
        e->pending.interrupted = taken;
    else if (rc == 0 && (n <= 0 || drained))
        rc = zn_engine_end_batch(e, err);
    if (rc != 0)
        return rc;
    return n < 0 ? n : taken;
}

/* Takes the frames of a portion that come before the end of the window or of the batch. */
static int take_portion(zn_engine *e, zn_portion *p, zn_error *err)
{
    size_t at = p->at, n = zn_engine_until_window(e, p->frames + at, p->n - at);
    int rc;
    p->at += n;
    rc = zn_engine_take_frames(e, p->frames, &p->decoded, at, n, err);
    return rc == 0 && e->popularity.due ? zn_engine_flush_batch(e, true, err) : rc;
}

/* Returns the number of frames read, 0 only at the end, or the zn_err of a failed read. */
static int take_portions(zn_engine *e, zn_error *err)
{
    int taken = 0, rc = 0;
    do {
        zn_portion *p;
        zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_READ);
        p = zn_decode_ahead_next(e->decode_ahead);
        if (p == NULL)
            break;
        if (p->read <= 0) {
            int read = p->read;
            if (read < 0 && err != NULL)
                *err = p->err;
            zn_decode_ahead_used(e->decode_ahead);
            rc = zn_engine_end_batch(e, read < 0 ? NULL : err);
            return rc != 0 ? rc : read < 0 ? read : taken;
        }
        if (!p->begun)
            e->stats.n[ZN_STAT_FRAMES_FILTERED] += (uint64_t)p->read - p->n;
        p->begun = true;
        taken += p->read;
        rc = take_portion(e, p, err);
        if (p->at == p->n)
            zn_decode_ahead_used(e->decode_ahead);
    } while (rc == 0 && !must_stop(e));
    return rc != 0 ? rc : taken;
}

static int run_ahead(zn_engine *e, zn_source *source, int max_frames, zn_error *err)
{
    int before = (int)e->pending.count,
        left = before + zn_decode_ahead_left(e->decode_ahead, source);
    int rc = zn_pool_begin(e->pool, err);
    while (rc == 0 && e->pending.count != 0) {
        rc = zn_engine_take_pending(e, err);
        if (rc == 0 && must_stop(e))
            return before;
    }
    if (rc != 0)
        return rc;
    zn_decode_ahead_begin(e->decode_ahead, source, max_frames - left);
    zn_engine_write_async(e);
    rc = take_portions(e, err);
    zn_decode_ahead_stop(e->decode_ahead);
    rc = zn_engine_write_all(e, rc, err);
    return rc < 0 ? rc : rc + before;
}

int zn_engine_run(zn_engine *e, zn_source *source, int max_frames, zn_error *err)
{
    bool decode_ahead = e->decode_ahead != NULL &&
                        (zn_decode_ahead_has(e->decode_ahead, source) ||
                         (max_frames > ZN_ENGINE_BATCH && zn_capture_is_mapped(source->capture)));
    int n, rc;
    /* frames of a capture that may be closed */
    if (e->pending.capture != zn_capture_number(source->capture)) {
        e->pending.count = 0;
        e->pending.interrupted = 0;
    }
    zn_popularity_next(&e->popularity);
    n = decode_ahead ? run_ahead(e, source, max_frames, err) : run_here(e, source, max_frames, err);
    rc = n < 0 ? n : zn_capture_check(source->capture, err);
    return rc != 0 ? rc : n;
}

bool zn_engine_is_over(const zn_engine *e, const zn_source *source)
{
    int left = e->decode_ahead == NULL ? 0 : zn_decode_ahead_left(e->decode_ahead, source);
    return zn_capture_has_ended(source->capture) && left == 0 && e->pending.count == 0 &&
           e->batched == 0;
}
