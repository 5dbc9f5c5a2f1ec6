/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choices that the paper leaves open:
 *   a group          the oldest row left with its k-1 nearest; rows left over join the group with
 *                    the nearest representative, one after the other
 *   representative   the commonest node of each column; ties: the smaller
 *   marked groups    by what they lack, then by age, which is their number's order
 *   near groups      by the distance of representatives; ties: the older
 *   partner          of a swap: a group that is good; of a merge: any with which it becomes good
 *   fewest swaps     each of the pairs that help most, of those the nearest
 *   the loss in (1)  change of rows x loss of both groups, by row of them
 *   the time in (1)  work: pairs looked at for a swap, rows of both groups for a merge, as shares
 *                    of (growth x k)^2; a clock would make the result depend on the machine
 *   equal cost       the swap; then the nearer group
 *   a merged group   leaves the list (the paper's line 32 keeps it, so that its rows leave twice)
 * A part of more than 4,000 rows is split first, as grouping takes time by its square.
 */
#include "microdata/groups_internal.h"
#include "util/arena.h"

#include <string.h>

#define PART_ROWS 4000u
#define ROWS_MAX (UINT32_C(1) << 24)
#define NEIGHBOURS_MAX 1024u
#define GROWTH_MAX 1000000u

/* ---- opening ---- */

static int check_config(const zn_groups_config *c, zn_error *err)
{
    if (c->column_count < 1 || c->column_count > ZN_GROUPS_COLUMNS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "groups have 1 to %u quasi-identifiers, not %zu",
                       ZN_GROUPS_COLUMNS_MAX, c->column_count);
    if (c->sensitive_count > ZN_GROUPS_COLUMNS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "groups have at most %u sensitive columns, not %zu",
                       ZN_GROUPS_COLUMNS_MAX, c->sensitive_count);
    if (c->rows_max < 1 || c->rows_max > ROWS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a window has 1 to %u rows, not %zu", ROWS_MAX,
                       c->rows_max);
    if (c->rule.k < 1 || c->rule.k > c->rows_max)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "k is %u: windows of %zu rows allow 1 to %zu",
                       c->rule.k, c->rows_max, c->rows_max);
    if (c->rule.l < 1 || c->rule.t < 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "l must be at least 1, and groups have no largest "
                       "distance to the whole");
    if (c->neighbours < 1 || c->neighbours > NEIGHBOURS_MAX || c->growth < 1 ||
        c->growth > GROWTH_MAX || !(c->lambda >= 0 && c->lambda <= 1))
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "neighbours must be 1 to %u, growth 1 to %u, lambda 0 to 1", NEIGHBOURS_MAX,
                       GROWTH_MAX);
    return 0;
}

/* Cuts an array out of the block; only counts its bytes while the block is not allocated. */
static void *cut(zn_groups *g, size_t *at, size_t count, size_t bytes)
{
    uint8_t *from = g->block == NULL ? NULL : g->block + *at;
    *at += (count * bytes + ZN_CACHE_LINE - 1) / ZN_CACHE_LINE * ZN_CACHE_LINE;
    return from;
}

#define CUT(array, count) ((array) = cut(g, &at, (count), sizeof *(array)))

static size_t lay_out_columns(zn_groups *g, size_t at)
{
    size_t most = 0;
    for (size_t c = 0; c < g->config.column_count; c++) {
        zn_group_column *column = &g->column[c];
        CUT(column->loss, column->nodes);
        CUT(column->quasi, g->config.rows_max);
        if (column->nodes <= ZN_GROUP_TABLE_NODES)
            CUT(column->apart, (size_t)column->nodes * column->nodes);
        if (column->nodes > most)
            most = column->nodes;
    }
    CUT(g->node_count, most);
    return at;
}

