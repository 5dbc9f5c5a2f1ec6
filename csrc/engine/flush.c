/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/flush.h"

#include "analyzer/analyzers.h"
#include "analyzer/layer7.h"
#include "flow/flow_table.h"
#include "release/flow_record.h"

#define CLOSED 16 /* flows whose records are made together */

static void write_releases(zn_engine *e)
{
    size_t n;
    const zn_release *releases = zn_gate_releases(&e->gate, &n);
    for (size_t i = 0; i < n; i++)
        zn_outputs_release(&e->outputs, &releases[i]);
}

/* Decides the votes cast so far and writes the names that they released. */
static void decide(zn_engine *e)
{
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_Z);
    zn_gate_decide(&e->gate);
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_WRITE);
    write_releases(e);
}

/* Writes the record of a closed flow, which may be freed then. `server`: what
 * zn_flow_record_prefetch returned. */
static void write_flow(zn_engine *e, uint32_t flow, uint64_t server)
{
    zn_flow *f = zn_flow_entry(e->flows, flow);
    zn_record *record = &e->record;
    zn_analyzers_flow_closed(&e->names, flow, f);
    zn_layer7_closed(&e->names, f);
    if (e->votes.n != 0)
        decide(e);
    zn_gate_flow_closed(&e->gate, f);
    if (e->writes_async)
        record = zn_async_writer_next(e->writer);
    if (zn_flow_record_fill(&e->gate, f, zn_quic_facts_of(&e->names, f), server, record)) {
        if (e->writes_async)
            zn_async_writer_put(e->writer);
        else
            zn_outputs_record(&e->outputs, record);
        e->stats.n[ZN_STAT_RECORDS]++;
        e->stats.n[zn_names_status(&e->names, f)]++;
        e->stats.n[ZN_STAT_RECORDS_MIDSTREAM] += f->midstream;
    } else {
        e->stats.n[ZN_STAT_FLOWS_EXTERNAL]++;
    }
    zn_analyzers_forget(&e->names, f);
    zn_layer7_forget(&e->names, f);
    zn_dn_hunter_forget(&e->dn_hunter, f);
    zn_name_store_forget(&e->name_store, f);
    zn_flow_emitted(e->flows, flow);
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
    if (rc != 0)
        return rc;
    decide(e);
    e->waiting = false;
    while (!e->waiting && (n = take_closed(e, flow, server)) != 0) {
        for (size_t i = 0; i < n; i++)
            write_flow(e, flow[i], server[i]);
        if (e->writes_async)
            zn_async_writer_start(e->writer);
        e->waiting = !all && zn_engine_outputs_full(e);
    }
    return e->writes_async ? 0 : zn_outputs_check(&e->outputs, err);
}

bool zn_engine_outputs_full(zn_engine *e)
{
    return e->writes_async ? zn_async_writer_full(e->writer) : zn_outputs_full(&e->outputs);
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
    e->writes_async = false;
    out = rc >= 0 ? zn_outputs_check(&e->outputs, err) : 0;
    return out != 0 ? out : rc;
}

int zn_engine_flush(zn_engine *e, zn_error *err)
{
    int rc;
    zn_engine_write_async(e);
    rc = zn_engine_write_all(e, zn_engine_flush_votes(e, false, err), err);
    return rc != 0 ? rc : e->waiting;
}
