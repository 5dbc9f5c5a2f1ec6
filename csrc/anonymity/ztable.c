/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One observation (t, u, a):
 *   1. the clock says whether t is on time, late or not to be used;
 *   2. users of a older than t - window are evicted;
 *   3. those newer than t (none, when t is on time) are stepped over, and u goes behind them,
 *      unless it is stored with a later time already;
 *   4. released iff at least z users are stored with a time up to t, u included.
 * Times stored were really observed, and a user has one: so what is counted exists,
 * and no order of the input can release too much.
 */
#include "anonymity/ztable_internal.h"

#define DEFAULT_TUPLES (UINT32_C(1) << 26)
#define DEFAULT_ATTRIBUTES (UINT32_C(1) << 24)

zn_ztable_config zn_ztable_default_config(uint32_t z, int64_t window_ns)
{
    zn_ztable_config c = {.z = z,
                          .window_ns = window_ns,
                          .max_tuples = DEFAULT_TUPLES,
                          .max_attributes = DEFAULT_ATTRIBUTES,
                          .rebase_after = ZN_CLOCK_REBASE_AFTER};
    return c;
}

static int check_z(const zn_ztable_config *c, uint32_t z, zn_error *err)
{
    if (z < 1 || z > ZN_ZTABLE_Z_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "z must be from 1 to %u, not %u", ZN_ZTABLE_Z_MAX, z);
    if (c->keep != 0 && c->keep < z)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "keep (%u) must be at least z (%u)", c->keep, z);
    return 0;
}

