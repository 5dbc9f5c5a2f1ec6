/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/gate_local.h"

#include "release/gate_caps.h"
#include "release/gate_internal.h"
#include "release/gate_levels.h"

/* ---- clients ---- */

static uint64_t user_hash(const zn_gate *g, const zn_flow *f)
{
    zn_addr user = zn_gate_user(g, f);
    return zn_addr_set_hash(&g->users, &user);
}

/* Adds the flow's client to the clients of this epoch. address: hash of the client's address. */
static void add_client(zn_gate *g, const zn_flow *f, uint64_t address)
{
    zn_clients_add(&g->clients, address);
    if (f->user_outside && f->user == f->client)
        zn_clients_add(&g->clients, zn_clients_hash(&g->clients, zn_flow_user(g->flows, f)));
}

void zn_gate_flow_closed(zn_gate *g, const zn_flow *f)
{
    int64_t begins_ns = g->clients.epoch * g->policy->roles->rotate_ns;
    if (ZN_FACTS(f)->client_marked && f->first_ns < begins_ns && f->last_ns >= begins_ns)
        add_client(g, f, zn_clients_hash(&g->clients, &f->tuple.addr[f->client]));
}

/* Withholds the server of a flow that is older than this epoch if the server was a client in the
 * previous epoch. The clients of that epoch are about to be forgotten, and no later record of the
 * flow may disclose the server. */
static void withhold_server(zn_gate *g, uint32_t flow)
{
    zn_flow *f = zn_flow_at(g->flows, flow);
    uint64_t server;
    if (ZN_STATE(f)->addr_vote == ZN_ADDR_SUPPRESSED)
        return;
    server = zn_clients_hash(&g->clients, &f->tuple.addr[1 - f->client]);
    ZN_FACTS(f)->server_was_client |= zn_clients_had_before(&g->clients, server);
    if (g->tap != NULL && ZN_FACTS(f)->server_was_client)
        g->tap->server_was_client(g->tap->of, flow,
                                  (g->clients.epoch + 1) * g->policy->roles->rotate_ns);
    /* A pending vote stays pending, because names wait for it as well. */
    if (ZN_FACTS(f)->server_was_client && ZN_STATE(f)->addr_vote != ZN_ADDR_PENDING)
        ZN_STATE(f)->addr_vote = ZN_ADDR_SUPPRESSED;
}

/* Begins another epoch. The client of a flow that is older than the ending epoch and had packets in
 * it was a client in the ending epoch as well, and may still be a client. */
static void begin_epoch(zn_gate *g, int64_t epoch)
{
    for (uint32_t n = zn_flow_after(g->flows, 0); n != 0; n = zn_flow_after(g->flows, n)) {
        zn_flow *f = zn_flow_at(g->flows, n);
        if (zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns) >= g->clients.epoch)
            continue;
        withhold_server(g, n);
        if (ZN_FACTS(f)->client_marked &&
            (f->end == ZN_FLOW_OPEN ||
             f->last_ns >= g->clients.epoch * g->policy->roles->rotate_ns))
            add_client(g, f, zn_clients_hash(&g->clients, &f->tuple.addr[f->client]));
    }
    zn_clients_next_epoch(&g->clients, epoch);
}

static void mark_client(zn_gate *g, const zn_flow *f, const zn_vote *v)
{
    int64_t epoch = zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns);
    if (epoch > g->clients.epoch)
        begin_epoch(g, epoch);
    add_client(g, f, v->address);
    if (zn_flow_has_user(f))
        zn_addr_set_add_hash(&g->users, v->user);
}

/* ---- votes ---- */

/* Fills in the hashes of all votes, and prefetches the memory of their look-ups. A later vote of a
 * flow takes the user's hash from the flow's previous vote. */
