/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ladder that finds the finest generalization of a row that may leave. The attribute columns of a
 * row have hierarchies. A step has one level per hierarchy, and the finest step comes first. A row
 * exposes all its generalizations at once, one per step. The finest generalization that z users
 * exposed in the window may be written. No row waits.
 *
 * The table knows a generalization by the exclusive or of one random number per node. Equal nodes
 * are therefore one generalization, whatever the step.
 *
 * A ladder is a part of release/row_gate and belongs to its thread. The hierarchies are borrowed.
 */
#ifndef ZN_RELEASE_ROW_LADDER_H
#define ZN_RELEASE_ROW_LADDER_H

#include "microdata/taxonomy.h"
#include "release/row.h"
#include "zanon/ztable.h"

#define ZN_LADDER_COLUMNS_MAX 16
#define ZN_LADDER_STEPS_MAX 256
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
    uint64_t answers[ZN_NO_ROOM + 1]; /* rows by the table's decision, on the coarsest step unless
                                         one was released */
    uint64_t unknown;                 /* rows suppressed for a value that no hierarchy has */
    double loss;                      /* sum over the released rows of the mean of their columns */
    uint64_t released[ZN_LADDER_STEPS_MAX]; /* rows by the step that was released */
} zn_row_ladder_stats;

typedef struct zn_row_ladder zn_row_ladder;

/* Returns 0, -ZN_ERR_CONFIG for steps or columns that do not fit, or -ZN_ERR_CAPACITY. */
int zn_row_ladder_open(zn_row_ladder **out, const zn_row_ladder_config *config, zn_error *err);
/* Wipes and frees a ladder; NULL is fine. */
void zn_row_ladder_close(zn_row_ladder *l);

/*
 * Finds the leaves of row i of the next batch, which has values[0 .. column_count) in its attribute
 * columns. Returns false, with the column in *which, if a value is in no hierarchy and the config
 * makes that an error.
 */
bool zn_row_ladder_find(zn_row_ladder *l, size_t i, const zn_value *values, size_t *which);
/* Decides n <= ZN_LADDER_ROWS rows, whose leaves were found, by the table in their order. */
void zn_row_ladder_decide(zn_row_ladder *l, zn_ztable *table, const zn_row *rows,
                          const zn_id *users, size_t n);
/* Returns true if row i of the batch may leave, generalized. */
bool zn_row_ladder_released(const zn_row_ladder *l, size_t i);
/* Returns the value that may be written in attribute column j of a released row i. */
zn_value zn_row_ladder_value(const zn_row_ladder *l, size_t i, size_t j);

/* Return the numbers of attribute columns and of steps. */
size_t zn_row_ladder_columns(const zn_row_ladder *l);
size_t zn_row_ladder_steps(const zn_row_ladder *l);
const zn_row_ladder_stats *zn_row_ladder_get_stats(const zn_row_ladder *l);
size_t zn_row_ladder_memory(const zn_row_ladder *l);

#endif
