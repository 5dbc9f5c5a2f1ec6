/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a batch's votes (this user exposed this name, reached this server, is a client), and
 * the identities of what is voted for. Analyzers cast votes; release/ takes them in time order.
 */
#ifndef ZN_ANONYMITY_VOTES_H
#define ZN_ANONYMITY_VOTES_H

#include "util/cursor.h"
#include "util/hash.h"

typedef enum zn_vote_kind {
    ZN_VOTE_CLIENT,      /* the flow's client address is a client's */
    ZN_VOTE_ADDR,        /* the flow's user reached its server */
    ZN_VOTE_NAME,        /* the flow's user exposed a name */
    ZN_VOTE_CERTIFICATE, /* the flow's user was shown a certificate */
    ZN_VOTE_AGENT        /* the flow's user exposed its user agent */
} zn_vote_kind;

typedef struct zn_vote {
    int64_t t_ns;
    uint32_t order; /* of arrival: ties keep it */
    uint32_t flow;
    uint32_t entry; /* ZN_VOTE_NAME, ZN_VOTE_CERTIFICATE, ZN_VOTE_AGENT: the text */
    zn_vote_kind kind;
    uint64_t user,
        address; /* hashes, while the votes are decided: of the user, and among clients */
} zn_vote;

/* Decision on a flow's server address: zn_flow_state.addr_vote. */
enum { ZN_ADDR_PENDING, ZN_ADDR_VOTED, ZN_ADDR_RELEASED, ZN_ADDR_SUPPRESSED };

typedef struct zn_votes {
    zn_vote *at;
    size_t n, cap;
    bool in_order;      /* of time */
    zn_hash_key id_key; /* of the identities */
} zn_votes;

/* Room for `cap` votes. 0, or a negative zn_err. */
int zn_votes_init(zn_votes *votes, size_t cap, zn_error *err);
void zn_votes_fini(zn_votes *votes);
/* Appends a vote; false when there is no room. */
bool zn_votes_cast(zn_votes *votes, zn_vote_kind kind, int64_t t_ns, uint32_t flow, uint32_t entry);
/* Puts the votes in the order of their times. */
void zn_votes_sort(zn_votes *votes);
/* Forgets them. */
void zn_votes_clear(zn_votes *votes);

/* Identity of what a vote of this kind is for: a name, a text or an address of 16 bytes. Each kind
 * is a namespace of its own: none shares a count with another. */
zn_id zn_votes_id(const zn_votes *votes, zn_vote_kind kind, zn_span bytes);

#endif
