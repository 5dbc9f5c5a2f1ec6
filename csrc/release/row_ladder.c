/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/row_ladder.h"

#include "util/arena.h"
#include "util/hash.h"

#define NO_STEP UINT16_MAX

/* A column's hierarchy, and a random number for each of its nodes. */
typedef struct column {
    const zn_taxonomy *taxonomy;
    zn_id *of_node;
    uint32_t levels;
    zn_node root;
} column;

struct zn_row_ladder {
    column columns[ZN_LADDER_COLUMNS_MAX];
    size_t column_count, step_count;
    uint8_t levels[ZN_LADDER_STEPS_MAX * ZN_LADDER_COLUMNS_MAX]; /* step by step */
    zn_unknown unknown;
    zn_node leaf[ZN_LADDER_ROWS * ZN_LADDER_COLUMNS_MAX];       /* row by row */
    uint16_t step[ZN_LADDER_ROWS];                              /* that is released */
    zn_id part[ZN_LADDER_COLUMNS_MAX * ZN_TAXONOMY_LEVELS_MAX]; /* of one row, level by level */
    zn_levels *chains;
    zn_observation exposed[ZN_LADDER_ROWS]; /* rows with known values, */
    uint16_t row[ZN_LADDER_ROWS];           /* and their indexes */
    zn_level_decision decisions[ZN_LADDER_ROWS];
    zn_row_ladder_stats stats;
};

/* ---- opening ---- */

