/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/decide_remote.h"
#include "engine/engine_state.h"
#include "release/gate_levels.h"
#include "util/arena.h"

#define MAX_CLIENTS (UINT32_C(1) << 20) /* most client addresses that are kept in an epoch */
#define MAX_FLOWS (UINT32_C(1) << 31)   /* limit of the settings */

/* Refuses settings that no later step checks. */
static int check_config(const zn_engine_config *config, zn_error *err)
{
    if (config->max_flows < 1 || config->max_flows > MAX_FLOWS)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_flows must be from 1 to %u, not %u", MAX_FLOWS,
                       config->max_flows);
    if (config->user_v4_bits < 1 || config->user_v4_bits > 32 || config->user_v6_bits < 1 ||
        config->user_v6_bits > 128)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "a user's prefix must have 1 to 32 bits (IPv4) and 1 to 128 (IPv6), "
                       "not %u and %u",
                       config->user_v4_bits, config->user_v6_bits);
    if (config->outputs >> ZN_OUTPUTS != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "outputs has bits that no output has");
    if (config->split_ns < 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "split_ns must not be negative");
    if (config->pseudonyms > ZN_PSEUDONYMS_RANDOM)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "pseudonyms are of no known kind");
    if (config->dns_votes > ZN_DNS_VOTES_NO)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "dns_votes is of no known kind");
    if (config->block_v4_bits < 1 || config->block_v4_bits > 32 || config->block_v6_bits < 1 ||
        config->block_v6_bits > 128)
        return zn_fail(
            err, ZN_ERR_CONFIG, 0,
            "the blocks of pseudonyms must have 1 to 32 bits (IPv4) and 1 to 128 (IPv6), "
            "not %u and %u",
            config->block_v4_bits, config->block_v6_bits);
    if (config->order > ZN_ORDER_CLOSING)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the order of records is of no known kind");
    for (size_t i = 0; config->internal != NULL && i < config->internal_count; i++)
        if (config->internal[i].bits > 128)
            return zn_fail(err, ZN_ERR_CONFIG, 0,
                           "an internal network must have 0 to 128 bits, not %u",
                           config->internal[i].bits);
    return 0;
}

/* Validates the settings of records. */
static int check_detail(const zn_engine_config *config, zn_error *err)
{
    const unsigned exact_sets = ZN_SET_E2E | ZN_SET_OPTIONS;
    if (config->coarse_end > ZN_COARSE_END_NONE || config->coarse_steps > ZN_COARSE_STEPS_16 ||
        config->coarse_client > ZN_COARSE_CLIENT_NONE)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "coarse records are of no known kind");
    if (config->times_ns < 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "times_ns must not be negative");
    if (config->digits != 0 && config->digits != 2)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "digits must be 0 or 2, not %u", config->digits);
    if ((config->times_ns != 0 || config->digits != 0 || config->order == ZN_ORDER_MINUTE_ALL) &&
        (config->sets & exact_sets) != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "times and counts that are not exact exclude the sets E2E and OPTIONS");
    return 0;
}

/* Validates the caps against invented users. */
static int check_caps(const zn_engine_config *config, zn_error *err)
{
    bool is_set = config->max_per_prefix != 0 || config->max_names_per_user != 0 ||
                  config->min_user_age_ns != 0;
    if (config->min_user_age_ns < 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "min_user_age_ns must not be negative");
    if (config->max_per_prefix != 0 &&
        (config->cap_v4_bits < 1 || config->cap_v4_bits > config->user_v4_bits ||
         config->cap_v6_bits < 1 || config->cap_v6_bits > config->user_v6_bits))
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "the networks of max_per_prefix must have 1 to %u bits (IPv4) and 1 to %u "
                       "(IPv6), not %u and %u",
                       config->user_v4_bits, config->user_v6_bits, config->cap_v4_bits,
                       config->cap_v6_bits);
    if (is_set && config->window_ns > ZN_ZTABLE_WINDOW_MAX_NS / 2)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the window must be at most 5 years with caps");
    if (is_set && config->count_probe != NULL)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a probe has no caps, because its counter counts");
    if (is_set && config->z == 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "z is 1, so that caps would suppress nothing");
    return 0;
}

