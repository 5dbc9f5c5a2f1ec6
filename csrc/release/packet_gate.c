/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/packet_gate.h"

#include "analyzer/unread.h"
#include "anonymity/votes.h"
#include "release/flow_record.h"
#include "util/arena.h"

int zn_packet_gate_init(zn_packet_gate *g, uint32_t max_flows, zn_error *err)
{
    g->plan_count = (size_t)max_flows + 1;
    g->plans = zn_block_alloc(g->plan_count * sizeof *g->plans);
    if (g->plans == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the packets of %u flows", max_flows);
    return 0;
}

void zn_packet_gate_fini(zn_packet_gate *g)
{
    zn_block_free(g->plans, g->plan_count * sizeof *g->plans);
    zn_packet_keys_close(g->keys);
    memset(g, 0, sizeof *g);
}

size_t zn_packet_gate_memory(const zn_packet_gate *g)
{
    return g->plans == NULL ? 0 : (size_t)zn_flow_live(g->flows) * sizeof *g->plans;
}

/* ---- the plan of a flow ---------------------------------------------------------------------- */

static void make_shift(zn_packet_gate *g, const zn_flow *f, zn_packet_shift *out)
{
    uint64_t words[6];
    memcpy(&words[0], &f->tuple.addr[0], sizeof(zn_addr));
    memcpy(&words[2], &f->tuple.addr[1], sizeof(zn_addr));
    for (size_t i = 0; i < 4; i++)
        words[i] = be64toh(words[i]);
    words[4] = (uint64_t)f->tuple.port[0] << 32 | (uint64_t)f->tuple.port[1] << 16 | f->tuple.proto;
    words[5] = (uint64_t)f->first_ns;
    zn_packet_keys_shift(g->keys, words, out);
}

/* Makes the replacement for the port of an end of the flow. A client's port is permuted. A server's
 * port shows the service; in masked packets it shows no more than a record with a withheld name. */
static int make_port(zn_packet_gate *g, const zn_flow *f, unsigned end, const zn_addr *user,
                     zn_packet_plan *plan)
{
    uint16_t real = f->tuple.port[end], permuted = 0;
    int rc = 0;
    plan->port[end] = real;
    plan->hidden_port[end] = zn_port_is_common(real) ? real : ZN_PORT_DISCARD;
    if (end != f->client)
        return 0;
    if (g->coarse || g->exact || g->main != NULL || !g->policy->keep_client_port)
        rc = zn_packet_keys_port(g->keys, user, real, &permuted);
    plan->hidden_port[end] = permuted;
    if (!g->policy->keep_client_port)
        plan->port[end] = permuted;
    return rc;
}

/* Makes the replacement for an outside end of the flow. A veil is the pair pseudonym of a
 * pseudonym, as no host has such an address: once for a view, and twice for coarse packets, so that
 * neither says which server the other is of. */
static int make_outside(zn_packet_gate *g, const zn_addr *real, const zn_addr *user,
                        zn_packet_plan *plan, unsigned end)
{
    unsigned veils = g->main != NULL ? 1 : g->coarse ? 2 : 0;
    int rc = zn_packet_keys_pair(g->keys, user, real, &plan->pair[end]);
    plan->veil = plan->pair[end];
    for (; veils != 0 && rc == 0; veils--)
        rc = zn_packet_keys_pair(g->keys, user, &plan->veil, &plan->veil);
    return rc;
}

/* Makes the address of this flow alone that replaces an end in coarse packets, if coarse records do
 * not show the client. */
static int make_hidden(zn_packet_gate *g, const zn_addr *real, const zn_addr *user,
                       zn_packet_plan *plan, unsigned end)
{
    zn_addr drawn = *real; /* the first byte stays, so that no group is drawn */
    memcpy(drawn.byte + 13, &plan->shift.seq[end], sizeof drawn.byte - 13);
    return zn_packet_keys_pair(g->keys, user, &drawn, &plan->pair[end]);
}

static bool hides_clients(const zn_packet_gate *g)
{
    return g->coarse && g->policy->coarse_client == ZN_COARSE_CLIENT_NONE;
}

bool zn_packet_address_is_internal(const zn_roles *roles, const zn_addr *a)
{
    return !zn_addr_is_group(a) && zn_nets_contain(roles->internal, roles->internal_count, a);
}

/* Makes the replacement for an end of the flow. */
static bool make_end(zn_packet_gate *g, const zn_flow *f, unsigned end, zn_packet_plan *plan)
{
    const zn_roles *roles = g->policy->roles;
    const zn_addr *real = &f->tuple.addr[end], *user = zn_flow_user(g->flows, f);
    const zn_addr cut = zn_addr_cut(user, roles->user_v4_bits, roles->user_v6_bits);
    bool linkable = g->server_addresses == ZN_SERVER_ADDRESSES_LINKABLE;
    bool internal = zn_packet_address_is_internal(roles, real);
    int rc = 0;
    plan->is_internal[end] = internal;
    if (end == f->client || internal) {
        rc = zn_packet_keys_client(g->keys, real, internal, &plan->client[end]);
        if (rc == 0 && hides_clients(g))
            rc = make_hidden(g, real, &cut, plan, end);
    } else {
        rc = make_outside(g, real, linkable ? NULL : &cut, plan, end);
    }
    return rc == 0 && make_port(g, f, end, &cut, plan) == 0;
}

static bool make_ends(zn_packet_gate *g, const zn_flow *f, int64_t epoch, zn_packet_plan *plan)
{
    if (!zn_flow_has_user(f) || zn_packet_keys_enter(g->keys, epoch) != 0)
        return false;
    make_shift(g, f, &plan->shift);
    return make_end(g, f, 0, plan) && make_end(g, f, 1, plan);
}

void zn_packet_gate_open(zn_packet_gate *g, uint32_t flow, int64_t epoch)
{
    zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    *plan = (zn_packet_plan){.addr_ns = INT64_MAX,
                             .names_known_ns = INT64_MAX,
                             .missed_ns = INT64_MAX,
                             .last_held = UINT32_MAX, /* none */
                             .due_noted = UINT32_MAX};
    plan->ready = make_ends(g, zn_flow_at(g->flows, flow), epoch, plan);
}

void zn_packet_gate_reopen(zn_packet_gate *g, uint32_t flow, int64_t epoch)
{
    zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    plan->addr_shared = false;
    plan->nameless = (zn_nameless){0};
    plan->ready = !plan->left && make_ends(g, zn_flow_at(g->flows, flow), epoch, plan);
}

/* Returns true if this output shows flows that have names below its z: z is 1. */
static bool shows_all(const zn_packet_gate *g)
{
    return g->policy->roles->release_all && g->least_z <= 1;
}

void zn_packet_gate_note(zn_packet_gate *g, uint32_t flow, int64_t t_ns, bool all_read)
{
    const zn_flow *f = zn_flow_at(g->flows, flow);
    zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    bool nameless = zn_unread_is_nameless(f) || shows_all(g);
    if (all_read && nameless && plan->names_known_ns == INT64_MAX)
        plan->names_known_ns = t_ns;
    else if (plan->names_known_ns != INT64_MAX && !shows_all(g) && zn_unread(f))
        zn_packet_gate_withhold(g, flow, t_ns); /* an unreadable message came */
    if ((f->names_dropped || ZN_FACTS(f)->missed) && plan->missed_ns == INT64_MAX)
        plan->missed_ns = t_ns;
}

void zn_packet_gate_close(zn_packet_gate *g, uint32_t flow)
{
    const zn_flow *f = zn_flow_at(g->flows, flow);
    zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    if (zn_unread(f) && !shows_all(g))
        zn_packet_gate_withhold(g, flow, f->closed_ns);
    else if (plan->names_known_ns == INT64_MAX)
        plan->names_known_ns = f->closed_ns;
    zn_packet_gate_note(g, flow, f->closed_ns, false);
}

/* ---- fates ----------------------------------------------------------------------------------- */

static zn_stat reason_of(uint8_t state)
{
    switch ((zn_entry_state)state) {
    case ZN_ENTRY_UNCONFIRMED:
        return ZN_STAT_PACKETS_DROPPED_UNCONFIRMED;
    case ZN_ENTRY_INVALID:
        return ZN_STAT_PACKETS_DROPPED_INVALID;
    default:
        return ZN_STAT_PACKETS_DROPPED_SUPPRESSED;
    }
}

/* Returns whether an entry was released, and for this output. */
static bool is_released(const zn_packet_gate *g, uint32_t entry)
{
    return zn_name_store_at(g->name_store, entry)->state == ZN_ENTRY_RELEASED &&
           (g->name_store->times[entry].released_in & g->bit) != 0;
}

static bool is_shared(const zn_packet_gate *g, uint32_t entry)
{
    return (g->name_store->times[entry].shared_in & g->bit) != 0;
}

/* Returns whether the flow exposed the name of an open entry before, and was let out with it by
 * due_ns: there is one decision for a flow and a name. */
static bool is_repeated(const zn_packet_gate *g, const zn_flow *f, const zn_name_entry *open,
                        int64_t due_ns)
{
    for (uint32_t n = ZN_FACTS(f)->names; n != 0; n = zn_name_store_at(g->name_store, n)->next) {
        const zn_name_entry *e = zn_name_store_at(g->name_store, n);
        if (e != open && is_released(g, n) && zn_id_equal(e->id, open->id) &&
            g->name_store->times[n].decided_ns <= due_ns)
            return true;
    }
    return false;
}

/* Returns what the flow's names say by due_ns. */
static zn_stat names_say(const zn_packet_gate *g, const zn_flow *f, const zn_packet_plan *plan,
                         int64_t due_ns)
{
    bool named = false, open = false;
    if (plan->last_word != 0)
        return (zn_stat)plan->last_word;
    for (uint32_t n = ZN_FACTS(f)->names; n != 0; n = zn_name_store_at(g->name_store, n)->next) {
        const zn_name_entry *e = zn_name_store_at(g->name_store, n);
        const zn_name_times *at = &g->name_store->times[n];
        if (at->observed_ns > due_ns || e->state == ZN_ENTRY_REPEATED)
            continue;
        named = true;
        if (at->decided_ns > due_ns)
            open |= !is_shared(g, n) && !is_repeated(g, f, e, due_ns);
        else if (!is_released(g, n))
            return reason_of(e->state);
    }
    if (plan->missed_ns <= due_ns)
        return ZN_STAT_PACKETS_DROPPED_INVALID;
    if (open || (!named && plan->names_known_ns > due_ns))
        return ZN_STAT_PACKETS_DROPPED_UNDECIDED;
    return ZN_STAT_PACKETS_PASSED;
}

void zn_packet_gate_forget(zn_packet_gate *g, uint32_t flow)
{
    zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    plan->last_word = (uint16_t)names_say(g, zn_flow_at(g->flows, flow), plan, INT64_MAX);
}

/* Returns true if a packet that leaves at due_ns shows the flow's server, as the flow's record
 * does: the flow's own vote was decided by then, and released the address. */
static bool is_server_released(const zn_packet_gate *g, const zn_flow *f,
                               const zn_packet_plan *plan, int64_t due_ns)
{
    if (plan->addr_ns > due_ns)
        return plan->addr_shared;
    return ZN_STATE(f)->addr_vote == ZN_ADDR_RELEASED && plan->addr_released &&
           !zn_flow_record_votes_for_dns_only(g->policy, f);
}

/* Fixes the addresses and the ports of a flow when its first packet leaves. A view shows no more of
 * them than the main output. If the view shows less, the pair pseudonym would join flows whose
 * server the main output shows to flows whose server it hides, for a reader of both. In the same
 * way it would join coarse flows to flows and to answers of DNS that show a name. */
static void fix_ends(zn_packet_gate *g, uint32_t flow, zn_packet_plan *plan, bool masked,
                     int64_t due_ns)
{
    const zn_flow *f = zn_flow_at(g->flows, flow);
    const zn_packet_plan *in_main = g->main != NULL ? zn_packet_gate_plan(g->main, flow) : NULL;
    bool disclosed = in_main == NULL || in_main->server == ZN_PACKET_SERVER_RELEASED;
    bool veiled = in_main == NULL ? g->coarse && masked : disclosed;
    bool released = is_server_released(g, f, plan, due_ns);
    plan->hides_client = masked && hides_clients(g);
    plan->began_masked = masked || (in_main != NULL && in_main->began_masked);
    if (plan->began_masked || !disclosed || g->server_addresses != ZN_SERVER_ADDRESSES_TESTED)
        released = false;
    plan->server = released ? ZN_PACKET_SERVER_RELEASED
                   : veiled ? ZN_PACKET_SERVER_VEILED
                            : ZN_PACKET_SERVER_PAIR;
    if (plan->began_masked)
        memcpy(plan->port, plan->hidden_port, sizeof plan->port);
    g->stats->n[released ? ZN_STAT_PACKETS_SERVERS_RELEASED : ZN_STAT_PACKETS_SERVERS_PAIR]++;
}

/* Counts the names by which a flow passes, at due_ns. */
static void count_names(zn_packet_gate *g, const zn_flow *f, int64_t due_ns)
{
    for (uint32_t n = ZN_FACTS(f)->names; n != 0; n = zn_name_store_at(g->name_store, n)->next) {
        const zn_name_times *at = &g->name_store->times[n];
        if (at->observed_ns <= due_ns)
            g->stats->n[at->decided_ns <= due_ns ? ZN_STAT_PACKETS_NAMES_BY_VOTE
                                                 : ZN_STAT_PACKETS_NAMES_BY_PEEK]++;
    }
}

/* Returns whether a packet with this fate leaves nevertheless, masked. One of a flow that passed,
 * and turned, does not: its server's address may have left. Coarse ones have to be of TCP, and of a
 * flow that cannot pass any more. */
static bool is_masked(const zn_packet_gate *g, const zn_packet_plan *plan, uint32_t proto,
                      zn_stat fate)
{
    bool coarse = g->coarse && proto == ZN_PROTO_TCP && fate != ZN_STAT_PACKETS_DROPPED_UNDECIDED;
    return !plan->passed && (g->exact || coarse);
}

zn_stat zn_packet_gate_fate(zn_packet_gate *g, uint32_t flow, uint32_t proto, int64_t due_ns)
{
    const zn_flow *f = zn_flow_at(g->flows, flow);
    zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    zn_stat fate;
    if (!zn_flow_has_user(f))
        return ZN_STAT_PACKETS_DROPPED_NO_USER;
    if (!plan->ready)
        return ZN_STAT_PACKETS_DROPPED_CAPACITY;
    fate = names_say(g, f, plan, due_ns);
    if (fate != ZN_STAT_PACKETS_PASSED && !is_masked(g, plan, proto, fate)) {
        if (plan->passed && !plan->turned) {
            plan->turned = true;
            g->stats->n[ZN_STAT_PACKETS_FLOWS_TURNED]++;
        }
        return fate;
    }
    if (plan->server == ZN_PACKET_SERVER_OPEN)
        fix_ends(g, flow, plan, fate != ZN_STAT_PACKETS_PASSED, due_ns);
    if (!plan->left && fate == ZN_STAT_PACKETS_PASSED)
        count_names(g, f, due_ns);
    plan->left = true;
    if (g->coarse && fate != ZN_STAT_PACKETS_PASSED)
        plan->coarse = true;
    plan->passed |= fate == ZN_STAT_PACKETS_PASSED;
    return fate == ZN_STAT_PACKETS_PASSED ? fate : ZN_STAT_PACKETS_MASKED;
}

bool zn_packet_gate_shows_names(const zn_packet_gate *g, uint32_t flow, int64_t t_ns)
{
    return names_say(g, zn_flow_at(g->flows, flow), zn_packet_gate_plan(g, flow), t_ns) ==
           ZN_STAT_PACKETS_PASSED;
}

bool zn_packet_gate_shows(const zn_packet_gate *g, uint32_t entry, int64_t t_ns)
{
    const zn_name_times *at = &g->name_store->times[entry];
    if (entry == 0)
        return false;
    if (at->decided_ns > t_ns)
        return is_shared(g, entry);
    return is_released(g, entry);
}

const zn_addr *zn_packet_gate_address(const zn_flow *f, const zn_packet_plan *plan, unsigned end)
{
    if (end == f->client || plan->is_internal[end])
        return plan->hides_client ? &plan->pair[end] : &plan->client[end];
    if (zn_packet_address_is_open(&f->tuple.addr[end]))
        return &f->tuple.addr[end];
    if (plan->server == ZN_PACKET_SERVER_VEILED)
        return &plan->veil;
    return plan->server == ZN_PACKET_SERVER_RELEASED ? &f->tuple.addr[end] : &plan->pair[end];
}

/* ---- what stays in its network --------------------------------------------------------------- */

/* Ports of DHCP, NetBIOS, SSDP, WS-Discovery, mDNS and LLMNR. */
static bool is_local_port(uint16_t port)
{
    switch (port) {
    case 67:
    case 68:
    case 137:
    case 138:
    case 139:
    case 546:
    case 547:
    case 1900:
    case 3702:
    case 5353:
    case 5355:
        return true;
    default:
        return false;
    }
}

bool zn_packet_address_is_open(const zn_addr *a)
{
    static const uint8_t broadcast[4] = {255, 255, 255, 255};
    return zn_addr_is_known_group(a) ||
           (zn_addr_is_v4(a) && memcmp(a->byte + 12, broadcast, sizeof broadcast) == 0);
}

bool zn_packet_is_local(const zn_tuple *tuple)
{
    unsigned groups = 0;
    for (unsigned i = 0; i < 2; i++) {
        if (is_local_port(tuple->port[i]))
            return true;
        if (!zn_addr_is_special(&tuple->addr[i]))
            continue;
        if (!zn_addr_is_group(&tuple->addr[i]) && !zn_packet_address_is_open(&tuple->addr[i]))
            return true;
        groups++;
    }
    return groups == 2;
}