static int open_column(column *c, const zn_taxonomy *taxonomy, zn_error *err)
{
    zn_hash_key key;
    uint32_t nodes = zn_taxonomy_nodes(taxonomy);
    int rc = zn_hash_key_random(&key, err);
    if (rc != 0)
        return rc;
    c->taxonomy = taxonomy;
    c->levels = zn_taxonomy_levels(taxonomy);
    c->root = (zn_node)(nodes - 1);
    c->of_node = zn_heap_alloc(nodes * sizeof *c->of_node);
    if (c->of_node == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy's nodes");
    for (uint32_t i = 0; i < nodes; i++)
        c->of_node[i] = zn_hash128(&key, 0, &i, sizeof i);
    return 0;
}

/* Returns true if step i > 0 is coarser than the step before in a column, and finer in none. */
static bool is_nested(const zn_row_ladder_config *config, size_t i)
{
    const uint8_t *step = config->levels + i * config->column_count;
    bool coarser = false;
    for (size_t j = 0; j < config->column_count; j++) {
        uint8_t before = step[j - config->column_count];
        if (step[j] < before)
            return false;
        coarser = coarser || step[j] > before;
    }
    return coarser;
}

static int check_config(const zn_row_ladder_config *config, zn_error *err)
{
    if (config->column_count == 0 || config->column_count > ZN_LADDER_COLUMNS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "1 to %d columns can be generalized",
                       ZN_LADDER_COLUMNS_MAX);
    if (config->step_count == 0 || config->step_count > ZN_LADDER_STEPS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "1 to %u steps are possible", ZN_LADDER_STEPS_MAX);
    for (size_t i = 0; i < config->step_count * config->column_count; i++)
        if (config->levels[i] >= zn_taxonomy_levels(config->columns[i % config->column_count]))
            return zn_fail(err, ZN_ERR_CONFIG, 0, "a step has a level that its hierarchy has not");
    for (size_t i = 1; i < config->step_count; i++)
        if (!is_nested(config, i))
            return zn_fail(err, ZN_ERR_CONFIG, 0,
                           "step %zu must be coarser than the step before it in a column, and "
                           "finer in none",
                           i + 1);
    return 0;
}

static int open_chains(zn_row_ladder *l, const zn_row_ladder_table *t, zn_error *err)
{
    zn_levels_config levels = zn_levels_default_config(t->table, (uint32_t)l->step_count - 1,
                                                       t->config->z, t->config->window_ns);
    levels.max_votes = t->config->max_tuples / 4 + 1;
    levels.max_labels = t->config->max_attributes / 4 + 1;
    return zn_levels_open(&l->chains, &levels, err);
}

int zn_row_ladder_open(zn_row_ladder **out, const zn_row_ladder_config *config,
                       const zn_row_ladder_table *table, zn_error *err)
{
    zn_row_ladder *l;
    int rc = check_config(config, err);
    *out = NULL;
    if (rc != 0)
        return rc;
    l = zn_block_alloc(sizeof *l);
    if (l == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of rows");
    l->column_count = config->column_count;
    l->step_count = config->step_count;
    l->unknown = config->unknown;
    memcpy(l->levels, config->levels, config->step_count * config->column_count);
    for (size_t i = 0; i < config->column_count && rc == 0; i++)
        rc = open_column(&l->columns[i], config->columns[i], err);
    if (rc == 0)
        rc = open_chains(l, table, err);
    if (rc != 0)
        zn_row_ladder_close(l);
    else
        *out = l;
    return rc;
}

void zn_row_ladder_close(zn_row_ladder *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < ZN_LADDER_COLUMNS_MAX; i++)
        zn_heap_free(l->columns[i].of_node);
    zn_levels_close(l->chains);
    zn_block_clear(l, sizeof *l);
    zn_block_free(l, sizeof *l);
}

/* ---- a batch ---- */

static zn_node *leaves_of(zn_row_ladder *l, size_t i)
{
    return &l->leaf[i * l->column_count];
}

bool zn_row_ladder_find(zn_row_ladder *l, size_t i, const zn_value *values, size_t *which)
{
    zn_node *leaf = leaves_of(l, i);
    bool known = true;
    for (size_t j = 0; j < l->column_count; j++) {
        zn_span text = values[j].text;
        if (values[j].kind == ZN_VALUE_NONE)
            text.n = 0;
        leaf[j] = zn_taxonomy_find(l->columns[j].taxonomy, text);
        if (ZN_LIKELY(leaf[j] != ZN_NODE_NONE))
            continue;
        *which = j;
        if (l->unknown == ZN_UNKNOWN_ERROR)
            return false;
        leaf[j] = l->columns[j].root;
        known = known && l->unknown == ZN_UNKNOWN_TOP;
    }
    if (!known)
        leaf[0] = ZN_NODE_NONE;
    return true;
}

/* Returns the label of a row at the finest step. */
static zn_id finest_label(const zn_row_ladder *l, const zn_node *leaf)
{
    zn_id id = {0, 0};
    for (size_t j = 0; j < l->column_count; j++) {
        const column *c = &l->columns[j];
        zn_id part = c->of_node[zn_taxonomy_ancestor(c->taxonomy, leaf[j], l->levels[j])];
        id.lo ^= part.lo;
        id.hi ^= part.hi;
    }
    return id;
}

/* Writes the labels of exposed row i, one for each step above the finest. */
static void write_chain(void *of, size_t i, zn_id *chain)
{
    zn_row_ladder *l = of;
    const zn_node *leaf = leaves_of(l, l->row[i]);
    const uint8_t *level = l->levels + l->column_count;
    for (size_t j = 0; j < l->column_count; j++) {
        const column *c = &l->columns[j];
        for (uint32_t k = 0; k < c->levels; k++)
            l->part[j * ZN_TAXONOMY_LEVELS_MAX + k] =
                c->of_node[zn_taxonomy_ancestor(c->taxonomy, leaf[j], k)];
    }
    for (size_t s = 1; s < l->step_count; s++) {
        zn_id id = {0, 0};
        for (size_t j = 0; j < l->column_count; j++) {
            const zn_id *part = &l->part[j * ZN_TAXONOMY_LEVELS_MAX + *level++];
            id.lo ^= part->lo;
            id.hi ^= part->hi;
        }
        chain[s] = id;
    }
}

static double loss_of(zn_row_ladder *l, size_t i, size_t step)
{
    const zn_node *leaf = leaves_of(l, i);
    const uint8_t *level = &l->levels[step * l->column_count];
    double loss = 0;
    for (size_t j = 0; j < l->column_count; j++) {
        const zn_taxonomy *t = l->columns[j].taxonomy;
        loss += zn_taxonomy_loss(t, zn_taxonomy_ancestor(t, leaf[j], level[j]));
    }
    return loss / (double)l->column_count;
}

/* Takes the decision on a row. */
static void choose(zn_row_ladder *l, size_t i, const zn_level_decision *d)
{
    l->stats.answers[d->decision]++;
    if (d->decision != ZN_RELEASE)
        return;
    l->step[i] = d->level;
    l->stats.released[d->level]++;
    l->stats.loss += loss_of(l, i, d->level);
}

void zn_row_ladder_decide(zn_row_ladder *l, const zn_row *rows, const zn_id *users, size_t n)
{
    zn_exposures batch = {.observations = l->exposed, .chain = write_chain, .of = l};
    for (size_t i = 0; i < n; i++) {
        const zn_node *leaf = leaves_of(l, i);
        l->step[i] = NO_STEP;
        if (*leaf == ZN_NODE_NONE) {
            l->stats.unknown++;
            continue;
        }
        l->exposed[batch.n] = (zn_observation){rows[i].t_ns, users[i].lo, finest_label(l, leaf)};
        l->row[batch.n++] = (uint16_t)i;
    }
    zn_levels_decide(l->chains, &batch, l->decisions);
    for (size_t i = 0; i < batch.n; i++)
        choose(l, l->row[i], &l->decisions[i]);
}

bool zn_row_ladder_released(const zn_row_ladder *l, size_t i)
{
    return l->step[i] != NO_STEP;
}

zn_value zn_row_ladder_value(const zn_row_ladder *l, size_t i, size_t j)
{
    const zn_taxonomy *t = l->columns[j].taxonomy;
    uint8_t level = l->levels[l->step[i] * l->column_count + j];
    zn_node leaf = l->leaf[i * l->column_count + j];
    zn_value value = {zn_taxonomy_label(t, zn_taxonomy_ancestor(t, leaf, level)), ZN_VALUE_TEXT};
    if (value.text.n == 0)
        value.kind = ZN_VALUE_NONE;
    return value;
}

size_t zn_row_ladder_columns(const zn_row_ladder *l)
{
    return l->column_count;
}

const zn_row_ladder_stats *zn_row_ladder_get_stats(const zn_row_ladder *l)
{
    return &l->stats;
}

const zn_levels *zn_row_ladder_levels(const zn_row_ladder *l)
{
    return l->chains;
}

size_t zn_row_ladder_memory(const zn_row_ladder *l)
{
    size_t bytes = sizeof *l + zn_levels_memory(l->chains);
    for (size_t i = 0; i < l->column_count; i++)
        bytes += zn_taxonomy_memory(l->columns[i].taxonomy) +
                 zn_taxonomy_nodes(l->columns[i].taxonomy) * sizeof(zn_id);
    return bytes;
}
