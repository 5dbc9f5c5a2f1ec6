/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "microdata/groups_internal.h"

#include <string.h>

enum { MENDED, PARTNER }; /* the sides of a trade */

/* Repair of a group. */
typedef struct choice {
    uint32_t partner; /* ZN_GROUP_NONE: nothing does */
    bool swap;        /* by the trade; else by merging */
    double price;
} choice;

/* ---- judging ---- */

static void tally_group(zn_groups *g, uint32_t group)
{
    zn_group_tally_begin(g);
    zn_group_tally_add_list(g, g->group[group].first);
}

static void judge(zn_groups *g, uint32_t group)
{
    tally_group(g, group);
    g->group[group].good = zn_group_tally_good(g);
    g->group[group].urgency = zn_group_tally_urgency(g);
}

static void judge_all(zn_groups *g, uint32_t from, uint32_t aim)
{
    g->aim = aim;
    for (uint32_t j = from; j < g->count; j++)
        if (g->group[j].alive)
            judge(g, j);
}

void zn_group_repair_judge(zn_groups *g, uint32_t from)
{
    judge_all(g, from, g->config.rule.l);
}

static bool are_rows_good(zn_groups *g, const uint32_t *rows, uint32_t n)
{
    zn_group_tally_begin(g);
    for (uint32_t i = 0; i < n; i++)
        zn_group_tally_add(g, rows[i]);
    return zn_group_tally_good(g);
}

/* ---- swaps ---- */

static void count_row(zn_groups *g, int side, uint32_t row)
{
    size_t sensitive = g->config.sensitive_count;
    for (size_t s = 0; s < sensitive; s++)
        g->trade_distinct[side][s] += g->trade_values[side][g->value[row * sensitive + s]]++ == 0;
    if (g->has_users)
        g->trade_user_count[side] += g->trade_users[side][g->user[row]]++ == 0;
}

static void uncount_row(zn_groups *g, int side, uint32_t row)
{
    size_t sensitive = g->config.sensitive_count;
    for (size_t s = 0; s < sensitive; s++)
        g->trade_distinct[side][s] -= --g->trade_values[side][g->value[row * sensitive + s]] == 0;
    if (g->has_users)
        g->trade_user_count[side] -= --g->trade_users[side][g->user[row]] == 0;
}

static void trade_begin(zn_groups *g, uint32_t mended, uint32_t partner)
{
    uint32_t group[2] = {mended, partner};
    g->trade.exchanges = 0;
    g->trade.pairs = 0;
    for (int side = 0; side < 2; side++) {
        uint32_t n = 0;
        memset(g->trade_distinct[side], 0, sizeof g->trade_distinct[side]);
        g->trade_user_count[side] = 0;
        for (uint32_t row = g->group[group[side]].first; row != ZN_GROUP_NO_ROW;
             row = g->next[row]) {
            g->trade.rows[side][n++] = row;
            count_row(g, side, row);
        }
        g->trade.count[side] = n;
    }
}

static void trade_end(zn_groups *g)
{
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < g->trade.count[side]; i++)
            uncount_row(g, side, g->trade.rows[side][i]);
}

/* The number of users on a side once x has gone and y has come. */
static uint32_t users_after(const zn_groups *g, int side, uint32_t x, uint32_t y)
{
    const uint32_t *of = g->trade_users[side];
    uint32_t gone = g->user[x], come = g->user[y], users = g->trade_user_count[side];
    if (gone == come)
        return users;
    return users - (of[gone] == 1) + (of[come] == 0);
}

static uint32_t distinct_after(const zn_groups *g, int side, size_t s, uint32_t gone, uint32_t come)
{
    const uint32_t *of = g->trade_values[side];
    uint32_t distinct = g->trade_distinct[side][s];
    return gone == come ? distinct : distinct - (of[gone] == 1) + (of[come] == 0);
}

/*
 * Returns the number of values that the repaired group still lacks after its row x and the
 * partner's row y are swapped; UINT32_MAX if the partner would lack values, or if either group
 * would have too few users.
 */
