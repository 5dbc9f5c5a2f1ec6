/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/gate_remote.h"

#include "flow/wheel.h"
#include "release/gate_internal.h"

/* Steps that votes leave free for records, periods and minutes. */
#define STEPS_KEPT 1024u

/* ---- hashes of a generation ---- */

/* Returns the hash of an address of a client or server. An address that carries an IPv4 address has
 * the hash of the IPv4 address. */
static zn_id addr_id(const zn_gate *g, uint64_t generation, const zn_addr *address)
{
    zn_addr carried = zn_addr_carried(address);
    return zn_count_generations_id(g->remote.generations, generation, ZN_COUNT_ADDR,
                                   zn_addr_span(&carried));
}

static uint64_t user_hash(const zn_gate *g, uint64_t generation, const zn_flow *f)
{
    zn_addr user = zn_gate_user(g, f);
    if (!zn_flow_has_user(f))
        return 0;
    return zn_count_generations_id(g->remote.generations, generation, ZN_COUNT_USER,
                                   zn_addr_span(&user))
        .lo;
}

static zn_id text_id(const zn_gate *g, uint64_t generation, zn_vote_kind kind, zn_span text)
{
    return zn_count_generations_id(g->remote.generations, generation, zn_votes_namespace(kind),
                                   text);
}

/* Returns the attribute that a vote is for. A peek takes the identity that votes of other protocols
 * have. */
static zn_id attribute_of(const zn_gate *g, uint64_t generation, const zn_vote *v)
{
    const zn_flow *f = zn_flow_at(g->flows, v->flow);
    if (zn_vote_is_addr(v))
        return addr_id(g, generation, &f->tuple.addr[1 - f->client]);
    return text_id(g, generation, zn_gate_is_peek(g, v) ? ZN_VOTE_NAME : v->kind,
                   zn_name_store_text(g->name_store, v->entry));
}

/* Returns the generations in which a vote at t_ns counts. */
static zn_count_range generations_at(const zn_gate *g, int64_t t_ns)
{
    return zn_count_generations_of_vote(zn_count_generations_periods(g->remote.generations), t_ns);
}

/* ---- clients ---- */

static int64_t epoch_begins(const zn_gate *g, int64_t epoch)
{
    return epoch * g->policy->roles->rotate_ns;
}

/* Reports an address that was a client at t_ns. */
static void report_address(zn_gate *g, int64_t t_ns, const zn_addr *address)
{
    const zn_count_periods *periods = zn_count_generations_periods(g->remote.generations);
    zn_count_range of = zn_count_generations_of_client(periods, t_ns);
    for (uint64_t generation = of.first; generation <= of.last; generation++)
        zn_remote_counter_mark(g->remote.counter, t_ns, addr_id(g, generation, address));
}

/* Reports an address once per epoch. */
static void mark_address(zn_gate *g, int64_t t_ns, const zn_addr *address)
{
    uint64_t known = zn_clients_hash(&g->clients, address);
    if (zn_addr_set_has_hash(&g->clients.set[0], known))
        return;
    zn_clients_add(&g->clients, known);
    report_address(g, t_ns, address);
}

/* Reports the flow's client, in the cases in which add_client of gate_local.c adds it. */
static void mark_client(zn_gate *g, int64_t t_ns, const zn_flow *f)
{
    mark_address(g, t_ns, &f->tuple.addr[f->client]);
    if (f->user_outside && f->user == f->client)
        mark_address(g, t_ns, zn_flow_user(g->flows, f));
}

/* Reports the client of a flow at t_ns, in an epoch whose clients this probe does not keep. */
static void mark_elsewhen(zn_gate *g, int64_t t_ns, const zn_flow *f)
{
    report_address(g, t_ns, &f->tuple.addr[f->client]);
    if (f->user_outside && f->user == f->client)
        report_address(g, t_ns, zn_flow_user(g->flows, f));
}

/* Returns true if an address was a client at this probe in the epoch of t_ns or the previous epoch.
 * The counter knows the clients of all probes, but the probe need not trust the counter here. */
