/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/decide_remote.h"

#include "analyzer/analyzers.h"
#include "analyzer/layer7.h"
#include "engine/decider.h"
#include "engine/engine_state.h"
#include "engine/flush.h"
#include "engine/records.h"
#include "flow/flow_table.h"
#include "release/gate_remote.h"

#include <sys/random.h>

#define STEPS_MAX (UINT64_C(1) << 20)
/* Steps that records leave free for periods and minutes; a batch has few of these. */
#define STEPS_KEPT (64 + ZN_RECORD_STEPS)
#define INTERVAL_NS ZN_NS_PER_S
/* The wall clock is ahead of packets that have not reached the program yet. */
#define QUIET_MARGIN_NS (2 * ZN_NS_PER_S)
#define SETTINGS_LABEL "zanon-net/1/count-settings"

/* Refuses settings that need counts, which no probe has. */
static int check_config(const zn_engine_config *config, zn_error *err)
{
    if (config->key_file == NULL)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "probes that share a counter need a key file");
    if (config->z < 2)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "with a z of 1 there is nothing to count");
    if (config->z_max > config->z || config->popularity != ZN_COUNTED_NONE)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a counter of all probes tells no probe its counts");
    if (zn_packet_config_is_wanted(config))
        return zn_fail(err, ZN_ERR_CONFIG, 0, "packets cannot wait for a counter of all probes");
    if (config->count_rows && config->order == ZN_ORDER_MINUTE_ALL)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "rows that go with votes do not wait for the end of their minute");
    return config->count_hold_ns >= 0
               ? 0
               : zn_fail(err, ZN_ERR_CONFIG, 0, "count_hold_ns must not be negative");
}

static int keep_name(zn_engine *e, const char *name, zn_error *err)
{
    size_t n = strnlen(name, ZN_PROBE_NAME_MAX + 1);
    if (n == 0 || n > ZN_PROBE_NAME_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a probe has a name of 1 to %u bytes",
                       ZN_PROBE_NAME_MAX);
    memcpy(e->remote.probe_name, name, n);
    return 0;
}

/* Draws a session number. Each run has a number of its own, and gets a new number when its clock is
 * set back: no session takes answers to another session. */
static int make_probe(zn_engine *e, uint64_t *probe, zn_error *err)
{
    uint8_t text[ZN_PROBE_NAME_MAX + 1 + sizeof(uint64_t)];
    size_t n = strnlen(e->remote.probe_name, ZN_PROBE_NAME_MAX) + 1;
    memcpy(text, e->remote.probe_name, n);
    if (getrandom(text + n, sizeof(uint64_t), 0) != (ssize_t)sizeof(uint64_t))
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "the system gave no random bytes");
    *probe = zn_count_generations_id(e->remote.generations, 0, ZN_COUNT_PROBE,
                                     (zn_span){text, n + sizeof(uint64_t)})
                 .lo;
    return 0;
}

/* Sets the digest of z, window, epochs and generations (if any) that messages carry. */
static int make_settings(zn_engine *e, int64_t generation_ns, zn_error *err)
{
    uint8_t text[sizeof SETTINGS_LABEL - 1 + 4 * sizeof(uint64_t)], *at = text;
    uint8_t digest[ZN_KEY_DIGEST_BYTES];
    int rc;
    memcpy(at, SETTINGS_LABEL, sizeof SETTINGS_LABEL - 1);
    at = zn_le_put(at + sizeof SETTINGS_LABEL - 1, e->policy.z, sizeof(uint64_t));
    at = zn_le_put(at, (uint64_t)e->policy.window_ns, sizeof(uint64_t));
    at = zn_le_put(at, (uint64_t)e->roles.rotate_ns, sizeof(uint64_t));
    if (generation_ns != 0)
        at = zn_le_put(at, (uint64_t)generation_ns, sizeof(uint64_t));
    rc = zn_key_digest((const char *)text, (size_t)(at - text), digest, err);
    if (rc == 0)
        e->remote.counter.settings = zn_le_get(digest, sizeof(uint64_t));
    return rc;
}

_Static_assert(ZN_DNS_VOTES_OWN == 0 && ZN_DNS_VOTES_NO == ZN_VOTE_RULES_DNS_MAX, "as in rules");

static uint64_t rules_of(const zn_roles *roles, zn_count_generations *hashes)
{
    zn_id key = zn_count_generations_id(hashes, 0, ZN_COUNT_KEY, (zn_span){0});
    zn_vote_rules rules = {.user_v4_bits = roles->user_v4_bits,
                           .user_v6_bits = roles->user_v6_bits,
                           .any_evidence = !roles->established,
                           .dns_votes = (uint8_t)roles->dns_votes,
                           .internal_is_set = roles->internal_is_set,
                           .key_check = key.lo & ZN_VOTE_KEY_CHECK_MASK};
    return zn_vote_rules_pack(&rules);
}

