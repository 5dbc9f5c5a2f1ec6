/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of rows: the one place that lets an attribute of a row out, and that turns its user into
 * a pseudonym. The z-table is asked about rows in their order; those that may be written leave as
 * zn_gated_row, filled here and nowhere else.
 */
#ifndef ZN_RELEASE_ROW_GATE_H
#define ZN_RELEASE_ROW_GATE_H

#include "anonymity/popularity.h"
#include "release/row.h"
#include "release/row_ladder.h"
#include "zanon/ztable.h"

/* Rows decided together: no more than the rejected times that set a clock back (util/clock.h), so
 * that all rows of a batch before such a step were rejected. */
#define ZN_ROW_BATCH 256

typedef struct zn_row_gate zn_row_gate;

typedef struct zn_row_gate_config {
    uint32_t z;
    int64_t window_ns, rotate_ns;
    const char *key_file; /* NULL: a random key that lives in memory only */
    uint32_t max_tuples, max_attributes;
    bool with_user;       /* pseudonyms are made */
    bool keep_suppressed; /* rows with a suppressed attribute leave without it */
    bool popularity;      /* users are counted by attribute and window; not with a ladder */
    zn_row_ladder_config
        ladder;        /* with columns, rows have as many attributes, from ZN_ROW_ATTRIBUTE
                                    on, and leave with each at the level of their step */
    size_t pass_count; /* columns passed on */
} zn_row_gate_config;

/* Returns 0, or a negative zn_err with *err filled and *out NULL. */
int zn_row_gate_open(zn_row_gate **out, const zn_row_gate_config *config, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_row_gate_close(zn_row_gate *g);

/* With a ladder: takes the values of row i of the next batch; false, with the column in *which,
 * where one is in no hierarchy and that is an error. */
bool zn_row_gate_find(zn_row_gate *g, size_t i, const zn_row *row, size_t *which);
/*
 * Decides n <= ZN_ROW_BATCH rows; zn_row_gate_decided then returns those that may be written, in
 * their order. Returns 0, or a negative zn_err with *err filled and nothing to be written.
 */
int zn_row_gate_decide(zn_row_gate *g, const zn_row *rows, size_t n, zn_error *err);
/* The rows that may be written, *count of them, valid until the next batch; they borrow the rows
 * they were made of. */
const zn_gated_row *zn_row_gate_decided(const zn_row_gate *g, size_t *count);

/* Ends the input: the window of the last row is cut there. Returns 0, or -ZN_ERR_CAPACITY. */
int zn_row_gate_finish(zn_row_gate *g, zn_error *err);
/* The windows that have ended: `stored`, to be read and emptied (stored_count = 0) by the
 * caller. */
zn_popularity *zn_row_gate_popularity(zn_row_gate *g);

/* The z-table's counts; with a ladder, observations and decisions are counted by rows. */
zn_ztable_stats zn_row_gate_stats(const zn_row_gate *g);
/* NULL without a ladder. */
const zn_row_ladder_stats *zn_row_gate_ladder_stats(const zn_row_gate *g);
/* Bytes of memory in use. */
size_t zn_row_gate_memory(const zn_row_gate *g);

#endif
