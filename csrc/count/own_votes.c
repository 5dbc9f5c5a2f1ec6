/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/own_votes.h"

#include "anonymity/ztable_internal.h"
#include "util/arena.h"

int zn_own_votes_init(zn_own_votes *o, uint32_t max_leases, zn_error *err)
{
    if (o->z > ZN_LEASE_Z_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "leases need a z of at most %u", ZN_LEASE_Z_MAX);
    o->newest = zn_heap_alloc(o->z * sizeof *o->newest);
    if (o->newest == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for leases");
    return zn_leases_init(&o->leases, max_leases, err);
}

void zn_own_votes_fini(zn_own_votes *o)
{
    zn_heap_free(o->newest);
    zn_leases_fini(&o->leases);
    memset(o, 0, sizeof *o);
}

size_t zn_own_votes_memory(const zn_own_votes *o)
{
    return o->leases.n * (sizeof(zn_lease) + 2 * sizeof(uint32_t));
}

static void tell(const zn_own_votes *o, zn_counted_kind kind, zn_id id, int64_t t_ns, uint64_t user)
{
    zn_counted_vote vote = {.t_ns = t_ns, .user = user, .id = id, .kind = (uint8_t)kind};
    o->tell(o->to, &vote);
}

/* Returns the time after t_ns, in units, during which the attribute's z newest users suffice,
 * because all are in the window that ends then. Returns 0 if there are fewer, or one is newer. */
static int64_t units_from(zn_own_votes *o, zn_id id, int64_t t_ns)
{
    int64_t units;
    if (zn_znewest(o->table, id, o->newest, o->z) < o->z || o->newest[0].t_ns > t_ns)
        return 0;
    units = (o->newest[o->z - 1].t_ns - t_ns + o->window_ns) / ZN_LEASE_UNIT_NS;
    return units <= 0 ? 0 : units < ZN_LEASE_UNITS_MAX ? units : ZN_LEASE_UNITS_MAX;
}

/* Reports a lease from t_ns on. */
static void tell_lease(const zn_own_votes *o, zn_id id, int64_t t_ns, int64_t units)
{
    tell(o, ZN_COUNTED_LEASE, id, t_ns, zn_vote_user_of((uint64_t)units));
}

/* Reports the users whose votes stayed here and can count after the lease. */
static void tell_users(zn_own_votes *o, const zn_lease *lease)
{
    size_t n = zn_znewest(o->table, lease->id, o->newest, o->z);
    int64_t from_ns = lease->until_ns - o->window_ns;
    for (size_t i = 0; i < n; i++) {
        const zn_observation *user = o->newest + i;
        if (user->t_ns >= lease->since_ns && user->t_ns > from_ns)
            tell(o, ZN_COUNTED_ONLY, lease->id, user->t_ns, user->user);
    }
}

/* Ends or renews a lease that ends before t_ns, for which no vote of its attribute came yet. */
static void end_lease(zn_own_votes *o, zn_lease *lease, int64_t t_ns)
{
    int64_t units = lease->refused ? 0 : units_from(o, lease->id, lease->until_ns);
    if (units > 0 && units * ZN_LEASE_UNIT_NS >= t_ns - lease->until_ns) {
        tell_lease(o, lease->id, lease->until_ns, units);
        zn_leases_extend(&o->leases, lease, lease->until_ns + units * ZN_LEASE_UNIT_NS);
        return;
    }
    if (!lease->refused)
        tell_users(o, lease);
    zn_leases_remove(&o->leases, lease);
}

/*
 * This is done before the table sees a time after the end of a lease: so it has forgotten none of
 * the users that count there.
 */
void zn_own_votes_advance(zn_own_votes *o, int64_t t_ns)
{
    zn_lease *first;
    while ((first = zn_leases_first(&o->leases)) != NULL && first->until_ns < t_ns)
        end_lease(o, first, t_ns);
}

/* Begins a lease at a vote, if its users suffice for a while; false when it has to be sent. */
static bool begin_lease(zn_own_votes *o, const zn_observation *vote)
{
    int64_t t_ns = vote->t_ns, units = units_from(o, vote->attribute, t_ns);
    if (units == 0 ||
        !zn_leases_add(&o->leases, vote->attribute, t_ns, t_ns + units * ZN_LEASE_UNIT_NS))
        return false;
    tell_lease(o, vote->attribute, t_ns, units);
    return true;
}

bool zn_own_votes_observe(zn_own_votes *o, const zn_observation *vote)
{
    const zn_lease *lease;
    bool released, covered;
    zn_own_votes_advance(o, vote->t_ns);
    released = zn_ztable_observe(o->table, vote) == ZN_RELEASE;
    lease = zn_leases_find(&o->leases, vote->attribute);
    covered = lease != NULL && !lease->refused && vote->t_ns >= lease->since_ns;
    if (!released && !covered)
        return false;
    if (released && (covered || (lease == NULL && begin_lease(o, vote))))
        return true;
    tell(o, ZN_COUNTED_ONLY, vote->attribute, vote->t_ns, vote->user);
    return true;
}

bool zn_own_votes_share(const zn_own_votes *o, zn_id attribute, int64_t t_ns)
{
    return zn_leases_cover(&o->leases, attribute, t_ns) ||
           zn_ztable_count_at(o->table, attribute, t_ns) >= o->z;
}

void zn_own_votes_refused(zn_own_votes *o, uint64_t lo)
{
    zn_lease *lease = zn_leases_find_lo(&o->leases, lo);
    if (lease == NULL || lease->refused)
        return;
    tell_users(o, lease);
    lease->refused = true;
}
