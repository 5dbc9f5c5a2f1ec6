/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/gate.h"

#include "analyzer/secondary.h"
#include "release/gate_internal.h"

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
    return rc;
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
    zn_ztable_close(g->table);
    memset(g, 0, sizeof *g);
}

size_t zn_gate_memory(const zn_gate *g)
{
    return zn_ztable_memory(g->table) + zn_clients_memory(&g->clients) +
           zn_addr_set_memory(&g->users);
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

void zn_gate_rebase(zn_gate *g, int64_t epoch)
{
    g->decider->rebase_clients(&g->clients, epoch);
    g->z_since_ns = INT64_MIN; /* no vote of the old time can come now */
}

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

bool zn_gate_addr_is_public(const zn_gate *g, const zn_flow *f)
{
    const zn_roles *roles = g->policy->roles;
    const zn_addr *server = &f->tuple.addr[1 - f->client];
    zn_addr carried = zn_addr_carried(server);
    if (zn_addr_is_group(server))
        return !f->internal[1 - f->client] && !zn_addr_is_known_group(server) &&
               !zn_addr_is_derived_group(server);
    return !f->internal[1 - f->client] && !zn_addr_is_special(server) &&
           !zn_addr_is_special(&carried) &&
           !zn_nets_contain(roles->internal, roles->internal_count, &carried);
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

/* Turns votes into observations for the z-table; client marks and excluded addresses end here. */
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
    g->released.origin[g->released.n] = (zn_release_origin){.t_ns = v->t_ns, .flow = v->flow};
    zn_gate_fill_release(g, v, &g->released.at[g->released.n++]);
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

void zn_gate_finish(zn_gate *g, const zn_vote *v, bool release, zn_stat why, uint8_t outputs)
{
    zn_flow *f = zn_flow_at(g->flows, v->flow);
    if (v->kind == ZN_VOTE_NAME || v->kind == ZN_VOTE_DNS_NAME)
        finish_name(g, v, release, why, outputs);
    else if (zn_vote_is_packet_peek(v))
        finish_peek(g, v, outputs);
    else if (zn_vote_is_addr(v))
        finish_addr(g, v, f, release, outputs);
    else
        finish_secondary(g, v, release, outputs);
}

int zn_gate_set_z(zn_gate *g, uint32_t z, int64_t since_ns, zn_error *err)
{
    int rc = zn_ztable_set_z(g->table, z, err);
    if (rc != 0)
        return rc;
    g->z_since_ns = since_ns;
    if (z > g->z_highest)
        g->z_highest = z;
    return 0;
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

void zn_gate_decide(zn_gate *g)
{
    const zn_gate_batch *batch = &g->batch;
    size_t n;
    g->released.n = 0;
    zn_votes_sort(g->votes);
    n = make_observations(g);
    observe_all(g, n);
    for (size_t i = 0; i < n; i++) {
        const zn_vote *v = &g->votes->at[batch->vote[i]];
        /* release_all also releases votes that the table could not place. */
        bool released = g->policy->roles->release_all && !zn_gate_is_peek(g, v);
        zn_decision decision = released ? ZN_RELEASE : (zn_decision)batch->answer[i];
        uint8_t outputs = decision != ZN_RELEASE ? 0
                          : outputs_differ(g)    ? batch->released_in[i]
                                                 : ZN_ALL_OUTPUTS;
        if (v->kind == ZN_VOTE_NAME)
            zn_popularity_see(g->popularity, &batch->observation[i]);
        zn_gate_finish(g, v, decision == ZN_RELEASE, reason_of(decision), outputs);
    }
    zn_votes_clear(g->votes);
}

const zn_release *zn_gate_releases(const zn_gate *g, size_t *count)
{
    *count = g->released.n;
    return g->released.at;
}
