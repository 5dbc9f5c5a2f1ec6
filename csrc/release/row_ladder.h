/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ladder that finds the finest generalization of a row that may leave. The attribute columns of a
 * row have hierarchies. A step has one level per hierarchy. The finest step comes first, and each
 * step is coarser than the step before. A row's generalizations are the chain of labels that
 * anonymity/levels decides. A written generalization has z users behind it after all finer rows are
 * removed. No row waits.
 *
 * The tables know a generalization by the exclusive or of one random number per node.
 *
 * A ladder is a part of release/row_gate and belongs to its thread. The hierarchies are borrowed.
 */
#ifndef ZN_RELEASE_ROW_LADDER_H
#define ZN_RELEASE_ROW_LADDER_H

#include "anonymity/levels.h"
#include "microdata/taxonomy.h"
#include "release/row.h"

#define ZN_LADDER_COLUMNS_MAX 16
#define ZN_LADDER_STEPS_MAX (ZN_LEVELS_MAX + 1)
#define ZN_LADDER_ROWS 256 /* decided together, as ZN_ROW_BATCH */

/* Treatment of a row with a value that its hierarchy does not have. */
typedef enum zn_unknown {
    ZN_UNKNOWN_ERROR,
    ZN_UNKNOWN_SUPPRESS, /* the row exposes nothing and is suppressed */
    ZN_UNKNOWN_TOP       /* the value is the hierarchy's root */
} zn_unknown;

typedef struct zn_row_ladder_config {
    const zn_taxonomy *const *columns; /* hierarchies of the attribute columns, in their order */
    size_t column_count;               /* 0: there is no ladder */
    const uint8_t *levels;             /* step_count x column_count, finest step first; copied */
    size_t step_count;
    zn_unknown unknown;
} zn_row_ladder_config;

typedef struct zn_row_ladder_stats {
    uint64_t answers[ZN_NO_ROOM + 1]; /* rows by their decision */
    uint64_t unknown;                 /* rows suppressed for a value that no hierarchy has */
    double loss;                      /* sum over the released rows of the mean of their columns */
    uint64_t released[ZN_LADDER_STEPS_MAX]; /* rows by the step that was released */
} zn_row_ladder_stats;

/* The z-table that decides the finest step, without observations, and its settings. */
typedef struct zn_row_ladder_table {
    zn_ztable *table; /* borrowed */
    const zn_ztable_config *config;
} zn_row_ladder_table;

typedef struct zn_row_ladder zn_row_ladder;

/* Returns 0, -ZN_ERR_CONFIG for steps or columns that do not fit, or -ZN_ERR_CAPACITY. */
int zn_row_ladder_open(zn_row_ladder **out, const zn_row_ladder_config *config,
                       const zn_row_ladder_table *table, zn_error *err);
/* Wipes and frees a ladder; NULL is fine. */
void zn_row_ladder_close(zn_row_ladder *l);

/*
 * Finds the leaves of row i of the next batch, which has values[0 .. column_count) in its attribute
 * columns. Returns false, with the column in *which, if a value is in no hierarchy and the config
 * makes that an error.
 */
bool zn_row_ladder_find(zn_row_ladder *l, size_t i, const zn_value *values, size_t *which);
/* Decides n <= ZN_LADDER_ROWS rows, whose leaves were found, in their order. */
void zn_row_ladder_decide(zn_row_ladder *l, const zn_row *rows, const zn_id *users, size_t n);
/* Returns true if row i of the batch may leave, generalized. */
bool zn_row_ladder_released(const zn_row_ladder *l, size_t i);
/* Returns the value that may be written in attribute column j of a released row i. */
zn_value zn_row_ladder_value(const zn_row_ladder *l, size_t i, size_t j);

/* Returns the number of attribute columns. */
size_t zn_row_ladder_columns(const zn_row_ladder *l);
const zn_row_ladder_stats *zn_row_ladder_get_stats(const zn_row_ladder *l);
const zn_levels *zn_row_ladder_levels(const zn_row_ladder *l);
size_t zn_row_ladder_memory(const zn_row_ladder *l);

#endif
