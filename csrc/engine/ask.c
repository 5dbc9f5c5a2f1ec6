/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ask.h"

#include "analyzer/analyzers.h"
#include "analyzer/layer7.h"
#include "engine/records.h"
#include "flow/flow_table.h"
#include "release/gate_ask.h"
#include "rewrite/emit.h"

#include <sys/random.h>

#define STEPS_MAX (UINT64_C(1) << 20)
/* Room that the records of flows leave for periods and minutes, of which each batch has few. */
#define STEPS_KEPT (64 + ZN_RECORD_STEPS)
#define INTERVAL_NS ZN_NS_PER_S
/* The wall clock runs ahead of packets that are on their way to the program. */
#define QUIET_MARGIN_NS (2 * ZN_NS_PER_S)
#define SETTINGS_LABEL "zanon-net/1/count-settings"

/* Refuses settings that need the counts themselves. */
static int check_config(const zn_engine_config *config, zn_error *err)
{
    if (config->key_file == NULL)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "probes that share a counter need a key file");
    if (config->z < 2)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "with a z of 1 there is nothing to count");
    if (config->z_max > config->z || config->popularity)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a counter of all probes tells no probe its counts");
    if (zn_engine_has_packets(config))
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
    memcpy(e->probe_name, name, n);
    return 0;
}

/* Makes a number of this probe: a run after this one, or this one after its clock was set back, has
 * another one, so that no answer to the one is taken for one to the other. */
static int make_probe(zn_engine *e, uint64_t *probe, zn_error *err)
{
    uint8_t text[ZN_PROBE_NAME_MAX + 1 + sizeof(uint64_t)];
    size_t n = strnlen(e->probe_name, ZN_PROBE_NAME_MAX) + 1;
    memcpy(text, e->probe_name, n);
    if (getrandom(text + n, sizeof(uint64_t), 0) != (ssize_t)sizeof(uint64_t))
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "the system gave no random bytes");
    *probe = zn_count_generations_id(e->generations, 0, ZN_COUNT_PROBE,
                                     (zn_span){text, n + sizeof(uint64_t)})
                 .lo;
    return 0;
}

/* What names z, window, epochs and, where there are some, generations in messages. */
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
        e->asker.settings = zn_le_get(digest, sizeof(uint64_t));
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

int zn_engine_open_ask(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_count_periods periods = {config->count_rotate_ns, config->window_ns, e->roles.rotate_ns};
    int rc;
    if (config->count_probe == NULL)
        return 0;
    rc = check_config(config, err);
    if (rc == 0)
        rc = zn_count_generations_open(&e->generations, e->keys, &periods, err);
    if (rc == 0)
        rc = keep_name(e, config->count_probe, err);
    if (rc == 0)
        rc = make_probe(e, &e->asker.probe, err);
    if (rc == 0)
        rc = make_settings(e, config->count_rotate_ns, err);
    if (rc == 0)
        e->asker.rules = rules_of(&e->roles, e->generations);
    e->asker.interval_ns = INTERVAL_NS;
    e->asker.write_row = config->count_rows ? zn_outputs_observation : NULL;
    e->asker.stats = &e->stats;
    if (rc == 0)
        rc = zn_asker_init(&e->asker, STEPS_MAX, err);
    /* The gate has no other use for its table. What is released at once brings no row along. */
    if (rc == 0 && config->count_leases && !config->count_rows)
        rc = zn_asker_use_leases(&e->asker, e->gate.table, config->z, config->window_ns, err);
    e->gate.asker = &e->asker;
    e->gate.generations = e->generations;
    e->count_hold_ns = config->count_hold_ns;
    zn_ask_clock_init(&e->ask_clock, config->window_ns);
    return rc;
}

void zn_engine_close_ask(zn_engine *e)
{
    zn_asker_fini(&e->asker);
    zn_count_generations_close(e->generations);
}

/* ---- steps ---- */

