/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/gate.h"

static bool server_may_show(const zn_gate *g, uint64_t server)
{
    return !zn_clients_have(&g->clients, server);
}

static bool host_is_shared(const zn_gate *g, const zn_resolution *from)
{
    return zn_gate_is_shared(g, zn_votes_id(g->votes, ZN_VOTE_NAME, zn_hostname_span(&from->host)));
}

static bool resolver_may_show(const zn_gate *g, const zn_resolution *from, int64_t epoch)
{
    bool apart = g->policy->roles->dns_votes == ZN_DNS_VOTES_OWN;
    if (epoch + 1 < g->clients.epoch) /* the clients of that epoch are forgotten */
        return false;
    return !zn_clients_have(&g->clients, zn_clients_hash(&g->clients, &from->resolver)) &&
           zn_gate_is_shared(g, zn_votes_id(g->votes, apart ? ZN_VOTE_DNS_ADDR : ZN_VOTE_ADDR,
                                            zn_addr_span(&from->resolver)));
}

const zn_gate_decider zn_gate_local = {
    .server_may_show = server_may_show,
    .host_is_shared = host_is_shared,
    .resolver_may_show = resolver_may_show,
    .rebase_clients = zn_clients_rebase,
};
