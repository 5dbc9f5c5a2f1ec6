/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/gate.h"

#include "analyzer/secondary.h"
#include "release/gate_internal.h"
#include "release/gate_levels.h"

static int alloc_batch(zn_gate *g, size_t n, zn_error *err)
{
    zn_gate_batch *batch = &g->batch;
    zn_gate_released *released = &g->released;
    batch->observation = zn_block_alloc(n * sizeof *batch->observation);
    batch->vote = zn_block_alloc(n * sizeof *batch->vote);
    batch->answer = zn_block_alloc(n);
    batch->released_in = zn_block_alloc(n);
    released->at = zn_block_alloc(n * sizeof *released->at);
    released->origin = zn_block_alloc(n * sizeof *released->origin);
    if (batch->observation == NULL || batch->vote == NULL || batch->answer == NULL ||
        batch->released_in == NULL || released->at == NULL || released->origin == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of %zu votes", n);
    return 0;
}

/* Opens caps of users if the policy has caps. */
static int open_caps(zn_gate *g, const zn_gate_limits *limits, zn_error *err)
{
    zn_user_caps_config caps = g->policy->caps;
    caps.window_ns = g->policy->window_ns;
    caps.max_tuples = limits->max_tuples;
    caps.max_attributes = limits->max_attributes;
    caps.max_users = limits->max_clients;
    return zn_user_caps_are_set(&caps) ? zn_user_caps_open(&g->caps, &caps, err) : 0;
}

int zn_gate_init(zn_gate *g, const zn_gate_limits *limits, zn_error *err)
{
    zn_ztable_config table = zn_ztable_default_config(g->policy->z, g->policy->window_ns);
    int rc;
    table.keep = limits->keep; /* the z most recent users decide exactly */
    table.max_tuples = limits->max_tuples;
    table.max_attributes = limits->max_attributes;
    g->z_since_ns = INT64_MIN;
    g->z_highest = g->policy->z;
    rc = zn_ztable_open(&g->table, &table, err);
    if (rc == 0)
        rc = zn_clients_init(&g->clients, limits->max_clients, err);
    if (rc == 0)
        rc = zn_addr_set_init(&g->users, limits->max_clients, err);
    if (rc == 0)
        rc = alloc_batch(g, g->votes->cap, err);
    return rc == 0 ? open_caps(g, limits, err) : rc;
}

void zn_gate_fini(zn_gate *g)
{
    size_t cap = g->votes != NULL ? g->votes->cap : 0;
    zn_block_free(g->batch.observation, cap * sizeof *g->batch.observation);
    zn_block_free(g->batch.vote, cap * sizeof *g->batch.vote);
    zn_block_free(g->batch.answer, cap);
    zn_block_free(g->batch.released_in, cap);
    zn_block_free(g->released.at, cap * sizeof *g->released.at);
    zn_block_free(g->released.origin, cap * sizeof *g->released.origin);
    zn_clients_fini(&g->clients);
    zn_addr_set_fini(&g->users);
    zn_user_caps_close(g->caps);
    zn_ztable_close(g->table);
    memset(g, 0, sizeof *g);
}

size_t zn_gate_memory(const zn_gate *g)
{
    return zn_ztable_memory(g->table) + zn_clients_memory(&g->clients) +
           zn_addr_set_memory(&g->users) + zn_user_caps_memory(g->caps);
}

bool zn_gate_is_shared(const zn_gate *g, zn_id attribute)
{
    return g->policy->roles->release_all ||
           zn_ztable_count_at(g->table, attribute, g->clock->now_ns) >= g->policy->z;
}

zn_addr zn_gate_user(const zn_gate *g, const zn_flow *f)
{
    const zn_addr *real = zn_flow_user(g->flows, f);
    zn_addr cut = {{0}};
    if (!zn_addr_is_special(real))
        cut = zn_addr_cut(real, g->policy->roles->user_v4_bits, g->policy->roles->user_v6_bits);
    return cut;
}

void zn_gate_rebase(zn_gate *g, int64_t epoch)
{
    g->decider->rebase_clients(&g->clients, epoch);
    g->z_since_ns = INT64_MIN; /* no vote of the old time can come now */
}

bool zn_gate_addr_is_public(const zn_gate *g, const zn_flow *f)
{
    const zn_roles *roles = g->policy->roles;
    const zn_addr *server = &f->tuple.addr[1 - f->client];
    zn_addr carried = zn_addr_carried(server);
    if (zn_addr_is_group(server))
        return !f->internal[1 - f->client] && !zn_addr_is_known_group(server) &&
               !zn_addr_is_derived_group(server);
    return !f->internal[1 - f->client] && !zn_addr_is_special(server) &&
           (zn_addr_equal(&carried, server) ||
            (!zn_addr_is_special(&carried) &&
             !zn_nets_contain(roles->internal, roles->internal_count, &carried)));
}

/* Reports the decision on a server's address to packet output. */
static void report_addr(const zn_gate *g, const zn_vote *v, uint8_t released_in)
{
    if (g->tap != NULL)
        g->tap->addr_decided(g->tap->of, v, released_in);
}

void zn_gate_refuse_addr(zn_gate *g, const zn_vote *v, zn_flow *f)
{
    if (zn_vote_is_addr_peek(v))
        return;
    ZN_STATE(f)->addr_vote = ZN_ADDR_SUPPRESSED;
    report_addr(g, v, 0);
}

/* Reports the answer to a peek to packet output, which alone casts votes of this kind. */
static void finish_peek(const zn_gate *g, const zn_vote *v, uint8_t shared_in)
{
    if (g->tap != NULL)
        g->tap->peek_answered(g->tap->of, v,
                              g->policy->roles->release_all ? ZN_ALL_OUTPUTS : shared_in);
}

static void finish_addr(zn_gate *g, const zn_vote *v, zn_flow *f, bool release, uint8_t released_in)
{
    report_addr(g, v, released_in);
    release &=
        ZN_STATE(f)->addr_vote == ZN_ADDR_VOTED; /* unless withhold_server ran since the vote */
    ZN_STATE(f)->addr_vote = release ? ZN_ADDR_RELEASED : ZN_ADDR_SUPPRESSED;
    g->stats->n[ZN_STAT_ADDR_OBSERVATIONS]++;
    g->stats->n[release ? ZN_STAT_ADDR_RELEASED : ZN_STAT_ADDR_SUPPRESSED]++;
}

/* Returns the namespace of the name or attribute that a vote is for. */
static zn_space space_of(zn_vote_kind kind)
{
    if (kind >= ZN_VOTE_ATTRIBUTE)
        return (zn_space)(ZN_SPACE_ATTRIBUTE + (kind - ZN_VOTE_ATTRIBUTE));
    return kind == ZN_VOTE_DNS_NAME ? ZN_SPACE_DNS : ZN_SPACE_NAME;
}

void zn_gate_fill_release(const zn_gate *g, const zn_vote *v, zn_release *out)
{
    const zn_flow *f = zn_flow_at(g->flows, v->flow);
    out->t_ns = zn_policy_time(v->t_ns, g->policy->times_ns);
    out->client = zn_flow_pseudonym(g->flows, f, f->user);
    out->client_disclosure =
        zn_addr_is_unset(&out->client) || zn_addr_is_special(zn_flow_user(g->flows, f))
            ? ZN_DISCLOSURE_NONE
            : ZN_DISCLOSURE_PSEUDONYM;
    out->name = zn_name_store_text(g->name_store, v->entry);
    out->source = (zn_name_source)zn_name_store_at(g->name_store, v->entry)->source;
    out->level = ZN_NAME_LEVEL_NONE;
    out->space = g->attributes != NULL ? space_of(v->kind) : ZN_SPACE_NONE;
}

void zn_gate_add_release(zn_gate *g, const zn_vote *v, zn_name_level level)
{
    zn_release *release = &g->released.at[g->released.n];
    g->released.origin[g->released.n++] = (zn_release_origin){.t_ns = v->t_ns, .flow = v->flow};
    zn_gate_fill_release(g, v, release);
    if (g->levels != NULL)
        release->level = level;
}

static void finish_name(zn_gate *g, const zn_vote *v, bool release, zn_stat why,
                        uint8_t released_in)
{
    zn_name_entry *e = zn_name_store_at(g->name_store, v->entry);
    bool apart = v->kind == ZN_VOTE_DNS_NAME;
    zn_name_store_decided_by_vote(g->name_store, v->entry, released_in);
    g->stats->n[apart ? ZN_STAT_DNS_OBSERVATIONS : ZN_STAT_OBSERVATIONS]++;
    if (!release) {
        e->state = ZN_ENTRY_SUPPRESSED;
        zn_name_store_wipe_text(g->name_store, v->entry);
        g->stats->n[apart ? ZN_STAT_DNS_SUPPRESSED : why]++;
        return;
    }
    e->state = ZN_ENTRY_RELEASED;
    g->stats->n[apart ? ZN_STAT_DNS_RELEASED : ZN_STAT_RELEASED]++;
    zn_gate_add_release(g, v, ZN_NAME_LEVEL_NAME);
}

static void finish_secondary(zn_gate *g, const zn_vote *v, bool release, uint8_t released_in)
{
    zn_name_store_decided_by_vote(g->name_store, v->entry, released_in);
    if (v->kind == ZN_VOTE_FINGERPRINT) {
        zn_name_store_at(g->name_store, v->entry)->state =
            release ? ZN_ENTRY_RELEASED : ZN_ENTRY_SUPPRESSED;
        return;
    }
    if (!release) {
        zn_secondary_suppress(g->name_store, g->stats, v->kind, v->entry);
        return;
    }
    zn_name_store_at(g->name_store, v->entry)->state = ZN_ENTRY_RELEASED;
    g->stats
        ->n[v->kind == ZN_VOTE_AGENT ? ZN_STAT_AGENTS_RELEASED : ZN_STAT_CERTIFICATES_RELEASED]++;
}

static void finish_attribute(zn_gate *g, const zn_vote *v, bool release)
{
    const zn_flow *f = zn_flow_at(g->flows, v->flow);
    if (zn_attributes_decide(g->attributes, g->name_store, f, v->entry, release,
                             g->policy->roles->release_all))
        zn_gate_add_release(g, v, ZN_NAME_LEVEL_NONE);
}

void zn_gate_finish(zn_gate *g, const zn_vote *v, bool release, zn_stat why, uint8_t outputs)
{
    zn_flow *f = zn_flow_at(g->flows, v->flow);
    if (v->kind == ZN_VOTE_NAME || v->kind == ZN_VOTE_DNS_NAME)
        finish_name(g, v, release, why, outputs);
    else if (v->kind >= ZN_VOTE_ATTRIBUTE)
        finish_attribute(g, v, release);
    else if (zn_vote_is_packet_peek(v))
        finish_peek(g, v, outputs);
    else if (zn_vote_is_addr(v))
        finish_addr(g, v, f, release, outputs);
    else
        finish_secondary(g, v, release, outputs);
}

int zn_gate_set_z(zn_gate *g, uint32_t z, int64_t since_ns, zn_error *err)
{
    int rc = g->levels != NULL ? zn_levels_set_z(g->levels->levels, z, err)
                               : zn_ztable_set_z(g->table, z, err);
    if (rc != 0)
        return rc;
    g->z_since_ns = since_ns;
    if (z > g->z_highest)
        g->z_highest = z;
    return 0;
}

const zn_release *zn_gate_releases(const zn_gate *g, size_t *count)
{
    *count = g->released.n;
    return g->released.at;
}
