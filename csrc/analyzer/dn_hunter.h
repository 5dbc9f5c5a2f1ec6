/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which name a client's host was reached under: the last name for which a DNS response gave the
 * client the server's address (DN-Hunter: Bermudez, Mellia, Munafò, Keralapura, Nucci, IMC 2012).
 *
 * Only where the roles say so (dn_hunter). A response counts that answers a question its client
 * asked. What is learned is no vote; it is tied to the flows a client opens afterwards, and whether
 * a record may tell it is the gate's to say. Both tables are fixed: the least recently used entry
 * gives way.
 */
#ifndef ZN_ANALYZER_DN_HUNTER_H
#define ZN_ANALYZER_DN_HUNTER_H

#include "analyzer/roles.h"

/* A name and the response that gave addresses for it. */
typedef struct zn_resolution {
    uint32_t uses; /* addresses and flows that lead here; the slab's link while free */
    bool resolver_internal;
    int64_t query_ns, answer_ns;
    int64_t epoch; /* of the resolver's pseudonym */
    zn_addr resolver, resolver_pseudonym;
    zn_hostname host;
} zn_resolution;

/* A question that waits for its response. */
typedef struct zn_asked {
    zn_id id; /* of flow, message and question */
    int64_t t_ns;
} zn_asked;

/* The last resolution for a client and an address. */
typedef struct zn_dn_hunter_pair {
    zn_id id; /* of both */
    uint32_t resolution;
    uint32_t used; /* when, in lookups */
} zn_dn_hunter_pair;

typedef struct zn_dn_hunter {
    const zn_roles *roles;
    zn_flow_table *flows;
    zn_hash_key key;
    zn_slab resolutions;
    zn_dn_hunter_pair *pairs; /* NULL: off */
    zn_asked *asked;
    uint32_t clock; /* lookups so far */
} zn_dn_hunter;

/* r->roles and r->flows are set; there are at most max_flows of these. Makes nothing unless the
 * roles ask for it. 0, or a negative zn_err. */
int zn_dn_hunter_init(zn_dn_hunter *r, uint32_t max_flows, zn_error *err);
void zn_dn_hunter_fini(zn_dn_hunter *r);
/* Learns from a packet of an open flow. */
void zn_dn_hunter_packet(zn_dn_hunter *r, uint32_t flow, const zn_flow *f, const zn_packet *p);
/* Fetches what zn_dn_hunter_opened will look at, if p opens a flow and its sender is the client. */
void zn_dn_hunter_prefetch(const zn_dn_hunter *r, const zn_packet *p);
/* Ties a new flow to what its client resolved. */
void zn_dn_hunter_opened(zn_dn_hunter *r, zn_flow *f);
/* The flow's record is written. */
void zn_dn_hunter_forget(zn_dn_hunter *r, zn_flow *f);
/* What the flow is tied to, or NULL. */
const zn_resolution *zn_dn_hunter_of(const zn_dn_hunter *r, const zn_flow *f);
/* The packet clock was set back: nothing of before may meet what comes. */
void zn_dn_hunter_clear(zn_dn_hunter *r);
/* Bytes of memory in use. */
size_t zn_dn_hunter_memory(const zn_dn_hunter *r);

#endif
