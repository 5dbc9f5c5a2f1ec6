/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/tuple_gate.h"

#include "util/arena.h"
#include "util/id_set.h"

#include <string.h>

/* Namespaces of hashes: an empty text is another value than a missing one. */
enum { DOMAIN_USER = 'u', DOMAIN_TEXT = 't', DOMAIN_MISSING = 'm', DOMAIN_CLASS = 'c' };

/* A block that grows, of numbers. */
typedef struct room {
    uint32_t *at;
    size_t bytes;
} room;

/* Sensitive column. A cell is a value in a class. The count of an entry is its number of users. */
typedef struct column {
    zn_id_set cells;       /* owner: the class */
    zn_id_set holders;     /* owner: the cell; identities of its users */
    zn_id_set values;      /* values of the classes that are left, for distances; owner: 0 */
    zn_id_set whole_users; /* owner: the value */
    room first, next;      /* cells of each class as lists of numbers + 1 */
    room value;            /* of each cell */
    uint64_t total;        /* sum of the values' counts */
} column;

struct zn_tuple_gate {
    zn_class_rule rule;
    zn_hash_key key;
    zn_id_set classes; /* owner: 0; the count of an entry is its number of users */
    zn_id_set members; /* owner: the class; identities of its users */
    room class_of;     /* of each row */
    size_t rows;
    room faults; /* of each class */
    room counts; /* of one class's values, and their shares of the whole: for the judge */
    double *shares;
    size_t shares_bytes;
    size_t column_count;
    column columns[ZN_TUPLE_SENSITIVE_MAX];
};

