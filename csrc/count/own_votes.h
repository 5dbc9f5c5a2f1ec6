/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Votes that a probe decides locally, because its own users suffice, and the messages about them to
 * the counter of all probes.
 *
 * The probe's own z-table sees each of its votes. Assume that it counts z users of an attribute,
 * the oldest of the z newest at the time tau. Then every decision until tau + window is to release:
 * the probe reports a lease to the counter, and keeps the attribute's votes meanwhile. At its end
 * the lease is renewed, or the probe reports the users that the counter has not heard of, each with
 * its latest time. So each decision is the decision of one table over all votes of all probes, in
 * the order in which the counter decides.
 *
 * This holds while no cap is reached. At a cap, and after a lease that the counter refused, votes
 * are sent as without leases.
 */
#ifndef ZN_COUNT_OWN_VOTES_H
#define ZN_COUNT_OWN_VOTES_H

#include "count/vote_leases.h"
#include "count/vote_message.h"

/* Takes a vote that goes to the counter, in this order. */
typedef void zn_own_votes_tell(void *to, const zn_counted_vote *vote);

typedef struct zn_own_votes {
    zn_ztable *table; /* borrowed; keeps z users of an attribute at least */
    uint32_t z;
    int64_t window_ns;
    zn_own_votes_tell *tell; /* may call nothing of this header */
    void *to;
    zn_leases leases;
    zn_observation *newest; /* scratch memory for z observations */
} zn_own_votes;

/* Makes space for max_leases leases at a time; table, z, window_ns, tell and to are set, the rest
 * is zero. Returns 0, or a negative zn_err with *err filled; zn_own_votes_fini accepts what is
 * left. */
int zn_own_votes_init(zn_own_votes *o, uint32_t max_leases, zn_error *err);
void zn_own_votes_fini(zn_own_votes *o);
size_t zn_own_votes_memory(const zn_own_votes *o);

/* Stores a vote for a name. Returns true if it is released, after a report to the counter if one is
 * needed. Returns false if the counter has to decide: the caller sends the vote. */
bool zn_own_votes_observe(zn_own_votes *o, const zn_observation *vote);
/* Returns true if z own users share the attribute in the window that ends at t_ns. */
bool zn_own_votes_share(const zn_own_votes *o, zn_id attribute, int64_t t_ns);
/* Ends the leases that do not reach watermark_ns. It is called before a message with this watermark
 * is finished. ZN_VOTE_WATERMARK_END ends all leases. */
void zn_own_votes_advance(zn_own_votes *o, int64_t watermark_ns);
/* Notes that the counter refused the lease whose attribute has this id.lo, except for its highest
 * bit. */
void zn_own_votes_refused(zn_own_votes *o, uint64_t lo);

#endif
