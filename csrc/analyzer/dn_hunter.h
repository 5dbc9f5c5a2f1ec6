/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name by which a client reached a server: the last one for which a DNS response gave the
 * client the server's address (DN-Hunter: Bermudez, Mellia, Munafò, Keralapura, Nucci, IMC 2012).
 *
 * It works only where the roles have dn_hunter set. A response counts if it answers a question that
 * its client asked. A name learned so is no vote: it is tied to the flows that the client opens
 * later, and the gate decides whether a record may disclose it. Both tables have a fixed size: a
 * new pair replaces the least recently used one of its set, a new question the one in its slot.
 */
#ifndef ZN_ANALYZER_DN_HUNTER_H
#define ZN_ANALYZER_DN_HUNTER_H

#include "analyzer/roles.h"

/* A name and the response that gave addresses for it. */
typedef struct zn_resolution {
    uint32_t uses; /* addresses and flows that refer to it; the slab's link while free */
    bool resolver_internal;
    int64_t query_ns, answer_ns;
    int64_t epoch; /* of the resolver's pseudonym */
    zn_addr resolver, resolver_pseudonym;
    zn_hostname host;
} zn_resolution;

/* A question that waits for its response. */
typedef struct zn_asked {
    zn_id id; /* identity of flow, message and question */
    int64_t t_ns;
} zn_asked;

/* The last resolution for a client and an address. */
typedef struct zn_dn_hunter_pair {
    zn_id id; /* identity of both */
    uint32_t resolution;
    uint32_t used; /* the lookup that used it last */
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

/* Makes the tables, for at most max_flows flows, if the roles ask for them; r->roles and r->flows
 * are set. Returns 0, or a negative zn_err with *err filled. */
int zn_dn_hunter_init(zn_dn_hunter *r, uint32_t max_flows, zn_error *err);
void zn_dn_hunter_fini(zn_dn_hunter *r);
/* Learns from a packet of an open flow. */
void zn_dn_hunter_packet(zn_dn_hunter *r, uint32_t flow, const zn_flow *f, const zn_packet *p);
/* Prefetches the pairs that zn_dn_hunter_opened reads, if p opens a flow and its sender is the
 * client. */
void zn_dn_hunter_prefetch(const zn_dn_hunter *r, const zn_packet *p);
/* Ties a new flow to the name by which its client resolved the server. */
void zn_dn_hunter_opened(zn_dn_hunter *r, zn_flow *f);
/* Unties a flow whose record is written. */
void zn_dn_hunter_forget(zn_dn_hunter *r, zn_flow *f);
/* Returns the resolution that the flow is tied to; NULL if the flow has no resolution, or if its
 * name is on the never list by now. */
const zn_resolution *zn_dn_hunter_of(const zn_dn_hunter *r, const zn_flow *f);
/* Forgets all questions and pairs, after the packet clock was set back: old ones must not match
 * packets to come. */
void zn_dn_hunter_clear(zn_dn_hunter *r);
/* Bytes of memory in use. */
size_t zn_dn_hunter_memory(const zn_dn_hunter *r);

#endif
