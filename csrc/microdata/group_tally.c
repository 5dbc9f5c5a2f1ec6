/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "microdata/groups_internal.h"

#include <math.h>

/* Spaces of identities beside the sensitive columns' own. */
enum { SPACE_USERS = ZN_GROUPS_COLUMNS_MAX, SPACE_PAIRS };

/* Returns the slot of a value; its `use` is another one when the value was not there yet. */
static zn_group_slot *find(const zn_groups *g, zn_group_slot *slots, uint64_t use, uint32_t space,
                           uint64_t value)
{
    size_t at = (size_t)zn_bucket_hash2(&g->key, value, space) & g->slot_mask;
    for (;;) {
        zn_group_slot *slot = &slots[at];
        if (slot->use != use || (slot->value == value && slot->space == space))
            return slot;
        at = (at + 1) & g->slot_mask;
    }
}

/* Returns the code of a value. A new value gets the next code, which is counted. */
static uint32_t encode(zn_groups *g, uint32_t space, uint64_t value, uint32_t *codes)
{
    zn_group_slot *slot = find(g, g->slots, g->window, space, value);
    if (slot->use != g->window)
        *slot = (zn_group_slot){g->window, value, space, (*codes)++};
    return slot->code;
}

void zn_group_tally_encode(zn_groups *g, const zn_group_rows *rows)
{
    size_t sensitive = g->config.sensitive_count;
    uint32_t values = 0, users = 0;
    g->window = ++g->tally.use;
    for (size_t row = 0; row < rows->n; row++)
        for (size_t s = 0; s < sensitive; s++)
            g->value[row * sensitive + s] =
                encode(g, (uint32_t)s, rows->sensitive[row * sensitive + s], &values);
    g->has_users = rows->user != NULL;
    if (g->has_users)
        for (size_t row = 0; row < rows->n; row++)
            g->user[row] = encode(g, SPACE_USERS, rows->user[row], &users);
}

void zn_group_tally_begin(zn_groups *g)
{
    g->tally.use++;
    g->tally.users = 0;
    for (size_t s = 0; s < g->config.sensitive_count; s++)
        g->tally.distinct[s] = 0;
}

static uint64_t pair_of(uint32_t value, uint32_t user)
{
    return (uint64_t)value << 32 | user;
}

/* Returns true if a use meets this user with this value for the first time. */
static bool is_new_pair(zn_groups *g, zn_group_slot *slots, uint64_t use, uint64_t pair)
{
    zn_group_slot *slot = find(g, slots, use, SPACE_PAIRS, pair);
    if (slot->use == use)
        return false;
    *slot = (zn_group_slot){use, pair, SPACE_PAIRS, 0};
    return true;
}

static void add_value(zn_groups *g, size_t s, uint32_t row)
{
    uint32_t value = g->value[row * g->config.sensitive_count + s];
    if (g->value_use[value] != g->tally.use) {
        g->value_use[value] = g->tally.use;
        g->value_count[value] = 0;
        g->value_list[s * g->config.rows_max + g->tally.distinct[s]++] = value;
    }
    if (!g->has_users || is_new_pair(g, g->slots, g->tally.use, pair_of(value, g->user[row])))
        g->value_count[value]++;
}

void zn_group_tally_add(zn_groups *g, uint32_t row)
{
    if (!g->has_users) {
        g->tally.users++;
    } else if (g->user_use[g->user[row]] != g->tally.use) {
        g->user_use[g->user[row]] = g->tally.use;
        g->tally.users++;
    }
    for (size_t s = 0; s < g->config.sensitive_count; s++)
        add_value(g, s, row);
}

void zn_group_tally_add_list(zn_groups *g, uint32_t first)
{
    for (uint32_t row = first; row != ZN_GROUP_NO_ROW; row = g->next[row])
        zn_group_tally_add(g, row);
}

static uint32_t lacks(const zn_groups *g, uint32_t distinct)
{
    return distinct < g->aim ? g->aim - distinct : 0;
}

uint32_t zn_group_tally_missing(const zn_groups *g)
{
    uint32_t missing = 0;
    for (size_t s = 0; s < g->config.sensitive_count; s++)
        missing += lacks(g, g->tally.distinct[s]);
    return missing;
}

uint32_t zn_group_tally_urgency(const zn_groups *g)
{
    uint32_t most = 0;
    for (size_t s = 0; s < g->config.sensitive_count; s++)
        if (lacks(g, g->tally.distinct[s]) > most)
            most = lacks(g, g->tally.distinct[s]);
    return most;
}

/* Returns true if the values of one sensitive column are counted for the judge, not only
 * distinguished. */
static bool is_counted(const zn_groups *g)
{
    return g->config.rule.kind != ZN_DIVERSITY_DISTINCT || g->config.rule.max_share < 1;
}