static int copy_config(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_roles *roles = &e->roles;
    zn_policy *policy = &e->policy;
    unsigned sets;
    policy->roles = roles;
    policy->z = config->z;
    policy->window_ns = config->window_ns;
    policy->exact = config->exact;
    policy->keep_client_port = config->keep_client_port;
    policy->coarse_end = config->coarse_end;
    policy->coarse_steps = config->coarse_steps;
    policy->coarse_client = config->coarse_client;
    policy->times_ns = config->times_ns;
    if (config->order == ZN_ORDER_MINUTE_ALL && policy->times_ns < ZN_MINUTE_NS)
        policy->times_ns = ZN_MINUTE_NS;
    policy->digits = config->digits;
    policy->caps.max_per_prefix = config->max_per_prefix;
    policy->caps.prefix_v4_bits = config->cap_v4_bits;
    policy->caps.prefix_v6_bits = config->cap_v6_bits;
    policy->caps.max_names = config->max_names_per_user;
    policy->caps.min_age_ns = config->min_user_age_ns;
    /* a view needs votes that are tied to a user */
    roles->release_all = config->z == 1 && config->z_max <= 1 && config->view_count == 0;
    roles->rotate_ns = config->rotate_ns;
    roles->established = config->established;
    roles->dns_votes = config->dns_votes;
    roles->dn_hunter = config->dn_hunter;
    roles->user_v4_bits = config->user_v4_bits;
    roles->user_v6_bits = config->user_v6_bits;
    roles->internal = zn_roles_private_nets(&roles->internal_count);
    if (config->internal != NULL) {
        size_t bytes = (config->internal_count + 1) * sizeof(zn_net);
        e->internal = zn_heap_alloc(bytes);
        if (e->internal == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the internal networks");
        memcpy(e->internal, config->internal, config->internal_count * sizeof(zn_net));
        roles->internal_is_set = true;
        roles->internal = e->internal;
        roles->internal_count = config->internal_count;
    }
    e->boundaries.split_ns = config->split_ns;
    e->queues.order = config->order;
    e->max_flows = config->max_flows;
    e->boundaries.period = -1;
    sets = config->sets;
    for (unsigned i = 0; i < ZN_ATTRIBUTE_COUNT; i++)
        sets |= (config->attributes & 1u << i) != 0 ? ZN_SET_ATTRIBUTE(i) : 0u;
    return zn_outputs_init(&e->outputs, zn_packet_config_outputs(config), sets,
                           sets | (config->levels != 0 ? ZN_SET_LEVELS : 0u), err);
}

int zn_engine_set_never(zn_engine *e, const zn_span *never, size_t count, zn_error *err)
{
    zn_never_list list = {0};
    int rc = count == 0 ? 0 : zn_never_list_init(&list, (uint32_t)count, err);
    if (rc != 0) {
        zn_never_list_fini(&list);
        return rc;
    }
    for (size_t i = 0; i < count; i++)
        zn_never_list_add(&list, never[i]);
    if (e->gate.levels != NULL)
        rc = zn_labels_set_never(&e->gate.levels->labels, never, count, err);
    if (rc != 0) {
        zn_never_list_fini(&list);
        return rc;
    }
    zn_never_list_fini(&e->roles.never);
    e->roles.never = list;
    if (e->gate.levels != NULL)
        zn_levels_restart(e->gate.levels->levels);
    return 0;
}

/* Refuses levels together with settings that exclude them. */
static int check_levels(const zn_engine_config *config, zn_error *err)
{
    const unsigned all = ZN_LEVEL_DOMAIN | ZN_LEVEL_CATEGORY | ZN_LEVEL_AS | ZN_LEVEL_COUNTRY;
    if ((config->levels & ~all) != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "levels has bits that no level has");
    if (config->levels != 0 && config->count_probe != NULL)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "levels exclude a counter of probes");
    return 0;
}

/* Refuses attributes together with settings that exclude them. */
static int check_attributes(const zn_engine_config *config, zn_error *err)
{
    if ((config->attributes & ~ZN_ATTRIBUTES_ALL) != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "attributes has bits that no attribute has");
    if (config->attributes != 0 &&
        (config->count_probe != NULL || config->levels != 0 || zn_packet_config_is_wanted(config)))
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "attributes exclude packets, levels and a counter of probes");
    return 0;
}

/* Returns the column sets that outputs need. Packet output needs the messages of TLS servers. */
static unsigned output_sets(const zn_engine_config *config)
{
    return config->sets | (zn_packet_config_is_wanted(config) ? ZN_SET_LAYER7 : 0u);
}

