/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anonymity/levels.h"

#include "util/arena.h"

#include <string.h>

#define DEFAULT_VOTES (UINT32_C(1) << 24)
#define DEFAULT_LABELS (UINT32_C(1) << 22)
#define SLICES 7 /* of a window: the time of a value's last publication is a slice's number */

struct zn_levels {
    zn_levels_config config;
    uint32_t z, early_z;
    int64_t slice_ns;
    int64_t clock_ns;      /* largest time that the z-table accepted, or INT64_MIN */
    int64_t floor_ns;      /* votes up to this time do not count, or INT64_MIN */
    int64_t paused_to_ns;  /* last time at which labels are off, or INT64_MIN */
    uint64_t clock_jumps;  /* of the z-table, as far as they were followed */
    zn_vote_table marks;   /* of level 0 */
    zn_vote_table *tables; /* of the levels above */
    zn_level_stats stats[ZN_LEVELS_MAX + 1];
    zn_levels_stats all;
};

/* An exposure on its way up. */
typedef struct climber {
    const zn_exposure *exposure;
    uint32_t tags[ZN_LEVELS_MAX + 1];
    bool voting;
} climber;

/* ---- opening ---- */

zn_levels_config zn_levels_default_config(zn_ztable *table, uint32_t levels, uint32_t z,
                                          int64_t window_ns)
{
    zn_levels_config c = {.table = table,
                          .levels = levels,
                          .z = z,
                          .z_max = z,
                          .window_ns = window_ns,
                          .max_votes = DEFAULT_VOTES,
                          .max_labels = DEFAULT_LABELS};
    return c;
}

