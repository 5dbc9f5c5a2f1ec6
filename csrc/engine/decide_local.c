/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/analyzers.h"
#include "analyzer/layer7.h"
#include "engine/decider.h"
#include "engine/engine_state.h"
#include "engine/records.h"
#include "flow/flow_table.h"
#include "release/flow_record.h"
#include "release/gate_local.h"

#define CLOSED 16 /* flows whose records are made together */

/* Decides the votes cast so far and writes the names that they released. */
static int decide_votes(zn_engine *e, zn_error *err)
{
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_Z);
    zn_gate_decide(&e->gate);
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_WRITE);
    return zn_engine_write_releases(e, err);
}

/* Writes the record of a closed flow, which may be freed then. server: result of
 * zn_flow_record_prefetch. */
static int write_flow(zn_engine *e, uint32_t flow, uint64_t server, zn_error *err)
{
    zn_flow *f = zn_flow_entry(e->flows, flow);
    int rc = 0, written;
    zn_analyzers_flow_closed(&e->names, flow, f);
    zn_layer7_closed(&e->names, f);
    if (e->votes.n != 0)
        rc = decide_votes(e, err);
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

static int decide(zn_engine *e, bool all, zn_error *err)
{
    uint32_t flow[CLOSED];
    uint64_t server[CLOSED];
    size_t n;
    int rc = decide_votes(e, err);
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

static int resume(zn_engine *e, zn_error *err)
{
    int rc = zn_engine_make_pseudonyms(e, err);
    return rc == 0 ? decide(e, false, err) : rc;
}

static void ignore_jump(zn_engine *e, int64_t from_ns, int64_t to_ns)
{
    (void)e;
    (void)from_ns;
    (void)to_ns;
}

static void ignore_pause(zn_engine *e, int64_t now_ns)
{
    (void)e;
    (void)now_ns;
}

/* Has nothing to finish, because no decision waits. */
static int set_back(zn_engine *e, int64_t t_ns, zn_error *err)
{
    (void)e;
    (void)t_ns;
    (void)err;
    return 0;
}

static int do_nothing(zn_engine *e, zn_error *err)
{
    (void)e;
    (void)err;
    return 0;
}

static bool must_wait(const zn_engine *e)
{
    (void)e;
    return false;
}

static int end(zn_engine *e, int rc, zn_error *err)
{
    (void)e;
    (void)err;
    return rc;
}

const zn_decider zn_decide_local = {
    .decide = decide,
    .resume = resume,
    .end_minutes = zn_engine_write_held,
    .begin_period = zn_engine_mark_period,
    .time_jumped = ignore_jump,
    .time_passed = ignore_pause,
    .set_back = set_back,
    .restart = do_nothing,
    .make_space = do_nothing,
    .must_wait = must_wait,
    .end = end,
};
