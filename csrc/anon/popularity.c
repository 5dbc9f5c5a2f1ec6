/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anon/popularity.h"

#include "base/arena.h"

int zn_popularity_init(zn_popularity *p, int64_t window_ns, const zn_popularity_limits *limits,
                       zn_error *err)
{
    zn_ztable_config config = zn_ztable_default_config(1, window_ns);
    int rc;
    config.max_tuples = limits->max_tuples;
    config.max_attributes = limits->max_attributes;
    p->window_ns = window_ns;
    zn_clock_init(&p->clock, window_ns, 0, ZN_CLOCK_REBASE_AFTER);
    rc = zn_ztable_open(&p->table, &config, err);
    return rc == 0 ? zn_addr_set_init(&p->users, limits->max_users, err) : rc;
}

void zn_popularity_fini(zn_popularity *p)
{
    zn_addr_set_fini(&p->users);
    zn_ztable_close(p->table);
    zn_heap_free(p->kept);
    memset(p, 0, sizeof *p);
}

static void begin(zn_popularity *p, int64_t start_ns)
{
    p->start_ns = start_ns;
    p->end_ns = start_ns <= INT64_MAX - p->window_ns ? start_ns + p->window_ns : INT64_MAX;
    p->evicted = zn_ztable_get_stats(p->table).evicted;
}

bool zn_popularity_reach(zn_popularity *p, int64_t t_ns)
{
    bool started = p->clock.started;
    if (p->table == NULL || t_ns < 0)
        return false;
    switch (zn_clock_see(&p->clock, t_ns)) {
    case ZN_CLOCK_ON_TIME:
        if (!started)
            begin(p, t_ns);
        p->due = p->whole = t_ns >= p->end_ns;
        return p->due;
    case ZN_CLOCK_REBASED:
        p->due = true;
        p->whole = false;
        return true;
    case ZN_CLOCK_LATE:
    case ZN_CLOCK_REFUSED:
        break;
    }
    return false;
}

void zn_popularity_see(zn_popularity *p, const zn_observation *o)
{
    zn_addr user = {{0}};
    if (p->table == NULL || o->t_ns < p->start_ns || o->t_ns >= p->end_ns)
        return;
    memcpy(user.byte, &o->user, sizeof o->user);
    (void)zn_ztable_observe(p->table, o);
    zn_addr_set_add(&p->users, &user);
}

void zn_popularity_finish(zn_popularity *p)
{
    p->due = p->table != NULL && p->clock.started;
    p->whole = false;
}

void zn_popularity_next(zn_popularity *p)
{
    int64_t now_ns = p->clock.now_ns;
    if (!p->due)
        return;
    zn_ztable_clear(p->table);
    zn_addr_set_clear(&p->users);
    p->due = false;
    if (now_ns >= p->start_ns)
        begin(p, now_ns - (now_ns - p->start_ns) % p->window_ns);
    else
        begin(p, now_ns);
}

int zn_popularity_keep(zn_popularity *p, zn_error *err)
{
    if (p->kept_count == p->kept_cap) {
        size_t cap = p->kept_cap != 0 ? 2 * p->kept_cap : 16;
        zn_popularity_window *larger = zn_heap_resize(p->kept, cap * sizeof *larger);
        if (larger == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the counts of %zu windows", cap);
        p->kept = larger;
        p->kept_cap = cap;
    }
    p->kept[p->kept_count++] = zn_popularity_window_due(p);
    zn_popularity_next(p);
    return 0;
}

zn_popularity_window zn_popularity_window_due(const zn_popularity *p)
{
    zn_popularity_window w = {.start_ns = p->start_ns,
                              .end_ns = p->end_ns,
                              .users = p->users.members,
                              .whole = p->whole && !p->users.full};
    w.whole = w.whole && zn_ztable_get_stats(p->table).evicted == p->evicted;
    zn_ztable_histogram(p->table, w.bins);
    return w;
}

size_t zn_popularity_memory(const zn_popularity *p)
{
    return p->table != NULL ? zn_ztable_memory(p->table) + p->kept_cap * sizeof *p->kept : 0;
}
