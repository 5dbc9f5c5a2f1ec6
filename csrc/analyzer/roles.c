/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/roles.h"

#define V4_NET(a, b, c, d, n) {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}}, 96 + (n)}

static const zn_net private_nets[] = {
    V4_NET(10, 0, 0, 0, 8),
    V4_NET(172, 16, 0, 0, 12),
    V4_NET(192, 168, 0, 0, 16),
    V4_NET(100, 64, 0, 0, 10),
    {{{0xfc}}, 7},
};

const zn_net *zn_roles_private_nets(size_t *count)
{
    *count = sizeof private_nets / sizeof private_nets[0];
    return private_nets;
}

/*
 * Finds the outermost of the packet's tunnels with an internal end. Returns whether there is one,
 * with internal[] and known_as[] by tuple index of the packet's flow.
 */
static bool internal_tunnel(const zn_roles *roles, const zn_packet *p, bool internal[2],
                            zn_addr known_as[2])
{
    uint32_t n = roles->internal_is_set ? p->tunnel_count : 0;
    for (uint32_t i = 0; i < n; i++) {
        for (unsigned end = 0; end < 2; end++) {
            const zn_addr *a = &p->outer->tunnels[i].end[end];
            internal[p->sender ^ end] = zn_nets_contain(roles->internal, roles->internal_count, a);
            known_as[p->sender ^ end] = *a;
        }
        if (internal[0] || internal[1])
            return true;
    }
    return false;
}

/* Returns whether the packet, which opened a flow, leaves open which side is the client. */
static bool client_is_unsure(const zn_packet *p)
{
    const uint16_t *port = p->tuple.port;
    return (p->tcp_flags & ZN_TCP_SYN) == 0 &&
           (port[0] < ZN_WELL_KNOWN_PORTS) == (port[1] < ZN_WELL_KNOWN_PORTS);
}

void zn_roles_guess_client(const zn_roles *roles, zn_flow *f, const zn_packet *p)
{
    bool internal[2];
    zn_addr outer[2];
    if (!client_is_unsure(p))
        return;
    if (!internal_tunnel(roles, p, internal, outer))
        for (unsigned i = 0; i < 2; i++)
            internal[i] =
                zn_nets_contain(roles->internal, roles->internal_count, &f->tuple.addr[i]);
    if (internal[1 - f->client] && !internal[f->client])
        zn_flow_swap_client(f);
}

void zn_roles_place(const zn_roles *roles, zn_flow_table *flows, zn_flow *f, const zn_packet *p,
                    zn_addr known_as[2])
{
    uint8_t server = (uint8_t)(1 - f->client);
    bool internal[2];
    zn_addr outer[2];
    for (unsigned i = 0; i < 2; i++) {
        f->internal[i] = zn_nets_contain(roles->internal, roles->internal_count, &f->tuple.addr[i]);
        known_as[i] = f->tuple.addr[i];
    }
    zn_flow_set_user(flows, f, NULL);
    if (ZN_UNLIKELY(p->tunnel_count != 0) && internal_tunnel(roles, p, internal, outer)) {
        f->user = (internal[f->client] ? f->client : server) & 3u;
        for (unsigned i = 0; i < 2; i++)
            if (internal[i] && (i == f->user || !zn_addr_is_special(&outer[i])))
                known_as[i] = outer[i]; /* a multicast group, say, does not answer */
        f->internal[f->user] = true;
        zn_flow_set_user(flows, f, &known_as[f->user]);
        return;
    }
    if (!f->internal[0] && !f->internal[1]) {
        f->user = roles->internal_is_set ? ZN_FLOW_NO_USER : f->client & 3u;
        f->internal[f->client] = !roles->internal_is_set;
        return;
    }
    f->user = (f->internal[f->client] ? f->client : server) & 3u;
}

bool zn_roles_is_user(const zn_roles *roles, const zn_flow_table *flows, const zn_flow *f,
                      const zn_packet *p)
{
    bool internal[2];
    zn_addr outer[2];
    bool answers = p->sender != f->user;
    unsigned end = f->user;
    if (!roles->internal_is_set)
        return true;
    if (!internal_tunnel(roles, p, internal, outer))
        return answers || !f->user_outside;
    if (answers && !f->user_outside)
        return false;
    if (answers && !zn_addr_equal(&outer[end], zn_flow_user(flows, f)))
        end = 1u - end; /* a mirror's tunnel has the same ends both ways */
    return internal[end] && zn_addr_equal(&outer[end], zn_flow_user(flows, f));
}

zn_stat zn_roles_list_refuses(const zn_roles *roles, const zn_hostname *name)
{
    zn_name_facts facts;
    if (zn_never_list_has(&roles->never, name))
        return ZN_STAT_SUPPRESSED_NEVER_LIST;
    if (ZN_LIKELY(!zn_name_lists_restrict(&roles->lists)))
        return ZN_STAT_COUNT;
    zn_name_lists_look_up(&roles->lists, zn_hostname_span(name), &facts);
    if ((roles->lists.listed & ZN_SUFFIX_ONLY) != 0 && !facts.only)
        return ZN_STAT_SUPPRESSED_NOT_LISTED;
    return facts.skipped ? ZN_STAT_SUPPRESSED_SKIPPED : ZN_STAT_COUNT;
}