static int check_config(const zn_levels_config *c, zn_error *err)
{
    if (c->levels > ZN_LEVELS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "at most %u levels are possible, not %u",
                       ZN_LEVELS_MAX, c->levels);
    if (c->z < 1 || c->z > c->z_max || c->z_max > ZN_LEVELS_Z_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "with levels, z must be from 1 to %u",
                       ZN_LEVELS_Z_MAX);
    if (c->window_ns < 1 || c->window_ns > ZN_ZTABLE_WINDOW_MAX_NS)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the window must be from 1 ns to 10 years");
    if (c->max_votes < 1 || c->max_votes > ZN_ZTABLE_TUPLES_MAX || c->max_labels < 1 ||
        c->max_labels > ZN_ZTABLE_ATTRIBUTES_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the caps of votes and labels are out of range");
    return 0;
}

static int open_tables(zn_levels *l, zn_error *err)
{
    const zn_levels_config *c = &l->config;
    zn_vote_table_config table = {
        .keep = 4 * c->z_max < ZN_VOTE_TABLE_KEEP_MAX ? 4 * c->z_max : ZN_VOTE_TABLE_KEEP_MAX,
        .max_votes = c->max_votes,
        .max_labels = c->max_labels,
        .window_ns = c->window_ns};
    int rc;
    table.window_ns = (SLICES + 1) * l->slice_ns;
    rc = zn_vote_table_init(&l->marks, &table, err);
    table.window_ns = c->window_ns;
    l->tables = zn_heap_alloc((c->levels + 1) * sizeof *l->tables);
    if (l->tables == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the tables of labels");
    for (uint32_t i = 0; rc == 0 && i < c->levels; i++) {
        table.tags = i + 1;
        rc = zn_vote_table_init(&l->tables[i], &table, err);
    }
    return rc;
}

int zn_levels_open(zn_levels **out, const zn_levels_config *config, zn_error *err)
{
    zn_levels *l;
    int rc = check_config(config, err);
    *out = NULL;
    if (rc != 0)
        return rc;
    l = zn_heap_alloc(sizeof *l);
    if (l == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the tables of labels");
    l->config = *config;
    l->z = l->early_z = config->z;
    l->slice_ns = (config->window_ns + SLICES - 1) / SLICES;
    l->clock_ns = l->floor_ns = l->paused_to_ns = INT64_MIN;
    rc = open_tables(l, err);
    if (rc != 0)
        zn_levels_close(l);
    else
        *out = l;
    return rc;
}

void zn_levels_close(zn_levels *l)
{
    if (l == NULL)
        return;
    for (uint32_t i = 0; l->tables != NULL && i < l->config.levels; i++)
        zn_vote_table_fini(&l->tables[i]);
    zn_vote_table_fini(&l->marks);
    zn_heap_free(l->tables);
    zn_heap_free(l);
}

/* ---- publications ---- */

static bool is_absent(zn_id label)
{
    return (label.lo | label.hi) == 0;
}

/* Returns the table of a level above level 0. */
static zn_vote_table *table_of(zn_levels *l, uint32_t level)
{
    return &l->tables[level - 1];
}

/* Withdraws the votes above a label that is published for the first time. */
static void withdraw(zn_levels *l, const zn_id *chain, uint32_t level)
{
    uint32_t tag = zn_vote_tag(chain[level]);
    for (uint32_t above = level + 1; above <= l->config.levels; above++) {
        const zn_id *labels = &chain[above];
        size_t n = 1;
        if (l->config.parents != NULL && level != 0)
            labels =
                l->config.parents(l->config.parents_of, level, chain[level], above, labels, &n);
        for (size_t i = 0; i < n; i++) {
            uint32_t label = zn_vote_table_find(table_of(l, above), labels[i]);
            if (label != 0)
                (void)zn_vote_table_withdraw(table_of(l, above), label, level, tag);
        }
    }
}

static int64_t window_start(const zn_levels *l, int64_t t_ns)
{
    return t_ns - l->config.window_ns;
}

/* Turns the labels off for a window from t_ns on. */
static void pause(zn_levels *l, int64_t t_ns)
{
    if (t_ns + l->config.window_ns > l->paused_to_ns)
        l->paused_to_ns = t_ns + l->config.window_ns;
}

/* Returns true if the value was published in the window that ends at now_ns, or up to a slice
 * before. */
static bool value_is_marked(const zn_levels *l, zn_id value, int64_t now_ns)
{
    uint32_t label = zn_vote_table_find(&l->marks, value);
    int64_t mark_ns = label != 0 ? zn_vote_table_mark_of(&l->marks, label) : ZN_MARK_NONE;
    return mark_ns != ZN_MARK_NONE && now_ns / l->slice_ns - mark_ns / l->slice_ns <= SLICES;
}

/* Notes that the value of a chain is published at t_ns. */
static void publish_value(zn_levels *l, const zn_id *chain, int64_t t_ns)
{
    int64_t now_ns = t_ns > l->clock_ns ? t_ns : l->clock_ns;
    uint32_t label;
    if (!value_is_marked(l, chain[0], now_ns))
        withdraw(l, chain, 0);
    label = zn_vote_table_add(&l->marks, chain[0], now_ns);
    if (label != 0)
        zn_vote_table_mark(&l->marks, label, t_ns);
    else
        pause(l, now_ns);
}

/* ---- exposures ---- */

/* Follows the clock of the z-table after an observation that it accepted. */
static void follow_clock(zn_levels *l, int64_t t_ns)
{
    uint64_t jumps = zn_ztable_get_stats(l->config.table).clock_jumps;
    if (jumps == l->clock_jumps) {
        if (t_ns > l->clock_ns)
            l->clock_ns = t_ns;
        return;
    }
    l->clock_jumps = jumps;
    l->clock_ns = l->floor_ns = t_ns;
    zn_vote_table_clear(&l->marks);
    for (uint32_t level = 1; level <= l->config.levels; level++)
        zn_vote_table_clear(table_of(l, level));
    l->paused_to_ns = INT64_MIN;
    pause(l, t_ns);
}

/* Decides a peek at level 0. */
static zn_decision peek(zn_levels *l, const zn_exposure *e, uint32_t z)
{
    if (zn_ztable_count_at(l->config.table, e->chain[0], e->t_ns) < z)
        return ZN_BELOW_Z;
    publish_value(l, e->chain, e->t_ns);
    return ZN_RELEASE;
}

/* Decides an exposure at level 0. Sets *climbs if the exposure goes on to level 1. */
static zn_decision decide_value(zn_levels *l, const zn_exposure *e, bool *climbs)
{
    bool early = (e->flags & ZN_EXPOSURE_EARLY) != 0 && l->early_z > l->z;
    bool late = e->t_ns < l->clock_ns || early;
    zn_observation o = {e->t_ns, e->user, e->chain[0]};
    uint64_t jumps = l->clock_jumps;
    zn_decision decision;
    if ((e->flags & ZN_EXPOSURE_PEEK) != 0)
        return peek(l, e, early ? l->early_z : l->z);
    if (early)
        (void)zn_ztable_set_z(l->config.table, l->early_z, NULL);
    decision = zn_ztable_observe(l->config.table, &o);
    if (early)
        (void)zn_ztable_set_z(l->config.table, l->z, NULL);
    if (decision != ZN_RELEASE && decision != ZN_BELOW_Z)
        return decision;
    follow_clock(l, e->t_ns);
    late = late && jumps == l->clock_jumps;
    if (decision == ZN_RELEASE)
        publish_value(l, e->chain, e->t_ns);
    else if (late && zn_ztable_count(l->config.table, e->chain[0]) >= l->z)
        publish_value(l, e->chain, l->clock_ns);
    *climbs = decision == ZN_BELOW_Z && !late;
    return decision;
}

/* Publishes the climber's label at a level. */
static void publish(zn_levels *l, const climber *c, uint32_t level, uint32_t label)
{
    zn_vote_table *table = table_of(l, level);
    int64_t t_ns = c->exposure->t_ns;
    if (zn_vote_table_mark_of(table, label) < window_start(l, t_ns))
        withdraw(l, c->exposure->chain, level);
    zn_vote_table_mark(table, label, t_ns);
    l->stats[level].published++;
    l->stats[level].peeks += !c->voting;
}

/* Decides a climber at one level. Returns the users behind the label, or 0 with *label 0 if the
 * table has no room. */
static uint32_t count_at_level(zn_levels *l, climber *c, uint32_t level, uint32_t *label)
{
    const zn_exposure *e = c->exposure;
    zn_vote_table *table = table_of(l, level);
    zn_ballot ballot = {e->t_ns, e->user, c->tags};
    int64_t start_ns = window_start(l, e->t_ns);
    if (start_ns <= l->floor_ns)
        start_ns = l->floor_ns + 1;
    *label = c->voting ? zn_vote_table_add(table, e->chain[level], e->t_ns)
                       : zn_vote_table_find(table, e->chain[level]);
    if (*label == 0)
        return 0;
    zn_vote_table_trim(table, *label, start_ns);
    if (!c->voting)
        return zn_vote_table_count(table, *label) -
               (uint32_t)zn_vote_table_has(table, *label, e->user);
    if (!zn_vote_table_vote(table, *label, &ballot)) {
        *label = 0;
        return 0;
    }
    return zn_vote_table_count(table, *label);
}

/* Takes an exposure that failed at level 0 up its chain. */
static zn_level_decision climb(zn_levels *l, const zn_exposure *e)
{
    zn_level_decision below_z = {ZN_BELOW_Z, 0, 0}, no_room = {ZN_NO_ROOM, 0, 0};
    climber c = {.exposure = e, .voting = !value_is_marked(l, e->chain[0], e->t_ns)};
    for (uint32_t i = 0; i < l->config.levels; i++)
        c.tags[i] = is_absent(e->chain[i]) ? ZN_VOTE_TAG_ABSENT : zn_vote_tag(e->chain[i]);
    for (uint32_t level = 1; level <= l->config.levels; level++) {
        zn_vote_table *table = table_of(l, level);
        uint32_t label, users;
        if (is_absent(e->chain[level]))
            continue;
        zn_vote_table_reclaim(table, e->t_ns);
        users = count_at_level(l, &c, level, &label);
        if (label == 0 && c.voting) {
            l->all.no_room++;
            return no_room;
        }
        if (label == 0)
            continue;
        if (users >= l->z) {
            zn_level_decision released = {ZN_RELEASE, (uint8_t)level, (uint16_t)users};
            publish(l, &c, level, label);
            l->all.users[users]++;
            return released;
        }
        if (zn_vote_table_mark_of(table, label) >= window_start(l, e->t_ns))
            c.voting = false;
    }
    return below_z;
}

void zn_levels_decide(zn_levels *l, const zn_exposure *exposures, size_t n,
                      zn_level_decision *decisions)
{
    for (size_t i = 0; i < n; i++) {
        bool climbs = false;
        zn_decision decision;
        zn_vote_table_reclaim(&l->marks, l->clock_ns);
        decision = decide_value(l, &exposures[i], &climbs);
        decisions[i] = (zn_level_decision){(uint8_t)decision, 0, 0};
        l->stats[0].published += decision == ZN_RELEASE;
        l->stats[0].peeks += decision == ZN_RELEASE && (exposures[i].flags & ZN_EXPOSURE_PEEK) != 0;
        if (!climbs)
            continue;
        if (l->clock_ns <= l->paused_to_ns)
            l->all.paused++;
        else
            decisions[i] = climb(l, &exposures[i]);
    }
}

int zn_levels_set_z(zn_levels *l, uint32_t z, zn_error *err)
{
    int rc;
    if (z > l->config.z_max)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "with these levels, z must be from 1 to %u, not %u",
                       l->config.z_max, z);
    rc = zn_ztable_set_z(l->config.table, z, err);
    if (rc != 0)
        return rc;
    if (z < l->z)
        l->floor_ns = l->clock_ns;
    l->z = l->early_z = z;
    return 0;
}

void zn_levels_set_early_z(zn_levels *l, uint32_t z)
{
    l->early_z = z;
}

/* ---- results ---- */

zn_levels_stats zn_levels_get_stats(const zn_levels *l)
{
    return l->all;
}

zn_level_stats zn_levels_level_stats(const zn_levels *l, uint32_t level)
{
    zn_level_stats stats = l->stats[level];
    if (level != 0) {
        const zn_vote_table *t = &l->tables[level - 1];
        stats.withdrawn = t->withdrawn;
        stats.evicted = t->evicted;
        stats.labels = t->labels.live;
        stats.votes = t->votes;
    }
    return stats;
}

size_t zn_levels_memory(const zn_levels *l)
{
    size_t bytes = sizeof *l + zn_vote_table_memory(&l->marks);
    for (uint32_t i = 0; i < l->config.levels; i++)
        bytes += sizeof *l->tables + zn_vote_table_memory(&l->tables[i]);
    return bytes;
}

const char *zn_levels_check(const zn_levels *l)
{
    const char *wrong = zn_vote_table_check(&l->marks);
    for (uint32_t i = 0; wrong == NULL && i < l->config.levels; i++)
        wrong = zn_vote_table_check(&l->tables[i]);
    return wrong;
}
