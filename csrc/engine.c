/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch of frames goes through in groups of GROUP, each in three passes, so that the memory reads
 * of different packets overlap: decode and prefetch the flow's bucket; prefetch the flow; update
 * it and look for names. After the batch the votes are decided and closed flows written.
 */
#include "engine.h"

#include "anon/names.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/stage.h"
#include "crypto/keys.h"
#include "intake.h"
#include "io/json_log.h"
#include "io/tstat_log.h"

#define GROUP ZN_INTAKE_GROUP
#define BATCH 1024
#define GROUP_VOTES                                                                                \
    (GROUP * (ZN_NAMES_PER_FLOW + 3))   /* most that the packets of a group can cast */
#define BATCH_VOTES (4 * BATCH)         /* more than real traffic casts */
#define MAX_CLIENTS (UINT32_C(1) << 20) /* client addresses an epoch */

_Static_assert(BATCH_VOTES > GROUP_VOTES, "a group's votes always find room");

struct zn_engine {
    zn_stats stats;
    zn_policy policy;
    zn_net *internal;
    zn_clock clock;
    zn_keys *keys;
    zn_flow_table *flows;
    zn_name_book book;
    zn_gate gate;
    zn_names names;
    zn_text output[ZN_OUTPUT_COUNT];
    uint32_t outputs;
    bool layer7;
    zn_stage_mark stage;
    zn_intake intake;
    zn_frame frames[BATCH];
};

