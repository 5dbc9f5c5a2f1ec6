/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anonymity/popularity.h"

#include "util/arena.h"

#include <string.h>

/* The one attribute of the table of users. */
static const zn_id anything = {0, 0};

/* Opens a table of exposures, and a table of users. */
static int open_tables(zn_ztable **table, zn_ztable **users_of, const zn_ztable_config *config,
                       zn_error *err)
{
    zn_ztable_config counts = zn_ztable_default_config(1, config->window_ns), users;
    int rc;
    counts.max_tuples = config->max_tuples;
    counts.max_attributes = config->max_attributes;
    users = counts;
    users.max_attributes = 1;
    rc = zn_ztable_open(table, &counts, err);
    return rc == 0 ? zn_ztable_open(users_of, &users, err) : rc;
}

int zn_popularity_init(zn_popularity *p, const zn_ztable_config *config, zn_error *err)
{
    p->window_ns = config->window_ns;
    zn_clock_init(&p->clock, p->window_ns, 0, ZN_CLOCK_REBASE_AFTER);
    return open_tables(&p->table, &p->users, config, err);
}

int zn_popularity_add(zn_popularity *p, zn_attribute attribute, const zn_ztable_config *config,
                      zn_error *err)
{
    zn_popularity_counts *counts = &p->attributes[attribute];
    return open_tables(&counts->table, &counts->users, config, err);
}

void zn_popularity_fini(zn_popularity *p)
{
    zn_ztable_close(p->table);
    zn_ztable_close(p->users);
    for (size_t i = 0; i < ZN_ATTRIBUTE_COUNT; i++) {
        zn_ztable_close(p->attributes[i].table);
        zn_ztable_close(p->attributes[i].users);
    }
    zn_level_counts_fini(&p->levels);
    zn_heap_free(p->stored);
    memset(p, 0, sizeof *p);
}

static uint64_t evicted_of(const zn_ztable *table, const zn_ztable *users)
{
    return zn_ztable_get_stats(table).evicted + zn_ztable_get_stats(users).evicted;
}

static uint64_t evicted(const zn_popularity *p)
{
    return evicted_of(p->table, p->users);
}

static void begin(zn_popularity *p, int64_t start_ns)
{
    p->start_ns = start_ns;
    p->end_ns = start_ns <= INT64_MAX - p->window_ns ? start_ns + p->window_ns : INT64_MAX;
    p->evicted = evicted(p);
    for (size_t i = 0; i < ZN_ATTRIBUTE_COUNT; i++) {
        zn_popularity_counts *counts = &p->attributes[i];
        if (counts->table != NULL)
            counts->evicted = evicted_of(counts->table, counts->users);
    }
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
    case ZN_CLOCK_REJECTED:
        break;
    }
    return false;
}

static bool is_in_window(const zn_popularity *p, const zn_observation *o)
{
    return p->table != NULL && o->t_ns >= p->start_ns && o->t_ns < p->end_ns;
}

static void see(const zn_popularity *p, zn_ztable *table, zn_ztable *users, const zn_observation *o)
{
    /* All at one time, so that none is late. */
    zn_observation exposure = {p->start_ns, o->user, o->attribute};
    zn_observation user = {p->start_ns, o->user, anything};
    if (!is_in_window(p, o))
        return;
    (void)zn_ztable_observe(table, &exposure);
    (void)zn_ztable_observe(users, &user);
}

void zn_popularity_see(zn_popularity *p, const zn_observation *o)
{
    see(p, p->table, p->users, o);
}

void zn_popularity_see_attribute(zn_popularity *p, zn_attribute attribute, const zn_observation *o)
{
    if (p->attributes[attribute].table != NULL)
        see(p, p->attributes[attribute].table, p->attributes[attribute].users, o);
}

void zn_popularity_see_name(zn_popularity *p, const zn_observation *o, const zn_id *labels)
{
    uint64_t tuples;
    if (!is_in_window(p, o))
        return;
    tuples = zn_ztable_get_stats(p->table).tuples;
    zn_popularity_see(p, o);
    zn_level_counts_see(&p->levels, o->attribute, labels, o->user,
                        zn_ztable_get_stats(p->table).tuples > tuples);
    p->levels.lost |= evicted(p) != p->evicted; /* the caps of the tables bound the counts, too */
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
    zn_ztable_clear(p->users);
    for (size_t i = 0; i < ZN_ATTRIBUTE_COUNT; i++)
        if (p->attributes[i].table != NULL) {
            zn_ztable_clear(p->attributes[i].table);
            zn_ztable_clear(p->attributes[i].users);
        }
    zn_level_counts_clear(&p->levels);
    p->due = false;
    if (now_ns >= p->start_ns)
        begin(p, now_ns - (now_ns - p->start_ns) % p->window_ns);
    else
        begin(p, now_ns);
}

int zn_popularity_store(zn_popularity *p, zn_error *err)
{
    if (p->stored_count == p->stored_cap) {
        size_t cap = p->stored_cap != 0 ? 2 * p->stored_cap : 16;
        zn_popularity_window *larger = zn_heap_resize(p->stored, cap * sizeof *larger);
        if (larger == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the counts of %zu windows", cap);
        p->stored = larger;
        p->stored_cap = cap;
    }
    p->stored[p->stored_count++] = zn_popularity_window_due(p);
    zn_popularity_next(p);
    return 0;
}

zn_popularity_window zn_popularity_window_due(const zn_popularity *p)
{
    zn_popularity_window w = {.start_ns = p->start_ns,
                              .end_ns = p->end_ns,
                              .users = zn_ztable_count(p->users, anything),
                              .whole = p->whole && evicted(p) == p->evicted};
    zn_ztable_histogram(p->table, w.bins);
    return w;
}

zn_popularity_window zn_popularity_attribute_due(const zn_popularity *p, zn_attribute attribute)
{
    const zn_popularity_counts *counts = &p->attributes[attribute];
    zn_popularity_window w = {.start_ns = p->start_ns, .end_ns = p->end_ns};
    if (counts->table == NULL)
        return w;
    w.users = zn_ztable_count(counts->users, anything);
    w.whole = p->whole && evicted_of(counts->table, counts->users) == counts->evicted;
    zn_ztable_histogram(counts->table, w.bins);
    return w;
}

bool zn_popularity_levels_due(zn_popularity *p, zn_level_shares *out)
{
    return p->with_levels && evicted(p) == p->evicted &&
           zn_level_counts_sum(&p->levels, zn_ztable_count(p->users, anything), out);
}

size_t zn_popularity_memory(const zn_popularity *p)
{
    size_t bytes = 0;
    if (p->table == NULL)
        return 0;
    for (size_t i = 0; i < ZN_ATTRIBUTE_COUNT; i++)
        if (p->attributes[i].table != NULL)
            bytes +=
                zn_ztable_memory(p->attributes[i].table) + zn_ztable_memory(p->attributes[i].users);
    return bytes + zn_ztable_memory(p->table) + zn_ztable_memory(p->users) +
           zn_level_counts_memory(&p->levels) + p->stored_cap * sizeof *p->stored;
}