/* Opens the attributes beside names, and their counts if they are wanted. */
static int open_attributes(zn_engine *e, const zn_engine_config *config,
                           const zn_ztable_config *counted, zn_error *err)
{
    int rc = zn_attributes_open(&e->names.attributes, config->attributes,
                                config->max_flows + ZN_FLOW_SPARE, err);
    e->gate.attributes = e->names.attributes;
    e->names.common_names = (output_sets(config) & ZN_SET_LAYER7) != 0;
    for (unsigned i = 0; i < ZN_ATTRIBUTE_COUNT && rc == 0; i++)
        if (config->popularity == ZN_COUNTED_ALL && (config->attributes & 1u << i) != 0)
            rc = zn_popularity_add(&e->popularity, (zn_attribute)i, counted, err);
    return rc;
}

/* Opens the levels of the gate, if any are wanted and not every name is released. */
static int open_levels(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_gate_levels_config levels = {.labels = {.roles = &e->roles,
                                               .votes = &e->votes,
                                               .levels = config->levels,
                                               .networks = config->networks,
                                               .network_count = config->network_count},
                                    .z_max = config->z_max > config->z ? config->z_max : config->z,
                                    .max_tuples = config->max_tuples,
                                    .max_attributes = config->max_attributes};
    int rc;
    if (config->levels == 0 || e->roles.release_all)
        return 0;
    rc = zn_gate_levels_open(&e->gate, &levels, err);
    if (rc == 0)
        rc = zn_labels_set_never(&e->gate.levels->labels, config->never, config->never_count, err);
    return rc;
}

static int init_anon(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_gate_limits limits = {config->max_tuples, config->max_attributes, MAX_CLIENTS,
                             zn_packet_config_largest_z(config)};
    zn_ztable_config counted = zn_ztable_default_config(1, config->window_ns);
    /* a flow with attributes has as many more entries */
    uint32_t names = (config->max_flows + ZN_FLOW_SPARE) *
                     (config->attributes == 0 ? 1u : 1u + ZN_ATTRIBUTE_COUNT / 2);
    int rc = zn_name_store_init(&e->name_store, names, err);
    e->gate.policy = &e->policy;
    e->names.roles = e->dn_hunter.roles = &e->roles;
    e->gate.clock = &e->clock;
    e->gate.stats = e->names.stats = &e->stats;
    e->gate.name_store = e->names.name_store = &e->name_store;
    e->decoder.flows = e->flows;
    e->gate.flows = e->names.flows = e->dn_hunter.flows = e->flows;
    e->gate.dn_hunter = &e->dn_hunter;
    e->gate.popularity = &e->popularity;
    counted.max_tuples = config->max_tuples;
    counted.max_attributes = config->max_attributes;
    e->gate.votes = e->names.votes = &e->votes;
    if (rc == 0)
        rc = zn_votes_init(&e->votes, ZN_ENGINE_BATCH_VOTES, err);
    if (rc == 0)
        rc = zn_gate_init(&e->gate, &limits, err);
    if (rc == 0)
        rc = open_levels(e, config, err);
    if (rc == 0 && config->popularity != ZN_COUNTED_NONE)
        rc = zn_popularity_init(&e->popularity, &counted, err);
    e->popularity.with_levels = config->popularity == ZN_COUNTED_ALL && e->gate.levels != NULL &&
                                (config->levels & (ZN_LEVEL_DOMAIN | ZN_LEVEL_CATEGORY)) != 0;
    if (rc == 0)
        rc = open_attributes(e, config, &counted, err);
    if (rc == 0)
        rc = zn_dn_hunter_init(&e->dn_hunter, config->max_flows + ZN_FLOW_SPARE, err);
    if (rc == 0)
        rc = zn_analyzers_open(&e->names, config->max_flows + ZN_FLOW_SPARE, err);
    return rc;
}

static int init_workers(zn_engine *e, unsigned workers, zn_error *err)
{
    int rc = zn_pool_open(&e->pool, workers, 0, err);
    if (rc == 0)
        rc = zn_decode_ahead_open(&e->decode_ahead, e->pool, &e->decoder, err);
    if (rc == 0 && e->rewriter != NULL)
        rc = zn_rewriter_use_pool(e->rewriter, e->pool, err);
    return rc == 0 ? zn_async_writer_open(&e->writer, e->pool, &e->outputs, err) : rc;
}

