/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "state/ztable_internal.h"

static const char *check_entry(const zn_ztable *t, uint32_t attribute, uint32_t entry)
{
    const zn_zentry *e = zn_zentry_at(t, entry);
    uint64_t hash = zn_zentry_hash(t, attribute, e->user);
    const zn_zbucket *b = zn_zindex_home(&t->by_user, hash);
    uint32_t found = 0;
    if (e->attribute != attribute)
        return "entry of another attribute in the list";
    if (e->t_ns > t->clock.now_ns)
        return "entry newer than the clock";
    if (e->newer != 0 && zn_zentry_at(t, e->newer)->t_ns < e->t_ns)
        return "list out of time order";
    if (e->newer != 0 && zn_zentry_at(t, e->newer)->older != entry)
        return "links disagree";
    for (; b != NULL; b = zn_zindex_more(&t->by_user, b))
        for (int i = 0; i < ZN_ZBUCKET_SLOTS; i++) {
            const zn_zentry *other = b->ref[i] != 0 ? zn_zentry_at(t, b->ref[i]) : NULL;
            found += b->ref[i] == entry;
            if (other != NULL && other != e && other->attribute == attribute &&
                other->user == e->user)
                return "one user twice in a list";
        }
    return found == 1 ? NULL : "entry not in the index once";
}

static const char *check_attribute(const zn_ztable *t, uint32_t attribute)
{
    const zn_zattribute *a = zn_zattribute_at(t, attribute);
    const char *wrong;
    uint32_t n = 0, last = 0;
    for (uint32_t e = a->newest; e != 0; e = zn_zentry_at(t, e)->older) {
        if ((wrong = check_entry(t, attribute, e)) != NULL)
            return wrong;
        if (zn_zentry_at(t, e)->newer != last)
            return "links disagree";
        last = e;
        n++;
    }
    if (n != a->count || last != a->oldest)
        return "length of a list";
    if (a->newest_ns != zn_zentry_at(t, a->newest)->t_ns ||
        a->oldest_ns != zn_zentry_at(t, a->oldest)->t_ns)
        return "newest or oldest time of an attribute";
    if (t->config.keep != 0 && a->count > t->config.keep)
        return "list longer than keep";
    if (a->dying == (zn_zattribute_find(t, a->id) == attribute))
        return "attribute not found under its identity";
    return NULL;
}

static const char *check_dying(const zn_ztable *t)
{
    uint32_t n = 0, flagged = 0;
    for (uint32_t a = t->dying; a != 0; a = (uint32_t)zn_zattribute_at(t, a)->id.lo) {
        if (!zn_zattribute_at(t, a)->dying)
            return "a living attribute among the dying";
        n++;
    }
    for (uint32_t a = 1; a <= t->attributes.used_high; a++)
        flagged += zn_zattribute_at(t, a)->count != 0 && zn_zattribute_at(t, a)->dying;
    return n == flagged ? NULL : "a dying attribute is lost";
}

const char *zn_ztable_check(const zn_ztable *t)
{
    const char *wrong;
    uint64_t tuples = 0, attributes = 0, dying_tuples = 0, dying = 0;
    for (uint32_t i = 1; i <= t->attributes.used_high; i++) {
        const zn_zattribute *a = zn_zattribute_at(t, i);
        if (a->count == 0)
            continue;
        if ((wrong = check_attribute(t, i)) != NULL)
            return wrong;
        *(a->dying ? &dying : &attributes) += 1;
        *(a->dying ? &dying_tuples : &tuples) += a->count;
    }
    if (attributes != t->stats.attributes || attributes + dying != t->attributes.live ||
        attributes != t->by_id.live)
        return "number of attributes";
    if (tuples != t->stats.tuples || tuples + dying_tuples != t->entries.live ||
        tuples + dying_tuples != t->by_user.live)
        return "number of tuples";
    if (tuples + dying_tuples > t->config.max_tuples || attributes > t->config.max_attributes)
        return "more than the caps allow";
    if ((wrong = check_dying(t)) != NULL || (wrong = zn_zindex_check(&t->by_id)) != NULL)
        return wrong;
    return zn_zindex_check(&t->by_user);
}