static void hash_votes(zn_gate *g)
{
    uint32_t last[ZN_LAST_VOTES] = {0}; /* by flow: index of the last vote + 1, or 0 */
    for (size_t i = 0; i < g->votes->n; i++) {
        zn_vote *v = &g->votes->at[i];
        const zn_flow *f = zn_flow_at(g->flows, v->flow);
        bool marks = v->kind == ZN_VOTE_CLIENT;
        uint32_t before = last[v->flow % ZN_LAST_VOTES];
        last[v->flow % ZN_LAST_VOTES] = (uint32_t)i + 1;
        if (before != 0 && g->votes->at[before - 1].flow == v->flow)
            v->user = g->votes->at[before - 1].user;
        else
            v->user = zn_flow_has_user(f) ? user_hash(g, f) : 0;
        if (!marks && !zn_vote_is_addr(v))
            continue;
        v->address = zn_clients_hash(&g->clients, &f->tuple.addr[f->client ^ !marks]);
        if (marks) {
            zn_clients_prefetch_add(&g->clients, v->address);
            zn_addr_set_prefetch(&g->users, v->user);
        } else {
            zn_clients_prefetch(&g->clients, v->address);
        }
    }
}

/* Returns true if the server's address may be an attribute. */
static bool addr_may_vote(zn_gate *g, const zn_flow *f, const zn_vote *v)
{
    if (!zn_gate_addr_is_public(g, f))
        return false;
    if (zn_clients_incomplete(&g->clients))
        g->stats->n[ZN_STAT_ADDR_CLIENT_SET_INCOMPLETE]++;
    return !ZN_FACTS(f)->server_was_client && !zn_clients_have(&g->clients, v->address);
}

/* Returns the identity of the name or text that the vote is for. A peek takes the identity that
 * votes of other protocols have. */
static zn_id text_id(const zn_gate *g, const zn_vote *v)
{
    bool instead = zn_gate_is_peek(g, v) && g->policy->roles->dns_votes == ZN_DNS_VOTES_NO;
    bool dns = v->kind == ZN_VOTE_DNS_NAME ||
               (v->kind == ZN_VOTE_PEEK &&
                zn_name_store_at(g->name_store, v->entry)->source == ZN_SOURCE_DNS);
    if (instead && dns)
        return zn_votes_id(g->votes, ZN_VOTE_NAME, zn_name_store_text(g->name_store, v->entry));
    return zn_name_store_at(g->name_store, v->entry)->id;
}

/* Returns the attribute that the vote is for. */
static zn_id attribute_of(const zn_gate *g, const zn_flow *f, const zn_vote *v)
{
    bool dns = v->kind == ZN_VOTE_DNS_ADDR || v->kind == ZN_VOTE_DNS_ADDR_PEEK;
    if (!zn_vote_is_addr(v))
        return text_id(g, v);
    if (zn_gate_is_peek(g, v) && g->policy->roles->dns_votes == ZN_DNS_VOTES_NO)
        dns = false;
    return zn_votes_id(g->votes, dns ? ZN_VOTE_DNS_ADDR : ZN_VOTE_ADDR,
                       zn_addr_span(&f->tuple.addr[1 - f->client]));
}

/* Turns votes into observations for the z-table; client marks, excluded addresses and votes
 * that a cap refuses end here. */
static size_t make_observations(zn_gate *g)
{
    size_t n = 0;
    hash_votes(g);
    for (size_t i = 0; i < g->votes->n; i++) {
        const zn_vote *v = &g->votes->at[i];
        zn_flow *f = zn_flow_at(g->flows, v->flow);
        zn_observation *o = &g->batch.observation[n];
        if (v->kind == ZN_VOTE_CLIENT) {
            mark_client(g, f, v);
            continue;
        }
        if (zn_vote_is_addr(v) && !addr_may_vote(g, f, v)) {
            zn_gate_refuse_addr(g, v, f);
            continue;
        }
        o->t_ns = v->t_ns;
        o->user = v->user;
        o->attribute = attribute_of(g, f, v);
        if (g->caps != NULL && zn_gate_caps_refuse(g, v, o))
            continue;
        g->batch.vote[n++] = (uint32_t)i;
    }
    return n;
}

static zn_stat reason_of(zn_decision decision)
{
    switch (decision) {
    case ZN_TOO_LATE:
    case ZN_LATE_DEEP:
        return ZN_STAT_SUPPRESSED_TOO_LATE;
    case ZN_NO_ROOM:
        return ZN_STAT_SUPPRESSED_CAPACITY;
    case ZN_RELEASE:
    case ZN_BELOW_Z:
        break;
    }
    return ZN_STAT_SUPPRESSED_BELOW_Z;
}