/* Returns true if one sensitive column satisfies the rule. */
static bool is_column_good(zn_groups *g, size_t s)
{
    const uint32_t *list = &g->value_list[s * g->config.rows_max];
    uint32_t n = g->tally.distinct[s];
    if (!is_counted(g))
        return n >= g->config.rule.l;
    for (uint32_t i = 0; i < n; i++)
        g->gathered[i] = g->value_count[list[i]];
    return zn_class_judge(&g->config.rule, g->tally.users, g->gathered, NULL, n) == ZN_CLASS_GOOD;
}

bool zn_group_tally_good(zn_groups *g)
{
    if (g->tally.users < g->config.rule.k || zn_group_tally_missing(g) != 0)
        return false;
    for (size_t s = 0; s < g->config.sensitive_count; s++)
        if (!is_column_good(g, s))
            return false;
    return true;
}

static bool has_value(const zn_groups *g, uint32_t value)
{
    return g->value_use[value] == g->tally.use;
}

/* ---- more rows, on trial ---- */

static void try_value(zn_groups *g, size_t s, uint32_t row)
{
    zn_group_tally *more = &g->more;
    uint32_t value = g->value[row * g->config.sensitive_count + s];
    if (g->more_use[value] != more->use) {
        g->more_use[value] = more->use;
        g->more_count[value] = 0;
        if (!has_value(g, value))
            g->more_list[s * g->config.rows_max + more->distinct[s]++] = value;
    }
    if (g->has_users) {
        uint64_t pair = pair_of(value, g->user[row]);
        if (find(g, g->slots, g->tally.use, SPACE_PAIRS, pair)->use == g->tally.use ||
            !is_new_pair(g, g->more_slots, more->use, pair))
            return;
    }
    g->more_count[value]++;
}

static void try_user(zn_groups *g, uint32_t row)
{
    uint32_t user = g->user[row];
    if (g->user_use[user] == g->tally.use || g->more_user_use[user] == g->more.use)
        return;
    g->more_user_use[user] = g->more.use;
    g->more.users++;
}

static bool is_column_good_with(zn_groups *g, size_t s)
{
    const uint32_t *list = &g->value_list[s * g->config.rows_max];
    const uint32_t *more_list = &g->more_list[s * g->config.rows_max];
    uint32_t n = 0;
    if (!is_counted(g))
        return g->tally.distinct[s] + g->more.distinct[s] >= g->config.rule.l;
    for (uint32_t i = 0; i < g->tally.distinct[s]; i++)
        g->gathered[n++] = g->value_count[list[i]] +
                           (g->more_use[list[i]] == g->more.use ? g->more_count[list[i]] : 0);
    for (uint32_t i = 0; i < g->more.distinct[s]; i++)
        g->gathered[n++] = g->more_count[more_list[i]];
    return zn_class_judge(&g->config.rule, g->tally.users + g->more.users, g->gathered, NULL, n) ==
           ZN_CLASS_GOOD;
}

bool zn_group_tally_good_with(zn_groups *g, uint32_t first)
{
    uint64_t use = g->more.use + 1;
    g->more = (zn_group_tally){.use = use};
    for (uint32_t row = first; row != ZN_GROUP_NO_ROW; row = g->next[row]) {
        if (g->has_users)
            try_user(g, row);
        else
            g->more.users++;
        for (size_t s = 0; s < g->config.sensitive_count; s++)
            try_value(g, s, row);
    }
    if (g->tally.users + g->more.users < g->config.rule.k)
        return false;
    for (size_t s = 0; s < g->config.sensitive_count; s++)
        if (lacks(g, g->tally.distinct[s] + g->more.distinct[s]) != 0 || !is_column_good_with(g, s))
            return false;
    return true;
}

/* ---- what else is asked ---- */

double zn_group_tally_entropy(const zn_groups *g, size_t s)
{
    const uint32_t *list = &g->value_list[s * g->config.rows_max];
    double total = 0, entropy = 0;
    for (uint32_t i = 0; i < g->tally.distinct[s]; i++)
        total += g->value_count[list[i]];
    for (uint32_t i = 0; i < g->tally.distinct[s]; i++)
        entropy -= g->value_count[list[i]] / total * log(g->value_count[list[i]] / total);
    return entropy;
}

bool zn_group_tally_helped_by(zn_groups *g, uint32_t row)
{
    const uint32_t *values = &g->value[row * g->config.sensitive_count];
    bool missing = zn_group_tally_missing(g) != 0;
    for (size_t s = 0; s < g->config.sensitive_count; s++) {
        const uint32_t *list = &g->value_list[s * g->config.rows_max];
        uint32_t own = has_value(g, values[s]) ? g->value_count[values[s]] : 0;
        if (missing && own == 0 && lacks(g, g->tally.distinct[s]) != 0)
            return true;
        if (missing || is_column_good(g, s))
            continue;
        for (uint32_t i = 0; i < g->tally.distinct[s]; i++)
            if (g->value_count[list[i]] > own)
                return true;
    }
    return false;
}
