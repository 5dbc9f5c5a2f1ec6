/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a batch's votes (this user exposed this name, reached this server, is a client), and
 * the identities of names, texts and addresses that votes are for. Analyzers cast votes; release/
 * takes them in time order.
 */
#ifndef ZN_ANONYMITY_VOTES_H
#define ZN_ANONYMITY_VOTES_H

#include "util/attributes.h"
#include "util/cursor.h"
#include "util/hash.h"

typedef enum zn_vote_kind {
    ZN_VOTE_CLIENT,      /* the flow's client address is a client's */
    ZN_VOTE_ADDR,        /* the flow's user reached its server */
    ZN_VOTE_NAME,        /* the flow's user exposed a name */
    ZN_VOTE_DNS_ADDR,    /* as ADDR, of a DNS flow whose votes count apart */
    ZN_VOTE_DNS_NAME,    /* as NAME, of a DNS flow whose votes count apart */
    ZN_VOTE_CERTIFICATE, /* the flow's user was shown a certificate */
    ZN_VOTE_AGENT,       /* the flow's user exposed its user agent */
    ZN_VOTE_FINGERPRINT, /* the flow's user exposed the fingerprint of its TLS client */
    /* No votes, but questions about what others share. */
    ZN_VOTE_PEEK,          /* a name of the flow, which waits for its evidence */
    ZN_VOTE_ADDR_PEEK,     /* the flow's server, of a flow that has opened */
    ZN_VOTE_DNS_ADDR_PEEK, /* the same, of a DNS flow whose votes count apart */
    /* The flow's user exposed an attribute: this value plus the zn_attribute. */
    ZN_VOTE_ATTRIBUTE
} zn_vote_kind;

typedef struct zn_vote {
    int64_t t_ns;
    uint32_t order; /* of arrival: ties keep it */
    uint32_t flow;
    uint32_t entry; /* name store entry of a name, certificate or agent */
    zn_vote_kind kind;
    uint64_t user, address; /* hashes of the user and of the address, while the votes are decided */
} zn_vote;

/* The decision on a flow's server address: zn_flow_state.addr_vote. */
enum {
    ZN_ADDR_PENDING,
    ZN_ADDR_VOTED,
    ZN_ADDR_RELEASED,
    ZN_ADDR_SUPPRESSED,
    ZN_ADDR_AS,     /* published as its autonomous system */
    ZN_ADDR_COUNTRY /* published as its country */
};

typedef struct zn_votes {
    zn_vote *at;
    size_t n, cap;
    bool in_order;      /* of time */
    zn_hash_key id_key; /* of the identities */
} zn_votes;

/* Makes a queue for `cap` votes; *votes is zero. Returns 0, or a negative zn_err with *err
 * filled. */
int zn_votes_init(zn_votes *votes, size_t cap, zn_error *err);
void zn_votes_fini(zn_votes *votes);
/* Appends a vote with the packet time t_ns; returns false when there is no room. */
bool zn_votes_cast(zn_votes *votes, zn_vote_kind kind, int64_t t_ns, uint32_t flow, uint32_t entry);
/* Puts the votes in the order of their times. */
void zn_votes_sort(zn_votes *votes);
/* Forgets all votes. */
void zn_votes_clear(zn_votes *votes);
/* Forgets the first n votes, which are sorted. */
void zn_votes_drop(zn_votes *votes, size_t n);

/* Returns the byte of the namespace of votes of this kind. Namespaces do not share counts. Votes
 * for clients have no namespace. */
uint8_t zn_votes_namespace(zn_vote_kind kind);
/* The identity, within this process, of a name, a text or an address of 16 bytes that a vote of
 * this kind is for. */
zn_id zn_votes_id(const zn_votes *votes, zn_vote_kind kind, zn_span bytes);

#endif