/* Prepares the queries of a probe. */
static int open_remote(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_count_periods periods = {config->count_rotate_ns, config->window_ns, e->roles.rotate_ns};
    zn_remote_counter *counter = &e->remote.counter;
    int rc = check_config(config, err);
    if (rc == 0)
        rc = zn_count_generations_open(&e->remote.generations, e->keys, &periods,
                                       config->count_secret, err);
    if (rc == 0)
        rc = keep_name(e, config->count_probe, err);
    if (rc == 0)
        rc = make_probe(e, &counter->probe, err);
    if (rc == 0)
        rc = make_settings(e, config->count_rotate_ns, err);
    if (rc == 0)
        counter->rules = rules_of(&e->roles, e->remote.generations);
    counter->interval_ns = INTERVAL_NS;
    counter->write_row = config->count_rows ? zn_outputs_observation : NULL;
    counter->stats = &e->stats;
    if (rc == 0)
        rc = zn_remote_counter_init(counter, STEPS_MAX, err);
    /* The gate has no other use for its table. A name that is released locally carries no row. */
    if (rc == 0 && config->count_leases && !config->count_rows)
        rc =
            zn_remote_counter_use_leases(counter, e->gate.table, config->z, config->window_ns, err);
    e->gate.remote.counter = counter;
    e->gate.remote.generations = e->remote.generations;
    e->remote.wait_ns = config->count_hold_ns;
    zn_remote_clock_init(&e->remote.clock, config->window_ns);
    return rc;
}

int zn_engine_open_decider(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    bool remote = config->count_probe != NULL;
    e->decider = remote ? &zn_decide_remote : &zn_decide_local;
    e->gate.decider = remote ? &zn_gate_remote : &zn_gate_local;
    return remote ? open_remote(e, config, err) : 0;
}

void zn_engine_close_decider(zn_engine *e)
{
    zn_remote_counter_fini(&e->remote.counter);
    zn_count_generations_close(e->remote.generations);
}

/* ---- steps ---- */

static int do_step(zn_engine *e, const zn_step *step, zn_error *err)
{
    int rc;
    switch ((zn_step_kind)step->kind) {
    case ZN_STEP_RECORD:
        rc = zn_engine_write_record(e, step->flow, 0, err);
        e->gate.remote.answers = (zn_record_answers){0};
        return rc;
    case ZN_STEP_PERIOD:
        return zn_engine_mark_period(e, step->t_ns, err);
    case ZN_STEP_MINUTE:
        return zn_engine_write_held(
            e, step->t_ns == INT64_MAX ? INT64_MAX : step->t_ns / ZN_MINUTE_NS, err);
    case ZN_STEP_VOTE:
    case ZN_STEP_SERVER_BEFORE:
    case ZN_STEP_SERVER:
    case ZN_STEP_HOST:
    case ZN_STEP_RESOLVER:
        break;
    }
    zn_gate_take_answer(&e->gate, step);
    return zn_engine_write_releases(e, err);
}

/* Does the steps that are answered, until the outputs are full. */
static int do_steps(zn_engine *e, zn_error *err)
{
    const zn_step *next;
    int rc = 0;
    e->waiting = zn_engine_outputs_full(e);
    while (rc == 0 && !e->waiting && (next = zn_remote_counter_next(&e->remote.counter)) != NULL) {
        zn_step step = *next;
        zn_remote_counter_done(&e->remote.counter);
        rc = do_step(e, &step, err);
        if (e->writes_async && step.kind == ZN_STEP_RECORD)
            zn_async_writer_start(e->writer);
        e->waiting = zn_engine_outputs_full(e);
    }
    return rc != 0 || e->writes_async ? rc : zn_outputs_check(&e->outputs, err);
}

/* Stops waiting for answers, and does all steps. */
static int empty_queue(zn_engine *e, zn_error *err)
{
    const zn_step *next;
    int rc = 0;
    zn_remote_counter_stop_waiting(&e->remote.counter, INT64_MAX);
    while (rc == 0 && (next = zn_remote_counter_next(&e->remote.counter)) != NULL) {
        zn_step step = *next;
        zn_remote_counter_done(&e->remote.counter);
        rc = do_step(e, &step, err);
    }
    return rc;
}

/* Puts a step into the queue, which is emptied if it is full. */
static int put_step(zn_engine *e, zn_step step, zn_error *err)
{
    int rc = zn_remote_counter_space(&e->remote.counter) == 0 ? empty_queue(e, err) : 0;
    if (rc == 0)
        zn_remote_counter_put(&e->remote.counter, step);
    return rc;
}

