/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operator decided about whom to count and what to show. Fixed for a run; shared by all of
 * anon/.
 */
#ifndef ZN_RELEASE_POLICY_H
#define ZN_RELEASE_POLICY_H

#include "analyzer/hostname.h"
#include "flow/flow.h"

typedef struct zn_policy {
    uint32_t z;
    bool release_all; /* z is 1 and stays: nothing is withheld from anyone */
    int64_t window_ns, rotate_ns;
    bool established; /* votes need evidence that the client is real */
    bool dns_votes;   /* DNS names take part at all */
    bool exact;       /* measurements of flows with a suppressed name stay exact */
    bool keep_client_port;
    bool dn_hunter;         /* names from DNS responses for the flows that follow them */
    bool internal_is_set;   /* `internal` came from the operator; false: private ranges */
    const zn_net *internal; /* owned by the engine */
    size_t internal_count;
    uint8_t user_v4_bits, user_v6_bits; /* prefix that makes a user */
    zn_never_list never;
} zn_policy;

/* RFC 1918, RFC 6598 and fc00::/7: what is internal when the operator says nothing. */
const zn_net *zn_policy_private_nets(size_t *count);

/* Of a flow that p opened in the middle of a connection, of which p does not tell who began it: an
 * internal end is taken for the client where the other is none. A server that speaks first would be
 * told as a client, and its client's port as that of a server. */
void zn_policy_guess_client(const zn_policy *policy, zn_flow *f, const zn_packet *p);

/*
 * Fills the flow's internal[] and user: the internal endpoint; the client where both are, or, with
 * no networks given, where none is; else ZN_FLOW_NO_USER. `p` is a packet of it.
 *
 * Where networks were given and the packet came in a tunnel, the outermost IP header with an
 * internal address decides, because a host can forge any number of inner ones: its end on the
 * user's side is the user. known_as: the address that stands for each side, by tuple index; a
 * special one, which is nobody's in particular, for the user alone.
 */
void zn_policy_place(const zn_policy *policy, zn_flow_table *flows, zn_flow *f, const zn_packet *p,
                     zn_addr known_as[2]);

/* The packet, one of the flow, may tell of the flow's user: it does not come through a tunnel of
 * somebody else, who could have made it, also where it is an answer. */
bool zn_policy_is_user(const zn_policy *policy, const zn_flow_table *flows, const zn_flow *f,
                       const zn_packet *p);

/* Whoever opened the flow is its user. What a host outside sends to a user's server is not the
 * user's exposure, or one such host could vote through z servers; nobody is asked where everything
 * leaves. */
static inline bool zn_policy_may_vote(const zn_policy *policy, const zn_flow *f)
{
    return policy->release_all || f->user == f->client;
}

#endif
