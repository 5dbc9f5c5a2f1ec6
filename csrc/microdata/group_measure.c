/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "microdata/groups_internal.h"

void zn_group_distances(const zn_groups *g, const zn_node *centre, const uint32_t *rows, size_t n,
                        uint32_t *distance)
{
    for (size_t i = 0; i < n; i++)
        distance[i] = 0;
    for (size_t c = 0; c < g->config.column_count; c++) {
        const zn_group_column *column = &g->column[c];
        const zn_node *quasi = column->quasi;
        if (column->apart != NULL) {
            const uint32_t *apart = &column->apart[(size_t)centre[c] * column->nodes];
            for (size_t i = 0; i < n; i++)
                distance[i] += apart[quasi[rows[i]]];
        } else {
            for (size_t i = 0; i < n; i++)
                distance[i] += zn_group_apart(column, centre[c], quasi[rows[i]]);
        }
    }
}

uint32_t zn_group_distance(const zn_groups *g, const zn_node *a, const zn_node *b)
{
    uint32_t distance = 0;
    for (size_t c = 0; c < g->config.column_count; c++)
        distance += zn_group_apart(&g->column[c], a[c], b[c]);
    return distance;
}

static zn_node commonest(zn_groups *g, const zn_node *quasi, uint32_t first)
{
    zn_node best = quasi[first];
    for (uint32_t row = first; row != ZN_GROUP_NO_ROW; row = g->next[row]) {
        zn_node node = quasi[row];
        uint32_t count = ++g->node_count[node], most = g->node_count[best];
        if (count > most || (count == most && node < best))
            best = node;
    }
    for (uint32_t row = first; row != ZN_GROUP_NO_ROW; row = g->next[row])
        g->node_count[quasi[row]] = 0;
    return best;
}

const zn_node *zn_group_centre(zn_groups *g, uint32_t group)
{
    size_t columns = g->config.column_count;
    zn_node *centre = &g->centre[group * columns];
    zn_group *at = &g->group[group];
    if (!at->has_centre)
        for (size_t c = 0; c < columns; c++)
            centre[c] = commonest(g, g->column[c].quasi, at->first);
    at->has_centre = true;
    return centre;
}

const zn_node *zn_group_nodes(zn_groups *g, uint32_t group)
{
    size_t columns = g->config.column_count;
    zn_node *nodes = &g->nodes[group * columns];
    zn_group *at = &g->group[group];
    if (at->has_nodes)
        return nodes;
    for (size_t c = 0; c < columns; c++) {
        const zn_group_column *column = &g->column[c];
        zn_node node = column->quasi[at->first];
        for (uint32_t row = g->next[at->first]; row != ZN_GROUP_NO_ROW; row = g->next[row])
            if (column->quasi[row] != node)
                node = zn_taxonomy_common(column->taxonomy, node, column->quasi[row]);
        nodes[c] = node;
    }
    at->has_nodes = true;
    return nodes;
}

int64_t zn_group_cost(zn_groups *g, uint32_t group)
{
    const zn_node *nodes = zn_group_nodes(g, group);
    int64_t loss = 0;
    for (size_t c = 0; c < g->config.column_count; c++)
        loss += g->column[c].loss[nodes[c]];
    return loss * g->group[group].rows;
}

int64_t zn_group_cost_both(zn_groups *g, uint32_t a, uint32_t b)
{
    const zn_node *left = zn_group_nodes(g, a), *right = zn_group_nodes(g, b);
    return (int64_t)zn_group_distance(g, left, right) * (g->group[a].rows + g->group[b].rows);
}

int64_t zn_group_cost_rows(const zn_groups *g, const uint32_t *rows, size_t n)
{
    int64_t loss = 0;
    for (size_t c = 0; c < g->config.column_count; c++) {
        const zn_group_column *column = &g->column[c];
        zn_node node = column->quasi[rows[0]];
        for (size_t i = 1; i < n; i++)
            if (column->quasi[rows[i]] != node)
                node = zn_taxonomy_common(column->taxonomy, node, column->quasi[rows[i]]);
        loss += column->loss[node];
    }
    return loss * (int64_t)n;
}

void zn_group_append(zn_groups *g, uint32_t group, uint32_t row)
{
    zn_group *at = &g->group[group];
    g->next[row] = ZN_GROUP_NO_ROW;
    if (at->rows++ == 0)
        at->first = row;
    else
        g->next[at->last] = row;
    at->last = row;
    at->has_centre = at->has_nodes = false;
}

uint32_t zn_group_new(zn_groups *g)
{
    g->group[g->count] =
        (zn_group){.first = ZN_GROUP_NO_ROW, .last = ZN_GROUP_NO_ROW, .alive = true};
    return g->count++;
}
