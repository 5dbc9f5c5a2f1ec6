/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a batch goes level by level. The z-table decides all its exposures. Then each level
 * takes, in their order, the exposures that failed so far, and the withdrawals that publications at
 * the levels beneath ask for. The state of a level depends on the decisions beneath it only, so the
 * decisions equal the decisions on one exposure after another. A part ends at a clock rebase, which
 * empties all levels.
 */
#include "anonymity/levels.h"

#include "anonymity/ztable_marks.h"
#include "util/arena.h"

#include <string.h>

#define DEFAULT_VOTES (UINT32_C(1) << 24)
#define DEFAULT_LABELS (UINT32_C(1) << 22)
#define PART 256         /* exposures that go up the levels together, */
#define PART_LABELS 2048 /* fewer if their labels would not stay in the nearest cache */
#define NO_LEVEL UINT8_MAX

/* State of an exposure on its way through the levels above level 0. */
typedef struct climber {
    uint8_t first; /* level of a first publication, which withdraws votes above; else NO_LEVEL */
    bool climbs;   /* goes on to the next level */
    bool voting;   /* casts votes on its way */
} climber;

struct zn_levels {
    zn_levels_config config;
    uint32_t z, early_z;
    int64_t slice_ns;
    int64_t clock_ns;      /* largest time that the z-table accepted, or INT64_MIN */
    int64_t floor_ns;      /* votes up to this time do not count, or INT64_MIN */
    int64_t paused_to_ns;  /* last time at which labels are off, or INT64_MIN */
    zn_vote_table *tables; /* of the levels above */
    zn_vote_table kept;    /* marks of values that the z-table freed */
    zn_level_stats stats[ZN_LEVELS_MAX + 1];
    zn_levels_stats all;
    size_t part;    /* exposures that go up together */
    size_t part_at; /* index of the part's first exposure in the batch */
    bool deciding;
    zn_id *chains; /* of a part, levels + 1 labels for each exposure */
    uint8_t answers[PART];
    uint16_t noted[PART]; /* exposures whose answer is not just ZN_RELEASE */
    climber climbers[PART];
    uint16_t list[PART];  /* exposures that have to do with the current level, */
    uint32_t found[PART]; /* and their labels before any of them was decided there; 0: none */
    size_t listed;
};

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

static void forget_marks(void *of);

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

/* ---- marks of values that the z-table freed ---- */

static bool keep_mark(void *of, zn_id value, int64_t slice)
{
    zn_levels *l = of;
    int64_t t_ns = slice * l->slice_ns;
    uint32_t label;
    zn_vote_table_reclaim(&l->kept, t_ns);
    label = zn_vote_table_add(&l->kept, value, t_ns);
    if (label != 0)
        zn_vote_table_mark(&l->kept, label, t_ns);
    return label != 0;
}

static int64_t find_mark(void *of, zn_id value)
{
    const zn_levels *l = of;
    uint32_t label = l->kept.labels.live != 0 ? zn_vote_table_find(&l->kept, value) : 0;
    return label != 0 ? zn_vote_table_mark_of(&l->kept, label) / l->slice_ns : ZN_SLICE_NONE;
}