static uint32_t missing_after(const zn_groups *g, uint32_t x, uint32_t y)
{
    size_t sensitive = g->config.sensitive_count;
    const uint32_t *of_x = &g->value[x * sensitive], *of_y = &g->value[y * sensitive];
    uint32_t missing = 0;
    for (size_t s = 0; s < sensitive; s++) {
        uint32_t mended = distinct_after(g, MENDED, s, of_x[s], of_y[s]);
        if (distinct_after(g, PARTNER, s, of_y[s], of_x[s]) < g->aim)
            return UINT32_MAX;
        missing += mended < g->aim ? g->aim - mended : 0;
    }
    if (g->has_users && (users_after(g, MENDED, x, y) < g->config.rule.k ||
                         users_after(g, PARTNER, y, x) < g->config.rule.k))
        return UINT32_MAX;
    return missing;
}

static uint32_t missing_now(const zn_groups *g)
{
    uint32_t missing = 0;
    for (size_t s = 0; s < g->config.sensitive_count; s++)
        if (g->trade_distinct[MENDED][s] < g->aim)
            missing += g->aim - g->trade_distinct[MENDED][s];
    return missing;
}

/* Sets the rows' distances to the representative that a swap goes by. */
static void trade_distances(zn_groups *g, const zn_node *const centre[2])
{
    for (int side = 0; side < 2; side++)
        zn_group_distances(g, centre[side], g->trade.rows[side], g->trade.count[side],
                           g->trade_cost[side]);
}

/* An exchange: what is missing then, its distance, its rows and their places. */
typedef struct offer {
    uint32_t missing, distance;
    uint32_t row[2], place[2];
} offer;

static bool is_better(const offer *a, const offer *b)
{
    if (a->missing != b->missing)
        return a->missing < b->missing;
    if (a->distance != b->distance)
        return a->distance < b->distance;
    if (a->row[MENDED] != b->row[MENDED])
        return a->row[MENDED] < b->row[MENDED];
    return a->row[PARTNER] < b->row[PARTNER];
}

static void carry_out(zn_groups *g, const offer *o)
{
    for (int side = 0; side < 2; side++) {
        uncount_row(g, side, o->row[side]);
        count_row(g, side, o->row[!side]);
        g->trade.rows[side][o->place[side]] = o->row[!side];
    }
    g->trade.exchanges++;
}

/* Makes the exchange that helps most, of those the one of least distance, ties by rows. Returns how
 * many values are missing then; `missing` again where none helps. */
static uint32_t exchange(zn_groups *g, uint32_t missing)
{
    zn_group_trade *t = &g->trade;
    offer best = {.missing = missing};
    for (uint32_t i = 0; i < t->count[MENDED]; i++)
        for (uint32_t j = 0; j < t->count[PARTNER]; j++) {
            offer one = {.distance = g->trade_cost[MENDED][i] + g->trade_cost[PARTNER][j],
                         .row = {t->rows[MENDED][i], t->rows[PARTNER][j]},
                         .place = {i, j}};
            one.missing = missing_after(g, one.row[MENDED], one.row[PARTNER]);
            if (one.missing < missing && is_better(&one, &best))
                best = one;
        }
    t->pairs += (uint64_t)t->count[MENDED] * t->count[PARTNER];
    if (best.missing < missing)
        carry_out(g, &best);
    return best.missing;
}

/* Plans the exchanges that repair a group with another's rows, in g->trade. */
static bool plan_swap(zn_groups *g, uint32_t mended, uint32_t partner)
{
    const zn_node *own = zn_group_centre(g, mended), *other = zn_group_centre(g, partner);
    /* Each row by how near it is to where it goes (3); to the letter: to where it comes from (2).
     */
    const zn_node *const centre[2] = {g->config.strict ? other : own,
                                      g->config.strict ? own : other};
    zn_group_trade *t = &g->trade;
    uint32_t missing, before = 0;
    trade_begin(g, mended, partner);
    missing = missing_now(g);
    while (missing != 0 && missing != before) {
        before = missing;
        trade_distances(g, centre);
        missing = exchange(g, missing);
    }
    g->stats.pairs += t->pairs;
    trade_end(g);
    return missing == 0 && t->exchanges != 0 &&
           are_rows_good(g, t->rows[MENDED], t->count[MENDED]) &&
           are_rows_good(g, t->rows[PARTNER], t->count[PARTNER]);
}