static size_t lay_out_rows(zn_groups *g, size_t at)
{
    size_t rows = g->config.rows_max, sensitive = g->config.sensitive_count;
    CUT(g->value, rows * sensitive);
    CUT(g->user, rows);
    CUT(g->slots, g->slot_mask + 1);
    CUT(g->order, rows);
    CUT(g->part_end, rows);
    CUT(g->next, rows);
    CUT(g->of, rows);
    CUT(g->value_use, rows * sensitive);
    CUT(g->user_use, rows);
    CUT(g->value_count, rows * sensitive);
    CUT(g->value_list, rows * sensitive);
    CUT(g->more_use, rows * sensitive);
    CUT(g->more_user_use, rows);
    CUT(g->more_count, rows * sensitive);
    CUT(g->more_list, rows * sensitive);
    CUT(g->more_slots, g->slot_mask + 1);
    CUT(g->gathered, rows);
    CUT(g->left, rows);
    CUT(g->left_by_user, rows);
    CUT(g->heap, rows);
    CUT(g->distance, rows);
    for (int side = 0; side < 2; side++) {
        CUT(g->trade.rows[side], rows);
        CUT(g->best_trade.rows[side], rows);
        CUT(g->trade_cost[side], rows);
        CUT(g->trade_values[side], rows * sensitive);
        CUT(g->trade_users[side], rows);
    }
    return at;
}

static size_t lay_out_groups(zn_groups *g, size_t at)
{
    size_t groups = g->config.rows_max / g->config.rule.k;
    CUT(g->group, groups);
    CUT(g->centre, groups * g->config.column_count);
    CUT(g->nodes, groups * g->config.column_count);
    CUT(g->out_nodes, groups * g->config.column_count);
    CUT(g->number, groups);
    CUT(g->near, g->config.neighbours);
    return at;
}

/* Sets all arrays; returns the bytes that they take. */
static size_t lay_out(zn_groups *g)
{
    return lay_out_groups(g, lay_out_rows(g, lay_out_columns(g, 0)));
}

/* The loss of a node, in whole numbers. */
static uint32_t loss_of(const zn_taxonomy *t, zn_node node)
{
    uint64_t leaves = zn_taxonomy_leaves(t), most = leaves > 1 ? leaves - 1 : 1;
    return (
        uint32_t)(((zn_taxonomy_leaves_below(t, node) - UINT64_C(1)) * ZN_GROUP_ONE + most / 2) /
                  most);
}

static void fill_column(zn_group_column *c)
{
    for (uint32_t node = 0; node < c->nodes; node++)
        c->loss[node] = loss_of(c->taxonomy, (zn_node)node);
    if (c->apart == NULL)
        return;
    for (uint32_t a = 0; a < c->nodes; a++)
        for (uint32_t b = 0; b < c->nodes; b++)
            c->apart[(size_t)a * c->nodes + b] =
                c->loss[zn_taxonomy_common(c->taxonomy, (zn_node)a, (zn_node)b)];
}

static int open_block(zn_groups *g, zn_error *err)
{
    size_t slots = 64, wanted = 2 * g->config.rows_max * (g->config.sensitive_count + 1);
    int rc = zn_bucket_key_random(&g->key, err);
    if (rc != 0)
        return rc;
    while (slots < wanted)
        slots *= 2;
    g->slot_mask = slots - 1;
    g->block_bytes = lay_out(g);
    g->block = zn_block_alloc(g->block_bytes);
    if (g->block == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for windows of %zu rows",
                       g->config.rows_max);
    (void)lay_out(g);
    for (size_t c = 0; c < g->config.column_count; c++)
        fill_column(&g->column[c]);
    return 0;
}

