/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases in force. A lease of an attribute states that every decision about the attribute for a
 * time from its start until its end is to release, because z users of one probe share it.
 *
 * Leases are found by attribute, and by the time at which the next lease ends. A pointer to a lease
 * is valid until the next call that changes a lease.
 */
#ifndef ZN_COUNT_VOTE_LEASES_H
#define ZN_COUNT_VOTE_LEASES_H

#include "util/base.h"
#include "zanon/ztable.h"

/* Unit of the length of a lease, which takes the 40 bits of a user in a message. */
#define ZN_LEASE_UNIT_NS INT64_C(1000)
#define ZN_LEASE_UNITS_MAX ((INT64_C(1) << 40) - 1)
/* Largest z with leases. A lease ends with votes for times up to a window back, and a table finds
 * their place only if at most this number of users are newer. */
#define ZN_LEASE_Z_MAX ZN_ZTABLE_LATE_STEPS
#define ZN_LEASES_MAX (UINT32_C(1) << 24)

typedef struct zn_lease {
    zn_id id;
    int64_t since_ns, until_ns; /* both in force */
    uint32_t slot;              /* slot of the index that refers to the lease */
    bool refused;               /* true if the counter refused it, so that it has no effect */
} zn_lease;

typedef struct zn_leases {
    zn_lease *lease; /* heap whose first lease ends first */
    uint32_t *slot;  /* place in the heap plus one by hash, 0: none */
    uint32_t n, max, mask;
} zn_leases;

/* Makes space for `max` (1 .. ZN_LEASES_MAX) leases; *l is zero. Returns 0, or a negative zn_err
 * with *err filled; zn_leases_fini accepts what is left. */
int zn_leases_init(zn_leases *l, uint32_t max, zn_error *err);
void zn_leases_fini(zn_leases *l);
/* Returns the attribute's lease, or NULL. */
zn_lease *zn_leases_find(const zn_leases *l, zn_id id);
/* Returns the lease of the attribute whose id.lo is `lo` except for its highest bit, or NULL. */
zn_lease *zn_leases_find_lo(const zn_leases *l, uint64_t lo);
/* Adds a lease of an attribute without a lease; false if there are `max` leases. */
bool zn_leases_add(zn_leases *l, zn_id id, int64_t since_ns, int64_t until_ns);
/* Moves the end of a lease further. */
void zn_leases_extend(zn_leases *l, zn_lease *lease, int64_t until_ns);
void zn_leases_remove(zn_leases *l, zn_lease *lease);
/* Removes the leases that end before t_ns. */
void zn_leases_expire(zn_leases *l, int64_t t_ns);

/* Returns the lease that ends first, or NULL. */
static inline zn_lease *zn_leases_first(const zn_leases *l)
{
    return l->n != 0 ? l->lease : NULL;
}

/* Returns true if the attribute has a lease at t_ns. */
static inline bool zn_leases_cover(const zn_leases *l, zn_id id, int64_t t_ns)
{
    const zn_lease *lease = l->n != 0 ? zn_leases_find(l, id) : NULL;
    return lease != NULL && t_ns >= lease->since_ns && t_ns <= lease->until_ns;
}

#endif