static bool was_client_here(const zn_gate *g, int64_t t_ns, const zn_addr *address)
{
    const zn_clients *c = &g->clients;
    uint64_t hash = zn_clients_hash(c, address);
    if (t_ns >= epoch_begins(g, c->epoch + 1)) /* the epoch has not begun at this probe */
        return false;
    return c->set[0].full || zn_addr_set_has_hash(&c->set[0], hash) ||
           (c->since[1] + 1 >= c->since[0] && zn_clients_had_before(c, hash));
}

/* Queries whether the server of a long flow was a client in the epoch that ends at t_ns or in the
 * previous epoch. Without room for the query the server counts as a client. slept: true if more
 * epochs passed without a packet than this answer and the next answer cover; the server then counts
 * as a client. */
static void query_server_before(zn_gate *g, int64_t t_ns, uint32_t flow, bool slept)
{
    zn_flow *f = zn_flow_at(g->flows, flow);
    zn_step step = {.t_ns = t_ns, .flow = flow, .kind = ZN_STEP_SERVER_BEFORE};
    if (ZN_STATE(f)->addr_vote == ZN_ADDR_SUPPRESSED)
        return;
    if (!slept && zn_remote_counter_space(g->remote.counter) > STEPS_KEPT) {
        ZN_FACTS(f)->server_is_queried = true;
        zn_remote_counter_query(
            g->remote.counter, step, ZN_COUNTED_ADDR_CHECK,
            addr_id(g, generations_at(g, t_ns).first, &f->tuple.addr[1 - f->client]), 0);
        return;
    }
    step.answer = ZN_ANSWER_ABANDONED;
    zn_gate_take_answer(g, &step);
}

/* Reports the client of a flow, open since the epoch `opened`, for the epochs before `epoch` that
 * passed at this probe without a packet. */
static void mark_passed(zn_gate *g, const zn_flow *f, int64_t opened, int64_t epoch)
{
    int64_t first = opened > g->clients.epoch ? opened + 1 : g->clients.epoch + 1;
    bool idled = f->end == ZN_FLOW_OPEN || f->end == ZN_FLOW_IDLE;
    int64_t open_ns = f->last_ns + (idled ? zn_flow_idle_ns(f) : 0);
    for (int64_t n = first; n < epoch && epoch_begins(g, n) <= open_ns; n++)
        mark_elsewhen(g, epoch_begins(g, n + 1) - 1, f);
}

/* Begins another epoch. The client of a flow that had packets in the ending epoch was a client in
 * that epoch and in the epochs that passed without a packet. */
static void begin_epoch(zn_gate *g, int64_t epoch)
{
    int64_t ends_ns = epoch_begins(g, g->clients.epoch + 1) - 1;
    bool passed = epoch > g->clients.epoch + 1; /* epochs passed without a packet */
    for (uint32_t n = zn_flow_after(g->flows, 0); n != 0; n = zn_flow_after(g->flows, n)) {
        const zn_flow *f = zn_flow_at(g->flows, n);
        int64_t opened = zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns);
        if (ZN_FACTS(f)->record_is_queried)
            continue;
        if (opened < g->clients.epoch + passed) {
            query_server_before(g, ends_ns, n, epoch > g->clients.epoch + 2);
            if (ZN_FACTS(f)->client_marked &&
                (f->end == ZN_FLOW_OPEN || f->last_ns >= epoch_begins(g, g->clients.epoch)))
                mark_client(g, ends_ns, f);
        }
        if (ZN_FACTS(f)->client_marked)
            mark_passed(g, f, opened, epoch);
    }
    zn_clients_next_epoch(&g->clients, epoch);
}

void zn_gate_enter_epoch(zn_gate *g, int64_t now_ns)
{
    int64_t epoch = now_ns / g->policy->roles->rotate_ns;
    if (epoch > g->clients.epoch)
        begin_epoch(g, epoch);
}

