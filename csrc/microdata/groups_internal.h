/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout of zn_groups, for microdata/group*.c only. From the lowest to the highest file:
 * group_tally.c counts the users and values of a set of rows, group_measure.c measures its loss,
 * group_form.c makes groups, group_repair.c repairs them, and groups.c takes a window through these
 * steps.
 *
 * A group's rows are a list linked by row number, so that joining two costs nothing. Nothing is
 * cleared between windows or groups: marks hold the number of the use that set them.
 */
#ifndef ZN_MICRODATA_GROUPS_INTERNAL_H
#define ZN_MICRODATA_GROUPS_INTERNAL_H

#include "microdata/groups.h"
#include "util/hash.h"

/* A whole column's loss. Distances are whole numbers, so that ties are ties on every machine. */
#define ZN_GROUP_ONE (UINT32_C(1) << 26)

/* Largest number of nodes of a taxonomy that gets a table of distances. */
#define ZN_GROUP_TABLE_NODES 512u

#define ZN_GROUP_NO_ROW UINT32_MAX

typedef struct zn_group_column {
    const zn_taxonomy *taxonomy;
    uint32_t nodes;
    uint32_t *loss;  /* of each node */
    uint32_t *apart; /* nodes x nodes distances; NULL: too many nodes */
    zn_node *quasi;  /* of each row of the window */
} zn_group_column;

typedef struct zn_group {
    uint32_t first, last; /* rows of the list */
    uint32_t rows;
    uint32_t urgency; /* values that it lacks in its worst sensitive column */
    bool alive, good, tried;
    bool has_centre, has_nodes; /* groups.centre, groups.nodes hold for it */
} zn_group;

typedef struct zn_group_slot {
    uint64_t use, value;
    uint32_t space, code;
} zn_group_slot;

/* Users and values of a set of rows. */
typedef struct zn_group_tally {
    uint64_t use;
    uint32_t users;
    uint32_t distinct[ZN_GROUPS_COLUMNS_MAX]; /* values, by sensitive column */
} zn_group_tally;

/* Two groups' rows while they exchange some. */
typedef struct zn_group_trade {
    uint32_t *rows[2]; /* of both groups; the first is the one to repair */
    uint32_t count[2];
    uint32_t exchanges;
    uint64_t pairs; /* looked at */
} zn_group_trade;

struct zn_groups {
    zn_groups_config config;
    zn_group_column column[ZN_GROUPS_COLUMNS_MAX];
    zn_groups_stats stats;
    zn_bucket_key key;
    uint8_t *block;
    size_t block_bytes;

    /* The window. */
    uint64_t window;
    uint32_t rows;
    uint32_t wanted; /* the l that repairs aim at */
    uint32_t aim;    /* that which groups are judged by now: `wanted`, or the rule's */
    bool has_users;
    uint32_t *value; /* codes: rows x sensitive columns; no two columns share one */
    uint32_t *user;
    zn_group_slot *slots; /* identities to codes, and pairs of codes of a tally */
    size_t slot_mask;
    uint32_t *order;    /* rows, by parts */
    uint32_t *part_end; /* of the part that begins there */

    /* Groups. */
    uint32_t count, out_count;
    zn_group *group;
    zn_node *centre, *nodes; /* columns of each */
    uint32_t *next;          /* of a row in its group */
    uint32_t *of;            /* the group of each row */
    zn_node *out_nodes;
    uint32_t *number; /* a group's number in the result */