static int end_minutes(zn_engine *e, int64_t minute, zn_error *err)
{
    zn_step step = {.kind = ZN_STEP_MINUTE, .t_ns = INT64_MAX};
    int rc;
    if (minute <= e->remote.minute_ended || e->flows->closed.first != e->flows->closed.end)
        return 0;
    if (minute < INT64_MAX / ZN_MINUTE_NS)
        step.t_ns = minute * ZN_MINUTE_NS;
    e->remote.minute_ended = minute;
    rc = put_step(e, step, err);
    return rc == 0 ? do_steps(e, err) : rc;
}

static int begin_period(zn_engine *e, int64_t start_ns, zn_error *err)
{
    return put_step(e, (zn_step){.kind = ZN_STEP_PERIOD, .t_ns = start_ns}, err);
}

/* ---- queries ---- */

static int64_t now_of(const zn_engine *e)
{
    return e->remote.clock.now_ns;
}

static void time_jumped(zn_engine *e, int64_t from_ns, int64_t to_ns)
{
    zn_remote_clock_jump(&e->remote.clock, from_ns, to_ns);
}

static void time_passed(zn_engine *e, int64_t now_ns)
{
    e->remote.clock.quiet_ns = now_ns - QUIET_MARGIN_NS;
}

/* Ends a closed flow, and queries what its record may show. */
static void query_record(zn_engine *e, uint32_t flow)
{
    zn_flow *f = zn_flow_entry(e->flows, flow);
    zn_analyzers_flow_closed(&e->names, flow, f);
    zn_layer7_closed(&e->names, f);
    if (e->votes.n != 0) {
        zn_gate_query_votes(&e->gate, now_of(e));
        zn_gate_suppress_after(&e->gate, now_of(e));
    }
    zn_gate_query_record(&e->gate, flow, now_of(e));
}

/* Queries the closed flows, until the queue is full. With `all`, the queue is emptied to make
 * room. */
static int query_closed(zn_engine *e, bool all, zn_error *err)
{
    int rc = 0;
    /* A flow is queried after its votes. */
    while (rc == 0 && e->votes.n == 0 && (all || !zn_remote_clock_doubts(&e->remote.clock))) {
        uint32_t flow;
        if (zn_remote_counter_space(&e->remote.counter) <= STEPS_KEPT) {
            if (!all)
                break;
            rc = empty_queue(e, err);
            continue;
        }
        flow = zn_flow_next_closed(e->flows);
        if (flow == 0)
            break;
        query_record(e, flow);
    }
    return rc;
}

static int decide(zn_engine *e, bool all, zn_error *err)
{
    int rc;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_Z);
    if (e->clock.started)
        zn_remote_clock_see(&e->remote.clock, e->clock.now_ns,
                            e->ended || e->votes.n > ZN_REMOTE_VOTES_MAX);
    zn_gate_query_votes(&e->gate, now_of(e));
    if (e->clock.started)
        zn_gate_enter_epoch(&e->gate, now_of(e));
    rc = query_closed(e, all, err);
    if (rc == 0 && zn_count_generations_failed(e->remote.generations))
        rc = zn_fail(err, ZN_ERR_CRYPTO, 0, "the crypto library could not make a hash");
    if (rc == 0 && e->clock.started && zn_remote_counter_is_due(&e->remote.counter, now_of(e)))
        rc = zn_remote_counter_cut(&e->remote.counter, now_of(e), now_of(e), err);
    if (e->clock.started)
        zn_count_generations_forget(e->remote.generations, now_of(e));
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_WRITE);
    return rc == 0 ? do_steps(e, err) : rc;
}

/* Suppresses the votes of later times, and empties the queue: closed flows that wait would stay
 * open on the new clock. */
static int set_back(zn_engine *e, int64_t t_ns, zn_error *err)
{
    int rc;
    zn_remote_clock_set(&e->remote.clock, t_ns);
    zn_gate_suppress_after(&e->gate, t_ns);
    rc = zn_engine_flush_votes(e, true, err);
    return rc == 0 ? empty_queue(e, err) : rc;
}

/*
 * Begins a new session if watermarks of this session are later than the new time. The counter may
 * have acted on these watermarks: all votes of the session would be late, and marks of clients
 * would come after the answers that they should prevent.
 *
 * The new session joins like a new probe: until it has joined, the counter suppresses every address
 * that the session might mark. The old session ends with its last marks. If the counter refuses
 * one of its messages, the old session counts as a lost probe, whose marks are missing.
 */
