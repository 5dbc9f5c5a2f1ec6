/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/gate_caps.h"

#include "release/gate_internal.h"

static bool is_name(const zn_vote *v)
{
    return v->kind == ZN_VOTE_NAME || v->kind == ZN_VOTE_DNS_NAME;
}

/* Returns true if the vote or the peek is about a host name. */
static bool is_about_name(const zn_gate *g, const zn_vote *v)
{
    return is_name(v) || (v->kind == ZN_VOTE_PEEK &&
                          zn_name_store_at(g->name_store, v->entry)->source != ZN_SOURCE_NONE);
}

static zn_stat reason_of(zn_cap cap)
{
    switch (cap) {
    case ZN_CAP_PREFIX:
        return ZN_STAT_SUPPRESSED_PREFIX_CAP;
    case ZN_CAP_NAMES:
        return ZN_STAT_SUPPRESSED_USER_CAP;
    case ZN_CAP_AGE:
        return ZN_STAT_SUPPRESSED_NEW_USER;
    case ZN_CAP_FULL:
    case ZN_CAP_NONE:
        break;
    }
    return ZN_STAT_SUPPRESSED_CAPACITY;
}

bool zn_gate_caps_refuse(zn_gate *g, const zn_vote *v, const zn_observation *o)
{
    zn_addr user = zn_gate_user(g, zn_flow_at(g->flows, v->flow));
    zn_capped_vote vote = {.observation = o, .user = &user, .is_name = is_about_name(g, v)};
    zn_cap cap;
    if (zn_vote_is_packet_peek(v))
        cap = zn_user_caps_ask(g->caps, &vote);
    else if (zn_gate_is_peek(g, v))
        return false; /* names in DNS that cast no vote */
    else
        cap = zn_user_caps_vote(g->caps, &vote);
    if (cap == ZN_CAP_NONE)
        return false;
    zn_gate_finish(g, v, false, reason_of(cap), 0);
    return true;
}

void zn_gate_caps_released(zn_gate *g, const zn_vote *v)
{
    if (v->kind == ZN_VOTE_NAME && zn_user_caps_is_new(g->caps, v->user, v->t_ns))
        g->stats->n[ZN_STAT_RELEASES_BY_NEW_USERS]++;
}
