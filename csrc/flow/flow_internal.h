/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by flow.c (life), flow_index.c (lookup), flow_beside.c (what few have), flow_timer.c
 * (expiry), flow_wheel.c and tcp.c (counting).
 */
#ifndef ZN_FLOW_FLOW_INTERNAL_H
#define ZN_FLOW_FLOW_INTERNAL_H

#include "flow/flow_table.h"

int zn_flow_index_init(zn_flow_table *t, uint32_t max_flows, zn_error *err);
void zn_flow_index_fini(zn_flow_table *t);
/* `hash` is that of the flow's tuple. */
void zn_flow_index_add(zn_flow_table *t, uint32_t flow, uint64_t hash);
void zn_flow_index_remove(zn_flow_table *t, uint32_t flow);
/* The index holds the flow. */
bool zn_flow_index_has(const zn_flow_table *t, uint32_t flow);

/* It holds so many flows, in no more buckets than they need. Slow: for tests. */
bool zn_flow_index_adds_up(const zn_flow_table *t, uint32_t flows);

/* Idle time after which the flow closes. */
int64_t zn_flow_idle_ns(const zn_flow *f);
/* Puts the flow into the wheel, at the second its idle time ends or the next visit is due. */
void zn_flow_timer_start(zn_flow_table *t, uint32_t flow);
/* A packet of an open flow came: one that slept is to be looked at when its turn comes. Before
 * last_ns is set. */
void zn_flow_timer_wake(zn_flow_table *t, const zn_flow *f);

/* The flow's zn_flow_retransmission_pair, made where it has none. */
zn_flow_retransmission_pair *zn_flow_retransmissions_at(zn_flow_table *t, zn_flow *f);
/* Forgets the holes of a flow that has any of them. */
void zn_flow_drop_gaps(zn_flow_table *t, zn_flow *f);
/* Frees what the flow has beside its entry. */
void zn_flow_free_cold(zn_flow_table *t, zn_flow *f);

void zn_flow_list_append(zn_flow_table *t, zn_flow_list *list, uint32_t flow);
void zn_flow_list_remove(zn_flow_table *t, zn_flow_list *list, uint32_t flow);
/* The number of the wheel's list of a second and an age. */
unsigned zn_flow_wheel_at(int64_t second, unsigned age);

static inline zn_wheel_part *zn_flow_wheel_part(const zn_flow_table *t, uint32_t part)
{
    ZN_ASSERT(part >= 1 && part <= t->parts.used_high);
    return (zn_wheel_part *)(void *)t->parts.base + (part - 1);
}

/* flow_wheel.c: the lists by their number. Room for the lists of so many flows. */
int zn_flow_wheel_init(zn_flow_table *t, uint32_t max_flows, zn_error *err);
/* Puts an open flow at a list's end. */
void zn_flow_wheel_add(zn_flow_table *t, unsigned number, uint32_t flow);
/* Takes a flow out of its list, if it is in one. */
void zn_flow_wheel_remove(zn_flow_table *t, uint32_t flow);
/* The first flow of a list, which stays there; 0: none. */
uint32_t zn_flow_wheel_first(const zn_flow_table *t, unsigned number);
/* Takes the flows of a part out of its list. Their number. */
size_t zn_flow_wheel_take(zn_flow_table *t, uint32_t part, uint32_t flow[ZN_WHEEL_PART]);
/* Puts a part with its flows at another list's end. */
void zn_flow_wheel_move(zn_flow_table *t, uint32_t part, unsigned number);
uint32_t zn_flow_wheel_length(const zn_flow_table *t, unsigned number);

/* Frees the first lingering flow. */
void zn_flow_free_lingering(zn_flow_table *t);
/* Bytes of what `search` points to. */
size_t zn_flow_search_bytes(void);

void zn_flow_close(zn_flow_table *t, uint32_t flow, zn_flow_end why);
void zn_flow_free(zn_flow_table *t, uint32_t flow);

/* The SYN of a client, which came while the flow was open, begins another connection between the
 * flow's ports. */
bool zn_tcp_begins_another(const zn_flow *f, const zn_packet *p);
/* A RST that cannot be of the flow's connection, as its number is far from all that its receiver
 * waits for (RFC 9293 3.5.2): true, and it is counted in the flow, which goes on. */
bool zn_tcp_refuse_reset(zn_flow *f, const zn_packet *p);
/* Counts a TCP segment in the flow; returns how it closes the flow (ZN_FLOW_OPEN: it does not). */
zn_flow_end zn_tcp_count(zn_flow_table *t, zn_flow *f, const zn_packet *p);

#endif