/* Takes a vote that marks the flow's client. */
static void take_client(zn_gate *g, const zn_vote *v)
{
    const zn_flow *f = zn_flow_at(g->flows, v->flow);
    int64_t epoch = zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns), begins_ns;
    if (epoch > g->clients.epoch)
        begin_epoch(g, epoch);
    begins_ns = epoch_begins(g, g->clients.epoch);
    mark_client(g, v->t_ns > begins_ns ? v->t_ns : begins_ns, f);
    if (v->t_ns < begins_ns) /* late: the address was a client in the earlier epoch as well */
        mark_elsewhen(g, v->t_ns, f);
    if (zn_flow_has_user(f)) {
        zn_addr user = zn_gate_user(g, f);
        zn_addr_set_add_hash(&g->users, zn_addr_set_hash(&g->users, &user));
    }
}

/* ---- votes ---- */

/* Fills in the users of all votes. Most votes have the user of their flow's previous vote. */
static void hash_users(zn_gate *g)
{
    uint32_t last[ZN_LAST_VOTES] = {0}; /* by flow: index of the last vote + 1, or 0 */
    for (size_t i = 0; i < g->votes->n; i++) {
        zn_vote *v = &g->votes->at[i], *before;
        uint32_t *slot = &last[v->flow % ZN_LAST_VOTES];
        uint64_t generation = generations_at(g, v->t_ns).first;
        if (v->kind == ZN_VOTE_CLIENT)
            continue;
        before = *slot != 0 ? &g->votes->at[*slot - 1] : NULL;
        *slot = (uint32_t)i + 1;
        if (before != NULL && before->flow == v->flow &&
            generations_at(g, before->t_ns).first == generation)
            v->user = before->user;
        else
            v->user = user_hash(g, generation, zn_flow_at(g->flows, v->flow));
    }
}

/* Returns true if an address carries another address: both have one hash and count together. */
static bool carries_another(const zn_addr *address)
{
    zn_addr carried = zn_addr_carried(address);
    return memcmp(&carried, address, sizeof carried) != 0;
}

/* Returns true if the server's address may be queried at t_ns. */
static bool addr_may_be_queried(const zn_gate *g, const zn_flow *f, int64_t t_ns)
{
    const zn_addr *server = &f->tuple.addr[1 - f->client];
    return zn_gate_addr_is_public(g, f) && !ZN_FACTS(f)->server_was_client &&
           !ZN_FACTS(f)->server_is_queried && !carries_another(server) &&
           !was_client_here(g, t_ns, server);
}

/* Returns the kind of query that decides a vote. */
static zn_counted_kind query_of(const zn_gate *g, const zn_vote *v)
{
    bool peek = zn_gate_is_peek(g, v);
    if (!zn_vote_is_addr(v))
        return peek ? ZN_COUNTED_PEEK : ZN_COUNTED_NAME;
    if (peek) /* DNS flows cast no votes and may show shared addresses */
        return ZN_COUNTED_ADDR_PEEK;
    return v->kind == ZN_VOTE_DNS_ADDR ? ZN_COUNTED_DNS_ADDR : ZN_COUNTED_ADDR;
}

/* Returns true if the vote is an observation when it is released. */
static bool is_name(const zn_vote *v)
{
    return v->kind == ZN_VOTE_NAME || v->kind == ZN_VOTE_DNS_NAME;
}

/* Sends a vote again for the generations that begin while the vote counts. */
static void count_again(zn_gate *g, const zn_vote *v, zn_counted_kind kind)
{
    const zn_flow *f = zn_flow_at(g->flows, v->flow);
    zn_count_range of = generations_at(g, v->t_ns);
    if (zn_gate_is_peek(g, v))
        return;
    for (uint64_t generation = of.first + 1; generation <= of.last; generation++) {
        zn_observation o = {v->t_ns, user_hash(g, generation, f), attribute_of(g, generation, v)};
        zn_remote_counter_count(g->remote.counter, kind == ZN_COUNTED_NAME ? ZN_COUNTED_ONLY : kind,
                                &o);
    }
}

