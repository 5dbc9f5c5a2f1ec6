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
    l->flags = zn_block_alloc(cap * sizeof *l->flags);
    l->decisions = zn_block_alloc(cap * sizeof *l->decisions);
    if (l->flags == NULL || l->decisions == NULL)
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
    levels.max_per_network = g->policy->caps.max_per_prefix;
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
    zn_block_free(l->flags, l->cap * sizeof *l->flags);
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

/* Returns the vote that observation i is from, of the observations that are being decided. */
static const zn_vote *vote_at(const zn_gate *g, size_t i)
{
    return &g->votes->at[g->batch.vote[g->levels->at + i]];
}

/* Returns the kind of the votes whose namespace a vote or a peek asks: of names or of addresses.
 * Any other kind has no labels. */
static zn_vote_kind label_kind(const zn_gate *g, const zn_vote *v)
{
    bool apart = g->policy->roles->dns_votes == ZN_DNS_VOTES_OWN;
    uint8_t source;
    switch (v->kind) {
    case ZN_VOTE_PEEK:
        source = zn_name_store_at(g->name_store, v->entry)->source;
        if (source == ZN_SOURCE_NONE)
            return v->kind; /* a fingerprint */
        return apart && source == ZN_SOURCE_DNS ? ZN_VOTE_DNS_NAME : ZN_VOTE_NAME;
    case ZN_VOTE_DNS_NAME:
        return apart ? ZN_VOTE_DNS_NAME : ZN_VOTE_NAME;
    case ZN_VOTE_ADDR_PEEK:
        return ZN_VOTE_ADDR;
    case ZN_VOTE_DNS_ADDR:
    case ZN_VOTE_DNS_ADDR_PEEK:
        return apart ? ZN_VOTE_DNS_ADDR : ZN_VOTE_ADDR;
    default:
        return v->kind;
    }
}

void zn_gate_levels_of_name(const zn_gate *g, const zn_vote *v, zn_id *labels)
{
    const zn_labels *all = &g->levels->labels;
    zn_id chain[ZN_LABEL_LEVELS_MAX + 1];
    labels[0] = labels[1] = (zn_id){0, 0};
    chain[0] = zn_name_store_at(g->name_store, v->entry)->id;
    zn_labels_of_name(all, v->kind, zn_name_store_text(g->name_store, v->entry), chain);
    for (uint32_t i = 1; i <= all->count; i++)
        if (all->name_level[i] != ZN_NAME_LEVEL_NONE)
            labels[all->name_level[i] == ZN_NAME_LEVEL_CATEGORY] = chain[i];
}

/* Writes the labels above level 0 of the value of an observation. */
static void write_chain(void *of, size_t i, zn_id *chain)
{
    const zn_gate *g = of;
    const zn_labels *labels = &g->levels->labels;
    const zn_vote *v = vote_at(g, i);
    zn_vote_kind kind = label_kind(g, v);
    if (kind == ZN_VOTE_NAME || kind == ZN_VOTE_DNS_NAME) {
        zn_labels_of_name(labels, kind, zn_name_store_text(g->name_store, v->entry), chain);
    } else if (kind == ZN_VOTE_ADDR || kind == ZN_VOTE_DNS_ADDR) {
        const zn_flow *f = zn_flow_at(g->flows, v->flow);
        zn_labels_of_address(labels, kind, &f->tuple.addr[1 - f->client], chain);
    } else {
        memset(chain + 1, 0, labels->count * sizeof *chain);
    }
}

/* Returns a hash of the network of an observation's user. */
static uint32_t network_of(void *of, size_t i)
{
    const zn_gate *g = of;
    zn_addr user = zn_gate_user(g, zn_flow_at(g->flows, vote_at(g, i)->flow));
    return zn_user_caps_network(g->caps, &user);
}

