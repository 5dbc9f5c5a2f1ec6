/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: the one place that lets a name or a real address out.
 *
 * A batch's votes (this user exposed this name, reached this server, is a client) are put in time
 * order, and the z-table is asked about each. The answer is kept with the flow, and the text of a
 * name that is not released is wiped at once. Records and observations leave in the form of
 * release/record.h, filled here and nowhere else.
 */
#ifndef ZN_RELEASE_GATE_H
#define ZN_RELEASE_GATE_H

#include "analyzer/dn_hunter.h"
#include "analyzer/name_store.h"
#include "anonymity/popularity.h"
#include "anonymity/votes.h"
#include "crypto/count_generations.h"
#include "release/clients.h"
#include "release/gate_tap.h"
#include "release/policy.h"
#include "release/record.h"
#include "release/remote_counter.h"
#include "util/clock.h"
#include "util/stats.h"
#include "zanon/ztable.h"

/* Where a released observation comes from: no writer sees it. */
typedef struct zn_release_origin {
    int64_t t_ns;
    uint32_t flow;
} zn_release_origin;

/* Answers of the remote counter about the flow whose record is made next. */
typedef struct zn_record_answers {
    bool server_may_show, host_is_shared, resolver_may_show;
} zn_record_answers;

typedef struct zn_gate zn_gate;

/* Questions of the gate that are answered by the tables of this process (gate_local.c) or by the
 * remote counter (gate_remote.c). No question is asked more than once per record or epoch. */
typedef struct zn_gate_decider {
    /* Returns true if a record may show the address of its server. server: hash of the address. */
    bool (*server_may_show)(const zn_gate *g, uint64_t server);
    /* Returns true if z users share the name by which the flow's server was resolved. */
    bool (*host_is_shared)(const zn_gate *g, const zn_resolution *from);
    /* Returns true if a record of that epoch may show the address of the resolver. */
    bool (*resolver_may_show)(const zn_gate *g, const zn_resolution *from, int64_t epoch);
    /* Moves the set of clients to an epoch that may lie in the past. */
    void (*rebase_clients)(zn_clients *c, int64_t epoch);
} zn_gate_decider;

extern const zn_gate_decider zn_gate_local, zn_gate_remote;

/* Access of the gate to the remote counter; both pointers are borrowed from the engine. */
typedef struct zn_gate_queries {
    zn_remote_counter *counter;
    zn_count_generations *generations;
    zn_record_answers answers;
} zn_gate_queries;

/* Observations of one batch and the answers of the z-table, as arrays of the same length. */
typedef struct zn_gate_batch {
    zn_observation *observation;
    uint32_t *vote;       /* index of the vote that the observation comes from */
    uint8_t *answer;      /* zn_decision */
    uint8_t *released_in; /* outputs that may show the attribute, with tap->outputs_of_release */
} zn_gate_batch;

/* Observations that the last decision released, in time order. */
typedef struct zn_gate_released {
    zn_release *at;
    zn_release_origin *origin;
    size_t n;
} zn_gate_released;

struct zn_gate {
    /* The pointers down to popularity are borrowed from the engine. */
    const zn_policy *policy;
    const zn_clock *clock; /* of packets: the z-table's own moves with votes only */
    zn_flow_table *flows;
    zn_name_store *name_store;
    const zn_dn_hunter *dn_hunter;
    zn_stats *stats;
    zn_popularity *popularity; /* counts the names that are decided */
    zn_ztable *table;
    int64_t z_since_ns; /* when z last changed; INT64_MIN: never */
    uint32_t z_highest; /* the highest z so far */
    zn_clients clients;
    /* The users of the whole run, for the summary only; its hashes are the z-table's users. */
    zn_addr_set users;
    zn_votes *votes; /* borrowed from the engine */
    const zn_gate_decider *decider;
    zn_gate_queries remote; /* state of zn_gate_remote */
    const zn_gate_tap *tap; /* borrowed from packet output; NULL if there is none */
    zn_gate_batch batch;
    zn_gate_released released;
};

typedef struct zn_gate_limits {
    uint32_t max_tuples, max_attributes, max_clients;
    uint32_t keep; /* most recent users kept per attribute: the largest z there will be, of views
                      too */
} zn_gate_limits;

/* Makes the rest of *g, of which policy, clock, flows, name_store, dn_hunter, stats, popularity and
 * votes are set. Returns 0, or a negative zn_err with *err filled. */
int zn_gate_init(zn_gate *g, const zn_gate_limits *limits, zn_error *err);
void zn_gate_fini(zn_gate *g);
/* Bytes of memory that the z-table and the sets of clients have touched. */
size_t zn_gate_memory(const zn_gate *g);

/* Returns whether at least z users exposed the attribute in the window that ends now; with
 * release_all always. */
bool zn_gate_is_shared(const zn_gate *g, zn_id attribute);
/* Decides every vote cast since the last call. */
void zn_gate_decide(zn_gate *g);
/* The observations that the last zn_gate_decide released, *count of them, in time order; valid
 * until the next. */
const zn_release *zn_gate_releases(const zn_gate *g, size_t *count);
/* Where the i-th of them comes from; its flow is not freed yet. */
static inline zn_release_origin zn_gate_release_origin(const zn_gate *g, size_t i)
{
    return g->released.origin[i];
}

/* Counts the client of a closed flow, whose record is about to be made, as one until now. */
void zn_gate_flow_closed(zn_gate *g, const zn_flow *f);

/*
 * Has names and addresses need z users from since_ns on, in packet time; the policy's owner sets
 * policy->z. Older votes that are decided later, because a flow had to close first, need the
 * highest z so far. Returns 0, or -ZN_ERR_CONFIG above limits.keep.
 */
int zn_gate_set_z(zn_gate *g, uint32_t z, int64_t since_ns, zn_error *err);

/* Follows the packet clock to an epoch that may lie in the past: its clients count again or, where
 * they are forgotten, every address does. No flow is open. */
void zn_gate_rebase(zn_gate *g, int64_t epoch);

#endif