static void query_vote(zn_gate *g, const zn_vote *v)
{
    zn_flow *f = zn_flow_at(g->flows, v->flow);
    zn_step step = {.t_ns = v->t_ns,
                    .flow = v->flow,
                    .entry = v->entry,
                    .kind = ZN_STEP_VOTE,
                    .vote = (uint8_t)v->kind};
    zn_counted_kind kind;
    zn_release row;
    zn_id id;
    if (zn_vote_is_addr(v) && !addr_may_be_queried(g, f, v->t_ns)) {
        zn_gate_refuse_addr(g, v, f);
        return;
    }
    if (zn_remote_counter_space(g->remote.counter) <= STEPS_KEPT) {
        zn_gate_finish(g, v, false, ZN_STAT_SUPPRESSED_UNANSWERED, 0);
        return;
    }
    kind = query_of(g, v);
    id = attribute_of(g, generations_at(g, v->t_ns).first, v);
    if (g->remote.counter->write_row != NULL && kind == ZN_COUNTED_NAME && is_name(v)) {
        zn_gate_fill_release(g, v, &row);
        g->remote.counter->row = &row;
    }
    if (kind == ZN_COUNTED_NAME)
        zn_remote_counter_vote(g->remote.counter, step, id, v->user);
    else if (kind == ZN_COUNTED_PEEK)
        zn_remote_counter_peek(g->remote.counter, step, id);
    else
        zn_remote_counter_query(g->remote.counter, step, kind, id, v->user);
    g->remote.counter->row = NULL;
    count_again(g, v, kind);
}

void zn_gate_query_votes(zn_gate *g, int64_t until_ns)
{
    size_t n = 0;
    g->released.n = 0;
    zn_votes_sort(g->votes);
    hash_users(g);
    for (; n < g->votes->n && g->votes->at[n].t_ns <= until_ns; n++) {
        const zn_vote *v = &g->votes->at[n];
        if (v->kind == ZN_VOTE_CLIENT)
            take_client(g, v);
        else
            query_vote(g, v);
    }
    zn_votes_drop(g->votes, n);
}

void zn_gate_suppress_after(zn_gate *g, int64_t now_ns)
{
    size_t n = 0;
    zn_votes_sort(g->votes);
    while (n < g->votes->n && g->votes->at[n].t_ns <= now_ns)
        n++;
    for (size_t i = n; i < g->votes->n; i++) {
        const zn_vote *v = &g->votes->at[i];
        if (v->kind == ZN_VOTE_CLIENT)
            mark_elsewhen(g, now_ns, zn_flow_at(g->flows, v->flow));
        else
            zn_gate_finish(g, v, false, ZN_STAT_SUPPRESSED_UNANSWERED, 0);
    }
    g->votes->n = n;
}

/* ---- records ---- */

/* Returns true if the flow's record shows its server's address, provided that the counter knows no
 * client with this address at t_ns. */
static bool may_show_server(const zn_gate *g, const zn_flow *f, int64_t t_ns)
{
    uint8_t vote = ZN_STATE(f)->addr_vote;
    return zn_flow_has_user(f) && (vote == ZN_ADDR_VOTED || vote == ZN_ADDR_RELEASED) &&
           !f->internal[1 - f->client] && !was_client_here(g, t_ns, &f->tuple.addr[1 - f->client]);
}

/* Queries the name by which DNS resolved the server's address, and the address of the resolver. */
static void query_resolution(zn_gate *g, const zn_flow *f, zn_step step)
{
    const zn_resolution *from = zn_dn_hunter_of(g->dn_hunter, f);
    int64_t epoch = zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns);
    uint64_t generation = generations_at(g, step.t_ns).first;
    bool apart = g->policy->roles->dns_votes == ZN_DNS_VOTES_OWN;
    if (!g->policy->roles->dn_hunter || from == NULL || ZN_FACTS(f)->ech_offered)
        return;
    step.kind = ZN_STEP_HOST;
    zn_remote_counter_peek(g->remote.counter, step,
                           text_id(g, generation, ZN_VOTE_NAME, zn_hostname_span(&from->host)));
    /* the clients of older epochs are forgotten */
    if (from->resolver_internal || epoch + 1 < g->clients.epoch ||
        carries_another(&from->resolver) || was_client_here(g, step.t_ns, &from->resolver))
        return;
    step.kind = ZN_STEP_RESOLVER;
    zn_remote_counter_query(g->remote.counter, step,
                            apart ? ZN_COUNTED_DNS_ADDR_PEEK : ZN_COUNTED_ADDR_PEEK,
                            addr_id(g, generation, &from->resolver), 0);
}

