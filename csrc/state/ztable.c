/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One observation (t, u, a):
 *   1. the clock says whether t is on time, late or not to be used;
 *   2. entries of a older than t - window are evicted;
 *   3. on time, u becomes a's newest entry. Late, entries newer than t are stepped over from the
 *      newest on, and u goes behind them unless it is stored with a later time already;
 *   4. released iff at least z users are stored with a time up to t, u included.
 * Entries hold times that were really observed, and a user holds one: so what is counted exists,
 * and no order of the input can release too much.
 */
#include "state/ztable_internal.h"

#define WINDOW_MAX_NS ((int64_t)3660 * 86400 * ZN_NS_PER_S) /* ten years */
#define Z_MAX (UINT32_C(1) << 31)
#define TABLE_MAX (UINT32_C(1) << 31)

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
    if (z < 1 || z > Z_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "z must be from 1 to %u, not %u", Z_MAX, z);
    if (c->keep != 0 && c->keep < z)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "keep (%u) must be at least z (%u)", c->keep, z);
    return 0;
}

static int check_config(const zn_ztable_config *c, zn_error *err)
{
    if (check_z(c, c->z, err) != 0)
        return -ZN_ERR_CONFIG;
    if (c->window_ns < 1 || c->window_ns > WINDOW_MAX_NS)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the window must be from 1 ns to 10 years");
    if (c->max_tuples < 1 || c->max_tuples > TABLE_MAX || c->max_attributes < 1 ||
        c->max_attributes > TABLE_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_tuples and max_attributes must be from 1 to %u",
                       TABLE_MAX);
    if (c->max_jump_ns < 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_jump must not be negative");
    if (c->rebase_after < 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "rebase_after must be at least 1");
    return 0;
}

/* Reserves the memory of a table for its caps. */
static int lay_out(zn_ztable *t, zn_error *err)
{
    const zn_ztable_config *c = &t->config;
    uint32_t tuples = c->max_tuples;
    /* Every attribute has a tuple. A dying one had many, which bounds how many there can be. */
    uint32_t attributes = c->max_attributes < tuples ? c->max_attributes : tuples;
    attributes += tuples / ZN_ZLIST_SHORT + 2;
    /* One more than the cap: a tuple is put in before the oldest is thrown out for it. */
    if (zn_slab_init(&t->entries, sizeof(zn_zentry), tuples + 1, err) != 0 ||
        zn_slab_init(&t->attributes, sizeof(zn_zattribute), attributes, err) != 0 ||
        zn_zindex_init(&t->by_id, attributes, zn_zattribute_rehash, t, err) != 0 ||
        zn_zindex_init(&t->by_user, tuples + 1, zn_zentry_rehash, t, err) != 0)
        return -ZN_ERR_CAPACITY;
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
    if ((rc = lay_out(t, err)) != 0) {
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
    zn_zindex_fini(&t->by_user);
    zn_zindex_fini(&t->by_id);
    zn_slab_fini(&t->attributes);
    zn_slab_fini(&t->entries);
    zn_heap_free(t);
}

static void forget(zn_ztable *t)
{
    zn_zindex_reset(&t->by_user);
    zn_zindex_reset(&t->by_id);
    zn_slab_reset(&t->attributes);
    zn_slab_reset(&t->entries);
    t->dying = t->sweep_hand = t->cap_hand = 0;
    t->sweeping = false;
    t->swept_ns = t->clock.now_ns;
    t->stats.tuples = t->stats.attributes = 0;
}

void zn_ztable_clear(zn_ztable *t)
{
    start_clock(t);
    forget(t);
}

/* Evicts what the window that ends at t_ns no longer holds; index of the attribute, or 0. */
static uint32_t find_and_evict(zn_ztable *t, const zn_observation *o)
{
    int64_t start = zn_zwindow_start(t, o->t_ns);
    uint32_t attribute = zn_zattribute_find(t, o->attribute);
    const zn_zattribute *a;
    if (attribute == 0)
        return 0;
    a = zn_zattribute_at(t, attribute);
    if (a->newest_ns < start) {
        zn_zattribute_retire(t, attribute);
        return 0;
    }
    while (a->oldest_ns < start)
        zn_zentry_drop_oldest(t, attribute);
    return attribute;
}

/* Cuts the list to the `keep` most recent users. */
static void cut(zn_ztable *t, uint32_t attribute)
{
    if (t->config.keep != 0 && zn_zattribute_at(t, attribute)->count > t->config.keep)
        zn_zentry_drop_oldest(t, attribute);
}

static zn_decision decide(const zn_ztable *t, uint64_t users)
{
    return users >= t->config.z ? ZN_RELEASE : ZN_BELOW_Z;
}

static zn_decision observe_on_time(zn_ztable *t, const zn_observation *o)
{
    uint32_t attribute = find_and_evict(t, o), entry = 0;
    uint64_t users;
    if (attribute == 0)
        attribute = zn_zattribute_make(t, o->attribute);
    else
        entry = zn_zentry_find(t, attribute, o->user);
    if (entry != 0)
        zn_zentry_move(t, entry, 0, o->t_ns);
    else
        zn_zentry_add(t, attribute, 0, o);
    cut(t, attribute);
    users = zn_zattribute_at(t, attribute)->count;
    zn_zroom_enforce_caps(t, attribute);
    return decide(t, users);
}

/* Stores a late observation of a new user behind entry `behind`, unless it is beyond `keep`. */
static void store_late(zn_ztable *t, uint32_t attribute, uint32_t behind, const zn_observation *o)
{
    const zn_zattribute *a = zn_zattribute_at(t, attribute);
    if (t->config.keep != 0 && a->count >= t->config.keep && behind == a->oldest)
        return;
    zn_zentry_add(t, attribute, behind, o);
    cut(t, attribute);
    zn_zroom_enforce_caps(t, attribute);
}

static zn_decision observe_late(zn_ztable *t, const zn_observation *o)
{
    uint32_t attribute = find_and_evict(t, o), entry, behind = 0, newer = 0;
    const zn_zattribute *a;
    uint64_t users;
    if (attribute == 0) {
        attribute = zn_zattribute_make(t, o->attribute);
        zn_zentry_add(t, attribute, 0, o);
        zn_zroom_enforce_caps(t, attribute);
        return decide(t, 1);
    }
    a = zn_zattribute_at(t, attribute);
    for (entry = a->newest; entry != 0 && zn_zentry_at(t, entry)->t_ns > o->t_ns;
         entry = zn_zentry_at(t, entry)->older) {
        if (++newer > ZN_ZTABLE_LATE_STEPS)
            return ZN_LATE_DEEP;
        behind = entry;
    }
    users = a->count - newer;
    entry = zn_zentry_find(t, attribute, o->user);
    if (entry == 0) {
        users++;
        store_late(t, attribute, behind, o);
    } else if (zn_zentry_at(t, entry)->t_ns > o->t_ns) {
        users++;
    } else if (zn_zentry_at(t, entry)->t_ns < o->t_ns) {
        zn_zentry_move(t, entry, behind, o->t_ns);
    }
    return decide(t, users);
}

static zn_decision observe(zn_ztable *t, const zn_observation *o)
{
    zn_clock_verdict verdict;
    if (ZN_UNLIKELY(o->t_ns < 0))
        return ZN_TOO_LATE;
    verdict = zn_clock_see(&t->clock, o->t_ns);
    if (ZN_UNLIKELY(verdict == ZN_CLOCK_REFUSED))
        return ZN_TOO_LATE;
    if (ZN_UNLIKELY(verdict == ZN_CLOCK_REBASED)) {
        t->stats.clock_jumps++;
        forget(t);
    }
    zn_zroom_sweep(t);
    if (ZN_UNLIKELY(verdict == ZN_CLOCK_LATE)) {
        t->stats.late++;
        return observe_late(t, o);
    }
    return observe_on_time(t, o);
}

zn_decision zn_ztable_observe(zn_ztable *t, const zn_observation *o)
{
    zn_decision d = observe(t, o);
    t->stats.observations++;
    switch (d) {
    case ZN_RELEASE:
        t->stats.released++;
        break;
    case ZN_BELOW_Z:
        t->stats.below_z++;
        break;
    case ZN_TOO_LATE:
        t->stats.too_late++;
        break;
    case ZN_LATE_DEEP:
        t->stats.late_deep++;
        break;
    case ZN_NO_ROOM:
        t->stats.no_room++;
        break;
    }
    return d;
}

void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n, uint8_t *decisions)
{
    for (size_t i = 0; i < n; i++)
        decisions[i] = (uint8_t)zn_ztable_observe(t, o + i);
}

uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute)
{
    uint32_t index = zn_zattribute_find(t, attribute);
    return index != 0 ? zn_zattribute_live(t, index) : 0;
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
    return sizeof *t + zn_slab_bytes(&t->attributes) + zn_slab_bytes(&t->entries) +
           zn_zindex_bytes(&t->by_id) + zn_zindex_bytes(&t->by_user);
}
