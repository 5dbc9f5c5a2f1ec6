/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which generalization of a row may leave. A row's attribute columns have hierarchies; a step is a
 * level of each, and the steps come finest first. A row exposes all its generalizations at once,
 * one a step, and the finest that z users exposed in the window may be written. Nothing waits.
 *
 * A generalization is known to the table by the exclusive or of one random number a node: what is
 * the same nodes is the same generalization, from whatever step.
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

/* What becomes of a row with a value that its hierarchy does not have. */
typedef enum zn_unknown {
    ZN_UNKNOWN_ERROR,
    ZN_UNKNOWN_SUPPRESS, /* it exposes nothing and is suppressed */
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
/* Wipes and frees; NULL is fine. */
void zn_row_ladder_close(zn_row_ladder *l);

/*
 * Finds the leaves of row i of the next batch, which has values[0 .. column_count) in its attribute
 * columns. False, with the column in *which, where one is in no hierarchy and that is an error.
 */
bool zn_row_ladder_find(zn_row_ladder *l, size_t i, const zn_value *values, size_t *which);
/* Asks the table about n <= ZN_LADDER_ROWS rows, whose leaves were found, in their order. */
void zn_row_ladder_decide(zn_row_ladder *l, zn_ztable *table, const zn_row *rows,
                          const zn_id *users, size_t n);
/* Whether row i of the batch may leave, generalized. */
bool zn_row_ladder_released(const zn_row_ladder *l, size_t i);
/* What may be written in attribute column j of such a row. */
zn_value zn_row_ladder_value(const zn_row_ladder *l, size_t i, size_t j);

/* How many attribute columns and steps there are. */
size_t zn_row_ladder_columns(const zn_row_ladder *l);
size_t zn_row_ladder_steps(const zn_row_ladder *l);
const zn_row_ladder_stats *zn_row_ladder_get_stats(const zn_row_ladder *l);
size_t zn_row_ladder_memory(const zn_row_ladder *l);

#endif