void zn_gate_query_record(zn_gate *g, uint32_t flow, int64_t now_ns)
{
    zn_flow *f = zn_flow_at(g->flows, flow);
    zn_step step = {.t_ns = now_ns, .flow = flow};
    int64_t begins_ns = epoch_begins(g, g->clients.epoch);
    if (f->first_ns < begins_ns && f->last_ns >= begins_ns)
        mark_client(g, now_ns > begins_ns ? now_ns : begins_ns, f);
    ZN_FACTS(f)->record_is_queried = true;
    if (may_show_server(g, f, now_ns)) {
        step.kind = ZN_STEP_SERVER;
        zn_remote_counter_query(
            g->remote.counter, step, ZN_COUNTED_ADDR_CHECK,
            addr_id(g, generations_at(g, now_ns).first, &f->tuple.addr[1 - f->client]), 0);
    }
    if (zn_flow_has_user(f))
        query_resolution(g, f, step);
    step.kind = ZN_STEP_RECORD;
    zn_remote_counter_put(g->remote.counter, step);
}

/* ---- answers ---- */

static void answer_vote(zn_gate *g, const zn_step *step, bool yes)
{
    zn_vote v = {.t_ns = step->t_ns,
                 .flow = step->flow,
                 .entry = step->entry,
                 .kind = (zn_vote_kind)step->vote};
    zn_stat why =
        step->answer == ZN_ANSWER_NO ? ZN_STAT_SUPPRESSED_BELOW_Z : ZN_STAT_SUPPRESSED_UNANSWERED;
    zn_gate_finish(g, &v, yes, why, yes ? ZN_ALL_OUTPUTS : 0);
}

/* Withholds the server of a flow, as withhold_server of gate_local.c does, unless the server was no
 * client. */
static void answer_server_before(zn_gate *g, uint32_t flow, bool yes)
{
    zn_flow *f = zn_flow_at(g->flows, flow);
    ZN_FACTS(f)->server_is_queried = false;
    ZN_FACTS(f)->server_was_client |= !yes;
    if (ZN_FACTS(f)->server_was_client && ZN_STATE(f)->addr_vote != ZN_ADDR_PENDING)
        ZN_STATE(f)->addr_vote = ZN_ADDR_SUPPRESSED;
}

void zn_gate_take_answer(zn_gate *g, const zn_step *step)
{
    bool yes = step->answer == ZN_ANSWER_YES;
    g->released.n = 0;
    switch ((zn_step_kind)step->kind) {
    case ZN_STEP_VOTE:
        answer_vote(g, step, yes);
        break;
    case ZN_STEP_SERVER_BEFORE:
        answer_server_before(g, step->flow, yes);
        break;
    case ZN_STEP_SERVER:
        g->remote.answers.server_may_show = yes;
        break;
    case ZN_STEP_HOST:
        g->remote.answers.host_is_shared = yes;
        break;
    case ZN_STEP_RESOLVER:
        g->remote.answers.resolver_may_show = yes;
        break;
    case ZN_STEP_RECORD:
    case ZN_STEP_PERIOD:
    case ZN_STEP_MINUTE:
        break;
    }
}

/* ---- records that are filled ---- */

static bool server_may_show(const zn_gate *g, uint64_t server)
{
    (void)server;
    return g->remote.answers.server_may_show;
}

static bool host_is_shared(const zn_gate *g, const zn_resolution *from)
{
    (void)from;
    return g->remote.answers.host_is_shared;
}

static bool resolver_may_show(const zn_gate *g, const zn_resolution *from, int64_t epoch)
{
    (void)from;
    (void)epoch;
    return g->remote.answers.resolver_may_show;
}

const zn_gate_decider zn_gate_remote = {
    .server_may_show = server_may_show,
    .host_is_shared = host_is_shared,
    .resolver_may_show = resolver_may_show,
    .rebase_clients = zn_clients_begin_anew, /* the counter has to learn them again */
};
