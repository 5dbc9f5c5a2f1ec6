/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "microdata/groups_internal.h"

/* ---- a heap of keys: the distance (or another number), then the row ---- */

static void sift_down(uint64_t *heap, size_t n, size_t at)
{
    uint64_t key = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= key)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

static void make_heap(uint64_t *heap, size_t n)
{
    for (size_t at = n / 2; at-- > 0;)
        sift_down(heap, n, at);
}

/* Takes the least key. */
static uint64_t pop(uint64_t *heap, size_t *n)
{
    uint64_t least = heap[0];
    heap[0] = heap[--*n];
    if (*n != 0)
        sift_down(heap, *n, 0);
    return least;
}

static uint64_t key_of(uint32_t number, uint32_t row)
{
    return (uint64_t)number << 32 | row;
}

static uint32_t number_of(uint64_t key)
{
    return (uint32_t)(key >> 32);
}

/* ---- parts ---- */

/* The child of `node` under which `below` lies; `node` itself for itself. */
static zn_node child_of(const zn_taxonomy *t, zn_node node, zn_node below)
{
    while (below != node) {
        zn_node parent = zn_taxonomy_parent(t, below);
        if (parent == node)
            break;
        below = parent;
    }
    return below;
}

/*
 * Gives the n rows in `heap`, whose keys hold a child's number, the numbers of parts: a child's
 * rows that cannot be released together go with the next child's, the last ones with those before.
 * The keys are then in g->heap again. Returns how many parts there are.
 */
static uint32_t number_parts(zn_groups *g, size_t n)
{
    uint32_t parts = 0, *rows = g->left, *part = g->distance;
    size_t at = 0;
    make_heap(g->heap, n);
    zn_group_tally_begin(g);
    for (size_t left = n; left != 0; at++) {
        uint64_t key = pop(g->heap, &left);
        rows[at] = (uint32_t)key;
        part[at] = parts;
        zn_group_tally_add(g, rows[at]);
        if ((left == 0 || number_of(g->heap[0]) != number_of(key)) && zn_group_tally_good(g)) {
            zn_group_tally_begin(g);
            parts++;
        }
    }
    for (size_t i = 0; i < n; i++)
        g->heap[i] = key_of(part[i] < parts ? part[i] : parts - 1, rows[i]);
    return parts;
}

/* Splits a part by the children of the column's common node; false: they make no two parts. */
static bool split_by(zn_groups *g, const zn_group_column *column, zn_node common, uint32_t begin)
{
    uint32_t part_begin = begin, at = begin;
    size_t n = g->part_end[begin] - begin;
    for (size_t i = 0; i < n; i++) {
        uint32_t row = g->order[begin + i];
        g->heap[i] = key_of(child_of(column->taxonomy, common, column->quasi[row]), row);
    }
    if (number_parts(g, n) < 2)
        return false;
    make_heap(g->heap, n);
    while (n != 0) {
        uint64_t key = pop(g->heap, &n);
        g->order[at++] = (uint32_t)key;
        if (n == 0 || number_of(g->heap[0]) != number_of(key)) {
            g->part_end[part_begin] = at;
            part_begin = at;
        }
    }
    return true;
}

static zn_node common_of(const zn_groups *g, const zn_group_column *column, uint32_t begin)
{
    const uint32_t *rows = g->order;
    zn_node node = column->quasi[rows[begin]];
    for (uint32_t i = begin + 1; i < g->part_end[begin]; i++)
        node = zn_taxonomy_common(column->taxonomy, node, column->quasi[rows[i]]);
    return node;
}

/* Splits a part by the column with the most loss of those by which it falls apart; by its rows
 * where none does. */
static void split(zn_groups *g, uint32_t begin)
{
    size_t columns = g->config.column_count;
    bool tried[ZN_GROUPS_COLUMNS_MAX] = {false};
    zn_node common[ZN_GROUPS_COLUMNS_MAX];
    uint32_t end = g->part_end[begin], middle = begin + (end - begin) / 2;
    for (size_t c = 0; c < columns; c++)
        common[c] = common_of(g, &g->column[c], begin);
    for (size_t turn = 0; turn < columns; turn++) {
        size_t best = columns;
        for (size_t c = 0; c < columns; c++)
            if (!tried[c] && (best == columns ||
                              g->column[c].loss[common[c]] > g->column[best].loss[common[best]]))
                best = c;
        tried[best] = true;
        if (split_by(g, &g->column[best], common[best], begin))
            return;
    }
    g->part_end[begin] = middle;
    g->part_end[middle] = end;
}

void zn_group_form_parts(zn_groups *g)
{
    for (uint32_t row = 0; row < g->rows; row++)
        g->order[row] = row;
    g->part_end[0] = g->rows;
    for (uint32_t begin = 0; begin < g->rows; begin = g->part_end[begin])
        while (g->part_end[begin] - begin > g->config.part_rows)
            split(g, begin);
}