int zn_groups_open(zn_groups **out, const zn_groups_config *config, zn_error *err)
{
    zn_groups *g;
    int rc = check_config(config, err);
    *out = NULL;
    if (rc != 0)
        return rc;
    g = zn_heap_alloc(sizeof *g);
    if (g == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for windows");
    g->config = *config;
    if (g->config.part_rows == 0)
        g->config.part_rows = PART_ROWS;
    for (size_t c = 0; c < config->column_count; c++) {
        g->column[c].taxonomy = config->columns[c];
        g->column[c].nodes = zn_taxonomy_nodes(config->columns[c]);
    }
    g->config.columns = NULL; /* the caller's array need not stay */
    rc = open_block(g, err);
    if (rc != 0) {
        zn_groups_close(g);
        return rc;
    }
    *out = g;
    return 0;
}

void zn_groups_close(zn_groups *g)
{
    if (g == NULL)
        return;
    zn_block_free(g->block, g->block_bytes);
    zn_heap_free(g);
}

/* ---- windows ---- */

static void begin(zn_groups *g, const zn_group_rows *rows, uint32_t l)
{
    size_t columns = g->config.column_count;
    ZN_ASSERT(rows->n <= g->config.rows_max);
    g->rows = (uint32_t)rows->n;
    g->aim = g->config.rule.l;
    g->wanted = l > g->aim ? l : g->aim;
    g->count = g->out_count = 0;
    g->stats.windows++;
    for (size_t row = 0; row < rows->n; row++) {
        for (size_t c = 0; c < columns; c++)
            g->column[c].quasi[row] = rows->quasi[row * columns + c];
        g->of[row] = ZN_GROUP_NONE;
        g->order[row] = (uint32_t)row;
    }
    zn_group_tally_encode(g, rows);
}

/* Numbers the remaining groups by their first rows, and sets the nodes that represent them. */
static void finish(zn_groups *g)
{
    size_t columns = g->config.column_count;
    for (uint32_t row = 0; row < g->rows; row++)
        g->of[row] = ZN_GROUP_NONE;
    for (uint32_t j = 0; j < g->count; j++) {
        g->number[j] = ZN_GROUP_NONE;
        if (g->group[j].alive)
            for (uint32_t r = g->group[j].first; r != ZN_GROUP_NO_ROW; r = g->next[r])
                g->of[r] = j;
    }
    for (uint32_t row = 0; row < g->rows; row++) {
        uint32_t group = g->of[row];
        if (group == ZN_GROUP_NONE)
            continue;
        if (g->number[group] == ZN_GROUP_NONE) {
            g->number[group] = g->out_count++;
            memcpy(&g->out_nodes[g->number[group] * columns], zn_group_nodes(g, group),
                   columns * sizeof(zn_node));
        }
        g->of[row] = g->number[group];
    }
    g->stats.groups += g->out_count;
}

static void drop_refused(zn_groups *g)
{
    for (uint32_t j = 0; j < g->count; j++)
        g->group[j].alive = g->group[j].alive && g->group[j].good;
}

void zn_groups_window(zn_groups *g, const zn_group_rows *rows, uint32_t l)
{
    begin(g, rows, l);
    zn_group_form_parts(g);
    for (uint32_t at = 0; at < g->rows; at = g->part_end[at]) {
        uint32_t from = g->count;
        zn_group_form(g, &g->order[at], g->part_end[at] - at);
        if (g->config.repair)
            zn_group_repair(g, from);
        else if (g->config.strict)
            zn_group_repair_judge(g, from);
    }
    if (g->config.strict)
        drop_refused(g);
    finish(g);
}

void zn_groups_oldest(zn_groups *g, const zn_group_rows *rows)
{
    begin(g, rows, g->config.rule.l);
    if (g->rows != 0)
        zn_group_form_oldest(g);
    finish(g);
}

void zn_groups_entropy(zn_groups *g, const zn_group_rows *rows, double *entropy, uint32_t *values)
{
    ZN_ASSERT(rows->n <= g->config.rows_max);
    zn_group_tally_encode(g, rows);
    zn_group_tally_begin(g);
    for (uint32_t row = 0; row < rows->n; row++)
        zn_group_tally_add(g, row);
    for (size_t s = 0; s < g->config.sensitive_count; s++) {
        entropy[s] = zn_group_tally_entropy(g, s);
        values[s] = g->tally.distinct[s];
    }
}

/* ---- results ---- */

size_t zn_groups_count(const zn_groups *g)
{
    return g->out_count;
}

const uint32_t *zn_groups_of(const zn_groups *g)
{
    return g->of;
}

const zn_node *zn_groups_nodes(const zn_groups *g, uint32_t group)
{
    ZN_ASSERT(group < g->out_count);
    return &g->out_nodes[group * g->config.column_count];
}

zn_groups_stats zn_groups_get_stats(const zn_groups *g)
{
    return g->stats;
}

size_t zn_groups_memory(const zn_groups *g)
{
    return sizeof *g + g->block_bytes;
}