static int copy_config(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_policy *p = &e->policy;
    p->z = config->z;
    p->window_ns = config->window_ns;
    p->rotate_ns = config->rotate_ns;
    p->established = config->established;
    p->dns_votes = config->dns_votes;
    p->exact = config->exact;
    p->keep_client_port = config->keep_client_port;
    p->user_v4_bits = config->user_v4_bits;
    p->user_v6_bits = config->user_v6_bits;
    p->internal = zn_policy_private_nets(&p->internal_count);
    if (config->internal != NULL) {
        size_t bytes = (config->internal_count + 1) * sizeof(zn_net);
        e->internal = zn_heap_alloc(bytes);
        if (e->internal == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the internal networks");
        memcpy(e->internal, config->internal, config->internal_count * sizeof(zn_net));
        p->internal_given = true;
        p->internal = e->internal;
        p->internal_count = config->internal_count;
    }
    e->outputs = config->outputs;
    e->layer7 = config->layer7;
    return 0;
}

static int init_never(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    int rc;
    if (config->never_count == 0)
        return 0;
    rc = zn_never_list_init(&e->policy.never, (uint32_t)config->never_count, err);
    for (size_t i = 0; i < config->never_count && rc == 0; i++)
        zn_never_list_add(&e->policy.never, config->never[i]);
    return rc;
}

static int init_anon(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_gate_limits limits = {config->max_tuples, config->max_attributes, MAX_CLIENTS, BATCH_VOTES};
    int rc = zn_book_init(&e->book, config->max_flows, err);
    e->gate.policy = e->names.policy = &e->policy;
    e->gate.stats = e->names.stats = &e->stats;
    e->gate.book = e->names.book = &e->book;
    e->intake.flows = e->flows;
    e->gate.flows = e->flows;
    e->names.gate = &e->gate;
    if (rc == 0)
        rc = zn_gate_init(&e->gate, &limits, err);
    if (rc == 0)
        rc = zn_names_init(&e->names, config->max_flows, err);
    return rc;
}

static void write_headers(zn_engine *e)
{
    for (int log = ZN_TSTAT_TCP_COMPLETE; log <= ZN_TSTAT_UDP_COMPLETE; log++)
        if ((e->outputs & 1u << log) != 0)
            zn_tstat_header(&e->output[log], (zn_tstat_log)log, e->layer7);
}

_Static_assert((int)ZN_TSTAT_TCP_COMPLETE == (int)ZN_OUTPUT_TCP_COMPLETE &&
                   (int)ZN_TSTAT_TCP_NOCOMPLETE == (int)ZN_OUTPUT_TCP_NOCOMPLETE &&
                   (int)ZN_TSTAT_UDP_COMPLETE == (int)ZN_OUTPUT_UDP_COMPLETE,
               "a log's number is its output's");

int zn_engine_open(zn_engine **out, const zn_engine_config *config, zn_error *err)
{
    zn_engine *e = zn_block_alloc(sizeof *e);
    int rc;
    *out = NULL;
    if (e == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for an engine");
    e->intake.stats = &e->stats;
    zn_clock_init(&e->clock, config->window_ns, 0, ZN_CLOCK_REBASE_AFTER);
    rc = copy_config(e, config, err);
    if (rc == 0)
        rc = init_never(e, config, err);
    if (rc == 0)
        rc = zn_intake_init(&e->intake, err);
    if (rc == 0)
        rc = zn_keys_open(&e->keys, config->rotate_ns, config->key_file, err);
    if (rc == 0)
        rc = zn_flow_table_open(&e->flows, config->max_flows, &e->stats, err);
    if (rc == 0)
        rc = init_anon(e, config, err);
    if (rc != 0) {
        zn_engine_close(e);
        return rc;
    }
    write_headers(e);
    *out = e;
    return 0;
}

void zn_engine_close(zn_engine *e)
{
    if (e == NULL)
        return;
    for (int i = 0; i < ZN_OUTPUT_COUNT; i++)
        zn_text_fini(&e->output[i]);
    zn_names_fini(&e->names);
    zn_gate_fini(&e->gate);
    zn_book_fini(&e->book);
    zn_flow_table_close(e->flows);
    zn_intake_fini(&e->intake);
    zn_keys_close(e->keys);
    zn_never_list_fini(&e->policy.never);
    zn_heap_free(e->internal);
    zn_wipe(e, sizeof *e);
    zn_block_free(e, sizeof *e);
}

static void write_record(zn_engine *e, const zn_record *r)
{
    zn_tstat_log log = zn_tstat_log_of(r);
    if (log != ZN_TSTAT_NONE && (e->outputs & 1u << log) != 0)
        zn_tstat_line(&e->output[log], log, e->layer7, r);
    if ((e->outputs & 1u << ZN_OUTPUT_JSONL) != 0)
        zn_json_record(&e->output[ZN_OUTPUT_JSONL], e->layer7, r);
    if ((e->outputs & 1u << ZN_OUTPUT_RECORD_ROWS) != 0)
        zn_event_put_record(&e->output[ZN_OUTPUT_RECORD_ROWS], r);
}

static void write_releases(zn_engine *e)
{
    size_t n;
    const zn_release *releases = zn_gate_releases(&e->gate, &n);
    for (size_t i = 0; i < n; i++) {
        if ((e->outputs & 1u << ZN_OUTPUT_OBSERVATIONS) != 0)
            zn_json_release(&e->output[ZN_OUTPUT_OBSERVATIONS], &releases[i]);
        if ((e->outputs & 1u << ZN_OUTPUT_OBSERVATION_ROWS) != 0)
            zn_event_put_release(&e->output[ZN_OUTPUT_OBSERVATION_ROWS], &releases[i]);
    }
}

/* Decides the votes cast so far. */
static void decide(zn_engine *e)
{
    zn_stage_enter(&e->stage, ZN_STAGE_Z);
    zn_gate_decide(&e->gate);
    zn_stage_enter(&e->stage, ZN_STAGE_WRITE);
    write_releases(e);
}

static int check_outputs(const zn_engine *e, zn_error *err)
{
    for (int i = 0; i < ZN_OUTPUT_COUNT; i++)
        if (e->output[i].failed)
            return zn_fail(err, ZN_ERR_CAPACITY, 0,
                           "no memory for output; nothing cut was written");
    return 0;
}

/* Decides the votes cast so far and writes what may be written. */
static int settle(zn_engine *e, zn_error *err)
{
    uint32_t flow;
    decide(e);
    while ((flow = zn_flow_next_closed(e->flows)) != 0) {
        zn_flow *f = zn_flow_at(e->flows, flow);
        zn_record record;
        zn_names_flow_closed(&e->names, flow, f);
        if (e->gate.vote_count != 0)
            decide(e);
        if (zn_gate_record(&e->gate, f, &record)) {
            write_record(e, &record);
            e->stats.n[ZN_STAT_RECORDS]++;
            e->stats.n[zn_names_status(&e->names, f)]++;
        } else {
            e->stats.n[ZN_STAT_FLOWS_EXTERNAL]++;
        }
        zn_book_forget(&e->book, f);
        zn_flow_emitted(e->flows, flow);
    }
    return check_outputs(e, err);
}

/* Who is who in the flow that p opened, and its pseudonyms while its epoch's key is there. */
static int place_flow(zn_engine *e, uint32_t flow, const zn_packet *p, zn_error *err)
{
    zn_flow *f = zn_flow_at(e->flows, flow);
    zn_addr known_as[2];
    zn_stage_enter(&e->stage, ZN_STAGE_CRYPTO);
    zn_policy_place(&e->policy, e->flows, f, p, known_as);
    e->stats.n[ZN_STAT_FLOWS_INTERNAL_BOTH] += f->internal[0] && f->internal[1];
    for (unsigned i = 0; i < 2; i++)
        if ((i == f->client || f->internal[i] || f->midstream) &&
            zn_keys_pseudonym(e->keys, f->first_ns, &known_as[i], &f->pseudonym[i], &f->epoch) != 0)
            return zn_fail(err, ZN_ERR_CRYPTO, 0,
                           "the crypto library could not encrypt an address");
    if (!zn_gate_vote(&e->gate, ZN_VOTE_CLIENT, f->first_ns, flow, 0))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "a batch held more votes than there is room for");
    return 0;
}

/* Moves packet time; after a rebase nothing of before may meet what comes. */
static int see_time(zn_engine *e, int64_t t_ns, zn_error *err)
{
    int rc;
    switch (zn_clock_see(&e->clock, t_ns)) {
    case ZN_CLOCK_ON_TIME:
        break;
    case ZN_CLOCK_LATE:
        e->stats.n[ZN_STAT_CLOCK_LATE]++;
        break;
    case ZN_CLOCK_REFUSED:
        e->stats.n[ZN_STAT_CLOCK_REFUSED]++;
        break;
    case ZN_CLOCK_REBASED:
        e->stats.n[ZN_STAT_CLOCK_JUMPS]++;
        zn_flow_rebase(e->flows, t_ns);
        zn_defrag_clear(e->intake.defrag);
        rc = settle(e, err);
        if (rc == 0)
            rc = zn_keys_rebase(e->keys, t_ns, err);
        zn_gate_rebase(&e->gate, zn_keys_epoch(e->keys, t_ns));
        return rc;
    }
    return 0;
}

static int take_packet(zn_engine *e, const zn_packet *p, zn_error *err)
{
    bool opened;
    uint32_t flow;
    int rc = see_time(e, p->t_ns, err);
    if (rc != 0)
        return rc;
    e->stats.n[p->tuple.proto == ZN_PROTO_TCP ? ZN_STAT_PACKETS_TCP : ZN_STAT_PACKETS_UDP]++;
    zn_flow_expire(e->flows, e->clock.now_ns);
    flow = zn_flow_update(e->flows, p, &opened);
    if (flow == 0)
        return 0;
    if (opened) {
        rc = place_flow(e, flow, p, err);
        if (rc != 0)
            return rc;
    }
    zn_stage_enter(&e->stage, ZN_STAGE_NAMES);
    zn_names_packet(&e->names, flow, zn_flow_at(e->flows, flow), p);
    zn_stage_enter(&e->stage, ZN_STAGE_FLOWS);
    return 0;
}

static int feed_group(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err)
{
    const zn_packet *packet = e->intake.packets;
    size_t packets;
    int rc;
    zn_stage_enter(&e->stage, ZN_STAGE_DECODE);
    packets = zn_intake_take(&e->intake, frames, n);
    rc = e->gate.vote_count + GROUP_VOTES > e->gate.vote_cap ? settle(e, err) : 0;
    zn_stage_enter(&e->stage, ZN_STAGE_FLOWS);
    for (size_t i = 0; i < packets; i++)
        zn_flow_probe(e->flows, packet[i].hash);
    for (size_t i = 0; i < packets && rc == 0; i++)
        rc = take_packet(e, &packet[i], err);
    return rc;
}

int zn_engine_feed(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err)
{
    int rc = 0;
    for (size_t batch = 0; batch < n && rc == 0; batch += BATCH) {
        size_t end = n - batch < BATCH ? n : batch + BATCH;
        for (size_t at = batch; at < end && rc == 0; at += GROUP)
            rc = feed_group(e, frames + at, end - at < GROUP ? end - at : GROUP, err);
        if (rc == 0) {
            zn_defrag_expire(e->intake.defrag, e->clock.now_ns);
            rc = settle(e, err);
        }
    }
    return rc;
}

static void tally_link(zn_source *source, uint32_t link_type)
{
    uint32_t i = 0;
    while (i < source->links && source->link_type[i] != link_type)
        i++;
    if (i == ZN_SOURCE_LINKS)
        return;
    if (i == source->links)
        source->link_type[source->links++] = link_type;
    source->link_frames[i]++;
}

/* Counts the frames and leaves those that pass the filter. */
static size_t filter_frames(zn_engine *e, zn_source *source, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        tally_link(source, e->frames[i].link_type);
        if (source->filter != NULL && !zn_filter_pass(source->filter, &e->frames[i]))
            e->stats.n[ZN_STAT_FRAMES_FILTERED]++;
        else
            e->frames[kept++] = e->frames[i];
    }
    return kept;
}

