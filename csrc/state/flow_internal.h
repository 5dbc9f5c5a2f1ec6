/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by flow.c (life), flow_index.c (lookup), flow_timer.c (expiry) and tcp.c (counting). */
#ifndef ZN_STATE_FLOW_INTERNAL_H
#define ZN_STATE_FLOW_INTERNAL_H

#include "state/flow.h"

#define ZN_BUCKET_SLOTS 10
#define ZN_WHEEL_SLOTS 64 /* seconds; more than ZN_FLOW_VISIT_S, a power of two */
#define ZN_WHEEL_AGES 20  /* of ZN_FLOW_VISIT_S each: more than the longest idle time */
#define ZN_WHEEL_LISTS (ZN_WHEEL_SLOTS * ZN_WHEEL_AGES)

typedef struct zn_flow_bucket {
    uint16_t tag[ZN_BUCKET_SLOTS];
    uint32_t flow[ZN_BUCKET_SLOTS]; /* 0: empty */
    uint32_t overflow;              /* next bucket of the chain, 0: none */
} zn_flow_bucket;
_Static_assert(sizeof(zn_flow_bucket) == 64, "a bucket is one cache line");

/* Flows in the order in which they came. */
typedef struct zn_flow_list {
    uint32_t first, last; /* 0: none; last means nothing then */
} zn_flow_list;

struct zn_flow_table {
    zn_flow_bucket *buckets;
    uint64_t bucket_mask; /* buckets - 1 */
    zn_slab overflow;     /* further buckets */
    zn_slab flows;
    zn_addr *users; /* of the flows with user_outside, by flow; costs what it touches */
    zn_slab gaps;
    zn_tcp_path *paths;                 /* by flow, NULL: not asked for; costs what it touches */
    zn_flow_layer7 *layer7;             /* the same */
    zn_slab segments;                   /* of the paths */
    zn_flow_list wheel[ZN_WHEEL_LISTS]; /* open flows: of each slot, by how long they were idle */
    struct zn_flow_search *search;      /* zn_flow_make_room's */
    int64_t wheel_s;                    /* second up to which the wheel has turned */
    bool wheel_started;
    zn_flow_list closed;    /* whose records are due */
    zn_flow_list lingering; /* whose records are written */
    zn_stats *stats;
};

int zn_flow_index_init(zn_flow_table *t, uint32_t max_flows, zn_error *err);
void zn_flow_index_fini(zn_flow_table *t);
/* `hash` is that of the flow's tuple. False when the chain is full and no overflow bucket is left. */
bool zn_flow_index_add(zn_flow_table *t, uint32_t flow, uint64_t hash);
void zn_flow_index_remove(zn_flow_table *t, uint32_t flow);
/* The index holds the flow. */
bool zn_flow_index_has(const zn_flow_table *t, uint32_t flow);

/* Idle time after which the flow closes. */
int64_t zn_flow_idle_ns(const zn_flow *f);
/* Puts the flow into the wheel, at the second its idle time ends or the next visit is due. */
void zn_flow_timer_start(zn_flow_table *t, uint32_t flow);

void zn_flow_list_append(zn_flow_table *t, zn_flow_list *list, uint32_t flow);
void zn_flow_list_remove(zn_flow_table *t, zn_flow_list *list, uint32_t flow);
/* The list of a second of the wheel and an age. */
zn_flow_list *zn_flow_wheel_at(zn_flow_table *t, int64_t second, unsigned age);
/* Frees the first lingering flow. */
void zn_flow_free_lingering(zn_flow_table *t);
/* Takes an open flow out of the wheel. */
void zn_flow_timer_stop(zn_flow_table *t, uint32_t flow);
/* Bytes of what `search` points to. */
size_t zn_flow_search_bytes(void);

void zn_flow_close(zn_flow_table *t, uint32_t flow, zn_flow_end why);
void zn_flow_free(zn_flow_table *t, uint32_t flow);

/* Counts a TCP segment in the flow; returns how it closes the flow (ZN_FLOW_OPEN: it does not). */
zn_flow_end zn_tcp_count(zn_flow_table *t, zn_flow *f, const zn_packet *p);

#endif
