/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anonymity/ztable_room.h"

#include "anonymity/ztable_internal.h"

/* Returns true if a further user, and a further attribute if `is_new`, would evict another user. */
static bool is_full(const zn_ztable *t, bool is_new)
{
    const zn_ztable_config *c = &t->config;
    return t->stats.tuples + t->dying_tuples >= c->max_tuples ||
           (is_new && t->stats.attributes >= c->max_attributes);
}

/* Counts the users of a record with a time of from_ns or later, the newest first, and no more than
 * `enough`. */
static uint32_t record_users(const zn_ztable *t, zn_zref ref, int64_t from_ns, uint32_t enough)
{
    uint32_t n = 0, count = zn_zref_count(t, ref);
    while (n < count && n < enough && zn_zrecord_get(t, ref, n).t_ns >= from_ns)
        n++;
    return n;
}

/* Counts as record_users does, for a list. */
static uint32_t list_users(const zn_ztable *t, zn_zref ref, int64_t from_ns, uint32_t enough)
{
    uint32_t n = 0, e = zn_zlist_at(t, zn_zref_index(ref))->newest;
    for (; e != 0 && n < enough && zn_zentry_at(t, e)->t_ns >= from_ns; n++)
        e = zn_zentry_at(t, e)->older;
    return n;
}

/* Sets *t_ns to the stored time of the observation's user; returns false if no time is stored. */
static bool stored_time(const zn_ztable *t, zn_zref ref, const zn_observation *o, int64_t *t_ns)
{
    uint32_t at;
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST) {
        at = zn_zentry_find(t, zn_zref_index(ref), o->user);
        if (at != 0)
            *t_ns = zn_zentry_at(t, at)->t_ns;
        return at != 0;
    }
    at = zn_zrecord_find(t, ref, o);
    if (at == zn_zref_count(t, ref))
        return false;
    *t_ns = zn_zrecord_get(t, ref, at).t_ns;
    return true;
}

zn_ztable_room zn_ztable_room_for(const zn_ztable *t, const zn_observation *o, uint32_t most,
                                  int64_t from_ns)
{
    const zn_zref *ref = zn_zref_find(t, o->attribute);
    int64_t t_ns = 0;
    bool is_stored = ref != NULL && stored_time(t, *ref, o, &t_ns);
    if (ref != NULL && zn_zref_count(t, *ref) >= most) {
        uint32_t own = is_stored && t_ns >= from_ns ? 1 : 0;
        bool is_list = zn_zref_kind(*ref) == ZN_ZKIND_LIST;
        uint32_t users = is_list ? list_users(t, *ref, from_ns, most + own)
                                 : record_users(t, *ref, from_ns, most + own);
        if (users == most + own)
            return ZN_ZTABLE_MOST_USERS;
    }
    return !is_stored && is_full(t, ref == NULL) ? ZN_ZTABLE_FULL : ZN_ZTABLE_ROOM;
}
