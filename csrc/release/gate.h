/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate that alone discloses names and real addresses.
 *
 * The votes of a batch (a user exposed a name, reached a server, is a client) are put in time
 * order. The z-table decides each vote. The decision is kept with the flow, and the text of a
 * suppressed name is wiped at once. Records and observations leave as the structs of
 * release/record.h. Only this folder fills these structs.
 */
#ifndef ZN_RELEASE_GATE_H
#define ZN_RELEASE_GATE_H

#include "analyzer/attributes.h"
#include "analyzer/dn_hunter.h"
#include "analyzer/name_store.h"
#include "anonymity/popularity.h"
#include "anonymity/user_caps.h"
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

/* Origin of a released observation, which no writer sees. */
typedef struct zn_release_origin {
    int64_t t_ns;
    uint32_t flow;
} zn_release_origin;

/* Answers of the remote counter about the flow whose record is made next. */
typedef struct zn_record_answers {
    bool server_may_show, host_is_shared, resolver_may_show;
} zn_record_answers;

typedef struct zn_gate zn_gate;
typedef struct zn_gate_levels zn_gate_levels; /* release/gate_levels.h */

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
    const zn_clock *clock; /* clock of packets; votes alone move the clock of the z-table */
    zn_flow_table *flows;
    zn_name_store *name_store;
    const zn_dn_hunter *dn_hunter;
    zn_stats *stats;
    zn_popularity *popularity; /* counts of the decided names */
    zn_attributes *attributes; /* NULL without attributes beside names */
    zn_ztable *table;
    int64_t z_since_ns; /* time of the last change of z; INT64_MIN: never */
    uint32_t z_highest; /* highest z so far */
    zn_user_caps *caps; /* caps on the votes that the z-table gets; NULL without caps */
    zn_clients clients;
    /* Users of the whole run, for the summary only. The z-table has the same hashes of users. */
    zn_addr_set users;
    zn_votes *votes; /* borrowed from the engine */
    const zn_gate_decider *decider;
    zn_gate_queries remote; /* state of zn_gate_remote */
    const zn_gate_tap *tap; /* borrowed from packet output; NULL without packet output */
    zn_gate_levels *levels; /* NULL: rare values are suppressed, and get no label */
    zn_gate_batch batch;
    zn_gate_released released;
};

typedef struct zn_gate_limits {
    uint32_t max_tuples, max_attributes, max_clients;
    uint32_t keep; /* most recent users kept per attribute: the largest z, of views as well */
} zn_gate_limits;

/* Opens a gate whose policy, clock, flows, name_store, dn_hunter, stats, popularity and votes are
 * set. Returns 0, or a negative zn_err with *err filled. */
int zn_gate_init(zn_gate *g, const zn_gate_limits *limits, zn_error *err);
void zn_gate_fini(zn_gate *g);
/* Returns the bytes of memory that the z-table and the sets of clients have touched. */
size_t zn_gate_memory(const zn_gate *g);

/* Returns true if at least z users exposed the attribute in the window that ends now, or with
 * release_all. */
bool zn_gate_is_shared(const zn_gate *g, zn_id attribute);
/* Returns the observations that the last decision released, in time order, and sets *count. They
 * are valid until the next decision. */
const zn_release *zn_gate_releases(const zn_gate *g, size_t *count);
/* Returns the origin of released observation i. The flow is not freed yet. */
static inline zn_release_origin zn_gate_release_origin(const zn_gate *g, size_t i)
{
    return g->released.origin[i];
}

/* Sets the number of users that names and addresses need from since_ns of packet time. The owner of
 * the policy sets policy->z. Older votes that are decided later, because a flow had to close first,
 * need the highest z so far. Returns 0, or -ZN_ERR_CONFIG if z is above limits.keep. */
int zn_gate_set_z(zn_gate *g, uint32_t z, int64_t since_ns, zn_error *err);

/* Follows the packet clock to an epoch that may lie in the past. The clients of that epoch count
 * again. If they are forgotten, every address counts as a client. No flow is open. */
void zn_gate_rebase(zn_gate *g, int64_t epoch);

#endif