static int restart(zn_engine *e, zn_error *err)
{
    uint64_t probe;
    int rc = empty_queue(e, err);
    e->remote.minute_ended = 0;
    if (rc != 0 || e->remote.counter.watermark_ns <= now_of(e) ||
        e->remote.counter.watermark_ns == ZN_VOTE_WATERMARK_END)
        return rc;
    rc = make_probe(e, &probe, err);
    return rc == 0 ? zn_remote_counter_renew(&e->remote.counter, probe, now_of(e), err) : rc;
}

/* Makes the last messages when all flows are queried. */
static int end(zn_engine *e, int rc, zn_error *err)
{
    if (e->flows->closed.first != e->flows->closed.end)
        return 1;
    if (e->remote.counter.watermark_ns != ZN_VOTE_WATERMARK_END &&
        e->remote.counter.shard_count != 0 && e->clock.started) {
        int cut = zn_remote_counter_cut(&e->remote.counter, now_of(e), ZN_VOTE_WATERMARK_END, err);
        if (cut != 0)
            return cut;
    }
    return rc;
}

/* ---- for the program ---- */

uint64_t zn_engine_count_probe(const zn_engine *e, uint64_t *settings)
{
    *settings = e->remote.counter.settings;
    return e->remote.counter.probe;
}

int zn_engine_count_begin(zn_engine *e, unsigned shards, zn_error *err)
{
    return zn_remote_counter_begin(&e->remote.counter, shards, err);
}

int zn_engine_count_cut(zn_engine *e, zn_error *err)
{
    /* A program that waits for answers feeds nothing before the queries of now_ns are answered. */
    bool complete = e->batched == 0 && e->votes.n == 0 && !zn_remote_clock_doubts(&e->remote.clock);
    int64_t watermark_ns = complete ? now_of(e) + 1 : 0;
    if (now_of(e) == 0 || e->remote.counter.watermark_ns == ZN_VOTE_WATERMARK_END)
        return 0;
    return zn_remote_counter_cut(&e->remote.counter, now_of(e), watermark_ns, err);
}

void zn_engine_count_hold(zn_engine *e, int64_t hold_ns)
{
    e->remote.wait_ns = hold_ns;
}

zn_span zn_engine_count_messages(const zn_engine *e)
{
    return (zn_span){(const uint8_t *)e->remote.counter.ready.bytes, e->remote.counter.ready.n};
}

void zn_engine_count_sent(zn_engine *e)
{
    e->remote.counter.ready.n = 0;
}

int zn_engine_count_answer(zn_engine *e, zn_span message, zn_error *err)
{
    return zn_remote_counter_answer(&e->remote.counter, message, err);
}

/* Returns true if the queue or the flow table may soon be full. */
static bool is_crowded(const zn_engine *e)
{
    return zn_remote_counter_waits_since(&e->remote.counter) != INT64_MAX &&
           (zn_remote_counter_space(&e->remote.counter) < STEPS_MAX / 2 ||
            e->remote.counter.records > e->max_flows / 4);
}

static int make_space(zn_engine *e, zn_error *err)
{
    return is_crowded(e) ? empty_queue(e, err) : 0;
}

bool zn_engine_must_wait(const zn_engine *e)
{
    int64_t since_ns = zn_remote_counter_waits_since(&e->remote.counter);
    if (e->batched != 0) /* the votes of a batch are queried at its end */
        return false;
    return is_crowded(e) || (since_ns != INT64_MAX && now_of(e) - since_ns > e->remote.wait_ns);
}

void zn_engine_count_mute(zn_engine *e, bool muted)
{
    e->remote.counter.muted = muted;
}

int zn_engine_count_abandon(zn_engine *e, zn_error *err)
{
    uint64_t probe;
    int rc = make_probe(e, &probe, err);
    return rc == 0 ? zn_remote_counter_abandon(&e->remote.counter, probe, now_of(e), err) : rc;
}

/* Stops waiting for late answers, or, with `all`, for any answer. */
static void stop_waiting(zn_engine *e, bool all)
{
    zn_remote_counter_stop_waiting(&e->remote.counter,
                                   all ? INT64_MAX : now_of(e) - e->remote.wait_ns);
    if (is_crowded(e))
        zn_remote_counter_stop_waiting(&e->remote.counter, INT64_MAX);
}

uint64_t zn_engine_count_waiting(const zn_engine *e)
{
    return e->remote.counter.next - e->remote.counter.first;
}

int zn_engine_suppress_waiting(zn_engine *e, bool all, zn_error *err)
{
    stop_waiting(e, all);
    return zn_engine_flush(e, err);
}

const zn_decider zn_decide_remote = {
    .decide = decide,
    .resume = do_steps,
    .end_minutes = end_minutes,
    .begin_period = begin_period,
    .time_jumped = time_jumped,
    .time_passed = time_passed,
    .set_back = set_back,
    .restart = restart,
    .make_space = make_space,
    .must_wait = zn_engine_must_wait,
    .end = end,
};
