/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts TCP segments (RFC 9293) in their flow, and owns the data that few flows have beside their
 * entry for it.
 */
#ifndef ZN_FLOW_TCP_H
#define ZN_FLOW_TCP_H

#include "flow/flow.h"

typedef struct zn_flow_retransmission_pair {
    zn_flow_retransmissions side[2]; /* by tuple index */
} zn_flow_retransmission_pair;

typedef struct zn_tcp {
    zn_flow *entries;        /* the entry of flow 1 is the first */
    zn_slab retransmissions; /* zn_flow_retransmission_pair */
    zn_slab gaps;
    zn_tcp_path *paths;     /* by flow; NULL: no such columns; costs what it touches */
    zn_flow_layer7 *layer7; /* the same */
    zn_slab segments;       /* segments in flight, of the paths */
    uint32_t max_flows;
    zn_stats *stats;
} zn_tcp;

/* Reserves the data of the flows of `entries`, up to max_flows, that these column sets need.
 * Returns 0, or a negative zn_err with *err filled; zn_tcp_fini either way. */
int zn_tcp_init(zn_tcp *t, zn_flow *entries, uint32_t max_flows, unsigned sets, zn_stats *stats,
                zn_error *err);
/* Frees what zn_tcp_init reserved. */
void zn_tcp_fini(zn_tcp *t);
/* Follow a flow when it opens, closes and is freed. */
void zn_tcp_open(zn_tcp *t, zn_flow *f);
void zn_tcp_close(zn_tcp *t, zn_flow *f);
void zn_tcp_free(zn_tcp *t, zn_flow *f);
/* Counts a segment in its flow. Returns how it closes the flow; ZN_FLOW_OPEN: it does not. */
zn_flow_end zn_tcp_count(zn_tcp *t, zn_flow *f, const zn_packet *p);
/* Returns true when a SYN without ACK, which came while the flow was open, begins another
 * connection between the same ports. */
bool zn_tcp_begins_another(const zn_flow *f, const zn_packet *p);
/* Returns true for a SYN-ACK to a closed flow that acknowledges the SYN of the next connection
 * between the same ports, captured after the SYN-ACK. */
bool zn_tcp_answers_another(const zn_flow *f, const zn_packet *p);
/* Returns true for a RST that cannot be of the flow's connection, because its number is far from
 * all that its receiver waits for (RFC 9293 3.5.2). It is counted in the flow, which goes on. */
bool zn_tcp_refuse_reset(zn_flow *f, const zn_packet *p);
/* Return the bytes of memory in use, with entries 1 .. flows used so far, and the bytes of a full
 * table. */
size_t zn_tcp_memory(const zn_tcp *t, uint32_t flows);
size_t zn_tcp_memory_max(const zn_tcp *t);

/* Return the data of a TCP flow for these columns; NULL: no such columns, or no TCP flow. */
static inline zn_tcp_path *zn_tcp_path_of(const zn_tcp *t, const zn_flow *f)
{
    return t->paths == NULL || f->tuple.proto != ZN_PROTO_TCP ? NULL : &t->paths[f - t->entries];
}

static inline zn_flow_layer7 *zn_tcp_layer7_of(const zn_tcp *t, const zn_flow *f)
{
    return t->layer7 == NULL || f->tuple.proto != ZN_PROTO_TCP ? NULL : &t->layer7[f - t->entries];
}

#endif
