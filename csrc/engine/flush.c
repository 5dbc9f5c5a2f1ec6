/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/flush.h"

#include "analyzer/analyzers.h"
#include "analyzer/layer7.h"
#include "engine/ask.h"
#include "engine/records.h"
#include "flow/flow_table.h"
#include "release/flow_record.h"
#include "rewrite/emit.h"

#define CLOSED 16 /* flows whose records are made together */

/* Decides the votes cast so far and writes the names that they released. */
static int decide(zn_engine *e, zn_error *err)
{
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_Z);
    zn_gate_decide(&e->gate);
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_WRITE);
    return zn_engine_write_releases(e, err);
}

/* Writes the record of a closed flow, which may be freed then. `server`: what
 * zn_flow_record_prefetch returned. */
static int write_flow(zn_engine *e, uint32_t flow, uint64_t server, zn_error *err)
{
    zn_flow *f = zn_flow_entry(e->flows, flow);
    int rc = 0, written;
    zn_analyzers_flow_closed(&e->names, flow, f);
    zn_layer7_closed(&e->names, f);
    if (e->votes.n != 0)
        rc = decide(e, err);
    zn_gate_flow_closed(&e->gate, f);
    written = zn_engine_write_record(e, flow, server, err);
    return rc != 0 ? rc : written;
}

/* Takes closed flows, and fetches the memory that their records are filled from. */
static size_t take_closed(zn_engine *e, uint32_t flow[CLOSED], uint64_t server[CLOSED])
{
    size_t n = 0;
    while (n < CLOSED && (flow[n] = zn_flow_next_closed(e->flows)) != 0)
        n++;
    for (size_t i = 0; i < n; i++)
        server[i] = zn_flow_record_prefetch(&e->gate, zn_flow_entry(e->flows, flow[i]));
    for (size_t i = 0; i < n; i++)
        zn_flow_record_prefetch_name(&e->gate, zn_flow_entry(e->flows, flow[i]));
    return n;
}

int zn_engine_flush_votes(zn_engine *e, bool all, zn_error *err)
{
    uint32_t flow[CLOSED];
    uint64_t server[CLOSED];
    size_t n;
    int rc = zn_engine_make_pseudonyms(e, err);
    if (ZN_UNLIKELY(e->gate.asker != NULL))
        return rc == 0 ? zn_engine_ask(e, all, err) : rc;
    if (rc == 0)
        rc = decide(e, err);
    if (rc != 0)
        return rc;
    e->waiting = false;
    while (rc == 0 && !e->waiting && (n = take_closed(e, flow, server)) != 0) {
        for (size_t i = 0; i < n && rc == 0; i++)
            rc = write_flow(e, flow[i], server[i], err);
        if (e->writes_async)
            zn_async_writer_start(e->writer);
        e->waiting = !all && zn_engine_outputs_full(e);
    }
    return rc != 0 || e->writes_async ? rc : zn_outputs_check(&e->outputs, err);
}

int zn_engine_end_minutes(zn_engine *e, int64_t minute, zn_error *err)
{
    if (e->gate.asker != NULL)
        return zn_engine_ask_minutes(e, minute, err);
    return zn_engine_write_held(e, minute, err);
}

int zn_engine_begin_period(zn_engine *e, int64_t start_ns, zn_error *err)
{
    if (e->gate.asker != NULL)
        return zn_engine_ask_period(e, start_ns, err);
    return zn_engine_mark_period(e, start_ns, err);
}

void zn_engine_write_async(zn_engine *e)
{
    if (e->writer == NULL)
        return;
    zn_async_writer_begin(e->writer);
    e->writes_async = true;
}

int zn_engine_write_all(zn_engine *e, int rc, zn_error *err)
{
    int out;
    if (!e->writes_async)
        return rc;
    zn_async_writer_wait(e->writer);
    zn_frame_builder_wait(&e->frame_builder);
    e->writes_async = false;
    out = rc >= 0 ? zn_outputs_check(&e->outputs, err) : 0;
    return out != 0 ? out : rc;
}

int zn_engine_flush_until(zn_engine *e, int64_t now_ns, int64_t minute, zn_error *err)
{
    int rc;
    zn_engine_write_async(e);
    rc = zn_engine_flush_votes(e, false, err);
    if (rc == 0 && !e->waiting)
        rc = zn_engine_end_minutes(e, minute, err);
    if (rc == 0 && !e->waiting && e->packets_count != 0)
        zn_engine_emit(e, now_ns, false);
    rc = zn_engine_write_all(e, rc, err);
    return rc != 0 ? rc : e->waiting;
}

/* Does what is answered; the votes of a batch that has begun are asked about when it ends. */
static int flush_answered(zn_engine *e, zn_error *err)
{
    int rc;
    zn_engine_write_async(e);
    rc = zn_engine_do_steps(e, err);
    rc = zn_engine_write_all(e, rc, err);
    return rc != 0 ? rc : e->waiting;
}

int zn_engine_give_up(zn_engine *e, bool all, zn_error *err)
{
    zn_engine_stop_waiting(e, all);
    return flush_answered(e, err);
}

int zn_engine_flush(zn_engine *e, zn_error *err)
{
    if (e->gate.asker != NULL)
        return flush_answered(e, err);
    return zn_engine_flush_until(e, e->clock.now_ns, INT64_MIN, err);
}
