/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists: the paper's LRU_a with its V_a (Appendix A), for attributes with many users. All lists
 * share one slab of entries and one index (list, user) -> entry.
 */
#include "anonymity/ztable_internal.h"

static uint64_t rehash_entry(const void *table, uint32_t entry)
{
    const zn_zentry *e = zn_zentry_at(table, entry);
    return zn_zentry_hash(table, e->list, e->user);
}

static void fetch_entry(const void *table, uint32_t entry)
{
    ZN_PREFETCH(zn_zentry_at(table, entry));
}

int zn_zlist_lay_out(zn_ztable *t, zn_error *err)
{
    static const zn_zindex_keys keys = {rehash_entry, fetch_entry};
    uint32_t tuples = t->config.max_tuples;
    /* A dying list had many entries, which bounds how many there can be. */
    uint32_t lists = zn_zattribute_cap(t) + tuples / ZN_ZLIST_SHORT + 2;
    /* One more than the cap: a tuple is put in before the oldest is thrown out for it. */
    if (zn_slab_init(&t->entries, sizeof(zn_zentry), tuples + 1, err) != 0 ||
        zn_slab_init(&t->size[ZN_ZKIND_LIST].slab, sizeof(zn_zlist), lists, err) != 0 ||
        zn_zindex_init(&t->by_user, tuples + 1, keys, t, err) != 0)
        return -ZN_ERR_CAPACITY;
    return 0;
}

uint32_t zn_zentry_find(const zn_ztable *t, uint32_t list, uint64_t user)
{
    uint64_t hash = zn_zentry_hash(t, list, (uint32_t)user);
    const zn_zbucket *b = zn_zindex_home(&t->by_user, hash);
    for (; b != NULL; b = zn_zindex_more(&t->by_user, b)) {
        uint32_t hits = zn_zbucket_match(b, zn_ztag(user));
        for (; hits != 0; hits &= hits - 1) {
            uint32_t ref = b->ref[__builtin_ctz(hits)];
            const zn_zentry *e = zn_zentry_at(t, ref);
            if (e->user == (uint32_t)user && e->list == list)
                return ref;
        }
    }
    return 0;
}

zn_observation zn_zentry_get(const zn_ztable *t, uint32_t entry)
{
    const zn_zentry *e = zn_zentry_at(t, entry);
    const zn_zbucket *b = zn_zindex_home(&t->by_user, zn_zentry_hash(t, e->list, e->user));
    zn_observation o = {e->t_ns, e->user, {0, 0}};
    for (; b != NULL; b = zn_zindex_more(&t->by_user, b))
        for (int i = 0; i < ZN_ZBUCKET_SLOTS; i++)
            if (b->ref[i] == entry)
                o.user |= (uint64_t)b->tag[i] << 56;
    return o;
}

static void link_entry(zn_ztable *t, zn_zlist *l, uint32_t entry, uint32_t newer)
{
    zn_zentry *e = zn_zentry_at(t, entry);
    e->newer = newer;
    if (newer != 0) {
        e->older = zn_zentry_at(t, newer)->older;
        zn_zentry_at(t, newer)->older = entry;
    } else {
        e->older = l->newest;
        l->newest = entry;
        l->newest_ns = e->t_ns;
    }
    if (e->older != 0) {
        zn_zentry_at(t, e->older)->newer = entry;
    } else {
        l->oldest = entry;
        l->oldest_ns = e->t_ns;
    }
}

static void unlink_entry(zn_ztable *t, zn_zlist *l, uint32_t entry)
{
    const zn_zentry *e = zn_zentry_at(t, entry);
    if (e->newer != 0) {
        zn_zentry_at(t, e->newer)->older = e->older;
    } else {
        l->newest = e->older;
        l->newest_ns = e->older != 0 ? zn_zentry_at(t, e->older)->t_ns : 0;
    }
    if (e->older != 0) {
        zn_zentry_at(t, e->older)->newer = e->newer;
    } else {
        l->oldest = e->newer;
        l->oldest_ns = e->newer != 0 ? zn_zentry_at(t, e->newer)->t_ns : 0;
    }
}

/* Adds a user's entry after `newer` (0: in front); the slab always has space for one. */
static void add(zn_ztable *t, uint32_t list, uint32_t newer, const zn_observation *o)
{
    zn_zlist *l = zn_zlist_at(t, list);
    uint32_t entry = zn_slab_take(&t->entries);
    zn_zentry *e;
    ZN_ASSERT(entry != 0);
    e = zn_zentry_at(t, entry);
    e->t_ns = o->t_ns;
    e->user = (uint32_t)o->user;
    e->list = list;
    link_entry(t, l, entry, newer);
    l->count++;
    zn_zindex_add(&t->by_user, zn_zentry_hash(t, list, e->user), zn_ztag(o->user), entry);
}

uint32_t zn_zlist_make(zn_ztable *t, zn_id id)
{
    uint32_t list = zn_slab_take(&t->size[ZN_ZKIND_LIST].slab);
    if (list != 0)
        zn_zlist_at(t, list)->id = id;
    return list;
}

void zn_zlist_push(zn_ztable *t, uint32_t list, const zn_observation *o)
{
    add(t, list, 0, o);
}

