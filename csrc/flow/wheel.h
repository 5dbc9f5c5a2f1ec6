/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel, which closes idle flows. It has a slot for each of the next ZN_WHEEL_SLOTS
 * seconds, and in each slot a list of open flows for each age: for how long they were idle when
 * they went in. A packet does not touch the wheel: a flow is looked at when its slot comes.
 */
#ifndef ZN_FLOW_WHEEL_H
#define ZN_FLOW_WHEEL_H

#include "flow/flow_index.h"

#define ZN_WHEEL_SLOTS 64 /* seconds; more than ZN_FLOW_VISIT_S, a power of two */
#define ZN_WHEEL_AGES 20  /* ages of ZN_FLOW_VISIT_S each: more than the longest idle time */
#define ZN_WHEEL_LISTS (ZN_WHEEL_SLOTS * ZN_WHEEL_AGES)

#define ZN_WHEEL_PART 13 /* flows in a part of a list */
typedef struct zn_wheel_part {
    uint32_t next, previous; /* 0: none; next is the slab's link while free */
    uint16_t list;           /* number of its list */
    uint8_t used : 4;        /* places taken */
    uint8_t live : 4;        /* places that still hold a flow */
    /* its flows sleep: no flow closes within this number of ZN_FLOW_VISIT_S of idle time; 0: not
     * known */
    uint8_t rest;
    uint32_t flow[ZN_WHEEL_PART];
} zn_wheel_part;
_Static_assert(sizeof(zn_wheel_part) == 64, "a part is one cache line");

/* A list of parts. Flows lie in them in the order in which they went in. */
typedef struct zn_wheel_list {
    uint32_t first, last; /* 0: none */
} zn_wheel_list;

typedef struct zn_wheel {
    zn_flow *entries;           /* the entry of flow 1 is the first */
    const zn_flow_index *index; /* its buckets are prefetched before their flows close */
    /* Closes a flow of `owner` at now_ns, which the wheel has taken out before. */
    void (*close)(zn_flow_table *owner, uint32_t flow, zn_flow_end why, int64_t now_ns);
    zn_flow_table *owner;
    zn_slab parts;                      /* of the lists */
    zn_wheel_list list[ZN_WHEEL_LISTS]; /* of each slot, by age */
    int64_t second;                     /* the second up to which it has turned */
    int64_t due_ns;                     /* the time of the next turn */
    bool started;
} zn_wheel;

/* Why the wheel looks at flows. */
typedef enum zn_wheel_reason { ZN_WHEEL_TURN, ZN_WHEEL_REBASE, ZN_WHEEL_INPUT_END } zn_wheel_reason;

/* Reserves memory for max_flows flows. The caller sets `entries`, `index`, `close` and `owner`.
 * Returns 0, or a negative zn_err with *err filled. */
int zn_wheel_init(zn_wheel *w, uint32_t max_flows, zn_error *err);
/* Frees the memory of the wheel. */
void zn_wheel_fini(zn_wheel *w);
/* Puts an open flow in, at the second in which its idle time ends or the next visit is due. */
void zn_wheel_add(zn_wheel *w, uint32_t flow);
/* Takes a flow out, if it is in. */
void zn_wheel_remove(zn_wheel *w, uint32_t flow);
/* Takes note of a packet of an open flow, before it changes last_ns: a flow that sleeps is looked
 * at again when its turn comes. */
void zn_wheel_wake(zn_wheel *w, const zn_flow *f);
/* Takes up to n flows out and puts them into flow[], those first that were idle for longest when
 * they went in. Returns how many. */
size_t zn_wheel_take_oldest(zn_wheel *w, uint32_t *flow, size_t n);
/* Turns to now_ns and closes the flows that are idle by then; false when it was there already. */
bool zn_wheel_turn(zn_wheel *w, int64_t now_ns);
/* Closes all flows: idle flows as idle, and all flows as idle at a rebase; other flows as ended by
 * the input. */
void zn_wheel_close_all(zn_wheel *w, int64_t now_ns, zn_wheel_reason why);
/* Sets the time of an empty wheel to now_ns. */
void zn_wheel_restart(zn_wheel *w, int64_t now_ns);
/* Returns how many flows are in. Slow: for tests. */
uint32_t zn_wheel_flows(const zn_wheel *w);

/* Returns the idle time after which a flow closes, in ns. */
int64_t zn_flow_idle_ns(const zn_flow *f);

#endif
