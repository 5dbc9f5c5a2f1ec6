/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting TCP segments (RFC 9293) in their flow, and what few flows need for it beside their
 * entry.
 */
#ifndef ZN_FLOW_TCP_H
#define ZN_FLOW_TCP_H

#include "flow/flow.h"

typedef struct zn_flow_retransmission_pair {
    zn_flow_retransmissions side[2]; /* by tuple index */
} zn_flow_retransmission_pair;

typedef struct zn_tcp {
    zn_flow *entries;        /* that of flow 1 first */
    zn_slab retransmissions; /* zn_flow_retransmission_pair */
    zn_slab gaps;
    zn_tcp_path *paths;     /* by flow, NULL: not asked for; costs what it touches */
    zn_flow_layer7 *layer7; /* the same */
    zn_slab segments;       /* of the paths */
    uint32_t max_flows;
    zn_stats *stats;
} zn_tcp;

/* Takes room for what the flows of `entries`, up to max_flows, need for these column sets. 0, or a
 * negative zn_err. */
int zn_tcp_init(zn_tcp *t, zn_flow *entries, uint32_t max_flows, unsigned sets, zn_stats *stats,
                zn_error *err);
void zn_tcp_fini(zn_tcp *t);
/* A flow opens, closes, is freed. */
void zn_tcp_open(zn_tcp *t, zn_flow *f);
void zn_tcp_close(zn_tcp *t, zn_flow *f);
void zn_tcp_free(zn_tcp *t, zn_flow *f);
/* Counts a segment in its flow; returns how it closes the flow (ZN_FLOW_OPEN: it does not). */
zn_flow_end zn_tcp_count(zn_tcp *t, zn_flow *f, const zn_packet *p);
/* The SYN of a client, which came while the flow was open, begins another connection between the
 * flow's ports. */
bool zn_tcp_begins_another(const zn_flow *f, const zn_packet *p);
/* A RST that cannot be of the flow's connection, as its number is far from all that its receiver
 * waits for (RFC 9293 3.5.2): true, and it is counted in the flow, which goes on. */
bool zn_tcp_refuse_reset(zn_flow *f, const zn_packet *p);
/* Bytes in use, of so many flows at most, and when the table is full. */
size_t zn_tcp_memory(const zn_tcp *t, uint32_t flows);
size_t zn_tcp_memory_max(const zn_tcp *t);

/* What a flow of TCP has for these column sets; NULL: not asked for, or another flow. */
static inline zn_tcp_path *zn_tcp_path_of(const zn_tcp *t, const zn_flow *f)
{
    return t->paths == NULL || f->tuple.proto != ZN_PROTO_TCP ? NULL : &t->paths[f - t->entries];
}

static inline zn_flow_layer7 *zn_tcp_layer7_of(const zn_tcp *t, const zn_flow *f)
{
    return t->layer7 == NULL || f->tuple.proto != ZN_PROTO_TCP ? NULL : &t->layer7[f - t->entries];
}

#endif