static int do_step(zn_engine *e, const zn_step *step, zn_error *err)
{
    int rc;
    switch ((zn_step_kind)step->kind) {
    case ZN_STEP_RECORD:
        rc = zn_engine_write_record(e, step->flow, 0, err);
        e->gate.record_answers = (zn_record_answers){0};
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
    zn_gate_answered(&e->gate, step);
    return zn_engine_write_releases(e, err);
}

int zn_engine_do_steps(zn_engine *e, zn_error *err)
{
    const zn_step *next;
    int rc = 0;
    e->waiting = zn_engine_outputs_full(e);
    while (rc == 0 && !e->waiting && (next = zn_asker_next(&e->asker)) != NULL) {
        zn_step step = *next;
        zn_asker_done(&e->asker);
        rc = do_step(e, &step, err);
        if (e->writes_async && step.kind == ZN_STEP_RECORD)
            zn_async_writer_start(e->writer);
        e->waiting = zn_engine_outputs_full(e);
    }
    return rc != 0 || e->writes_async ? rc : zn_outputs_check(&e->outputs, err);
}

int zn_engine_ask_give_up(zn_engine *e, zn_error *err)
{
    const zn_step *next;
    int rc = 0;
    zn_asker_give_up(&e->asker, INT64_MAX);
    while (rc == 0 && (next = zn_asker_next(&e->asker)) != NULL) {
        zn_step step = *next;
        zn_asker_done(&e->asker);
        rc = do_step(e, &step, err);
    }
    return rc;
}

/* Makes room for a step, if need be by giving up all that wait. */
static int make_space(zn_engine *e, zn_error *err)
{
    return ZN_LIKELY(zn_asker_space(&e->asker) > STEPS_KEPT) ? 0 : zn_engine_ask_give_up(e, err);
}

int zn_engine_ask_minutes(zn_engine *e, int64_t minute, zn_error *err)
{
    zn_step step = {.kind = ZN_STEP_MINUTE, .t_ns = INT64_MAX};
    if (minute <= e->minute_asked || e->flows->closed.first != e->flows->closed.end)
        return 0;
    if (minute < INT64_MAX / ZN_MINUTE_NS)
        step.t_ns = minute * ZN_MINUTE_NS;
    e->minute_asked = minute;
    if (zn_asker_space(&e->asker) == 0) {
        int rc = make_space(e, err);
        if (rc != 0)
            return rc;
    }
    zn_asker_put(&e->asker, step);
    return zn_engine_do_steps(e, err);
}

int zn_engine_ask_period(zn_engine *e, int64_t start_ns, zn_error *err)
{
    int rc = zn_asker_space(&e->asker) == 0 ? make_space(e, err) : 0;
    if (rc != 0)
        return rc;
    zn_asker_put(&e->asker, (zn_step){.kind = ZN_STEP_PERIOD, .t_ns = start_ns});
    return 0;
}

/* ---- questions ---- */

static int64_t now_of(const zn_engine *e)
{
    return e->ask_clock.now_ns;
}

void zn_engine_ask_quiet(zn_engine *e, int64_t now_ns)
{
    e->ask_clock.quiet_ns = now_ns - QUIET_MARGIN_NS;
}

/* Ends a closed flow, and asks about its record. */
static void ask_record(zn_engine *e, uint32_t flow)
{
    zn_flow *f = zn_flow_entry(e->flows, flow);
    zn_analyzers_flow_closed(&e->names, flow, f);
    zn_layer7_closed(&e->names, f);
    if (e->votes.n != 0) {
        zn_gate_ask(&e->gate, now_of(e));
        zn_gate_suppress_after(&e->gate, now_of(e));
    }
    zn_gate_ask_record(&e->gate, flow, now_of(e));
}

int zn_engine_ask(zn_engine *e, bool all, zn_error *err)
{
    uint32_t flow;
    int rc = 0;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_Z);
    if (e->clock.started)
        zn_ask_clock_see(&e->ask_clock, e->clock.now_ns,
                         e->ended || e->votes.n > ZN_ASK_VOTES_HELD);
    zn_gate_ask(&e->gate, now_of(e));
    if (e->clock.started)
        zn_gate_ask_epoch(&e->gate, now_of(e));
    /* a flow is asked about after its votes */
    while (rc == 0 && e->votes.n == 0 && (all || !zn_ask_clock_doubts(&e->ask_clock))) {
        if (zn_asker_space(&e->asker) <= STEPS_KEPT) {
            if (!all)
                break;
            rc = make_space(e, err);
            continue;
        }
        flow = zn_flow_next_closed(e->flows);
        if (flow == 0)
            break;
        ask_record(e, flow);
    }
    if (rc == 0 && zn_count_generations_failed(e->generations))
        rc = zn_fail(err, ZN_ERR_CRYPTO, 0, "the crypto library could not make a hash");
    if (rc == 0 && e->clock.started && zn_asker_is_due(&e->asker, now_of(e)))
        rc = zn_asker_cut(&e->asker, now_of(e), now_of(e), err);
    if (e->clock.started)
        zn_count_generations_forget(e->generations, now_of(e));
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_WRITE);
    return rc == 0 ? zn_engine_do_steps(e, err) : rc;
}

void zn_engine_ask_set_back(zn_engine *e, int64_t t_ns)
{
    zn_ask_clock_set(&e->ask_clock, t_ns);
    zn_gate_suppress_after(&e->gate, t_ns);
}

