/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups the rows of a window so that each group can be released: k users, diverse sensitive
 * values, and as little generalization as possible. It is Algorithm 1 of "Real-Time Stream Data
 * Anonymization via Dynamic Reconfiguration with l-Diversity-Enhanced SUHDSA" (Sensors 2026, 26(1),
 * 95): rows near each other form groups; a group whose values are too much alike swaps rows with a
 * near group or is merged with it, whichever costs less. groups.c lists the choices that the paper
 * leaves open.
 *
 * Distances are mean losses (microdata/taxonomy.h) of the lowest common nodes. Ties go to the
 * smaller row number: the result depends on the rows and their order alone.
 *
 * With users, a group has k users: a row whose user is already in the group is skipped, and is left
 * to another group. Remaining rows join the group with the nearest representative.
 */
#ifndef ZN_MICRODATA_GROUPS_H
#define ZN_MICRODATA_GROUPS_H

#include "microdata/diversity.h"
#include "microdata/taxonomy.h"

#define ZN_GROUPS_COLUMNS_MAX 16u
#define ZN_GROUP_NONE UINT32_MAX

typedef struct zn_groups zn_groups;

typedef struct zn_groups_config {
    const zn_taxonomy *const *columns; /* of the quasi-identifiers; the taxonomies are borrowed */
    size_t column_count, sensitive_count;
    zn_class_rule rule; /* without a distance (t = 1): a window is not the whole */
    bool repair;        /* false: groups of k and no more */
    /*
     * A group that the rule refuses is merged, whatever its size, and dissolved if that does not
     * help: its rows are then in no group. false: Algorithm 1 to the letter, which leaves such a
     * group unchanged, and swaps the rows nearest to their own group's representative (2), not to
     * the other group's (3).
     */
    bool strict;
    uint32_t neighbours; /* near groups that a repair looks at: c */
    uint32_t growth;     /* a merged group has at most growth x k rows: gamma */
    double lambda;       /* weight of the loss, 0 to 1; the work has weight 1 - lambda */
    size_t rows_max;
    size_t part_rows; /* a window of more rows is split by its taxonomies first; 0: 4,000 */
} zn_groups_config;

/* n <= rows_max rows, oldest first. */
typedef struct zn_group_rows {
    size_t n;
    const zn_node *quasi;      /* n x column_count nodes, leaves or not */
    const uint64_t *sensitive; /* n x sensitive_count identities of values */
    const uint64_t *user;      /* NULL: each row is a user of its own */
} zn_group_rows;

typedef struct zn_groups_stats {
    uint64_t windows, groups, swaps, merges;
    uint64_t pairs; /* of rows that repairs looked at */
} zn_groups_stats;

/* Returns 0, -ZN_ERR_CONFIG for numbers out of range, or -ZN_ERR_CAPACITY; *out is NULL then. */
int zn_groups_open(zn_groups **out, const zn_groups_config *config, zn_error *err);
/* Frees; NULL is fine. */
void zn_groups_close(zn_groups *g);

/*
 * Groups all rows of a window. l is what repairs aim at, at least the rule's; the rule decides what
 * is strict. zn_groups_of and zn_groups_nodes then give the result, until the next call.
 */
void zn_groups_window(zn_groups *g, const zn_group_rows *rows, uint32_t l);
/* Groups the first row with those nearest to it, as many as the rule takes, and leaves all others
 * in no group. */
void zn_groups_oldest(zn_groups *g, const zn_group_rows *rows);

/*
 * The entropy of each sensitive column in a window, by the natural logarithm, and how many values
 * it has: for microdata/adaptive_l.h. Counts are of users where the rows have some.
 */
void zn_groups_entropy(zn_groups *g, const zn_group_rows *rows, double *entropy, uint32_t *values);

/* The groups' number. */
size_t zn_groups_count(const zn_groups *g);
/* The group of each row, or ZN_GROUP_NONE. */
const uint32_t *zn_groups_of(const zn_groups *g);
/* Returns the nodes that replace a group's quasi-identifiers, column_count of them. */
const zn_node *zn_groups_nodes(const zn_groups *g, uint32_t group);

zn_groups_stats zn_groups_get_stats(const zn_groups *g);
size_t zn_groups_memory(const zn_groups *g);

#endif