static void set_rows(zn_groups *g, uint32_t group, const uint32_t *rows, uint32_t n)
{
    g->group[group].rows = 0;
    for (uint32_t i = 0; i < n; i++)
        zn_group_append(g, group, rows[i]);
    judge(g, group);
}

/* ---- merges ---- */

static void merge(zn_groups *g, uint32_t into, uint32_t from)
{
    zn_group *to = &g->group[into], *gone = &g->group[from];
    g->next[to->last] = gone->first;
    to->last = gone->last;
    to->rows += gone->rows;
    to->has_centre = to->has_nodes = false;
    gone->alive = false;
    judge(g, into);
    g->stats.merges++;
}

/* ---- one group's repair ---- */

/* Equation (1): the loss by row of both groups, and the work. In steps, so that no compiler
 * rounds the sum once only. */
static double price(const zn_groups *g, int64_t more, uint32_t rows, uint64_t work)
{
    double most = (double)g->config.growth * g->config.rule.k;
    double loss = (double)more / ((double)ZN_GROUP_ONE * (double)g->config.column_count);
    double share = (double)work / (most * most), by_loss, by_work;
    loss /= rows;
    by_loss = g->config.lambda * loss;
    by_work = (1 - g->config.lambda) * share;
    return by_loss + by_work;
}

/* Fills g->near with the groups nearest to this one, at most config.neighbours; returns how
 * many. */
static uint32_t find_near(zn_groups *g, uint32_t group, uint32_t from)
{
    uint32_t n = 0, most = g->config.neighbours;
    const zn_node *centre = zn_group_centre(g, group);
    for (uint32_t j = from; j < g->count; j++) {
        uint64_t key;
        uint32_t at = n;
        if (j == group || !g->group[j].alive)
            continue;
        key = (uint64_t)zn_group_distance(g, centre, zn_group_centre(g, j)) << 32 | j;
        if (n == most && key > g->near[n - 1])
            continue;
        if (n == most)
            at--;
        else
            n++;
        for (; at != 0 && g->near[at - 1] > key; at--)
            g->near[at] = g->near[at - 1];
        g->near[at] = key;
    }
    return n;
}

static void keep_trade(zn_groups *g)
{
    zn_group_trade kept = g->trade;
    g->trade = g->best_trade;
    g->best_trade = kept;
}

/* Takes what a partner offers, if it is cheaper than the choice so far: a swap at equal price. */
static void consider(zn_groups *g, uint32_t group, uint32_t partner, choice *best)
{
    uint32_t rows = g->group[group].rows + g->group[partner].rows;
    int64_t before = zn_group_cost(g, group) + zn_group_cost(g, partner);
    if (g->group[partner].good && plan_swap(g, group, partner)) {
        const zn_group_trade *t = &g->trade;
        int64_t after = zn_group_cost_rows(g, t->rows[MENDED], t->count[MENDED]) +
                        zn_group_cost_rows(g, t->rows[PARTNER], t->count[PARTNER]);
        double one = price(g, after - before, rows, t->pairs);
        if (best->partner == ZN_GROUP_NONE || one < best->price ||
            (one == best->price && !best->swap)) {
            *best = (choice){partner, true, one};
            keep_trade(g);
        }
    }
    if (rows > (uint64_t)g->config.growth * g->config.rule.k)
        return;
    tally_group(g, group);
    if (zn_group_tally_good_with(g, g->group[partner].first)) {
        double one = price(g, zn_group_cost_both(g, group, partner) - before, rows, rows);
        if (best->partner == ZN_GROUP_NONE || one < best->price)
            *best = (choice){partner, false, one};
    }
}

