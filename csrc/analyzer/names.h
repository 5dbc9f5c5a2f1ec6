/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what an analyzer read to votes: names that were observed or rejected, the evidence that
 * their client is real, and the votes for names and server addresses. All analyzers report here;
 * nothing here calls one but through the table that analyzer/analyzers.h describes.
 *
 * Evidence (unless the policy says any): TCP, the acknowledged handshake, for DNS as well, and of
 * bytes far from where the stream goes on that they acknowledge what the server sent; DNS over UDP,
 * the matching response; QUIC, packets to the connection ID that the server chose; DTLS, the
 * server's cookie; both only where the client's side sent nothing that an echo would make them of.
 * A name that comes first waits; one whose evidence never comes is unconfirmed.
 */
#ifndef ZN_ANALYZER_NAMES_H
#define ZN_ANALYZER_NAMES_H

#include "analyzer/name_store.h"
#include "analyzer/roles.h"
#include "anonymity/votes.h"
#include "flow/reassembly.h"
#include "proto/tls.h"

#define ZN_ANALYZERS_MAX 32 /* what zn_flow_state.parse has bits for */

typedef struct zn_analyzer zn_analyzer;

typedef struct zn_names {
    const zn_roles *roles;
    zn_stats *stats;
    zn_flow_table *flows;
    zn_votes *votes;
    zn_name_store *name_store;
    const zn_analyzer *analyzers; /* the table, by id; row 0 is of none */
    uint32_t analyzer_count;
    void *state[ZN_ANALYZERS_MAX]; /* of each analyzer, by its id */
    zn_stream_pool streams;
    zn_slab datagrams; /* what analyzers keep of UDP flows */
    zn_tls_scratch tls;
} zn_names;

/* A packet, the flow that it belongs to, and the analyzer that looks at it. */
typedef struct zn_packet_context {
    zn_names *names;
    uint32_t flow;
    zn_flow *f;
    const zn_packet *p;
    const zn_analyzer *analyzer; /* NULL: none yet */
} zn_packet_context;

/* roles, stats, flows, votes and name_store of *names are set; makes the rest for max_flows flows,
 * with room for `datagram_bytes` of a UDP flow. 0, or a negative zn_err. */
int zn_names_init(zn_names *names, uint32_t max_flows, size_t datagram_bytes, zn_error *err);
void zn_names_fini(zn_names *names);
/* Bytes of memory in use. */
size_t zn_names_memory(const zn_names *names);

/* ---- what an analyzer reports ---------------------------------------------------------------- */

/* The analyzer read what may have a name, `raw` (as sent; empty: it has none): normalises it and
 * votes, or waits for evidence. Returns the entry, or 0 when none stays (repeated, no name, no
 * room). */
uint32_t zn_names_observed(const zn_packet_context *s, zn_span raw);
/* A name was there, but must not be used: counted as `why`. */
void zn_names_rejected(const zn_packet_context *s, zn_stat why);
/* The evidence for one waiting name is complete with this packet. */
void zn_names_confirmed(const zn_packet_context *s, uint32_t entry);
/* The client says `raw` again, where it must be what it said first. */
void zn_names_observed_again(const zn_packet_context *s, zn_span raw);

/* The flow's user is proven real by this packet: votes for the server's address. */
void zn_names_addr(const zn_packet_context *s);
/* Evidence, complete with this packet, that the client is real: votes for the server's address and
 * the waiting name `entry` (0: none). Only its own: another of the flow may be forged. */
void zn_names_client_proven(const zn_packet_context *s, uint32_t entry);
/* The same for all waiting names of the flow, where the packet leaves no doubt who the client is
 * and, where the policy asks for it, that it is real. */
void zn_names_check_evidence(const zn_packet_context *s);
/* The packet shows its sender to be the client, which the other side was taken for. False when that
 * one showed itself to be it, by a name or what proves a client, or the flow has no user now. */
bool zn_names_swap_client(const zn_packet_context *s);

/* Whether there is a stream to collect the flow's first bytes in; counted where there is none
 * left. */
bool zn_names_has_stream(const zn_packet_context *s);
/* Forgets what was collected of the flow's first bytes. */
void zn_names_drop_stream(zn_names *names, zn_flow *f);

/* What the analyzer keeps of a UDP flow: analyzer->state_bytes bytes, zero at first; a slab's link
 * at their start. */
static inline void *zn_names_datagram(const zn_names *names, const zn_flow *f)
{
    return zn_slab_at(&names->datagrams, f->datagram);
}

/* ---- the flow's end -------------------------------------------------------------------------- */

/* Settles what still waits as unconfirmed. */
void zn_names_closed(zn_names *names, const zn_flow *f);
/* The ZN_STAT_STATUS_* counter of a closed flow: what could be read of its names, released or
 * not. */
zn_stat zn_names_status(const zn_names *names, const zn_flow *f);

#endif