/* Returns the column sets whose data the flows keep. The set LAYER7 finds certificates. */
static unsigned measured_sets(const zn_engine_config *config)
{
    const unsigned of_certificates = 1u << ZN_ATTRIBUTE_CERT_SAN | 1u << ZN_ATTRIBUTE_CERT_ISSUER;
    return output_sets(config) | ((config->attributes & of_certificates) != 0 ? ZN_SET_LAYER7 : 0u);
}

/* Prepares the decoder and its ports. */
static int init_decoder(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    int rc = zn_packet_decoder_init(&e->decoder, err);
    for (size_t i = 0; rc == 0 && i < config->tunnel_port_count; i++)
        if (!zn_packet_decoder_add_port(&e->decoder, config->tunnel_ports[i].port,
                                        config->tunnel_ports[i].kind))
            rc = zn_fail(err, ZN_ERR_CONFIG, 0,
                         "port %u cannot be a tunnel's: at most %d ports of known tunnels, other "
                         "than 0 and 53",
                         config->tunnel_ports[i].port, ZN_TUNNEL_PORTS_MAX);
    return rc;
}

/* Opens packet output if the config wants packets. */
static int open_rewriter(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_rewriter_tables tables = {.policy = &e->policy,
                                 .clock = &e->clock,
                                 .stats = &e->stats,
                                 .keys = e->keys,
                                 .key_settings = zn_engine_key_scope(e),
                                 .flows = e->flows,
                                 .flow_key = &e->decoder.flow_key,
                                 .names = &e->names,
                                 .dn_hunter = &e->dn_hunter,
                                 .outputs = &e->outputs};
    int rc;
    if (!zn_packet_config_is_wanted(config))
        return 0;
    zn_packet_decoder_want_packets(&e->decoder, config->keep_encapsulation);
    rc = zn_rewriter_open(&e->rewriter, config, &tables, err);
    if (rc == 0)
        e->gate.tap = zn_rewriter_tap(e->rewriter);
    return rc;
}