/* Decides a peek by the number of users that share its attribute. */
static void look_up_peek(zn_gate *g, size_t at, uint32_t z)
{
    const zn_observation *o = &g->batch.observation[at];
    uint64_t users = zn_ztable_count_at(g->table, o->attribute, o->t_ns);
    g->batch.answer[at] = users >= z ? ZN_RELEASE : ZN_BELOW_Z;
}

/* Decides as observe_part does, and counts the users after each observation, because some outputs
 * need more users than z. */
static void observe_and_count(zn_gate *g, size_t at, size_t end, uint32_t z)
{
    zn_gate_batch *batch = &g->batch;
    for (; at < end; at++) {
        const zn_observation *o = &batch->observation[at];
        batch->released_in[at] = 0;
        if (zn_gate_is_peek(g, &g->votes->at[batch->vote[at]]))
            look_up_peek(g, at, z);
        else
            batch->answer[at] = (uint8_t)zn_ztable_observe(g->table, o);
        if (batch->answer[at] == ZN_RELEASE)
            batch->released_in[at] = g->tap->outputs_of_release(
                g->tap->of, zn_ztable_count_at(g->table, o->attribute, o->t_ns), z);
    }
}

/* Returns true if packet outputs differ in the number of users that they need. */
static bool outputs_differ(const zn_gate *g)
{
    return g->tap != NULL && g->tap->outputs_of_release != NULL;
}

/* Decides the observations from `at` to `end` by the table, whose z is `z`. */
static void observe_part(zn_gate *g, size_t at, size_t end, uint32_t z)
{
    zn_gate_batch *batch = &g->batch;
    bool peeks = g->policy->roles->dns_votes == ZN_DNS_VOTES_NO || g->tap != NULL;
    if (outputs_differ(g)) {
        observe_and_count(g, at, end, z);
        return;
    }
    while (at < end) {
        size_t stop = peeks ? at : end;
        while (stop < end && !zn_gate_is_peek(g, &g->votes->at[batch->vote[stop]]))
            stop++;
        zn_ztable_observe_batch(g->table, batch->observation + at, stop - at, batch->answer + at);
        if (stop < end)
            look_up_peek(g, stop, z);
        at = stop + 1;
    }
}

/* Decides n observations, which are in time order, by the table. */
static void observe_all(zn_gate *g, size_t n)
{
    size_t early = 0;
    while (early < n && g->batch.observation[early].t_ns < g->z_since_ns)
        early++;
    if (ZN_UNLIKELY(early != 0)) {
        (void)zn_ztable_set_z(g->table, g->z_highest, NULL); /* at most `keep` of the table */
        observe_part(g, 0, early, g->z_highest);
        (void)zn_ztable_set_z(g->table, g->policy->z, NULL);
    }
    observe_part(g, early, n, g->policy->z);
}

/* Keeps the decision on observation i of the batch. */
static void finish(zn_gate *g, size_t i)
{
    const zn_gate_batch *batch = &g->batch;
    const zn_vote *v = &g->votes->at[batch->vote[i]];
    /* release_all also releases votes that the table could not place. */
    bool released = g->policy->roles->release_all && !zn_gate_is_peek(g, v);
    zn_decision decision = released ? ZN_RELEASE : (zn_decision)batch->answer[i];
    uint8_t outputs = decision != ZN_RELEASE ? 0
                      : outputs_differ(g)    ? batch->released_in[i]
                                             : ZN_ALL_OUTPUTS;
    if (g->caps != NULL && decision == ZN_RELEASE)
        zn_gate_caps_released(g, v);
    zn_gate_finish(g, v, decision == ZN_RELEASE, reason_of(decision), outputs);
}

/* Decides n observations by the levels. If outputs differ in the number of users that they need,
 * counts the users after each observation. */
