/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/records.h"

#include "analyzer/analyzers.h"
#include "analyzer/forget_flow.h"
#include "analyzer/unread.h"
#include "flow/flow_table.h"
#include "release/disclosure.h"
#include "release/flow_record.h"
#include "release/record_copy.h"

static int no_memory(zn_error *err)
{
    return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for what waits for the end of its minute");
}

/* Returns the memory of the next record, to fill and to put. */
static zn_record *next_record(zn_engine *e)
{
    return e->writes_async ? zn_async_writer_next(e->writer) : &e->record;
}

static void put_record(zn_engine *e, const zn_record *record)
{
    if (e->writes_async)
        zn_async_writer_put(e->writer);
    else
        zn_outputs_record(&e->outputs, record);
}

/* Writes the queued records of minutes before `before`. early: true if these minutes have not
 * ended. */
static int write_held_records(zn_engine *e, int64_t before, bool early, zn_error *err)
{
    zn_minute_queue *queue = &e->queues.records;
    int64_t n = zn_minute_queue_leave(queue, before);
    if (n < 0)
        return no_memory(err);
    for (int64_t i = 0; i < n; i++) {
        zn_record *record = next_record(e);
        zn_record_unpack(zn_minute_queue_leaving(queue, i), record);
        if (early)
            zn_record_hide_client(record);
        put_record(e, record);
    }
    if (n != 0)
        zn_minute_queue_left(queue, before);
    if (early)
        e->stats.n[ZN_STAT_HOLD_FULL] += (uint64_t)n;
    e->stats.n[ZN_STAT_RECORDS_HELD] = queue->n;
    return 0;
}

static int write_held_releases(zn_engine *e, int64_t before, bool early, zn_error *err)
{
    zn_minute_queue *queue = &e->queues.releases;
    int64_t n = zn_minute_queue_leave(queue, before);
    if (n < 0)
        return no_memory(err);
    for (int64_t i = 0; i < n; i++) {
        zn_release release;
        zn_release_unpack(zn_minute_queue_leaving(queue, i), &release);
        if (early)
            zn_release_hide_client(&release);
        zn_outputs_release(&e->outputs, &release);
    }
    if (n != 0)
        zn_minute_queue_left(queue, before);
    if (early)
        e->stats.n[ZN_STAT_HOLD_FULL] += (uint64_t)n;
    e->stats.n[ZN_STAT_OBSERVATIONS_HELD] = queue->n;
    return 0;
}

int zn_engine_write_held(zn_engine *e, int64_t before, zn_error *err)
{
    int rc = write_held_records(e, before, false, err);
    if (e->writes_async)
        zn_async_writer_start(e->writer);
    return rc == 0 ? write_held_releases(e, before, false, err) : rc;
}

static int hold_record(zn_engine *e, const zn_flow *f, const zn_record *record, zn_error *err)
{
    zn_minute_queue *queue = &e->queues.records;
    int64_t minute = f->closed_ns / ZN_MINUTE_NS;
    uint64_t rank;
    uint8_t *to;
    int rc = zn_engine_rank(e, minute, f, f->first_ns, &rank, err);
    if (rc != 0)
        return rc;
    to = zn_minute_queue_reserve(queue, ZN_RECORD_PACKED_MAX);
    if (to == NULL)
        return no_memory(err);
    zn_minute_queue_add(queue, minute, rank, zn_record_pack(record, to));
    e->stats.n[ZN_STAT_RECORDS_HELD] = queue->n;
    return 0;
}

static int hold_release(zn_engine *e, const zn_release *release, zn_release_origin origin,
                        zn_error *err)
{
    zn_minute_queue *queue = &e->queues.releases;
    int64_t minute = origin.t_ns / ZN_MINUTE_NS;
    uint64_t rank;
    uint8_t *to;
    int rc = zn_minute_queue_is_full(queue) ? write_held_releases(e, INT64_MAX, true, err) : 0;
    if (rc == 0)
        rc = zn_engine_rank(e, minute, zn_flow_entry(e->flows, origin.flow), origin.t_ns, &rank,
                            err);
    if (rc != 0)
        return rc;
    to = zn_minute_queue_reserve(queue, ZN_RECORD_PACKED_MAX);
    if (to == NULL)
        return no_memory(err);
    zn_minute_queue_add(queue, minute, rank, zn_release_pack(release, to));
    e->stats.n[ZN_STAT_OBSERVATIONS_HELD] = queue->n;
    return 0;
}

int zn_engine_write_releases(zn_engine *e, zn_error *err)
{
    size_t n;
    const zn_release *releases = zn_gate_releases(&e->gate, &n);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (e->queues.order == ZN_ORDER_MINUTE_ALL)
            rc = hold_release(e, &releases[i], zn_gate_release_origin(&e->gate, i), err);
        else
            zn_outputs_release(&e->outputs, &releases[i]);
    return rc;
}

static bool waits(const zn_engine *e, const zn_record *record)
{
    return e->queues.order == ZN_ORDER_MINUTE_ALL ||
           (e->queues.order == ZN_ORDER_MINUTE && record->coarse);
}

/* Fills the record of a flow that has a user, and writes or queues it. */
static int make_record(zn_engine *e, uint32_t flow, uint64_t server, zn_error *err)
{
    const zn_flow *f = zn_flow_entry(e->flows, flow);
    uint32_t attributes = zn_attributes_first(&e->names, flow);
    zn_record *record;
    int rc = 0;
    if (zn_minute_queue_is_full(&e->queues.records))
        rc = write_held_records(e, INT64_MAX, true, err);
    if (rc != 0)
        return rc;
    record = next_record(e);
    zn_flow_record_fill(&e->gate, f, zn_quic_facts_of(&e->names, f), server, attributes, record);
    if (waits(e, record))
        return hold_record(e, f, record, err);
    put_record(e, record);
    return 0;
}

int zn_engine_write_record(zn_engine *e, uint32_t flow, uint64_t server, zn_error *err)
{
    zn_flow *f = zn_flow_entry(e->flows, flow);
    int rc = 0;
    if (zn_flow_has_user(f)) {
        if (zn_outputs_of_flow(&e->outputs, (uint8_t)f->tuple.proto, f->midstream) != 0)
            rc = make_record(e, flow, server, err);
        e->stats.n[ZN_STAT_RECORDS]++;
        e->stats.n[zn_names_status(&e->names, f)]++;
        e->stats.n[ZN_STAT_SUPPRESSED_UNREAD] += zn_unread(f);
        e->stats.n[ZN_STAT_RECORDS_MIDSTREAM] += f->midstream;
    } else {
        e->stats.n[ZN_STAT_FLOWS_EXTERNAL]++;
    }
    if (e->rewriter != NULL && zn_rewriter_flow_closed(e->rewriter, flow))
        return rc;
    zn_forget_flow(&e->names, &e->dn_hunter, flow);
    return rc;
}

bool zn_engine_outputs_full(zn_engine *e)
{
    if (e->rewriter != NULL && zn_rewriter_is_full(e->rewriter))
        return true;
    return e->writes_async ? zn_async_writer_full(e->writer) : zn_outputs_full(&e->outputs);
}

int zn_engine_mark_period(zn_engine *e, int64_t start_ns, zn_error *err)
{
    if (e->writes_async)
        zn_async_writer_wait(e->writer);
    return zn_outputs_mark(&e->outputs, start_ns, err);
}