static int open_tables(zn_levels *l, zn_error *err)
{
    const zn_levels_config *c = &l->config;
    zn_vote_table_config table = {
        .keep = 4 * c->z_max < ZN_VOTE_TABLE_KEEP_MAX ? 4 * c->z_max : ZN_VOTE_TABLE_KEEP_MAX,
        .max_votes = c->max_votes,
        .max_labels = c->max_labels,
        .window_ns = c->window_ns};
    zn_vote_table_config kept = {.keep = 1,
                                 .max_votes = 1,
                                 .max_labels = c->max_labels,
                                 .window_ns = (ZN_MARK_SLICES + 1) * l->slice_ns};
    int rc = zn_vote_table_init(&l->kept, &kept, err);
    l->tables = zn_heap_alloc((c->levels + 1) * sizeof *l->tables);
    l->part = PART_LABELS / (c->levels + 1) < PART ? PART_LABELS / (c->levels + 1) : PART;
    l->chains = zn_heap_alloc(l->part * (c->levels + 1) * sizeof *l->chains);
    if (l->tables == NULL || l->chains == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the tables of labels");
    for (uint32_t i = 0; rc == 0 && i < c->levels; i++) {
        table.tags = i + 1 + (c->max_per_network != 0);
        rc = zn_vote_table_init(&l->tables[i], &table, err);
    }
    return rc;
}

int zn_levels_open(zn_levels **out, const zn_levels_config *config, zn_error *err)
{
    zn_zmarks marks = {NULL, keep_mark, find_mark, forget_marks};
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
    l->slice_ns = zn_mark_slice_ns(config->window_ns);
    l->clock_ns = l->floor_ns = l->paused_to_ns = INT64_MIN;
    rc = open_tables(l, err);
    if (rc != 0) {
        zn_levels_close(l);
        return rc;
    }
    marks.of = l;
    zn_ztable_set_marks(l->config.table, &marks);
    *out = l;
    return 0;
}

void zn_levels_close(zn_levels *l)
{
    if (l == NULL)
        return;
    for (uint32_t i = 0; l->tables != NULL && i < l->config.levels; i++)
        zn_vote_table_fini(&l->tables[i]);
    zn_vote_table_fini(&l->kept);
    zn_heap_free(l->tables);
    zn_heap_free(l->chains);
    zn_heap_free(l);
}

/* ---- helpers ---- */

static bool is_absent(zn_id label)
{
    return (label.lo | label.hi) == 0;
}

/* Returns the labels of exposure i of the part. */
static zn_id *chain_of(const zn_levels *l, size_t i)
{
    return l->chains + i * (l->config.levels + 1);
}

/* Returns the table of a level above level 0. */
static zn_vote_table *table_of(zn_levels *l, uint32_t level)
{
    return &l->tables[level - 1];
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

/* ---- level 0 ---- */

/* Empties all levels at t_ns, and turns the labels off for a window. */
static void rebase(zn_levels *l, int64_t t_ns)
{
    l->clock_ns = l->floor_ns = t_ns;
    for (uint32_t level = 1; level <= l->config.levels; level++)
        zn_vote_table_clear(table_of(l, level));
    l->paused_to_ns = INT64_MIN;
    pause(l, t_ns);
}

/* Forgets the marks of values, because the z-table was emptied. If the owner of the z-table emptied
 * it, all levels are emptied. In a batch, a clock rebase empties them at its own place. */
static void forget_marks(void *of)
{
    zn_levels *l = of;
    zn_vote_table_clear(&l->kept);
    if (l->deciding || l->clock_ns == INT64_MIN)
        return;
    rebase(l, l->clock_ns);
    l->clock_ns = INT64_MIN;
}

/* Decides a peek, which the z-table does not store. */
static uint8_t peek(zn_levels *l, const zn_observation *o, uint32_t z)
{
    if (zn_ztable_count_at(l->config.table, o->attribute, o->t_ns) < z)
        return (uint8_t)ZN_BELOW_Z | ZN_ANSWER_LATE;
    return (uint8_t)ZN_RELEASE | ZN_ANSWER_LATE |
           zn_ztable_mark(l->config.table, o->attribute, o->t_ns);
}

/* Returns the number of exposures from the first on that go to the z-table in the same way. */
static size_t alike(const uint8_t *flags, size_t n)
{
    size_t i = 1;
    while (i < n && flags[i] == flags[0] && (flags[0] & ZN_EXPOSURE_PEEK) == 0)
        i++;
    return i;
}

/* Has the z-table answer the exposures of a part. The answer to a peek is late. */
static void answer_values(zn_levels *l, const zn_exposures *e)
{
    if (e->flags == NULL) {
        zn_ztable_observe_marked(l->config.table, e->observations, e->n, 0, l->answers);
        return;
    }
    for (size_t i = 0, many; i < e->n; i += many) {
        bool early = (e->flags[i] & ZN_EXPOSURE_EARLY) != 0;
        many = alike(e->flags + i, e->n - i);
        if ((e->flags[i] & ZN_EXPOSURE_PEEK) != 0)
            l->answers[i] =
                peek(l, e->observations + i, early && l->early_z > l->z ? l->early_z : l->z);
        else
            zn_ztable_observe_marked(l->config.table, e->observations + i, many,
                                     early ? l->early_z : 0, l->answers + i);
    }
}

static bool is_peek(const zn_exposures *e, size_t i)
{
    return e->flags != NULL && (e->flags[i] & ZN_EXPOSURE_PEEK) != 0;
}

/* Takes the decisions of level 0 on a part. Notes the exposures whose answer is not just
 * ZN_RELEASE, without a branch that could be mispredicted. Returns their number. */
static size_t note_answers(zn_levels *l, const zn_exposures *e, zn_level_decision *out)
{
    size_t noted = 0;
    for (size_t i = 0; i < e->n; i++) {
        uint8_t answer = l->answers[i];
        out[i] = (zn_level_decision){answer & ZN_ANSWER_DECISION, 0, 0};
        l->noted[noted] = (uint16_t)i;
        noted += answer != ZN_RELEASE;
    }
    l->stats[0].published += e->n - noted;
    return noted;
}

/* Moves the clock to the largest time among exposures `first` to end - 1. An exposure on time is
 * later than all before it. */
static void follow_clock(zn_levels *l, const zn_exposures *e, size_t first, size_t end)
{
    bool on_time = false;
    while (end > first && !on_time) {
        int64_t t_ns = e->observations[--end].t_ns;
        uint8_t answer = l->answers[end];
        if ((answer & ZN_ANSWER_DECISION) > ZN_BELOW_Z || is_peek(e, end))
            continue;
        if (t_ns > l->clock_ns)
            l->clock_ns = t_ns;
        on_time = (answer & ZN_ANSWER_LATE) == 0;
    }
}

/* Takes the z-table's answer to exposure i of the part. Returns what the exposure does at the
 * levels above. */
static climber take_answer(zn_levels *l, const zn_exposures *e, size_t i)
{
    uint8_t answer = l->answers[i], decision = answer & ZN_ANSWER_DECISION;
    climber c = {.first = (answer & ZN_ANSWER_FIRST) != 0 ? 0 : NO_LEVEL};
    c.climbs = decision == ZN_BELOW_Z && (answer & ZN_ANSWER_LATE) == 0;
    c.voting = (answer & ZN_ANSWER_MARKED) == 0;
    if (c.climbs && e->observations[i].t_ns <= l->paused_to_ns) {
        l->all.paused++;
        c.climbs = false;
    }
    if (decision == ZN_RELEASE) {
        l->stats[0].published++;
        l->stats[0].peeks += is_peek(e, i);
    }
    return c;
}

/* Takes answers from noted exposure k on, up to a clock rebase. Exposure `first` is the first after
 * the rebase before. Lists the exposures that have to do with the levels above. Returns the next
 * noted exposure. */
static size_t take_answers(zn_levels *l, const zn_exposures *e, size_t k, size_t noted,
                           size_t first)
{
    l->listed = 0;
    do {
        uint16_t i = l->noted[k];
        zn_id *chain = chain_of(l, i);
        climber c;
        if (ZN_UNLIKELY((l->answers[i] & ZN_ANSWER_LOST) != 0)) {
            int64_t t_ns = e->observations[i].t_ns;
            follow_clock(l, e, first, i + 1u);
            pause(l, t_ns > l->clock_ns ? t_ns : l->clock_ns);
        }
        c = take_answer(l, e, i);
        if (c.first == NO_LEVEL && !c.climbs)
            continue;
        l->climbers[i] = c;
        l->list[l->listed++] = i;
        chain[0] = e->observations[i].attribute;
        e->chain(e->of, l->part_at + i, chain);
        if (l->config.levels != 0)
            zn_vote_table_fetch_index(table_of(l, 1), chain[1]);
    } while (++k < noted && (l->answers[l->noted[k]] & ZN_ANSWER_REBASED) == 0);
    return k;
}

/* ---- levels above ---- */

/* Withdraws the votes at one level above a label that is published for the first time. */
static void withdraw(zn_levels *l, const zn_id *chain, uint32_t level, uint32_t above)
{
    uint32_t tag = zn_vote_tag(chain[level]);
    const zn_id *labels = &chain[above];
    size_t n = 1;
    if (l->config.parents != NULL && level != 0)
        labels = l->config.parents(l->config.parents_of, level, chain[level], above, labels, &n);
    for (size_t i = 0; i < n; i++) {
        uint32_t label = zn_vote_table_find(table_of(l, above), labels[i]);
        if (label != 0)
            (void)zn_vote_table_withdraw(table_of(l, above), label, level, tag);
    }
}

/* Stores the vote of exposure i of the part for a trimmed label. Returns the decision if the
 * exposure ends here, because a cap refuses the vote or because there is no room; else ZN_BELOW_Z.
 */
static uint8_t vote(zn_levels *l, const zn_exposures *e, size_t i, uint32_t level, uint32_t label)
{
    const zn_observation *o = &e->observations[i];
    const zn_id *chain = chain_of(l, i);
    uint32_t tags[ZN_VOTE_TABLE_TAGS_MAX];
    zn_ballot ballot = {o->t_ns, o->user, tags};
    for (uint32_t j = 0; j < level; j++)
        tags[j] = is_absent(chain[j]) ? ZN_VOTE_TAG_ABSENT : zn_vote_tag(chain[j]);
    if (l->config.max_per_network != 0) {
        tags[level] = e->network(e->of, l->part_at + i);
        if (zn_vote_table_others(table_of(l, level), label, o->user, level, tags[level]) >=
            l->config.max_per_network)
            return ZN_OVER_NETWORK_CAP;
    }
    return zn_vote_table_vote(table_of(l, level), label, &ballot) ? ZN_BELOW_Z : ZN_NO_ROOM;
}

/* Drops the votes of a label that no longer count at t_ns. */
static void trim(zn_levels *l, uint32_t level, uint32_t label, int64_t t_ns)
{
    int64_t start_ns = window_start(l, t_ns);
    if (start_ns <= l->floor_ns)
        start_ns = l->floor_ns + 1;
    zn_vote_table_trim(table_of(l, level), label, start_ns);
}

/* Returns the number of users behind a trimmed label, without the user who only peeks. */
static uint32_t others(const zn_vote_table *table, uint32_t label, uint64_t user)
{
    return zn_vote_table_count(table, label) - (uint32_t)zn_vote_table_has(table, label, user);
}

static void publish(zn_levels *l, int64_t t_ns, climber *c, uint32_t level, uint32_t label)
{
    zn_vote_table *table = table_of(l, level);
    if (zn_vote_table_mark_of(table, label) < window_start(l, t_ns))
        c->first = (uint8_t)level;
    c->climbs = false;
    zn_vote_table_mark(table, label, t_ns);
    l->stats[level].published++;
    l->stats[level].peeks += !c->voting;
}

/* Ends the way of an exposure, which is suppressed. */
static void stop(zn_levels *l, climber *c, uint8_t decision, zn_level_decision *out)
{
    l->all.lacked_capacity += decision == ZN_NO_ROOM;
    c->climbs = false;
    *out = (zn_level_decision){decision, 0, 0};
}

/* Decides exposure i of the part, which failed beneath a level. */
static void climb(zn_levels *l, const zn_exposures *e, size_t i, uint32_t level, uint32_t found,
                  zn_level_decision *out)
{
    zn_vote_table *table = table_of(l, level);
    const zn_observation *o = &e->observations[i];
    zn_id id = chain_of(l, i)[level];
    climber *c = &l->climbers[i];
    uint8_t decision = ZN_BELOW_Z;
    uint32_t label, users;
    zn_vote_table_reclaim(table, o->t_ns);
    label = zn_vote_table_is(table, found, id) ? found
            : c->voting                        ? zn_vote_table_add(table, id, o->t_ns)
                                               : zn_vote_table_find(table, id);
    if (label == 0) {
        if (c->voting)
            stop(l, c, ZN_NO_ROOM, out);
        return;
    }
    trim(l, level, label, o->t_ns);
    if (c->voting)
        decision = vote(l, e, i, level, label);
    if (decision != ZN_BELOW_Z) {
        stop(l, c, decision, out);
        return;
    }
    users = c->voting ? zn_vote_table_count(table, label) : others(table, label, o->user);
    if (users >= l->z) {
        publish(l, o->t_ns, c, level, label);
        l->all.users[users]++;
        *out = (zn_level_decision){ZN_RELEASE, (uint8_t)level, (uint16_t)users};
    } else if (zn_vote_table_mark_of(table, label) >= window_start(l, o->t_ns)) {
        c->voting = false;
    }
}

/* Prefetches the memory that the listed exposures need at a level. Their index was prefetched when
 * they were listed. */
static void fetch(zn_levels *l, uint32_t level)
{
    const zn_vote_table *table = table_of(l, level);
    for (size_t k = 0; k < l->listed; k++)
        l->found[k] = zn_vote_table_fetch_label(table, chain_of(l, l->list[k])[level]);
    for (size_t k = 0; k < l->listed; k++) {
        uint16_t i = l->list[k];
        l->found[k] = zn_vote_table_fetch_votes(table, chain_of(l, i)[level], l->found[k],
                                                l->climbers[i].first != NO_LEVEL);
    }
}

/* Takes the listed exposures to a level. */
static void decide_level(zn_levels *l, const zn_exposures *e, uint32_t level,
                         zn_level_decision *out)
{
    size_t kept = 0;
    fetch(l, level);
    for (size_t k = 0; k < l->listed; k++) {
        uint16_t i = l->list[k];
        climber *c = &l->climbers[i];
        if (c->first != NO_LEVEL)
            withdraw(l, chain_of(l, i), c->first, level);
        else if (!is_absent(chain_of(l, i)[level]))
            climb(l, e, i, level, l->found[k], &out[i]);
        if (c->first == NO_LEVEL && !c->climbs)
            continue;
        l->list[kept++] = i;
        if (level < l->config.levels)
            zn_vote_table_fetch_index(table_of(l, level + 1), chain_of(l, i)[level + 1]);
    }
    l->listed = kept;
}

/* Decides the exposures of a part, the first of which is exposure `at` of the batch. */
static void decide_part(zn_levels *l, const zn_exposures *e, size_t at, zn_level_decision *out)
{
    size_t noted, first = 0;
    l->part_at = at;
    answer_values(l, e);
    noted = note_answers(l, e, out);
    for (size_t k = 0; k < noted;) {
        if ((l->answers[l->noted[k]] & ZN_ANSWER_REBASED) != 0) {
            first = l->noted[k];
            rebase(l, e->observations[first].t_ns);
        }
        k = take_answers(l, e, k, noted, first);
        for (uint32_t level = 1; level <= l->config.levels && l->listed != 0; level++)
            decide_level(l, e, level, out);
    }
    follow_clock(l, e, first, e->n);
}

void zn_levels_decide(zn_levels *l, const zn_exposures *exposures, zn_level_decision *decisions)
{
    l->deciding = true;
    for (size_t at = 0; at < exposures->n; at += l->part) {
        zn_exposures part = *exposures;
        part.observations += at;
        if (part.flags != NULL)
            part.flags += at;
        part.n = exposures->n - at < l->part ? exposures->n - at : l->part;
        decide_part(l, &part, at, decisions + at);
    }
    l->deciding = false;
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

void zn_levels_restart(zn_levels *l)
{
    if (l->clock_ns != INT64_MIN)
        rebase(l, l->clock_ns);
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
    size_t bytes = sizeof *l + zn_vote_table_memory(&l->kept) +
                   l->part * (l->config.levels + 1) * sizeof *l->chains;
    for (uint32_t i = 0; i < l->config.levels; i++)
        bytes += sizeof *l->tables + zn_vote_table_memory(&l->tables[i]);
    return bytes;
}

const char *zn_levels_check(const zn_levels *l)
{
    const char *wrong = zn_vote_table_check(&l->kept);
    for (uint32_t i = 0; wrong == NULL && i < l->config.levels; i++)
        wrong = zn_vote_table_check(&l->tables[i]);
    return wrong;
}
