/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roles of addresses: the networks of the users, the end of a flow that is its user, and the
 * flows whose names and addresses may vote. Fixed for a run, but for the never list.
 */
#ifndef ZN_ANALYZER_ROLES_H
#define ZN_ANALYZER_ROLES_H

#include "analyzer/flow_state.h"
#include "analyzer/hostname.h"
#include "analyzer/name_lists.h"
#include "util/stats.h"

typedef struct zn_roles {
    bool release_all; /* z is always 1: nothing is withheld from anyone */
    bool established; /* votes need evidence that the client is real */
    bool dn_hunter;   /* names from DNS responses for the flows that follow them */
    zn_dns_votes dns_votes;
    int64_t rotate_ns;
    bool internal_is_set;   /* `internal` came from the operator; false: private ranges */
    const zn_net *internal; /* owned by the engine */
    size_t internal_count;
    uint8_t user_v4_bits, user_v6_bits; /* length of the prefix that is one user */
    zn_never_list never;
    zn_name_lists lists;
} zn_roles;

/* The networks that are internal when the operator names none: RFC 1918, RFC 6598 and fc00::/7. */
const zn_net *zn_roles_private_nets(size_t *count);

/* Guesses the client of a UDP flow that p opened, or of a TCP flow that p opened in the middle of a
 * connection, if the ports leave open which side began it: the internal end, if the other is not.
 * Without the guess, a server that speaks first would be reported as a client, and the client's
 * port as a server's port. */
void zn_roles_guess_client(const zn_roles *roles, zn_flow *f, const zn_packet *p);

/*
 * Fills the flow's internal[] and user. The user is the internal endpoint. It is the client if both
 * endpoints are internal, or if neither is and no networks were given. Otherwise it is
 * ZN_FLOW_NO_USER. p: a packet of the flow.
 *
 * If networks were given and the packet came in a tunnel, the outermost IP header with an internal
 * address decides, because a host can forge any number of inner headers: its end on the user's side
 * is the user. known_as: the address that identifies each side, by tuple index. A special outer
 * address, which several hosts share, identifies the user only.
 */
void zn_roles_place(const zn_roles *roles, zn_flow_table *flows, zn_flow *f, const zn_packet *p,
                    zn_addr known_as[2]);

/* Returns whether a packet of the flow counts as its user's, or as an answer to the user: it does
 * not when it came through a tunnel of another host, which could have forged it. */
bool zn_roles_is_user(const zn_roles *roles, const zn_flow_table *flows, const zn_flow *f,
                      const zn_packet *p);

/* Returns the counter of the list that keeps the name from voting and from every output;
 * ZN_STAT_COUNT if no list does. */
zn_stat zn_roles_list_refuses(const zn_roles *roles, const zn_hostname *name);

/* Returns whether the flow may vote: its user opened it. Bytes from a host outside to a user's
 * server are not the user's exposure, or one such host could vote through z servers. With
 * release_all every flow may. */
static inline bool zn_roles_may_vote(const zn_roles *roles, const zn_flow *f)
{
    return roles->release_all || f->user == f->client;
}

#endif
