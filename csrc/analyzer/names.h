/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes votes of what analyzers read: names that were observed or rejected, the evidence that their
 * client is real, and the votes for names and server addresses. All analyzers report here; nothing
 * here calls one but through the table that analyzer/analyzers.h describes.
 *
 * Evidence, where roles->established asks for it, is over TCP the acknowledged handshake, for DNS
 * as well, in whichever order a tap shows its three segments (flow/tcp.c); bytes far from the
 * expected place in the stream must also acknowledge what the server sent. For DNS over UDP it is
 * the matching response; for QUIC, packets to the connection ID that the server chose; for DTLS,
 * the server's cookie; the last two only where the client's side sent nothing whose echo could pass
 * for them. A name that comes before its evidence waits; one whose evidence never comes is
 * unconfirmed.
 */
#ifndef ZN_ANALYZER_NAMES_H
#define ZN_ANALYZER_NAMES_H

#include "analyzer/name_store.h"
#include "analyzer/roles.h"
#include "anonymity/votes.h"
#include "flow/reassembly.h"
#include "proto/tls.h"

/* Longest time by which an answer may be captured before its question. */
#define ZN_EARLY_ANSWER_NS ZN_NS_PER_S
#define ZN_ANALYZERS_MAX 32 /* as many as zn_flow_state.parse has bits for */

typedef struct zn_analyzer zn_analyzer;

typedef struct zn_message_sink zn_message_sink; /* analyzer/message_sink.h */

typedef struct zn_attributes zn_attributes; /* analyzer/attributes.h */

typedef struct zn_names {
    const zn_message_sink *sink; /* NULL if no output needs messages */
    const zn_roles *roles;
    zn_stats *stats;
    zn_flow_table *flows;
    zn_votes *votes;
    zn_name_store *name_store;
    zn_attributes *attributes;    /* NULL if no attribute beside names is wanted */
    bool common_names;            /* true if the names in certificates are wanted */
    const zn_analyzer *analyzers; /* table of analyzers by id; row 0 means no analyzer */
    uint32_t analyzer_count;
    void *state[ZN_ANALYZERS_MAX]; /* of each analyzer, by its id */
    zn_stream_pool streams;
    zn_slab datagrams; /* states of analyzers in UDP flows */
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

/* Makes the rest of *names, of which roles, stats, flows, votes and name_store are set, for
 * max_flows flows, with datagram_bytes bytes of state for a UDP flow. Returns 0, or a negative
 * zn_err with *err filled. */
int zn_names_init(zn_names *names, uint32_t max_flows, size_t datagram_bytes, zn_error *err);
void zn_names_fini(zn_names *names);
/* Bytes of memory in use. */
size_t zn_names_memory(const zn_names *names);

/* ---- what an analyzer reports ---------------------------------------------------------------- */

/* Normalises the name of a message, `raw` (as sent; empty if the message names no host), and votes
 * for it or lets it wait for evidence. Returns the name's entry, or 0 if no entry is kept
 * (repeated, no name, no room). */
uint32_t zn_names_observed(const zn_packet_context *s, zn_span raw);
/* Returns whether the flow has exposed this name, or none is there: of any other one its names say
 * nothing. */
bool zn_names_has(const zn_names *names, const zn_flow *f, zn_name_source source, zn_span raw);
/* Notes a name that must not be used, and counts it as `why`. */
void zn_names_rejected(const zn_packet_context *s, zn_stat why);
/* Notes that bytes were passed over that may hold a name: more is withheld. The caller counts
 * why. */
void zn_names_missed(const zn_packet_context *s);
/* Votes for a waiting name whose evidence is complete with this packet. */
void zn_names_confirmed(const zn_packet_context *s, uint32_t entry);
/* Takes `raw`, by which a client repeats its first name. If they differ, `raw` is rejected, and the
 * first name, too, while it waits. */
void zn_names_observed_again(const zn_packet_context *s, zn_span raw);

/* Marks the flow's client as a client of the epoch, as soon as the client has shown to be a client.
 * A stray packet shows nothing: neither a first packet whose receiver is taken for the client, nor
 * an unanswered packet from outside towards an internal host. Called until the flow is marked. */
void zn_names_mark_client(const zn_packet_context *s);
/* Votes for the server's address: this packet proves the flow's user real. */
void zn_names_addr(const zn_packet_context *s);
/* Handles evidence, complete with this packet, that the client is real: votes for the server's
 * address and for the waiting name `entry` (0: no name). Other names of the flow continue to wait,
 * because they may be forged. */
void zn_names_client_proven(const zn_packet_context *s, uint32_t entry);
/* Votes for the server's address and for all waiting names of the flow, if the packet proves which
 * side is the client and, if the policy requires it, that the client is real. Called while the vote
 * for the address is pending. */
void zn_names_check_evidence(const zn_packet_context *s);
/* Returns true if the client proved itself by a name or by evidence. It then remains the client. */
bool zn_names_client_is_final(const zn_flow *f);
/* Makes the packet's sender the client, for which the other side was taken. Returns false when that
 * side proved itself the client by a name or by evidence, and stays it; or when the flow has no
 * user now. */
bool zn_names_swap_client(const zn_packet_context *s);

/* Makes the packet's sender the client, for a packet that only clients send. The sender must be an
 * internal host that was taken for the server. The packet must be the first of the sender, at most
 * ZN_EARLY_ANSWER_NS after the flow opened. The packets of the other side may then be answers that
 * were captured early. Returns false if the roles stay. */
bool zn_names_opens_late(const zn_packet_context *s);

/* Takes a stream to collect the flow's first bytes in, unless it has one. Returns false, and counts
 * that, when none is left. */
bool zn_names_has_stream(const zn_packet_context *s);
/* Forgets what was collected of the flow's first bytes. */
void zn_names_drop_stream(zn_names *names, zn_flow *f);

/* The analyzer's state in a UDP flow: analyzer->state_bytes bytes, zero at first, with a slab's
 * link at their start. */
static inline void *zn_names_datagram(const zn_names *names, const zn_flow *f)
{
    return zn_slab_at(&names->datagrams, f->datagram);
}

/* The namespace of a name from `source`. */
static inline zn_vote_kind zn_names_kind(const zn_names *names, zn_name_source source)
{
    bool apart = source == ZN_SOURCE_DNS && names->roles->dns_votes != ZN_DNS_VOTES_ALL;
    return apart ? ZN_VOTE_DNS_NAME : ZN_VOTE_NAME;
}

/* Returns whether what the flow's packets so far show is all that there is to know of its names:
 * its first message was read, or none of a protocol that has names. */
bool zn_names_all_read(const zn_flow *f);

/* ---- the flow's end -------------------------------------------------------------------------- */

/* Makes the names of a closed flow that still wait unconfirmed. */
void zn_names_closed(zn_names *names, const zn_flow *f);
/* The ZN_STAT_STATUS_* counter of a closed flow, by how far its names could be read, released or
 * not. */
zn_stat zn_names_status(const zn_names *names, const zn_flow *f);

#endif
