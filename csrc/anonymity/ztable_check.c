/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anonymity/ztable_internal.h"

/* Sums of a walk over everything. */
typedef struct tally {
    uint64_t attributes, tuples, entries, dying_lists, dying_tuples;
} tally;

static const char *check_entry(const zn_ztable *t, uint32_t list, uint32_t entry)
{
    const zn_zentry *e = zn_zentry_at(t, entry);
    const zn_zbucket *b = zn_zindex_home(&t->by_user, zn_zentry_hash(t, list, e->user));
    uint32_t seen = 0;
    if (e->list != list)
        return "entry of another list";
    if (e->t_ns > t->clock.now_ns)
        return "entry newer than the clock";
    if (e->newer != 0 &&
        (zn_zentry_at(t, e->newer)->t_ns < e->t_ns || zn_zentry_at(t, e->newer)->older != entry))
        return "list out of order";
    for (; b != NULL; b = zn_zindex_more(&t->by_user, b))
        for (int i = 0; i < ZN_ZBUCKET_SLOTS; i++)
            if (b->ref[i] == entry) {
                seen++;
                if (zn_zentry_find(t, list, (uint64_t)b->tag[i] << 56 | e->user) != entry)
                    return "one user twice in a list";
            }
    return seen == 1 ? NULL : "entry not in the index once";
}

static const char *check_list(const zn_ztable *t, uint32_t list, tally *sum)
{
    const zn_zlist *l = zn_zlist_at(t, list);
    const char *wrong;
    uint32_t n = 0, last = 0;
    for (uint32_t e = l->newest; e != 0; e = zn_zentry_at(t, e)->older) {
        if ((wrong = check_entry(t, list, e)) != NULL)
            return wrong;
        if (zn_zentry_at(t, e)->newer != last)
            return "links of a list disagree";
        last = e;
        n++;
    }
    if (n != l->count || last != l->oldest)
        return "length of a list";
    if (l->newest_ns != zn_zentry_at(t, l->newest)->t_ns ||
        l->oldest_ns != zn_zentry_at(t, l->oldest)->t_ns)
        return "newest or oldest time of a list";
    if (t->config.keep != 0 && l->count > t->config.keep)
        return "list longer than keep";
    sum->entries += n;
    sum->dying_lists += l->dying;
    sum->dying_tuples += l->dying ? n : 0;
    return NULL;
}

static const char *check_record(const zn_ztable *t, zn_zref ref)
{
    uint32_t n = zn_zref_count(t, ref);
    const zn_zsize *s = t->size + zn_zref_kind(ref);
    int64_t newer_ns = t->clock.now_ns;
    if (n > s->users || zn_zrecord_at(t, ref)->head >= s->users)
        return "ring of a record";
    for (uint32_t i = 0; i < n; i++) {
        zn_observation o = zn_zrecord_get(t, ref, i);
        if (o.t_ns > newer_ns)
            return "record out of order";
        if (zn_zrecord_find(t, ref, &o) != i)
            return "one user twice in a record";
        newer_ns = o.t_ns;
    }
    return NULL;
}

static const char *check_attribute(const zn_ztable *t, zn_zref ref, tally *sum)
{
    bool list = zn_zref_kind(ref) == ZN_ZKIND_LIST;
    zn_id id;
    const char *wrong;
    if (list && zn_zlist_at(t, zn_zref_index(ref))->count != 0 &&
        (wrong = check_list(t, zn_zref_index(ref), sum)) != NULL)
        return wrong;
    if (zn_zref_count(t, ref) == 0)
        return NULL;
    if (!list && (wrong = check_record(t, ref)) != NULL)
        return wrong;
    id = list ? zn_zlist_at(t, zn_zref_index(ref))->id : zn_zrecord_id(zn_zrecord_at(t, ref));
    if (zn_zindex_slot(&t->by_id, id.lo, ref) == NULL)
        return "attribute not in the index";
    sum->attributes++;
    sum->tuples += zn_zref_count(t, ref);
    return NULL;
}

static const char *check_lists(const zn_ztable *t, tally *sum)
{
    uint32_t dying = 0;
    const char *wrong;
    for (uint32_t i = 1; i <= t->size[ZN_ZKIND_LIST].slab.used_high; i++)
        if ((wrong = check_attribute(t, zn_zref_of(ZN_ZKIND_LIST, i), sum)) != NULL)
            return wrong;
    for (uint32_t i = t->dying; i != 0; i = (uint32_t)zn_zlist_at(t, i)->id.lo)
        dying++;
    if (dying != sum->dying_lists || t->dying_tuples != sum->dying_tuples)
        return "dying lists";
    if (t->size[ZN_ZKIND_LIST].slab.live != sum->attributes + dying)
        return "number of lists";
    if (sum->entries != t->entries.live || sum->entries != t->by_user.live)
        return "number of entries";
    return zn_zindex_check(&t->by_user);
}

const char *zn_ztable_check(const zn_ztable *t)
{
    const char *wrong;
    tally sum = {0};
    uint64_t before;
    if (t->with_lists && (wrong = check_lists(t, &sum)) != NULL)
        return wrong;
    for (uint32_t size = 0; size < t->sizes; size++) {
        const zn_slab *slab = &t->size[size].slab;
        before = sum.attributes;
        for (uint32_t i = 1; i <= slab->used_high; i++)
            if ((wrong = check_attribute(t, zn_zref_of(size, i), &sum)) != NULL)
                return wrong;
        if (sum.attributes - before != slab->live)
            return "number of records";
    }
    if (sum.attributes != t->stats.attributes || sum.attributes != t->by_id.live)
        return "number of attributes";
    if (sum.tuples != t->stats.tuples)
        return "number of tuples";
    if (sum.tuples + sum.dying_tuples > t->config.max_tuples ||
        sum.attributes > t->config.max_attributes)
        return "more than the caps allow";
    return zn_zindex_check(&t->by_id);
}