int zn_engine_run(zn_engine *e, zn_source *source, int max_frames, zn_error *err)
{
    int taken = 0;
    while (taken < max_frames) {
        int want = max_frames - taken < BATCH ? max_frames - taken : BATCH;
        int n, rc;
        zn_stage_enter(&e->stage, ZN_STAGE_READ);
        n = zn_capture_next(source->capture, e->frames, want, err);
        if (n <= 0)
            return n < 0 ? n : taken;
        rc = zn_engine_feed(e, e->frames, filter_frames(e, source, (size_t)n), err);
        if (rc != 0)
            return rc;
        taken += n;
        if (n < want)
            break; /* a stream: what came is decided now, not when the batch is full */
    }
    return taken;
}

zn_stage zn_engine_stage(const zn_engine *e)
{
    return zn_stage_read(&e->stage);
}

int zn_engine_idle(zn_engine *e, int64_t quiet_ns, zn_error *err)
{
    if (e->clock.started && quiet_ns > 0 && quiet_ns <= INT64_MAX - e->clock.now_ns) {
        zn_defrag_expire(e->intake.defrag, e->clock.now_ns + quiet_ns);
        zn_flow_expire(e->flows, e->clock.now_ns + quiet_ns);
    }
    return settle(e, err);
}

int zn_engine_finish(zn_engine *e, zn_error *err)
{
    zn_defrag_clear(e->intake.defrag);
    zn_flow_end_input(e->flows, e->clock.now_ns);
    return settle(e, err);
}