static int check_config(const zn_ztable_config *c, zn_error *err)
{
    if (check_z(c, c->z, err) != 0)
        return -ZN_ERR_CONFIG;
    if (c->window_ns < 1 || c->window_ns > ZN_ZTABLE_WINDOW_MAX_NS)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the window must be from 1 ns to 10 years");
    if (c->max_tuples < 1 || c->max_tuples > ZN_ZTABLE_TUPLES_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_tuples must be from 1 to %u",
                       ZN_ZTABLE_TUPLES_MAX);
    if (c->max_attributes < 1 || c->max_attributes > ZN_ZTABLE_ATTRIBUTES_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_attributes must be from 1 to %u",
                       ZN_ZTABLE_ATTRIBUTES_MAX);
    if (c->max_jump_ns < 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_jump must not be negative");
    if (c->rebase_after < 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "rebase_after must be at least 1");
    return 0;
}

static uint64_t rehash_id(const void *table, uint32_t ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        return zn_zlist_at(table, zn_zref_index(ref))->id.lo;
    return zn_zrecord_at(table, ref)->id_lo;
}

static void fetch_id(const void *table, uint32_t ref)
{
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        ZN_PREFETCH(zn_zlist_at(table, zn_zref_index(ref)));
    else
        ZN_PREFETCH(zn_zrecord_at(table, ref));
}

/* Reserves the memory of a table for its caps. */
static int lay_out(zn_ztable *t, zn_error *err)
{
    static const zn_zindex_keys keys = {rehash_id, fetch_id};
    uint32_t keep = t->config.keep;
    t->with_lists = keep == 0 || keep > ZN_ZRECORD_USERS_MAX;
    if (zn_zrecord_lay_out(t, t->with_lists ? ZN_ZLIST_FROM : keep, err) != 0 ||
        (t->with_lists && zn_zlist_lay_out(t, err) != 0) ||
        zn_zindex_init(&t->by_id, zn_zattribute_cap(t) + 1, keys, t, err) != 0)
        return -ZN_ERR_CAPACITY;
    return 0;
}

/* Takes all memory that is laid out. */
static int reserve(zn_ztable *t, zn_error *err)
{
    size_t needed = zn_ztable_memory_max(t), available = zn_memory_available();
    bool done = needed <= available && zn_zindex_populate(&t->by_id);
    for (uint32_t i = 0; i < t->sizes; i++)
        done = done && zn_slab_populate(&t->size[i].slab);
    if (t->with_lists)
        done = done && zn_zindex_populate(&t->by_user) &&
               zn_slab_populate(&t->size[ZN_ZKIND_LIST].slab) && zn_slab_populate(&t->entries);
    if (!done)
        return zn_fail(err, ZN_ERR_CAPACITY, 0,
                       "a z-table of %u tuples and %u attributes reserves %zu MiB of memory, and "
                       "%zu MiB are left; lower its limits",
                       t->config.max_tuples, t->config.max_attributes, (needed >> 20) + 1,
                       available >> 20);
    return 0;
}

static void start_clock(zn_ztable *t)
{
    const zn_ztable_config *c = &t->config;
    zn_clock_init(&t->clock, c->window_ns, c->max_jump_ns, c->rebase_after);
}

int zn_ztable_open(zn_ztable **out, const zn_ztable_config *config, zn_error *err)
{
    zn_hash_key key;
    zn_ztable *t = NULL;
    int rc;
    *out = NULL;
    if ((rc = check_config(config, err)) != 0 || (rc = zn_hash_key_random(&key, err)) != 0)
        return rc;
    t = zn_heap_alloc(sizeof *t);
    if (t == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a z-table");
    t->config = *config;
    t->secret = key.k0;
    start_clock(t);
    if ((rc = lay_out(t, err)) != 0 || (config->reserve && (rc = reserve(t, err)) != 0)) {
        zn_ztable_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void zn_ztable_close(zn_ztable *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->sizes; i++)
        zn_slab_fini(&t->size[i].slab);
    zn_zindex_fini(&t->by_user);
    zn_zindex_fini(&t->by_id);
    zn_slab_fini(&t->size[ZN_ZKIND_LIST].slab);
    zn_slab_fini(&t->entries);
    zn_heap_free(t);
}

static void forget(zn_ztable *t)
{
    static const zn_zhand start = {0, 0};
    for (uint32_t i = 0; i < t->sizes; i++)
        zn_slab_reset(&t->size[i].slab);
    zn_zindex_reset(&t->by_id);
    if (t->with_lists) {
        zn_zindex_reset(&t->by_user);
        zn_slab_reset(&t->size[ZN_ZKIND_LIST].slab);
        zn_slab_reset(&t->entries);
    }
    t->dying = t->dying_tuples = 0;
    t->sweep_hand = t->cap_hand = start;
    t->sweeping = false;
    t->stale_count = 0;
    t->swept_ns = t->clock.now_ns;
    t->stats.tuples = t->stats.attributes = 0;
}

void zn_ztable_clear(zn_ztable *t)
{
    start_clock(t);
    forget(t);
}

/* Puts an accepted observation in; the users up to its time, or ZN_ZDEEP. */
static uint64_t place(zn_ztable *t, const zn_observation *o)
{
    zn_zref *ref = zn_zref_find(t, o->attribute);
    uint64_t users = 1;
    if (ref != NULL && zn_zref_kind(*ref) == ZN_ZKIND_LIST &&
        zn_zref_newest(t, *ref) < zn_zwindow_start(t, o->t_ns)) {
        zn_zref_retire(t, *ref); /* all at once, however long */
        ref = NULL;
    }
    if (ref == NULL)
        zn_zrecord_make(t, o);
    else if (zn_zref_kind(*ref) == ZN_ZKIND_LIST)
        users = zn_zlist_place(t, *ref, o);
    else
        users = zn_zrecord_place(t, ref, o);
    if (ZN_UNLIKELY(t->stats.tuples + t->dying_tuples > t->config.max_tuples ||
                    t->stats.attributes > t->config.max_attributes))
        zn_zroom_enforce_caps(t, o->attribute);
    return users;
}

static zn_decision observe(zn_ztable *t, const zn_observation *o)
{
    zn_clock_verdict verdict;
    uint64_t users;
    if (ZN_UNLIKELY(o->t_ns < 0))
        return ZN_TOO_LATE;
    verdict = zn_clock_see(&t->clock, o->t_ns);
    if (ZN_UNLIKELY(verdict == ZN_CLOCK_REJECTED))
        return ZN_TOO_LATE;
    if (ZN_UNLIKELY(verdict == ZN_CLOCK_REBASED)) {
        t->stats.clock_jumps++;
        forget(t);
    }
    t->stats.late += verdict == ZN_CLOCK_LATE;
    if (t->stats.observations % ZN_ZSWEEP_EVERY == 0)
        zn_zroom_sweep(t);
    users = place(t, o);
    if (ZN_UNLIKELY(users == ZN_ZDEEP))
        return ZN_LATE_DEEP;
    return users >= t->config.z ? ZN_RELEASE : ZN_BELOW_Z;
}

static void count_not_stored(zn_ztable *t, zn_decision d)
{
    t->stats.too_late += d == ZN_TOO_LATE;
    t->stats.late_deep += d == ZN_LATE_DEEP;
    t->stats.no_room += d == ZN_NO_ROOM;
}

zn_decision zn_ztable_observe(zn_ztable *t, const zn_observation *o)
{
    zn_decision d = observe(t, o);
    t->stats.observations++;
    t->stats.released += d == ZN_RELEASE; /* no branch: which of the two cannot be guessed */
    t->stats.below_z += d == ZN_BELOW_Z;
    if (ZN_UNLIKELY(d > ZN_BELOW_Z))
        count_not_stored(t, d);
    return d;
}

uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute)
{
    return zn_ztable_count_at(t, attribute, t->clock.now_ns);
}

uint64_t zn_ztable_count_at(const zn_ztable *t, zn_id attribute, int64_t t_ns)
{
    const zn_zref *ref = zn_zref_find(t, attribute);
    return ref != NULL ? zn_zref_live(t, *ref, t_ns) : 0;
}

int zn_ztable_set_z(zn_ztable *t, uint32_t z, zn_error *err)
{
    int rc = check_z(&t->config, z, err);
    if (rc == 0)
        t->config.z = z;
    return rc;
}

zn_ztable_stats zn_ztable_get_stats(const zn_ztable *t)
{
    return t->stats;
}

size_t zn_ztable_memory(const zn_ztable *t)
{
    size_t bytes = sizeof *t + zn_zindex_bytes(&t->by_id);
    if (t->config.reserve)
        return zn_ztable_memory_max(t);
    for (uint32_t i = 0; i < t->sizes; i++)
        bytes += zn_slab_bytes(&t->size[i].slab);
    if (t->with_lists)
        bytes += zn_zindex_bytes(&t->by_user) + zn_slab_bytes(&t->size[ZN_ZKIND_LIST].slab) +
                 zn_slab_bytes(&t->entries);
    return bytes;
}
