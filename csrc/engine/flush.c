/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/flush.h"

#include "engine/decider.h"

int zn_engine_flush_votes(zn_engine *e, bool all, zn_error *err)
{
    int rc = zn_engine_make_pseudonyms(e, err);
    return rc == 0 ? e->decider->decide(e, all, err) : rc;
}

void zn_engine_write_async(zn_engine *e)
{
    if (e->writer == NULL)
        return;
    zn_async_writer_begin(e->writer);
    if (e->rewriter != NULL)
        zn_rewriter_write_async(e->rewriter);
    e->writes_async = true;
}

int zn_engine_write_all(zn_engine *e, int rc, zn_error *err)
{
    int out;
    if (!e->writes_async)
        return rc;
    zn_async_writer_wait(e->writer);
    if (e->rewriter != NULL)
        zn_rewriter_wait(e->rewriter);
    e->writes_async = false;
    out = rc >= 0 ? zn_outputs_check(&e->outputs, err) : 0;
    return out != 0 ? out : rc;
}

void zn_engine_emit(zn_engine *e, int64_t now_ns, bool all)
{
    if (e->rewriter == NULL)
        return;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_WRITE);
    e->waiting |= zn_rewriter_emit(e->rewriter, now_ns, all);
}

/* Ends the minutes before `minute` and emits the packets that are due, if rc is 0 and all records
 * are written. rc: result of the decider. */
static int end_flush(zn_engine *e, int64_t now_ns, int64_t minute, int rc, zn_error *err)
{
    if (rc == 0 && !e->waiting)
        rc = e->decider->end_minutes(e, minute, err);
    if (rc == 0 && !e->waiting)
        zn_engine_emit(e, now_ns, false);
    rc = zn_engine_write_all(e, rc, err);
    return rc != 0 ? rc : e->waiting;
}

int zn_engine_flush_until(zn_engine *e, int64_t now_ns, int64_t minute, zn_error *err)
{
    zn_engine_write_async(e);
    return end_flush(e, now_ns, minute, zn_engine_flush_votes(e, false, err), err);
}

int zn_engine_flush(zn_engine *e, zn_error *err)
{
    int rc;
    zn_engine_write_async(e);
    rc = e->decider->resume(e, err);
    return end_flush(e, e->clock.now_ns, INT64_MIN, rc, err);
}
