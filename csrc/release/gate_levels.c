/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/gate_levels.h"

#include "release/gate_internal.h"
#include "util/arena.h"

#define QUARTER(cap) ((cap) / 4 + 1)

/* Lays out the arrays of a batch. */
static int alloc_batch(zn_gate_levels *l, size_t cap, zn_error *err)
{
    l->cap = cap;
    l->exposures = zn_block_alloc(cap * sizeof *l->exposures);
    l->chains = zn_block_alloc(cap * (l->labels.count + 1) * sizeof *l->chains);
    l->decisions = zn_block_alloc(cap * sizeof *l->decisions);
    if (l->exposures == NULL || l->chains == NULL || l->decisions == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of %zu votes", cap);
    return 0;
}

int zn_gate_levels_open(zn_gate *g, const zn_gate_levels_config *config, zn_error *err)
{
    zn_gate_levels *l = zn_heap_alloc(sizeof *l);
    zn_levels_config levels;
    int rc;
    g->levels = l;
    if (l == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for labels");
    rc = zn_labels_init(&l->labels, &config->labels, err);
    if (rc == 0)
        rc = alloc_batch(l, g->votes->cap, err);
    if (rc != 0)
        return rc;
    levels =
        zn_levels_default_config(g->table, l->labels.count, g->policy->z, g->policy->window_ns);
    levels.z_max = config->z_max;
    levels.max_votes = QUARTER(config->max_tuples);
    levels.max_labels = QUARTER(config->max_attributes);
    levels.parents = zn_labels_parents;
    levels.parents_of = &l->labels;
    return zn_levels_open(&l->levels, &levels, err);
}

void zn_gate_levels_close(zn_gate *g)
{
    zn_gate_levels *l = g->levels;
    if (l == NULL)
        return;
    zn_levels_close(l->levels);
    zn_block_free(l->exposures, l->cap * sizeof *l->exposures);
    zn_block_free(l->chains, l->cap * (l->labels.count + 1) * sizeof *l->chains);
    zn_block_free(l->decisions, l->cap * sizeof *l->decisions);
    zn_labels_fini(&l->labels);
    zn_heap_free(l);
    g->levels = NULL;
}

size_t zn_gate_levels_memory(const zn_gate *g)
{
    const zn_gate_levels *l = g->levels;
    return l == NULL ? 0 : zn_labels_memory(&l->labels) + zn_levels_memory(l->levels);
}

/* Fills the labels above level 0 of a vote's value. */
static void fill_chain(const zn_gate *g, const zn_vote *v, zn_id *chain)
{
    const zn_labels *labels = &g->levels->labels;
    bool instead = zn_gate_is_peek(g, v) && g->policy->roles->dns_votes == ZN_DNS_VOTES_NO;
    for (uint32_t i = 1; i <= labels->count; i++)
        chain[i] = (zn_id){0, 0};
    if (v->kind == ZN_VOTE_NAME || v->kind == ZN_VOTE_DNS_NAME)
        zn_labels_of_name(labels, instead ? ZN_VOTE_NAME : v->kind,
                          zn_name_store_text(g->name_store, v->entry), chain);
    else if (v->kind == ZN_VOTE_ADDR || v->kind == ZN_VOTE_DNS_ADDR) {
        const zn_flow *f = zn_flow_at(g->flows, v->flow);
        zn_labels_of_address(labels, instead ? ZN_VOTE_ADDR : v->kind,
                             &f->tuple.addr[1 - f->client], chain);
    }
}

void zn_gate_levels_of_name(const zn_gate *g, const zn_vote *v, zn_id *labels)
{
    const zn_labels *all = &g->levels->labels;
    zn_id chain[ZN_LABEL_LEVELS_MAX + 1];
    labels[0] = labels[1] = (zn_id){0, 0};
    zn_labels_of_name(all, v->kind, zn_name_store_text(g->name_store, v->entry), chain);
    for (uint32_t i = 1; i <= all->count; i++)
        if (all->name_level[i] != ZN_NAME_LEVEL_NONE)
            labels[all->name_level[i] == ZN_NAME_LEVEL_CATEGORY] = chain[i];
}

void zn_gate_levels_decide(zn_gate *g, size_t n)
{
    zn_gate_levels *l = g->levels;
    for (size_t i = 0; i < n; i++) {
        const zn_observation *o = &g->batch.observation[i];
        const zn_vote *v = &g->votes->at[g->batch.vote[i]];
        zn_id *chain = l->chains + i * (l->labels.count + 1);
        zn_exposure *e = &l->exposures[i];
        chain[0] = o->attribute;
        fill_chain(g, v, chain);
        *e = (zn_exposure){.t_ns = o->t_ns, .user = o->user, .chain = chain};
        if (zn_gate_is_peek(g, v))
            e->flags |= ZN_EXPOSURE_PEEK;
        if (o->t_ns < g->z_since_ns)
            e->flags |= ZN_EXPOSURE_EARLY;
    }
    zn_levels_set_early_z(l->levels, g->z_highest);
    zn_levels_decide(l->levels, l->exposures, n, l->decisions);
}

void zn_gate_levels_show(const zn_gate *g, zn_vote_kind kind, zn_span value)
{
    zn_gate_levels *l = g->levels;
    zn_id chain[ZN_LABEL_LEVELS_MAX + 1];
    zn_exposure e = {.t_ns = g->clock->now_ns, .chain = chain, .flags = ZN_EXPOSURE_PEEK};
    zn_level_decision decision;
    chain[0] = zn_votes_id(g->votes, kind, value);
    if (kind == ZN_VOTE_NAME) {
        zn_labels_of_name(&l->labels, kind, value, chain);
    } else {
        zn_addr address;
        ZN_ASSERT(value.n == sizeof address);
        memcpy(&address, value.p, sizeof address);
        zn_labels_of_address(&l->labels, kind, &address, chain);
    }
    zn_levels_decide(l->levels, &e, 1, &decision);
}

/* ---- publications ---- */

static void publish_address(zn_gate *g, const zn_vote *v, zn_server_level level)
{
    zn_flow *f = zn_flow_at(g->flows, v->flow);
    bool shows = ZN_STATE(f)->addr_vote == ZN_ADDR_VOTED; /* unless withhold_server ran since */
    bool as = level == ZN_SERVER_LEVEL_AS;
    ZN_STATE(f)->addr_vote = !shows ? ZN_ADDR_SUPPRESSED : as ? ZN_ADDR_AS : ZN_ADDR_COUNTRY;
    g->stats->n[ZN_STAT_ADDR_OBSERVATIONS]++;
    g->stats->n[shows ? ZN_STAT_ADDR_GENERALIZED : ZN_STAT_ADDR_SUPPRESSED]++;
    g->stats->n[as ? ZN_STAT_GENERALIZED_AS : ZN_STAT_GENERALIZED_COUNTRY] += shows;
}

/* Replaces the text of an entry by its label. Returns false without a label or room. */
static bool keep_label(zn_gate *g, uint32_t entry, zn_name_level level)
{
    zn_hostname label;
    bool has =
        zn_labels_text(&g->levels->labels, level, zn_name_store_text(g->name_store, entry), &label);
    zn_name_store_wipe_text(g->name_store, entry);
    return has && zn_name_store_keep_text(g->name_store, entry, &label);
}

static void publish_name(zn_gate *g, const zn_vote *v, zn_name_level level)
{
    zn_name_entry *e = zn_name_store_at(g->name_store, v->entry);
    bool domain = level == ZN_NAME_LEVEL_DOMAIN;
    if (!keep_label(g, v->entry, level)) {
        zn_gate_finish(g, v, false, ZN_STAT_SUPPRESSED_CAPACITY, 0);
        return;
    }
    zn_name_store_decided_by_vote(g->name_store, v->entry, 0);
    e->state = domain ? ZN_ENTRY_DOMAIN : ZN_ENTRY_CATEGORY;
    g->stats->n[domain ? ZN_STAT_GENERALIZED_DOMAIN : ZN_STAT_GENERALIZED_CATEGORY]++;
    if (v->kind == ZN_VOTE_DNS_NAME) {
        g->stats->n[ZN_STAT_DNS_OBSERVATIONS]++;
        g->stats->n[ZN_STAT_DNS_GENERALIZED]++;
    } else {
        g->stats->n[ZN_STAT_OBSERVATIONS]++;
        g->stats->n[ZN_STAT_GENERALIZED]++;
    }
    zn_gate_add_release(g, v, level);
}

void zn_gate_levels_publish(zn_gate *g, const zn_vote *v, uint32_t level)
{
    if (v->kind == ZN_VOTE_ADDR || v->kind == ZN_VOTE_DNS_ADDR)
        publish_address(g, v, g->levels->labels.server_level[level]);
    else
        publish_name(g, v, g->levels->labels.name_level[level]);
}