/* Sets the flags of n observations that are being decided. Returns NULL if no flag is set. */
static const uint8_t *set_flags(const zn_gate *g, size_t n)
{
    uint8_t *flags = g->levels->flags, all = 0;
    if (g->tap == NULL && g->policy->roles->dns_votes != ZN_DNS_VOTES_NO &&
        g->z_since_ns == INT64_MIN)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        flags[i] = zn_gate_is_peek(g, vote_at(g, i)) ? ZN_EXPOSURE_PEEK : 0;
        if (g->batch.observation[g->levels->at + i].t_ns < g->z_since_ns)
            flags[i] |= ZN_EXPOSURE_EARLY;
        all |= flags[i];
    }
    return all != 0 ? flags : NULL;
}

void zn_gate_levels_decide(zn_gate *g, size_t at, size_t end)
{
    zn_gate_levels *l = g->levels;
    zn_exposures part = {.observations = g->batch.observation + at,
                         .n = end - at,
                         .chain = write_chain,
                         .network = network_of,
                         .of = g};
    l->at = at;
    part.flags = set_flags(g, part.n);
    zn_levels_set_early_z(l->levels, g->z_highest);
    zn_levels_decide(l->levels, &part, l->decisions + at);
}

/* A value that a record discloses without a vote. */
typedef struct disclosed_value {
    const zn_labels *labels;
    zn_vote_kind kind;
    zn_span value;
} disclosed_value;

/* Writes the labels above level 0 of a disclosed value. */
static void write_disclosed_chain(void *of, size_t i, zn_id *chain)
{
    const disclosed_value *disclosed = of;
    (void)i;
    if (disclosed->kind == ZN_VOTE_NAME) {
        zn_labels_of_name(disclosed->labels, disclosed->kind, disclosed->value, chain);
    } else {
        zn_addr address;
        ZN_ASSERT(disclosed->value.n == sizeof address);
        memcpy(&address, disclosed->value.p, sizeof address);
        zn_labels_of_address(disclosed->labels, disclosed->kind, &address, chain);
    }
}

void zn_gate_levels_show(const zn_gate *g, zn_vote_kind kind, zn_span value)
{
    disclosed_value disclosed = {&g->levels->labels, kind, value};
    zn_observation o = {.t_ns = g->clock->now_ns, .attribute = zn_votes_id(g->votes, kind, value)};
    uint8_t flags = ZN_EXPOSURE_PEEK;
    zn_exposures one = {&o, &flags, 1, write_disclosed_chain, NULL, &disclosed};
    zn_level_decision decision;
    zn_levels_decide(g->levels->levels, &one, &decision);
}

/* ---- publications ---- */

static void publish_address(zn_gate *g, const zn_vote *v, zn_server_level level)
{
    zn_flow *f = zn_flow_at(g->flows, v->flow);
    bool shows = ZN_STATE(f)->addr_vote == ZN_ADDR_VOTED; /* unless withhold_server ran since */
    bool as = level == ZN_SERVER_LEVEL_AS;
    ZN_STATE(f)->addr_vote = !shows ? ZN_ADDR_SUPPRESSED : as ? ZN_ADDR_AS : ZN_ADDR_COUNTRY;
    if (g->tap != NULL)
        g->tap->addr_decided(g->tap->of, v, 0); /* packets show no labels */
    g->stats->n[ZN_STAT_ADDR_OBSERVATIONS]++;
    g->stats->n[shows ? ZN_STAT_ADDR_GENERALIZED : ZN_STAT_ADDR_SUPPRESSED]++;
    g->stats->n[as ? ZN_STAT_GENERALIZED_AS : ZN_STAT_GENERALIZED_COUNTRY] += shows;
}

/* Replaces the text of an entry by its label. Returns false without a label or room. */
static bool keep_label(zn_gate *g, uint32_t entry, zn_name_level level)
{
    zn_hostname label;
    bool has = zn_labels_text(&g->levels->labels, level, zn_name_store_at(g->name_store, entry)->id,
                              zn_name_store_text(g->name_store, entry), &label);
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