/* Has space for n numbers. */
static int room_reach(room *r, size_t n, zn_error *err)
{
    uint32_t *at;
    if (ZN_LIKELY(n <= r->bytes / sizeof *at && r->at != NULL))
        return 0;
    at = zn_block_grow(r->at, &r->bytes, n * sizeof *at);
    if (at == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to judge classes");
    r->at = at;
    return 0;
}

static void room_fini(room *r)
{
    zn_block_free(r->at, r->bytes);
}

int zn_tuple_gate_open(zn_tuple_gate **out, const zn_class_rule *rule, size_t sensitive_count,
                       zn_error *err)
{
    zn_tuple_gate *g;
    int rc;
    *out = NULL;
    if (sensitive_count > ZN_TUPLE_SENSITIVE_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "more than %u sensitive columns",
                       ZN_TUPLE_SENSITIVE_MAX);
    g = zn_block_alloc(sizeof *g);
    if (g == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the gate of rows");
    g->rule = *rule;
    g->column_count = sensitive_count;
    rc = zn_hash_key_random(&g->key, err);
    if (rc != 0)
        zn_tuple_gate_close(g);
    else
        *out = g;
    return rc;
}

/* Blocks go back to the system, which clears them. */
void zn_tuple_gate_close(zn_tuple_gate *g)
{
    if (g == NULL)
        return;
    zn_id_set_fini(&g->classes);
    zn_id_set_fini(&g->members);
    room_fini(&g->class_of);
    room_fini(&g->faults);
    room_fini(&g->counts);
    zn_block_free(g->shares, g->shares_bytes);
    for (size_t j = 0; j < g->column_count; j++) {
        column *c = &g->columns[j];
        zn_id_set_fini(&c->cells);
        zn_id_set_fini(&c->holders);
        zn_id_set_fini(&c->values);
        zn_id_set_fini(&c->whole_users);
        room_fini(&c->first);
        room_fini(&c->next);
        room_fini(&c->value);
    }
    zn_block_clear(g, sizeof *g);
    zn_block_free(g, sizeof *g);
}

zn_id zn_tuple_gate_value(const zn_tuple_gate *g, zn_span written)
{
    uint8_t domain = written.p == NULL ? DOMAIN_MISSING : DOMAIN_TEXT;
    return zn_hash128(&g->key, domain, written.p, written.n);
}

zn_id zn_tuple_gate_user(const zn_tuple_gate *g, zn_span user)
{
    return zn_hash128(&g->key, DOMAIN_USER, user.p, user.n);
}

/* ---- counting ---- */

/* Makes room for one more row in all that a row may add to, so that nothing fails halfway. */
static int reserve_row(zn_tuple_gate *g, zn_error *err)
{
    int rc = room_reach(&g->class_of, g->rows + 1, err);
    if (rc == 0)
        rc = zn_id_set_reserve(&g->classes, err);
    if (rc == 0)
        rc = zn_id_set_reserve(&g->members, err);
    for (size_t j = 0; j < g->column_count && rc == 0; j++) {
        rc = zn_id_set_reserve(&g->columns[j].cells, err);
        if (rc == 0)
            rc = zn_id_set_reserve(&g->columns[j].holders, err);
    }
    return rc;
}

/* Counts a user (NULL: one of its own) of the owner, unless it is counted already. */
static inline void count_user(zn_id_entry *owner, zn_id_set *users, uint32_t number,
                              const zn_id *user)
{
    uint32_t before = users->n;
    if (user == NULL || zn_id_set_put(users, number, *user) == before)
        owner->count++;
}

int zn_tuple_gate_add(zn_tuple_gate *g, const zn_id *quasi, size_t quasi_count,
                      const zn_id *sensitive, const zn_id *user, zn_error *err)
{
    zn_id id = quasi_count == 1 ? *quasi
                                : zn_hash128(&g->key, DOMAIN_CLASS, quasi, quasi_count * sizeof id);
    int rc = reserve_row(g, err);
    uint32_t class;
    if (rc != 0)
        return rc;
    class = zn_id_set_put(&g->classes, 0, id);
    g->class_of.at[g->rows++] = class;
    count_user(&g->classes.at[class], &g->members, class, user);
    for (size_t j = 0; j < g->column_count; j++) {
        column *c = &g->columns[j];
        uint32_t cell = zn_id_set_put(&c->cells, class, sensitive[j]);
        count_user(&c->cells.at[cell], &c->holders, cell, user);
    }
    return 0;
}

/* ---- deciding ---- */

/* Links the cells of each class. */
static int link_cells(const zn_tuple_gate *g, column *c, zn_error *err)
{
    int rc = room_reach(&c->first, g->classes.n, err);
    if (rc == 0)
        rc = room_reach(&c->next, c->cells.n, err);
    if (rc != 0)
        return rc;
    memset(c->first.at, 0, g->classes.n * sizeof *c->first.at);
    for (uint32_t cell = 0; cell < c->cells.n; cell++) {
        uint32_t class = c->cells.at[cell].owner;
        c->next.at[cell] = c->first.at[class];
        c->first.at[class] = cell + 1;
    }
    return 0;
}

/* Judges a class by a column; the value of each cell is known when distances count. */
static zn_class_fault judge(const zn_tuple_gate *g, const column *c, uint32_t class,
                            const zn_class_rule *rule)
{
    size_t n = 0;
    for (uint32_t i = c->first.at[class]; i != 0; i = c->next.at[i - 1]) {
        g->counts.at[n] = c->cells.at[i - 1].count;
        if (rule->t < 1)
            g->shares[n] = c->values.at[c->value.at[i - 1]].count / (double)c->total;
        n++;
    }
    return zn_class_judge(rule, g->classes.at[class].count, g->counts.at, g->shares, n);
}

/* Judges all classes that had no fault so far; returns how many get one. */
static uint32_t judge_all(zn_tuple_gate *g, const zn_class_rule *rule)
{
    uint32_t found = 0;
    for (uint32_t class = 0; class < g->classes.n; class++) {
        zn_class_fault fault = (zn_class_fault)g->faults.at[class];
        if (fault != ZN_CLASS_GOOD)
            continue;
        if (g->column_count == 0)
            fault = zn_class_judge(rule, g->classes.at[class].count, NULL, NULL, 0);
        for (size_t j = 0; j < g->column_count && fault == ZN_CLASS_GOOD; j++)
            fault = judge(g, &g->columns[j], class, rule);
        g->faults.at[class] = fault;
        found += fault != ZN_CLASS_GOOD;
    }
    return found;
}

/* Counts each value's users in the classes that have no fault: the whole. */
static int count_whole(const zn_tuple_gate *g, column *c, zn_error *err)
{
    int rc = room_reach(&c->value, c->cells.n, err);
    zn_id_set_clear(&c->values);
    zn_id_set_clear(&c->whole_users);
    c->total = 0;
    for (uint32_t cell = 0; cell < c->cells.n && rc == 0; cell++) {
        const zn_id_entry *e = &c->cells.at[cell];
        rc = zn_id_set_reserve(&c->values, err);
        if (rc != 0 || g->faults.at[e->owner] != ZN_CLASS_GOOD)
            continue;
        c->value.at[cell] = zn_id_set_put(&c->values, 0, e->id);
        c->values.at[c->value.at[cell]].count += e->count;
        c->total += e->count;
    }
    /* A user that has the value in several classes was counted in each. */
    for (uint32_t i = 0; i < c->holders.n && rc == 0; i++) {
        const zn_id_entry *e = &c->holders.at[i];
        uint32_t before = c->whole_users.n;
        rc = zn_id_set_reserve(&c->whole_users, err);
        if (rc != 0 || g->faults.at[c->cells.at[e->owner].owner] != ZN_CLASS_GOOD)
            continue;
        if (zn_id_set_put(&c->whole_users, c->value.at[e->owner], e->id) != before) {
            c->values.at[c->value.at[e->owner]].count--;
            c->total--;
        }
    }
    return rc;
}

/* Drops classes that are too far from the rows left, until no class is too far. */
static int judge_distances(zn_tuple_gate *g, zn_error *err)
{
    int rc = 0;
    do {
        for (size_t j = 0; j < g->column_count && rc == 0; j++)
            rc = count_whole(g, &g->columns[j], err);
    } while (rc == 0 && judge_all(g, &g->rule) != 0);
    return rc;
}

static int judge_classes(zn_tuple_gate *g, zn_error *err)
{
    zn_class_rule near = g->rule;
    size_t most = 1;
    int rc = room_reach(&g->faults, g->classes.n, err);
    for (size_t j = 0; j < g->column_count && rc == 0; j++) {
        rc = link_cells(g, &g->columns[j], err);
        most = g->columns[j].cells.n > most ? g->columns[j].cells.n : most;
    }
    if (rc == 0)
        rc = room_reach(&g->counts, most, err);
    if (rc == 0 && g->rule.t < 1 && most > g->shares_bytes / sizeof *g->shares) {
        double *shares = zn_block_grow(g->shares, &g->shares_bytes, most * sizeof *shares);
        if (shares == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to judge classes");
        g->shares = shares;
    }
    if (rc != 0)
        return rc;
    memset(g->faults.at, 0, g->classes.n * sizeof *g->faults.at);
    near.t = 1;
    (void)judge_all(g, &near);
    return g->rule.t < 1 ? judge_distances(g, err) : 0;
}

static void forget_rows(zn_tuple_gate *g)
{
    g->rows = 0;
    zn_id_set_clear(&g->classes);
    zn_id_set_clear(&g->members);
    for (size_t j = 0; j < g->column_count; j++) {
        zn_id_set_clear(&g->columns[j].cells);
        zn_id_set_clear(&g->columns[j].holders);
        zn_id_set_clear(&g->columns[j].values);
        zn_id_set_clear(&g->columns[j].whole_users);
    }
}

int zn_tuple_gate_decide(zn_tuple_gate *g, uint8_t *faults, zn_error *err)
{
    int rc = g->rows == 0 ? 0 : judge_classes(g, err);
    for (size_t i = 0; i < g->rows; i++)
        faults[i] = rc == 0 ? (uint8_t)g->faults.at[g->class_of.at[i]] : ZN_CLASS_USERS;
    forget_rows(g);
    return rc;
}

size_t zn_tuple_gate_memory(const zn_tuple_gate *g)
{
    size_t bytes = sizeof *g + zn_id_set_memory(&g->classes) + zn_id_set_memory(&g->members) +
                   g->class_of.bytes + g->faults.bytes + g->counts.bytes + g->shares_bytes;
    for (size_t j = 0; j < g->column_count; j++) {
        const column *c = &g->columns[j];
        bytes += zn_id_set_memory(&c->cells) + zn_id_set_memory(&c->holders) +
                 zn_id_set_memory(&c->values) + zn_id_set_memory(&c->whole_users) + c->first.bytes +
                 c->next.bytes + c->value.bytes;
    }
    return bytes;
}
