/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: the one place that lets a name or a real address out.
 *
 * A batch's votes (this user exposed this name, reached this server, is a client) are put in time
 * order and asked of the z-table; the answer is kept with the flow, and the text of whatever was
 * not released is wiped there and then. Records and observations leave in the form of
 * release/record.h, filled here and nowhere else.
 */
#ifndef ZN_RELEASE_GATE_H
#define ZN_RELEASE_GATE_H

#include "analyzer/dn_hunter.h"
#include "analyzer/name_store.h"
#include "anonymity/popularity.h"
#include "anonymity/votes.h"
#include "release/clients.h"
#include "release/policy.h"
#include "release/record.h"
#include "util/clock.h"
#include "util/stats.h"
#include "zanon/ztable.h"

typedef struct zn_gate {
    const zn_policy *policy;
    const zn_clock *clock; /* of packets: the z-table's moves with votes only */
    zn_flow_table
        *flows; /* borrowed from the engine, as are clock, name_store, dn_hunter and stats */
    zn_name_store *name_store;
    const zn_dn_hunter *dn_hunter;
    zn_stats *stats;
    zn_popularity *popularity; /* borrowed too: counts what names are decided */
    zn_ztable *table;
    int64_t z_since_ns; /* when z last changed; INT64_MIN: never */
    uint32_t z_highest; /* so far */
    zn_clients clients;
    zn_addr_set
        users; /* of the whole run, for the summary only; its hashes are the z-table's users */
    zn_votes *votes; /* borrowed from the engine */
    zn_observation *asked;
    uint32_t *asked_votes;
    uint8_t *answers;
    zn_release *releases;
    size_t release_count;
} zn_gate;

typedef struct zn_gate_limits {
    uint32_t max_tuples, max_attributes, max_clients;
    uint32_t keep; /* most recent users kept per attribute: the largest z there will be */
} zn_gate_limits;

/* policy, clock, flows, name_store, dn_hunter, stats, popularity and votes of *g are set; makes the
 * rest. 0, or a negative zn_err. */
int zn_gate_init(zn_gate *g, const zn_gate_limits *limits, zn_error *err);
void zn_gate_fini(zn_gate *g);
/* Bytes of memory that the z-table and the sets of clients have touched. */
size_t zn_gate_memory(const zn_gate *g);

/* At least z users expose the attribute in the window that ends now; true for all at z = 1. */
bool zn_gate_is_shared(const zn_gate *g, zn_id attribute);
/* Decides every vote cast since the last call. */
void zn_gate_decide(zn_gate *g);
/* What was released by the last zn_gate_decide, in time order; borrows until the next. */
const zn_release *zn_gate_releases(const zn_gate *g, size_t *count);

/* A flow closed, whose record is about to be made: its client was one until now. */
void zn_gate_flow_closed(zn_gate *g, const zn_flow *f);

/*
 * From since_ns on, in packet time, names and addresses need z users; the policy's z is set by its
 * owner. Votes of before that are decided later, because a flow had to close first, need as many as
 * were ever asked for. 0, or -ZN_ERR_CONFIG above limits.keep.
 */
int zn_gate_set_z(zn_gate *g, uint32_t z, int64_t since_ns, zn_error *err);

/* The packet clock was rebased to an epoch that may lie in the past: its clients of before count,
 * or everybody does where they are forgotten. No flow is open. */
void zn_gate_rebase(zn_gate *g, int64_t epoch);

#endif