static void decide_levels(zn_gate *g, size_t n)
{
    if (!outputs_differ(g)) {
        zn_gate_levels_decide(g, 0, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const zn_observation *o = &g->batch.observation[i];
        const zn_level_decision *d = &g->levels->decisions[i];
        zn_gate_levels_decide(g, i, i + 1);
        g->batch.released_in[i] = 0;
        if (d->decision == ZN_RELEASE && d->level == 0)
            g->batch.released_in[i] = g->tap->outputs_of_release(
                g->tap->of, zn_ztable_count_at(g->table, o->attribute, o->t_ns),
                o->t_ns < g->z_since_ns ? g->z_highest : g->policy->z);
    }
}

/* Returns the counter of a name that the levels suppress. */
static zn_stat level_reason_of(uint8_t decision)
{
    if (decision == ZN_OVER_NETWORK_CAP)
        return ZN_STAT_SUPPRESSED_PREFIX_CAP;
    return reason_of((zn_decision)decision);
}

/* Keeps the decision of the levels on observation i of the batch. */
static void finish_level(zn_gate *g, size_t i)
{
    const zn_vote *v = &g->votes->at[g->batch.vote[i]];
    zn_level_decision decision = g->levels->decisions[i];
    bool released = decision.decision == ZN_RELEASE && decision.level == 0;
    if (decision.decision == ZN_RELEASE && decision.level != 0) {
        zn_gate_levels_publish(g, v, decision.level);
        return;
    }
    if (g->caps != NULL && released)
        zn_gate_caps_released(g, v);
    zn_gate_finish(g, v, released, level_reason_of(decision.decision),
                   !released           ? 0
                   : outputs_differ(g) ? g->batch.released_in[i]
                                       : ZN_ALL_OUTPUTS);
}

/* Counts the exposure of a name for the popularity of names, and by level if names have labels. */
static void count_name(zn_gate *g, const zn_vote *v, const zn_observation *o)
{
    zn_id labels[ZN_NAME_LABELS];
    if (!g->popularity->with_levels) {
        zn_popularity_see(g->popularity, o);
        return;
    }
    zn_gate_levels_of_name(g, v, labels);
    zn_popularity_see_name(g->popularity, o, labels);
}

void zn_gate_decide(zn_gate *g)
{
    const zn_gate_batch *batch = &g->batch;
    size_t n;
    g->released.n = 0;
    zn_votes_sort(g->votes);
    n = make_observations(g);
    if (g->levels != NULL)
        decide_levels(g, n);
    else
        observe_all(g, n);
    for (size_t i = 0; i < n; i++) {
        const zn_vote *v = &g->votes->at[batch->vote[i]];
        if (v->kind == ZN_VOTE_NAME && g->popularity->table != NULL)
            count_name(g, v, &batch->observation[i]);
        else if (v->kind >= ZN_VOTE_ATTRIBUTE && g->popularity->table != NULL)
            zn_popularity_see_attribute(g->popularity, (zn_attribute)(v->kind - ZN_VOTE_ATTRIBUTE),
                                        &batch->observation[i]);
        if (g->levels != NULL)
            finish_level(g, i);
        else
            finish(g, i);
    }
    zn_votes_clear(g->votes);
}

/* ---- records ---- */

static bool server_may_show(const zn_gate *g, uint64_t server)
{
    return !zn_clients_have(&g->clients, server);
}

static bool host_is_shared(const zn_gate *g, const zn_resolution *from)
{
    zn_span host = zn_hostname_span(&from->host);
    bool shared = zn_gate_is_shared(g, zn_votes_id(g->votes, ZN_VOTE_NAME, host));
    if (shared && g->levels != NULL)
        zn_gate_levels_show(g, ZN_VOTE_NAME, host);
    return shared;
}

static bool resolver_may_show(const zn_gate *g, const zn_resolution *from, int64_t epoch)
{
    bool apart = g->policy->roles->dns_votes == ZN_DNS_VOTES_OWN, shared;
    zn_vote_kind kind = apart ? ZN_VOTE_DNS_ADDR : ZN_VOTE_ADDR;
    if (epoch + 1 < g->clients.epoch) /* the clients of that epoch are forgotten */
        return false;
    shared = !zn_clients_have(&g->clients, zn_clients_hash(&g->clients, &from->resolver)) &&
             zn_gate_is_shared(g, zn_votes_id(g->votes, kind, zn_addr_span(&from->resolver)));
    if (shared && g->levels != NULL)
        zn_gate_levels_show(g, kind, zn_addr_span(&from->resolver));
    return shared;
}

const zn_gate_decider zn_gate_local = {
    .server_may_show = server_may_show,
    .host_is_shared = host_is_shared,
    .resolver_may_show = resolver_may_show,
    .rebase_clients = zn_clients_rebase,
};