    /* Scratch. */
    zn_group_tally tally, more;     /* more: rows on trial, in addition to the rows of the tally */
    uint64_t *value_use, *user_use; /* the tally that marked it */
    uint32_t *value_count;
    uint32_t *value_list; /* sensitive columns x rows: values of the tally */
    uint64_t *more_use, *more_user_use;
    uint32_t *more_count, *more_list; /* values that the tally lacks */
    zn_group_slot *more_slots;
    uint32_t *gathered;     /* counts, for the judge */
    uint32_t *node_count;   /* zero between uses */
    uint32_t *left;         /* rows in no group yet */
    uint32_t *left_by_user; /* zero between uses */
    uint32_t left_count, left_users;
    uint64_t *heap; /* distance, then row */
    uint32_t *distance;
    zn_group_trade trade, best_trade;
    uint32_t *trade_cost[2];
    uint32_t *trade_values[2], *trade_users[2]; /* rows by code; zero between uses */
    uint32_t trade_distinct[2][ZN_GROUPS_COLUMNS_MAX], trade_user_count[2];
    uint64_t *near; /* distance, then group */
};

/* ---- group_tally.c ---- */

/* Gives the window's sensitive values and users their codes. */
void zn_group_tally_encode(zn_groups *g, const zn_group_rows *rows);
void zn_group_tally_begin(zn_groups *g);
void zn_group_tally_add(zn_groups *g, uint32_t row);
void zn_group_tally_add_list(zn_groups *g, uint32_t first);
/* Return the number of values that the rows lack: the sum over the sensitive columns, and the
 * number in the worst column. */
uint32_t zn_group_tally_missing(const zn_groups *g);
uint32_t zn_group_tally_urgency(const zn_groups *g);
/* Returns true if the rows could be released together. */
bool zn_group_tally_good(zn_groups *g);
/* Returns true if the rows could be released together with the rows of a list, which are not
 * added. */
bool zn_group_tally_good_with(zn_groups *g, uint32_t first);
/* Returns the entropy of a sensitive column, by the natural logarithm. */
double zn_group_tally_entropy(const zn_groups *g, size_t s);
/* Returns true if the row would reduce the values or users that the rows of the tally lack. */
bool zn_group_tally_helped_by(zn_groups *g, uint32_t row);

/* ---- group_measure.c ---- */

/* The distance of two nodes of a column. */
static inline uint32_t zn_group_apart(const zn_group_column *c, zn_node a, zn_node b)
{
    if (c->apart != NULL)
        return c->apart[(size_t)a * c->nodes + b];
    return c->loss[zn_taxonomy_common(c->taxonomy, a, b)];
}

/* Sets distance[i] to that between `centre` (a node each column) and the i-th of n rows. */
void zn_group_distances(const zn_groups *g, const zn_node *centre, const uint32_t *rows, size_t n,
                        uint32_t *distance);
/* The distance of two representatives. */
uint32_t zn_group_distance(const zn_groups *g, const zn_node *a, const zn_node *b);
/* Returns the representative of a group: the commonest node of each column; in a tie the smaller
 * node. */
const zn_node *zn_group_centre(zn_groups *g, uint32_t group);
/* The lowest common nodes of a group. */
const zn_node *zn_group_nodes(zn_groups *g, uint32_t group);
/* Rows x loss: of a group, of two together, and of some rows. */
int64_t zn_group_cost(zn_groups *g, uint32_t group);
int64_t zn_group_cost_both(zn_groups *g, uint32_t a, uint32_t b);
int64_t zn_group_cost_rows(const zn_groups *g, const uint32_t *rows, size_t n);
/* Adds a row to a group. */
void zn_group_append(zn_groups *g, uint32_t group, uint32_t row);
/* A new group without rows. */
uint32_t zn_group_new(zn_groups *g);

/* ---- group_form.c ---- */

/* Puts the window's rows into parts of at most config.part_rows, in `order` and `part_end`. */
void zn_group_form_parts(zn_groups *g);
/* Forms groups of the n rows, which are in order. */
void zn_group_form(zn_groups *g, const uint32_t *rows, uint32_t n);
/* Forms the group of the first row of the window, with all that it takes; or none. */
void zn_group_form_oldest(zn_groups *g);

/* ---- group_repair.c ---- */

/* Judges the groups from `from` on by the rule. */
void zn_group_repair_judge(zn_groups *g, uint32_t from);
/* Repairs them as the configuration says, and judges them. */
void zn_group_repair(zn_groups *g, uint32_t from);

#endif
