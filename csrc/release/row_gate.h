/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate of rows, which alone discloses an attribute of a row and replaces its user by a pseudonym.
 * The z-table decides rows in their order. A row that may be written leaves as a zn_gated_row,
 * which only this folder fills.
 */
#ifndef ZN_RELEASE_ROW_GATE_H
#define ZN_RELEASE_ROW_GATE_H

#include "anonymity/popularity.h"
#include "release/row.h"
#include "release/row_labels.h"
#include "release/row_ladder.h"
#include "zanon/ztable.h"

/* Rows decided together. No more than the rejected times that set a clock back (util/clock.h): all
 * earlier rows of a batch were rejected when the clock is set back. */
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
    /* With columns, rows have column_count attributes from ZN_ROW_ATTRIBUTE on, and leave with each
     * attribute at the level of their step. */
    zn_row_ladder_config ladder;
    /* With levels, the attribute is a name or an address, and a rare value leaves as a label. Not
     * with a ladder or with popularity. `never` is taken from below. */
    zn_row_labels_config labels;
    size_t pass_count;    /* columns passed on */
    const zn_span *never; /* suffixes of hostnames; an attribute below one is suppressed */
    size_t never_count;
} zn_row_gate_config;

/* Rows that the z-table was not asked about, by zn_row_refusal. */
typedef struct zn_row_gate_skipped {
    uint64_t rows[ZN_ROW_REFUSALS];
} zn_row_gate_skipped;

/* Returns 0, or a negative zn_err with *err filled and *out NULL. */
int zn_row_gate_open(zn_row_gate **out, const zn_row_gate_config *config, zn_error *err);
/* Wipes and frees a gate; NULL is fine. */
void zn_row_gate_close(zn_row_gate *g);

/* Takes the values of row i of the next batch, with a ladder. Returns false, with the column in
 * *which, if a value is in no hierarchy and the config makes that an error. */
bool zn_row_gate_find(zn_row_gate *g, size_t i, const zn_row *row, size_t *which);
/*
 * Decides n <= ZN_ROW_BATCH rows. zn_row_gate_decided then returns the rows that may be written, in
 * their order. Returns 0, or a negative zn_err with *err filled and no row to write.
 */
int zn_row_gate_decide(zn_row_gate *g, const zn_row *rows, size_t n, zn_error *err);
/* Returns the rows that may be written, and sets *count. They are valid until the next batch and
 * borrow the rows from which they were made. */
const zn_gated_row *zn_row_gate_decided(const zn_row_gate *g, size_t *count);

/* Ends the input: the window of the last row is cut there. Returns 0, or -ZN_ERR_CAPACITY. */
int zn_row_gate_finish(zn_row_gate *g, zn_error *err);
/* The windows that have ended: `stored`, to be read and emptied (stored_count = 0) by the
 * caller. */
zn_popularity *zn_row_gate_popularity(zn_row_gate *g);

/* The z-table's counts. With a ladder or labels, the decisions are those on the whole chain. */
zn_ztable_stats zn_row_gate_stats(const zn_row_gate *g);
zn_row_gate_skipped zn_row_gate_get_skipped(const zn_row_gate *g);
/* NULL without a ladder. */
const zn_row_ladder_stats *zn_row_gate_ladder_stats(const zn_row_gate *g);
/* NULL without labels. */
const zn_row_labels *zn_row_gate_labels(const zn_row_gate *g);
/* NULL without a ladder and without labels. */
const zn_levels *zn_row_gate_levels(const zn_row_gate *g);
/* Bytes of memory in use. */
size_t zn_row_gate_memory(const zn_row_gate *g);

#endif
