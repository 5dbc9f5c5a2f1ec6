/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of gate.c that gate_local.c (z-table) and gate_remote.c (remote counter) share. */
#ifndef ZN_RELEASE_GATE_INTERNAL_H
#define ZN_RELEASE_GATE_INTERNAL_H

#include "release/gate.h"

#define ZN_ALL_OUTPUTS UINT8_MAX
#define ZN_LAST_VOTES 512u /* slots for the last vote of a flow while a batch is hashed */

static inline bool zn_vote_is_addr_peek(const zn_vote *v)
{
    return v->kind == ZN_VOTE_ADDR_PEEK || v->kind == ZN_VOTE_DNS_ADDR_PEEK;
}

static inline bool zn_vote_is_addr(const zn_vote *v)
{
    return v->kind == ZN_VOTE_ADDR || v->kind == ZN_VOTE_DNS_ADDR || zn_vote_is_addr_peek(v);
}

/* Returns true if packet output cast the vote to learn whether users share its attribute. */
static inline bool zn_vote_is_packet_peek(const zn_vote *v)
{
    return v->kind == ZN_VOTE_PEEK || zn_vote_is_addr_peek(v);
}

/* Returns true if the vote is only decided and not counted, for packet output or for DNS flows with
 * ZN_DNS_VOTES_NO. */
static inline bool zn_gate_is_peek(const zn_gate *g, const zn_vote *v)
{
    if (zn_vote_is_packet_peek(v))
        return true;
    return g->policy->roles->dns_votes == ZN_DNS_VOTES_NO &&
           (v->kind == ZN_VOTE_DNS_ADDR || v->kind == ZN_VOTE_DNS_NAME);
}

/* Returns the flow's user: the address cut to the user's prefix. All special addresses are one
 * user. */
zn_addr zn_gate_user(const zn_gate *g, const zn_flow *f);
/* Returns true if the server's address may be an attribute, provided that it was no client. */
bool zn_gate_addr_is_public(const zn_gate *g, const zn_flow *f);

/* Fills in the release that results if the vote for a name is released. */
void zn_gate_fill_release(const zn_gate *g, const zn_vote *v, zn_release *out);
/* Adds the release of a vote's name, at a level, to the releases of this decision. */
void zn_gate_add_release(zn_gate *g, const zn_vote *v, zn_name_level level);
/* Keeps the decision on a vote. `why` counts a name that is not released; outputs: of packets, as
 * bits, in which it is released or shared. */
void zn_gate_finish(zn_gate *g, const zn_vote *v, bool release, zn_stat why, uint8_t outputs);
/* Suppresses the server's address of a flow, because the address is no attribute. */
void zn_gate_refuse_addr(zn_gate *g, const zn_vote *v, zn_flow *f);

#endif