/* ---- groups ---- */

/* Adds a row to the group that is being formed; false: its user is in it already. */
static bool join(zn_groups *g, uint32_t group, uint32_t row)
{
    if (g->has_users) {
        uint32_t user = g->user[row];
        if (g->user_use[user] == g->tally.use)
            return false;
        g->user_use[user] = g->tally.use;
    }
    zn_group_append(g, group, row);
    g->of[row] = group;
    return true;
}

/* Puts the rows left that are in no group into the heap, but for the first, by their distance to
 * that. Returns how many they are. */
static size_t heap_near(zn_groups *g)
{
    size_t n = 0;
    zn_node centre[ZN_GROUPS_COLUMNS_MAX];
    for (size_t c = 0; c < g->config.column_count; c++)
        centre[c] = g->column[c].quasi[g->left[0]];
    zn_group_distances(g, centre, g->left, g->left_count, g->distance);
    for (uint32_t i = 1; i < g->left_count; i++)
        if (g->of[g->left[i]] == ZN_GROUP_NONE)
            g->heap[n++] = key_of(g->distance[i], g->left[i]);
    make_heap(g->heap, n);
    return n;
}

/* Makes a group of the first row left and those nearest to it, of k users. */
static void form_one(zn_groups *g)
{
    uint32_t group = zn_group_new(g);
    size_t n = g->config.rule.k > 1 ? heap_near(g) : 0;
    g->tally.use++;
    (void)join(g, group, g->left[0]);
    while (g->group[group].rows < g->config.rule.k)
        (void)join(g, group, (uint32_t)pop(g->heap, &n));
}

/* Takes the rows that got a group out of those left. */
static void drop_grouped(zn_groups *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->left_count; i++) {
        uint32_t row = g->left[i];
        if (g->of[row] == ZN_GROUP_NONE)
            g->left[n++] = row;
        else if (g->has_users && --g->left_by_user[g->user[row]] == 0)
            g->left_users--;
    }
    g->left_count = n;
    if (!g->has_users)
        g->left_users = n;
}

static void take_rows(zn_groups *g, const uint32_t *rows, uint32_t n)
{
    g->left_count = g->left_users = n;
    if (g->has_users)
        g->left_users = 0;
    for (uint32_t i = 0; i < n; i++) {
        g->left[i] = rows[i];
        if (g->has_users && g->left_by_user[g->user[rows[i]]]++ == 0)
            g->left_users++;
    }
}

/* Has each row left join the group with the nearest representative. */
static void join_nearest(zn_groups *g, uint32_t from)
{
    zn_node quasi[ZN_GROUPS_COLUMNS_MAX];
    for (uint32_t i = 0; i < g->left_count; i++) {
        uint32_t row = g->left[i], best = from, least = UINT32_MAX;
        for (size_t c = 0; c < g->config.column_count; c++)
            quasi[c] = g->column[c].quasi[row];
        for (uint32_t j = from; j < g->count; j++) {
            uint32_t distance = zn_group_distance(g, quasi, zn_group_centre(g, j));
            if (distance < least) {
                least = distance;
                best = j;
            }
        }
        zn_group_append(g, best, row);
    }
}

void zn_group_form(zn_groups *g, const uint32_t *rows, uint32_t n)
{
    uint32_t from = g->count;
    take_rows(g, rows, n);
    while (g->left_users >= g->config.rule.k) {
        form_one(g);
        drop_grouped(g);
    }
    if (g->count != from)
        join_nearest(g, from);
    for (uint32_t i = 0; g->has_users && i < g->left_count; i++)
        g->left_by_user[g->user[g->left[i]]] = 0;
}

/* Adds the nearest rows that help until the group is good; false: it cannot be. */
static bool grow(zn_groups *g, uint32_t group)
{
    size_t n;
    zn_group_tally_begin(g);
    zn_group_tally_add_list(g, g->group[group].first);
    if (zn_group_tally_good(g))
        return true;
    n = heap_near(g);
    while (n != 0 && !zn_group_tally_good(g)) {
        uint32_t row = (uint32_t)pop(g->heap, &n);
        if (zn_group_tally_helped_by(g, row)) {
            zn_group_append(g, group, row);
            zn_group_tally_add(g, row);
        }
    }
    return zn_group_tally_good(g);
}

void zn_group_form_oldest(zn_groups *g)
{
    uint32_t group = g->count;
    take_rows(g, g->order, g->rows);
    if (g->left_users >= g->config.rule.k) {
        form_one(g);
        g->group[group].alive = grow(g, group);
    }
    for (uint32_t i = 0; g->has_users && i < g->left_count; i++)
        g->left_by_user[g->user[g->left[i]]] = 0;
}
