/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What the gate's files share: gate.c asks the table of this process, gate_ask.c the counter of all
 * probes. */
#ifndef ZN_RELEASE_GATE_INTERNAL_H
#define ZN_RELEASE_GATE_INTERNAL_H

#include "release/gate.h"

#define ZN_ALL_OUTPUTS UINT8_MAX
#define ZN_LAST_VOTES 512u /* flows whose last vote is at hand while a batch is hashed */

static inline bool zn_vote_is_addr_peek(const zn_vote *v)
{
    return v->kind == ZN_VOTE_ADDR_PEEK || v->kind == ZN_VOTE_DNS_ADDR_PEEK;
}

static inline bool zn_vote_is_addr(const zn_vote *v)
{
    return v->kind == ZN_VOTE_ADDR || v->kind == ZN_VOTE_DNS_ADDR || zn_vote_is_addr_peek(v);
}

/* Returns whether the vote asks for packets what others share. */
static inline bool zn_vote_is_packet_peek(const zn_vote *v)
{
    return v->kind == ZN_VOTE_PEEK || zn_vote_is_addr_peek(v);
}

/* Returns whether the vote only asks how many others there are: also where DNS casts none. */
static inline bool zn_gate_is_peek(const zn_gate *g, const zn_vote *v)
{
    if (zn_vote_is_packet_peek(v))
        return true;
    return g->policy->roles->dns_votes == ZN_DNS_VOTES_NO &&
           (v->kind == ZN_VOTE_DNS_ADDR || v->kind == ZN_VOTE_DNS_NAME);
}

/* The flow's user: its address cut to the user's prefix, all special addresses as one. */
zn_addr zn_gate_user(const zn_gate *g, const zn_flow *f);
/* Returns whether the server's address could be an attribute, clients aside. */
bool zn_gate_addr_is_public(const zn_gate *g, const zn_flow *f);

/* Fills in the release that the vote for a name is, or would be. */
void zn_gate_fill_release(const zn_gate *g, const zn_vote *v, zn_release *out);
/* Keeps the decision on a vote. `why` counts a name that is not released; outputs: of packets, as
 * bits, in which it is released or shared. */
void zn_gate_finish(zn_gate *g, const zn_vote *v, bool release, zn_stat why, uint8_t outputs);
/* Suppresses the server's address of a flow, which is no attribute. */
void zn_gate_refuse_addr(zn_gate *g, const zn_vote *v, zn_flow *f);

#endif