zn_text *zn_engine_output(zn_engine *e, zn_output output)
{
    return &e->output[output];
}

const zn_stats *zn_engine_stats(const zn_engine *e)
{
    return &e->stats;
}

zn_ztable_stats zn_engine_table_stats(const zn_engine *e)
{
    return zn_ztable_get_stats(e->gate.table);
}

uint64_t zn_engine_users(const zn_engine *e, bool *saturated)
{
    *saturated = e->gate.users.full;
    return e->gate.users.members;
}

bool zn_engine_time_range(const zn_engine *e, int64_t *first_ns, int64_t *last_ns)
{
    *first_ns = e->intake.first_ns;
    *last_ns = e->intake.last_ns;
    return e->intake.first_ns >= 0;
}

size_t zn_engine_memory(const zn_engine *e)
{
    size_t bytes = sizeof *e + zn_flow_memory(e->flows) + zn_ztable_memory(e->gate.table) +
                   zn_slab_bytes(&e->book.entries) + zn_slab_bytes(&e->book.texts) +
                   zn_names_memory(&e->names) + zn_defrag_memory(e->intake.defrag);
    for (int i = 0; i < ZN_OUTPUT_COUNT; i++)
        bytes += e->output[i].cap;
    return bytes;
}

const char *zn_engine_check(const zn_engine *e)
{
    const char *broken = zn_flow_check(e->flows);
    if (broken == NULL)
        broken = zn_defrag_check(e->intake.defrag);
    return broken != NULL ? broken : zn_ztable_check(e->gate.table);
}
