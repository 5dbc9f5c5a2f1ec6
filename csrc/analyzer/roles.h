/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who takes part, and in which role: which networks are the users', who of a flow's two ends is the
 * user, whose names and addresses may vote. Fixed for a run.
 */
#ifndef ZN_ANALYZER_ROLES_H
#define ZN_ANALYZER_ROLES_H

#include "analyzer/flow_state.h"
#include "analyzer/hostname.h"

typedef struct zn_roles {
    bool release_all; /* z is always 1: nothing is withheld from anyone */
    bool established; /* votes need evidence that the client is real */
    bool dns_votes;   /* DNS names take part at all */
    bool dn_hunter;   /* names from DNS responses for the flows that follow them */
    int64_t rotate_ns;
    bool internal_is_set;   /* `internal` came from the operator; false: private ranges */
    const zn_net *internal; /* owned by the engine */
    size_t internal_count;
    uint8_t user_v4_bits, user_v6_bits; /* prefix that makes a user */
    zn_never_list never;
} zn_roles;

/* RFC 1918, RFC 6598 and fc00::/7: what is internal when the operator says nothing. */
const zn_net *zn_roles_private_nets(size_t *count);

/* For a flow that p opened in the middle of a connection, where p leaves open who began it: takes
 * an internal end for the client where the other is none. A server that speaks first would be
 * reported as a client, and its client's port as that of a server. */
void zn_roles_guess_client(const zn_roles *roles, zn_flow *f, const zn_packet *p);

/*
 * Fills the flow's internal[] and user: the internal endpoint; the client where both are, or, with
 * no networks given, where none is; else ZN_FLOW_NO_USER. `p` is a packet of it.
 *
 * Where networks were given and the packet came in a tunnel, the outermost IP header with an
 * internal address decides, because a host can forge any number of inner ones: its end on the
 * user's side is the user. known_as: the address that stands for each side, by tuple index; a
 * special one, which is nobody's in particular, for the user alone.
 */
void zn_roles_place(const zn_roles *roles, zn_flow_table *flows, zn_flow *f, const zn_packet *p,
                    zn_addr known_as[2]);

/* Whether the packet, one of the flow, may speak for the flow's user: it does not come through a
 * tunnel of somebody else, who could have made it, also where it is an answer. */
bool zn_roles_is_user(const zn_roles *roles, const zn_flow_table *flows, const zn_flow *f,
                      const zn_packet *p);

/* Whoever opened the flow is its user. What a host outside sends to a user's server is not the
 * user's exposure, or one such host could vote through z servers; nobody is asked where everything
 * leaves. */
static inline bool zn_roles_may_vote(const zn_roles *roles, const zn_flow *f)
{
    return roles->release_all || f->user == f->client;
}

#endif