static void repair_one(zn_groups *g, uint32_t group, uint32_t from)
{
    choice best = {ZN_GROUP_NONE, false, 0};
    uint32_t n = find_near(g, group, from);
    for (uint32_t i = 0; i < n; i++)
        consider(g, group, (uint32_t)g->near[i], &best);
    if (best.partner == ZN_GROUP_NONE)
        return;
    if (!best.swap) {
        merge(g, group, best.partner);
        return;
    }
    set_rows(g, group, g->best_trade.rows[MENDED], g->best_trade.count[MENDED]);
    set_rows(g, best.partner, g->best_trade.rows[PARTNER], g->best_trade.count[PARTNER]);
    g->stats.swaps += g->best_trade.exchanges;
}

/* ---- all groups ---- */

/* Returns the worst of the groups that are not good and not tried, or ZN_GROUP_NONE. */
static uint32_t find_worst(const zn_groups *g, uint32_t from)
{
    uint32_t worst = ZN_GROUP_NONE;
    for (uint32_t j = from; j < g->count; j++)
        if (g->group[j].alive && !g->group[j].good && !g->group[j].tried &&
            (worst == ZN_GROUP_NONE || g->group[j].urgency > g->group[worst].urgency))
            worst = j;
    return worst;
}

/* Returns the group whose merging adds least to the loss, among the groups that make a good group
 * if there are such groups; ZN_GROUP_NONE if there is no other group. */
static uint32_t find_cheapest(zn_groups *g, uint32_t group, uint32_t from)
{
    uint32_t best = ZN_GROUP_NONE;
    int64_t least = 0;
    bool is_good = false;
    tally_group(g, group);
    for (uint32_t j = from; j < g->count; j++) {
        int64_t more;
        bool cheaper, good;
        if (j == group || !g->group[j].alive)
            continue;
        more = zn_group_cost_both(g, group, j) - zn_group_cost(g, j);
        cheaper = best == ZN_GROUP_NONE || more < least;
        if (is_good && !cheaper)
            continue;
        good = zn_group_tally_good_with(g, g->group[j].first);
        if (good == is_good ? !cheaper : is_good)
            continue;
        best = j;
        least = more;
        is_good = good;
    }
    return best;
}

/* Returns true if all groups' rows together have the values that each group needs. */
static bool has_all_values(zn_groups *g, uint32_t from)
{
    zn_group_tally_begin(g);
    for (uint32_t j = from; j < g->count; j++)
        if (g->group[j].alive)
            zn_group_tally_add_list(g, g->group[j].first);
    return zn_group_tally_missing(g) == 0;
}

static void merge_all(zn_groups *g, uint32_t from)
{
    if (find_worst(g, from) == ZN_GROUP_NONE || !has_all_values(g, from))
        return;
    for (;;) {
        uint32_t group = find_worst(g, from), other;
        if (group == ZN_GROUP_NONE)
            return;
        other = find_cheapest(g, group, from);
        if (other == ZN_GROUP_NONE)
            return;
        merge(g, group, other);
    }
}

/* Repairs each group that is not good, the worst first. If all rows together lack values, it
 * repairs no group, because no repair would help and there may be thousands of groups. */
static void mend_all(zn_groups *g, uint32_t from)
{
    uint32_t group = find_worst(g, from);
    if (group == ZN_GROUP_NONE || !has_all_values(g, from))
        return;
    for (; group != ZN_GROUP_NONE; group = find_worst(g, from)) {
        g->group[group].tried = true;
        repair_one(g, group, from);
    }
    for (uint32_t j = from; j < g->count; j++)
        g->group[j].tried = false;
}

void zn_group_repair(zn_groups *g, uint32_t from)
{
    judge_all(g, from, g->wanted);
    mend_all(g, from);
    if (g->wanted != g->config.rule.l)
        judge_all(g, from, g->config.rule.l);
    if (g->config.strict)
        merge_all(g, from);
}