/* Opens an engine by a config of this version of the struct; *out is NULL before. */
static int open_engine(zn_engine **out, const zn_engine_config *config, zn_error *err)
{
    zn_engine *e = zn_block_alloc(sizeof *e);
    int rc;
    if (e == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for an engine");
    e->decoder.stats = &e->stats;
    zn_clock_init(&e->clock, config->window_ns, 0, ZN_CLOCK_REBASE_AFTER);
    rc = check_config(config, err);
    if (rc == 0)
        rc = check_detail(config, err);
    if (rc == 0)
        rc = check_caps(config, err);
    if (rc == 0)
        rc = zn_packet_config_check(config, err);
    if (rc == 0)
        rc = check_levels(config, err);
    if (rc == 0)
        rc = check_attributes(config, err);
    if (rc == 0)
        rc = copy_config(e, config, err);
    if (rc == 0)
        rc = zn_engine_set_never(e, config->never, config->never_count, err);
    if (rc == 0)
        rc = zn_name_lists_init(&e->roles.lists, config->suffixes, config->suffix_count,
                                config->categories, config->category_count, err);
    if (rc == 0)
        rc = init_decoder(e, config, err);
    if (rc == 0)
        rc = zn_engine_open_keys(e, config, err);
    if (rc == 0)
        rc =
            zn_flow_table_open(&e->flows, config->max_flows, measured_sets(config), &e->stats, err);
    if (rc == 0)
        rc = init_anon(e, config, err);
    if (rc == 0)
        rc = zn_engine_open_decider(e, config, err);
    if (rc == 0)
        rc = open_rewriter(e, config, err);
    if (rc == 0 && config->workers > 1)
        rc = init_workers(e, config->workers, err);
    if (rc != 0) {
        zn_engine_close(e);
        return rc;
    }
    *out = e;
    return 0;
}

int zn_engine_open(zn_engine **out, const zn_engine_config *config, zn_error *err)
{
    zn_engine_config own = zn_engine_default_config();
    int rc = zn_config_read(&own, sizeof own, config, "zn_engine_config", err);
    *out = NULL;
    return rc == 0 ? open_engine(out, &own, err) : rc;
}

int zn_engine_start_aside(zn_engine *e, zn_job *job, zn_error *err)
{
    int rc = zn_pool_begin(e->pool, err);
    if (rc == 0)
        zn_pool_start_aside(e->pool, job);
    return rc;
}

void zn_engine_close(zn_engine *e)
{
    if (e == NULL)
        return;
    zn_pool_close(e->pool);
    zn_decode_ahead_close(e->decode_ahead);
    zn_async_writer_close(e->writer);
    zn_outputs_fini(&e->outputs);
    zn_minute_queue_fini(&e->queues.records);
    zn_minute_queue_fini(&e->queues.releases);
    zn_rewriter_close(e->rewriter);
    zn_engine_close_decider(e);
    zn_analyzers_close(&e->names);
    zn_gate_levels_close(&e->gate);
    zn_gate_fini(&e->gate);
    zn_votes_fini(&e->votes);
    zn_popularity_fini(&e->popularity);
    zn_dn_hunter_fini(&e->dn_hunter);
    zn_name_store_fini(&e->name_store);
    zn_flow_table_close(e->flows);
    zn_packet_decoder_fini(&e->decoder);
    zn_keys_close(e->keys);
    zn_addr_plan_fini(&e->plan);
    zn_text_fini(&e->key_scope);
    zn_never_list_fini(&e->roles.never);
    zn_name_lists_fini(&e->roles.lists);
    zn_heap_free(e->internal);
    zn_wipe(e, sizeof *e);
    zn_block_free(e, sizeof *e);
}

zn_outputs *zn_engine_outputs(zn_engine *e)
{
    return &e->outputs;
}

static bool is_public(zn_output output)
{
    return output <= ZN_OUTPUT_VIEW3_PACKETS_NG;
}

zn_span zn_outputs_take(zn_engine *e, zn_output output)
{
    return is_public(output) ? zn_outputs_lines(&e->outputs, (int)output) : (zn_span){NULL, 0};
}

int zn_engine_take_packets(zn_engine *e, zn_frame *out, size_t max, size_t *n)
{
    bool more = false;
    *n = zn_outputs_packets(&e->outputs, ZN_OUTPUT_PACKETS, out, max, &more);
    return more ? 1 : 0;
}

int zn_engine_take_view_packets(zn_engine *e, unsigned view, zn_frame *out, size_t max, size_t *n)
{
    bool more = false;
    *n = 0;
    if (view < ZN_VIEWS_MAX)
        *n = zn_outputs_packets(&e->outputs, (int)(ZN_OUTPUT_VIEW1_PACKETS + 2 * view), out, max,
                                &more);
    return more ? 1 : 0;
}

bool zn_outputs_next_period(zn_engine *e, int64_t *start_ns)
{
    return zn_outputs_next_mark(&e->outputs, start_ns);
}

zn_span zn_outputs_header(const zn_engine *e, zn_output output)
{
    zn_span header = {NULL, 0};
    if (is_public(output)) {
        header.p = (const uint8_t *)e->outputs.header[output].bytes;
        header.n = e->outputs.header[output].n;
    }
    return header;
}

bool zn_engine_waiting(const zn_engine *e)
{
    return e->waiting;
}

bool zn_engine_window(const zn_engine *e, zn_popularity_window *window)
{
    if (e->popularity.due)
        *window = zn_popularity_window_due(&e->popularity);
    return e->popularity.due;
}

size_t zn_engine_window_counts(const zn_engine *e, uint32_t *out, size_t cap)
{
    return e->popularity.due ? zn_ztable_counts(e->popularity.table, out, cap) : 0;
}

bool zn_engine_window_levels(zn_engine *e, zn_level_shares *out)
{
    return e->popularity.due && zn_popularity_levels_due(&e->popularity, out);
}

int zn_engine_set_z(zn_engine *e, uint32_t z, zn_error *err)
{
    int64_t since_ns = e->popularity.due ? e->popularity.end_ns : e->clock.now_ns;
    int rc = zn_gate_set_z(&e->gate, z, since_ns, err);
    if (rc == 0)
        e->policy.z = z;
    return rc;
}

zn_profile_stage zn_engine_profile_stage(const zn_engine *e)
{
    return zn_profile_stage_read(&e->profile);
}

void zn_engine_packet_blocks(const zn_engine *e, zn_text *out)
{
    if (e->rewriter != NULL)
        zn_rewriter_blocks(e->rewriter, out);
}

size_t zn_engine_hold_bytes_max(const zn_engine *e)
{
    return e->rewriter != NULL ? zn_rewriter_delayed_bytes_max(e->rewriter) : 0;
}

const zn_stats *zn_engine_stats(const zn_engine *e)
{
    return &e->stats;
}

const zn_stats *zn_engine_view_stats(const zn_engine *e, unsigned view)
{
    return zn_rewriter_view_stats(e->rewriter, view);
}

zn_ztable_stats zn_engine_table_stats(const zn_engine *e)
{
    return zn_ztable_get_stats(e->gate.table);
}

/* Sets the smallest and the median number of users behind the published labels. */
static void set_users(const zn_levels_stats *stats, zn_level_report *out)
{
    uint64_t labels = 0, seen = 0;
    for (size_t i = 0; i <= ZN_VOTE_TABLE_KEEP_MAX; i++)
        labels += stats->users[i];
    for (uint32_t i = 0; i <= ZN_VOTE_TABLE_KEEP_MAX && 2 * seen < labels; i++) {
        if (seen == 0 && stats->users[i] != 0)
            out->smallest = i;
        seen += stats->users[i];
        out->median = i;
    }
}

bool zn_engine_levels(const zn_engine *e, zn_level_report *out)
{
    zn_levels_stats stats;
    memset(out, 0, sizeof *out);
    if (e->gate.levels == NULL)
        return false;
    stats = zn_levels_get_stats(e->gate.levels->levels);
    out->count = e->gate.levels->labels.count;
    for (uint32_t i = 0; i <= out->count; i++)
        out->level[i] = zn_levels_level_stats(e->gate.levels->levels, i);
    out->paused = stats.paused;
    out->lacked_capacity = stats.lacked_capacity;
    out->ignored_categories = e->roles.lists.ignored_categories;
    set_users(&stats, out);
    return true;
}

uint64_t zn_engine_users(const zn_engine *e, bool *saturated)
{
    *saturated = e->gate.users.full;
    return e->gate.users.members;
}

bool zn_engine_time_range(const zn_engine *e, int64_t *first_ns, int64_t *last_ns)
{
    *first_ns = e->decoder.first_ns;
    *last_ns = e->decoder.last_ns;
    return e->decoder.first_ns >= 0;
}

size_t zn_engine_memory(const zn_engine *e)
{
    size_t bytes = sizeof *e + zn_flow_memory(e->flows) + zn_gate_memory(&e->gate) +
                   zn_gate_levels_memory(&e->gate) + zn_popularity_memory(&e->popularity) +
                   zn_dn_hunter_memory(&e->dn_hunter) + zn_name_store_memory(&e->name_store) +
                   zn_analyzers_memory(&e->names) + zn_defrag_memory(e->decoder.defrag) +
                   (e->pool != NULL ? zn_decode_ahead_memory() + zn_async_writer_memory() : 0);
    bytes += e->rewriter != NULL ? zn_rewriter_memory(e->rewriter) : 0;
    bytes += zn_remote_counter_memory(&e->remote.counter);
    bytes +=
        zn_minute_queue_memory(&e->queues.records) + zn_minute_queue_memory(&e->queues.releases);
    return bytes + zn_outputs_memory(&e->outputs);
}

bool zn_engine_attributes(const zn_engine *e, unsigned attribute, zn_attribute_counts *out)
{
    const zn_attributes *a = e->names.attributes;
    if (a == NULL || (a->wanted & 1u << attribute) == 0)
        return false;
    *out = a->counts[attribute];
    return true;
}

bool zn_engine_attribute_window(const zn_engine *e, unsigned attribute,
                                zn_popularity_window *window)
{
    if (e->popularity.attributes[attribute].table == NULL || !e->popularity.due)
        return false;
    *window = zn_popularity_attribute_due(&e->popularity, (zn_attribute)attribute);
    return true;
}

size_t zn_engine_flow_memory(const zn_engine *e, uint32_t *live)
{
    *live = zn_flow_live(e->flows);
    return zn_flow_memory(e->flows);
}

size_t zn_engine_table_memory(const zn_engine *e)
{
    return zn_ztable_memory(e->gate.table);
}

size_t zn_engine_flow_memory_max(const zn_engine *e)
{
    return zn_flow_memory_max(e->flows);
}

const char *zn_engine_check(const zn_engine *e)
{
    const char *broken = zn_flow_check(e->flows);
    if (broken == NULL)
        broken = zn_defrag_check(e->decoder.defrag);
    if (broken == NULL && e->gate.levels != NULL)
        broken = zn_levels_check(e->gate.levels->levels);
    return broken != NULL ? broken : zn_ztable_check(e->gate.table);
}
