/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "state/ztable_internal.h"

uint64_t zn_zattribute_rehash(const void *table, uint32_t attribute)
{
    return zn_zattribute_at(table, attribute)->id.lo;
}

uint64_t zn_zentry_rehash(const void *table, uint32_t entry)
{
    const zn_zentry *e = zn_zentry_at(table, entry);
    return zn_zentry_hash(table, e->attribute, e->user);
}

uint32_t zn_zattribute_find(const zn_ztable *t, zn_id id)
{
    const zn_zbucket *b = zn_zindex_home(&t->by_id, id.lo);
    for (; b != NULL; b = zn_zindex_more(&t->by_id, b)) {
        uint32_t hits = zn_zbucket_match(b, zn_ztag(id.hi));
        for (; hits != 0; hits &= hits - 1) {
            uint32_t ref = b->ref[__builtin_ctz(hits)];
            if (zn_id_equal(zn_zattribute_at(t, ref)->id, id))
                return ref;
        }
    }
    return 0;
}

uint32_t zn_zattribute_make(zn_ztable *t, zn_id id)
{
    uint32_t attribute = zn_slab_take(&t->attributes);
    ZN_ASSERT(attribute != 0);
    zn_zattribute_at(t, attribute)->id = id;
    zn_zindex_add(&t->by_id, id.lo, zn_ztag(id.hi), attribute);
    t->stats.attributes++;
    return attribute;
}

uint32_t zn_zentry_find(const zn_ztable *t, uint32_t attribute, uint64_t user)
{
    uint64_t hash = zn_zentry_hash(t, attribute, (uint32_t)user);
    const zn_zbucket *b = zn_zindex_home(&t->by_user, hash);
    for (; b != NULL; b = zn_zindex_more(&t->by_user, b)) {
        uint32_t hits = zn_zbucket_match(b, zn_ztag(user));
        for (; hits != 0; hits &= hits - 1) {
            uint32_t ref = b->ref[__builtin_ctz(hits)];
            const zn_zentry *e = zn_zentry_at(t, ref);
            if (e->user == (uint32_t)user && e->attribute == attribute)
                return ref;
        }
    }
    return 0;
}

static void link_entry(zn_ztable *t, zn_zattribute *a, uint32_t entry, uint32_t newer)
{
    zn_zentry *e = zn_zentry_at(t, entry);
    e->newer = newer;
    if (newer != 0) {
        e->older = zn_zentry_at(t, newer)->older;
        zn_zentry_at(t, newer)->older = entry;
    } else {
        e->older = a->newest;
        a->newest = entry;
        a->newest_ns = e->t_ns;
    }
    if (e->older != 0) {
        zn_zentry_at(t, e->older)->newer = entry;
    } else {
        a->oldest = entry;
        a->oldest_ns = e->t_ns;
    }
}

static void unlink_entry(zn_ztable *t, zn_zattribute *a, uint32_t entry)
{
    const zn_zentry *e = zn_zentry_at(t, entry);
    if (e->newer != 0) {
        zn_zentry_at(t, e->newer)->older = e->older;
    } else {
        a->newest = e->older;
        a->newest_ns = e->older != 0 ? zn_zentry_at(t, e->older)->t_ns : 0;
    }
    if (e->older != 0) {
        zn_zentry_at(t, e->older)->newer = e->newer;
    } else {
        a->oldest = e->newer;
        a->oldest_ns = e->newer != 0 ? zn_zentry_at(t, e->newer)->t_ns : 0;
    }
}

void zn_zentry_add(zn_ztable *t, uint32_t attribute, uint32_t newer, const zn_observation *o)
{
    zn_zattribute *a = zn_zattribute_at(t, attribute);
    uint32_t entry = zn_slab_take(&t->entries);
    zn_zentry *e;
    ZN_ASSERT(entry != 0);
    e = zn_zentry_at(t, entry);
    e->t_ns = o->t_ns;
    e->user = (uint32_t)o->user;
    e->attribute = attribute;
    link_entry(t, a, entry, newer);
    a->count++;
    t->stats.tuples++;
    zn_zindex_add(&t->by_user, zn_zentry_hash(t, attribute, e->user), zn_ztag(o->user), entry);
}

void zn_zentry_move(zn_ztable *t, uint32_t entry, uint32_t newer, int64_t t_ns)
{
    zn_zentry *e = zn_zentry_at(t, entry);
    zn_zattribute *a = zn_zattribute_at(t, e->attribute);
    if (e->newer == newer) {
        e->t_ns = t_ns;
        if (newer == 0)
            a->newest_ns = t_ns;
        if (e->older == 0)
            a->oldest_ns = t_ns;
        return;
    }
    unlink_entry(t, a, entry);
    e->t_ns = t_ns;
    link_entry(t, a, entry, newer);
}

static void free_oldest(zn_ztable *t, zn_zattribute *a)
{
    uint32_t entry = a->oldest;
    const zn_zentry *e = zn_zentry_at(t, entry);
    zn_zindex_remove(&t->by_user, zn_zentry_hash(t, e->attribute, e->user), entry);
    unlink_entry(t, a, entry);
    a->count--;
    zn_slab_give(&t->entries, entry);
}

void zn_zentry_drop_oldest(zn_ztable *t, uint32_t attribute)
{
    free_oldest(t, zn_zattribute_at(t, attribute));
    t->stats.tuples--;
}

uint64_t zn_zattribute_live(const zn_ztable *t, uint32_t attribute)
{
    const zn_zattribute *a = zn_zattribute_at(t, attribute);
    int64_t start = zn_zwindow_start(t, t->clock.now_ns);
    uint64_t n = a->count;
    for (uint32_t e = a->oldest; e != 0 && zn_zentry_at(t, e)->t_ns < start; n--)
        e = zn_zentry_at(t, e)->newer;
    return n;
}

void zn_zattribute_retire(zn_ztable *t, uint32_t attribute)
{
    zn_zattribute *a = zn_zattribute_at(t, attribute);
    zn_zindex_remove(&t->by_id, a->id.lo, attribute);
    t->stats.attributes--;
    t->stats.tuples -= a->count;
    if (a->count > ZN_ZLIST_SHORT) {
        a->dying = true;
        a->id.lo = t->dying;
        t->dying = attribute;
        return;
    }
    while (a->count != 0)
        free_oldest(t, a);
    zn_slab_give(&t->attributes, attribute);
}

void zn_zdying_drain(zn_ztable *t, uint32_t n)
{
    while (n-- != 0 && t->dying != 0) {
        uint32_t attribute = t->dying;
        zn_zattribute *a = zn_zattribute_at(t, attribute);
        free_oldest(t, a);
        if (a->count == 0) {
            t->dying = (uint32_t)a->id.lo;
            a->dying = false;
            zn_slab_give(&t->attributes, attribute);
        }
    }
}