/*
 * Under the old number, whose watermarks the counter may have believed, all votes would be late,
 * and marks of clients would come behind what they are to prevent. A new number begins as a probe
 * that joins: until it is there, the counter suppresses what it may have to mark. The old one ends
 * with its last marks. Where it cannot, as the counter refuses a message of it, it is a probe that
 * is gone, whose marks the counter takes for missing.
 */
int zn_engine_ask_anew(zn_engine *e, zn_error *err)
{
    uint64_t probe;
    int rc = zn_engine_ask_give_up(e, err);
    e->minute_asked = 0;
    if (rc != 0 || e->asker.watermark_ns <= now_of(e) ||
        e->asker.watermark_ns == ZN_VOTE_WATERMARK_END)
        return rc;
    rc = make_probe(e, &probe, err);
    return rc == 0 ? zn_asker_renew(&e->asker, probe, now_of(e), err) : rc;
}

int zn_engine_ask_end(zn_engine *e, int rc, zn_error *err)
{
    if (e->flows->closed.first != e->flows->closed.end)
        return 1;
    if (e->asker.watermark_ns != ZN_VOTE_WATERMARK_END && e->asker.shard_count != 0 &&
        e->clock.started) {
        int cut = zn_asker_cut(&e->asker, now_of(e), ZN_VOTE_WATERMARK_END, err);
        if (cut != 0)
            return cut;
    }
    return rc;
}

/* ---- for the program ---- */

uint64_t zn_engine_count_probe(const zn_engine *e, uint64_t *settings)
{
    *settings = e->asker.settings;
    return e->asker.probe;
}

int zn_engine_count_begin(zn_engine *e, unsigned shards, zn_error *err)
{
    return zn_asker_begin(&e->asker, shards, err);
}

int zn_engine_count_cut(zn_engine *e, zn_error *err)
{
    /* A program that waits feeds nothing until what is asked at this very time is answered. */
    bool complete = e->batched == 0 && e->votes.n == 0 && !zn_ask_clock_doubts(&e->ask_clock);
    int64_t watermark_ns = complete ? now_of(e) + 1 : 0;
    if (now_of(e) == 0 || e->asker.watermark_ns == ZN_VOTE_WATERMARK_END)
        return 0;
    return zn_asker_cut(&e->asker, now_of(e), watermark_ns, err);
}

void zn_engine_count_hold(zn_engine *e, int64_t hold_ns)
{
    e->count_hold_ns = hold_ns;
}

zn_span zn_engine_count_messages(const zn_engine *e)
{
    return (zn_span){(const uint8_t *)e->asker.ready.bytes, e->asker.ready.n};
}

void zn_engine_count_sent(zn_engine *e)
{
    e->asker.ready.n = 0;
}

int zn_engine_count_answer(zn_engine *e, zn_span message, zn_error *err)
{
    return zn_asker_answer(&e->asker, message, err);
}

/* Returns whether so much waits for an answer that there may soon be no room for more. */
static bool is_crowded(const zn_engine *e)
{
    return zn_asker_waits_since(&e->asker) != INT64_MAX &&
           (zn_asker_space(&e->asker) < STEPS_MAX / 2 || e->asker.records > e->max_flows / 4);
}

int zn_engine_ask_make_space(zn_engine *e, zn_error *err)
{
    return is_crowded(e) ? zn_engine_ask_give_up(e, err) : 0;
}

bool zn_engine_asks_too_much(const zn_engine *e)
{
    int64_t since_ns = zn_asker_waits_since(&e->asker);
    if (e->batched != 0) /* the votes of a batch are asked about at its end */
        return false;
    return is_crowded(e) || (since_ns != INT64_MAX && now_of(e) - since_ns > e->count_hold_ns);
}

void zn_engine_count_mute(zn_engine *e, bool muted)
{
    e->asker.muted = muted;
}

int zn_engine_count_abandon(zn_engine *e, zn_error *err)
{
    uint64_t probe;
    int rc = make_probe(e, &probe, err);
    return rc == 0 ? zn_asker_abandon(&e->asker, probe, now_of(e), err) : rc;
}

void zn_engine_stop_waiting(zn_engine *e, bool all)
{
    zn_asker_give_up(&e->asker, all ? INT64_MAX : now_of(e) - e->count_hold_ns);
    if (is_crowded(e))
        zn_asker_give_up(&e->asker, INT64_MAX);
}

uint64_t zn_engine_count_waiting(const zn_engine *e)
{
    return e->asker.next - e->asker.first;
}