/* Moves an entry after `newer` (0: to the front) and sets its time. */
static void move(zn_ztable *t, uint32_t entry, uint32_t newer, int64_t t_ns)
{
    zn_zentry *e = zn_zentry_at(t, entry);
    zn_zlist *l = zn_zlist_at(t, e->list);
    if (e->newer == newer) {
        e->t_ns = t_ns;
        if (newer == 0)
            l->newest_ns = t_ns;
        if (e->older == 0)
            l->oldest_ns = t_ns;
        return;
    }
    unlink_entry(t, l, entry);
    e->t_ns = t_ns;
    link_entry(t, l, entry, newer);
}

/* Prefetches for later evictions: an entry two of them ahead, its bucket one ahead. */
ZN_ZFETCHER void fetch_oldest(const zn_ztable *t, const zn_zlist *l)
{
    const zn_zentry *e = zn_zentry_at(t, l->oldest);
    const zn_zentry *entries = (const void *)t->entries.base;
    ZN_PREFETCH_WRITE(zn_zindex_home(&t->by_user, zn_zentry_hash(t, e->list, e->user)));
    ZN_PREFETCH_WRITE(entries + (e->newer - (e->newer != 0)));
}

static void free_oldest(zn_ztable *t, zn_zlist *l)
{
    uint32_t entry = l->oldest;
    const zn_zentry *e = zn_zentry_at(t, entry);
    zn_zindex_remove(&t->by_user, zn_zentry_hash(t, e->list, e->user), entry);
    unlink_entry(t, l, entry);
    l->count--;
    zn_slab_give(&t->entries, entry);
    if (l->count != 0)
        fetch_oldest(t, l);
}

void zn_zlist_drop_oldest(zn_ztable *t, uint32_t list)
{
    free_oldest(t, zn_zlist_at(t, list));
    t->stats.tuples--;
}

void zn_zlist_trim(zn_ztable *t, uint32_t list, int64_t start, uint32_t n)
{
    const zn_zlist *l = zn_zlist_at(t, list);
    while (n-- != 0 && l->count > 1 && l->oldest_ns < start)
        zn_zlist_drop_oldest(t, list);
}

/* Puts the user in; returns the users stored up to the observation's time, or ZN_ZDEEP. */
static uint64_t place(zn_ztable *t, uint32_t list, const zn_observation *o)
{
    const zn_zlist *l = zn_zlist_at(t, list);
    uint32_t newer = 0, after = 0, mine;
    uint64_t users;
    for (uint32_t e = l->newest_ns > o->t_ns ? l->newest : 0;
         e != 0 && zn_zentry_at(t, e)->t_ns > o->t_ns; e = zn_zentry_at(t, e)->older) {
        if (++newer > ZN_ZTABLE_LATE_STEPS)
            return ZN_ZDEEP;
        after = e;
    }
    users = l->count - newer;
    mine = zn_zentry_find(t, list, o->user);
    if (mine != 0 && zn_zentry_at(t, mine)->t_ns > o->t_ns)
        return users + 1; /* stored with a later time already */
    if (mine != 0) {
        move(t, mine, after, o->t_ns);
        return users;
    }
    if (t->config.keep != 0 && l->count >= t->config.keep) {
        if (after == l->oldest)
            return users + 1; /* older than the `keep` most recent */
        zn_zlist_drop_oldest(t, list);
    }
    add(t, list, after, o);
    t->stats.tuples++;
    return users + 1;
}

/* Users in the window that ends at the observation, its own included; no more than z are
 * counted. */
static uint64_t count_in_window(const zn_ztable *t, const zn_zlist *l, const zn_observation *o)
{
    int64_t start = zn_zwindow_start(t, o->t_ns);
    const zn_zentry *e;
    uint64_t users = 0;
    bool mine = false;
    for (uint32_t i = l->newest; i != 0 && users < t->config.z; i = e->older) {
        e = zn_zentry_at(t, i);
        if (e->t_ns < start)
            break;
        if (e->t_ns <= o->t_ns) {
            users++;
            mine = mine || e->user == (uint32_t)o->user;
        }
    }
    return users + !mine;
}

uint64_t zn_zlist_place(zn_ztable *t, zn_zref ref, const zn_observation *o)
{
    uint32_t list = zn_zref_index(ref), z = t->config.z;
    const zn_zlist *l = zn_zlist_at(t, list);
    int64_t start = zn_zwindow_start(t, o->t_ns);
    uint64_t users;
    zn_zlist_trim(t, list, start, z > ZN_ZTRIM_MAX ? z : ZN_ZTRIM_MAX);
    users = place(t, list, o);
    if (ZN_UNLIKELY(l->oldest_ns < start) && users != ZN_ZDEEP)
        return count_in_window(t, l, o); /* those left to trim do not count */
    return users;
}

void zn_zlist_free(zn_ztable *t, uint32_t list)
{
    zn_zlist *l = zn_zlist_at(t, list);
    t->dying_tuples += l->count;
    if (l->count > ZN_ZLIST_SHORT) {
        l->dying = true;
        l->id.lo = t->dying;
        t->dying = list;
        return;
    }
    while (l->count != 0) {
        free_oldest(t, l);
        t->dying_tuples--;
    }
    zn_slab_give(&t->size[ZN_ZKIND_LIST].slab, list);
}

void zn_zlist_drain(zn_ztable *t, uint32_t n)
{
    while (n-- != 0 && t->dying != 0) {
        uint32_t list = t->dying;
        zn_zlist *l = zn_zlist_at(t, list);
        free_oldest(t, l);
        t->dying_tuples--;
        if (l->count == 0) {
            t->dying = (uint32_t)l->id.lo;
            l->dying = false;
            zn_slab_give(&t->size[ZN_ZKIND_LIST].slab, list);
        }
    }
}
