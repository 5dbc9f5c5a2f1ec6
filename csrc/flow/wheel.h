/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel, which closes idle flows: it has a list of open flows for each of the next
 * ZN_WHEEL_SLOTS seconds, and of each second by how long they were idle. A packet does not touch
 * it: a flow is looked at when its slot comes.
 */
#ifndef ZN_FLOW_WHEEL_H
#define ZN_FLOW_WHEEL_H

#include "flow/flow_index.h"

#define ZN_WHEEL_SLOTS 64 /* seconds; more than ZN_FLOW_VISIT_S, a power of two */
#define ZN_WHEEL_AGES 20  /* of ZN_FLOW_VISIT_S each: more than the longest idle time */
#define ZN_WHEEL_LISTS (ZN_WHEEL_SLOTS * ZN_WHEEL_AGES)

#define ZN_WHEEL_PART 13 /* flows in a part of a list of the timer wheel */
typedef struct zn_wheel_part {
    uint32_t next, previous; /* 0: none; next is the slab's link while free */
    uint16_t list;           /* its number */
    uint8_t used : 4;        /* places taken */
    uint8_t live : 4;        /* those that still hold a flow */
    uint8_t rest; /* its flows sleep: so many ZN_FLOW_VISIT_S of it close none; 0: not known */
    uint32_t flow[ZN_WHEEL_PART];
} zn_wheel_part;
_Static_assert(sizeof(zn_wheel_part) == 64, "a part is one cache line");

/* Parts with flows in the order in which they came. */
typedef struct zn_wheel_list {
    uint32_t first, last; /* 0: none */
} zn_wheel_list;

typedef struct zn_wheel {
    zn_flow *entries;           /* that of flow 1 first */
    const zn_flow_index *index; /* its buckets are fetched before their flows close */
    /* Closes a flow of `owner`, which is out of the wheel then. */
    void (*close)(zn_flow_table *owner, uint32_t flow, zn_flow_end why);
    zn_flow_table *owner;
    zn_slab parts;                      /* of the lists */
    zn_wheel_list list[ZN_WHEEL_LISTS]; /* of each slot, by how long the flows were idle */
    int64_t second;                     /* up to which it has turned */
    int64_t due_ns;                     /* the first time at which it turns again */
    bool started;
} zn_wheel;

/* Why all flows close. */
typedef enum zn_wheel_reason { ZN_WHEEL_TURN, ZN_WHEEL_REBASE, ZN_WHEEL_INPUT_END } zn_wheel_reason;

/* Takes room for max_flows flows; the members that it borrows are set. 0, or a negative zn_err. */
int zn_wheel_init(zn_wheel *w, uint32_t max_flows, zn_error *err);
void zn_wheel_fini(zn_wheel *w);
/* Puts an open flow in, at the second in which its idle time ends or the next visit is due. */
void zn_wheel_add(zn_wheel *w, uint32_t flow);
/* Takes a flow out, if it is in. */
void zn_wheel_remove(zn_wheel *w, uint32_t flow);
/* A packet of an open flow came: one that slept is to be looked at when its turn comes. Before
 * last_ns is set. */
void zn_wheel_wake(zn_wheel *w, const zn_flow *f);
/* Takes up to n flows out, those first that were idle for longest when they went in. Their
 * number. */
size_t zn_wheel_take_oldest(zn_wheel *w, uint32_t *flow, size_t n);
/* Turns to now_ns and closes the idle flows of before; false: it was there already. */
bool zn_wheel_turn(zn_wheel *w, int64_t now_ns);
/* Closes all flows: as idle those that are, or all of them at a rebase. */
void zn_wheel_close_all(zn_wheel *w, int64_t now_ns, zn_wheel_reason why);
/* Goes on from now_ns, empty. */
void zn_wheel_restart(zn_wheel *w, int64_t now_ns);
/* How many flows are in. Slow: for tests. */
uint32_t zn_wheel_flows(const zn_wheel *w);

/* Idle time after which a flow closes. */
int64_t zn_flow_idle_ns(const zn_flow *f);

#endif
