/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of the attribute of rows that is a host name or an address (release/labels): a value that
 * fewer than z users share leaves as its domain, category, AS or country. Names are read, counted
 * and refused as in a run, and leave in the form in which they are counted. A label is never taken
 * for a value, because other texts are suppressed.
 *
 * A part of release/row_gate, which belongs to its thread.
 */
#ifndef ZN_RELEASE_ROW_LABELS_H
#define ZN_RELEASE_ROW_LABELS_H

#include "anonymity/levels.h"
#include "release/row.h"
#include "zanon/zanon.h"

#define ZN_ROW_LABELS_ROWS 256 /* decided together, as ZN_ROW_BATCH */

typedef struct zn_row_labels_config {
    unsigned levels;           /* bits ZN_LEVEL_*, all of names or all of addresses; 0: no labels */
    const zn_suffix *suffixes; /* all lists of names; copied */
    size_t suffix_count;
    const zn_category *categories; /* copied */
    size_t category_count;
    const zn_network *networks; /* in the order of addresses; copied */
    size_t network_count;
    const zn_span *never; /* suffixes of names that are suppressed and are no labels; copied */
    size_t never_count;
} zn_row_labels_config;

/* Why the tables are not asked about a row. */
typedef enum zn_row_refusal {
    ZN_ROW_ASKED,
    ZN_ROW_EMPTY,      /* no value */
    ZN_ROW_INVALID,    /* no host name; no address, or an address that several hosts share */
    ZN_ROW_HOME,       /* an address or a home, spelled as a name */
    ZN_ROW_NEVER,      /* below a suffix of the never list */
    ZN_ROW_NOT_LISTED, /* in no list of names that may vote */
    ZN_ROW_SKIPPED,    /* in a list of names that may not vote */
    ZN_ROW_REFUSALS
} zn_row_refusal;

typedef struct zn_row_labels_stats {
    uint64_t answers[ZN_NO_ROOM + 1];  /* rows by their decision */
    uint64_t refused[ZN_ROW_REFUSALS]; /* rows by zn_row_refusal */
    uint64_t ignored_categories;       /* as in zn_name_lists */
} zn_row_labels_stats;

/* The z-table that decides the values, without observations, and its settings. */
typedef struct zn_row_labels_table {
    zn_ztable *table; /* borrowed */
    const zn_ztable_config *config;
} zn_row_labels_table;

typedef struct zn_row_labels zn_row_labels;

/* Returns 0, or with *out NULL: -ZN_ERR_CONFIG for levels or lists that do not fit,
 * -ZN_ERR_CAPACITY, or another negative zn_err. */
int zn_row_labels_open(zn_row_labels **out, const zn_row_labels_config *config,
                       const zn_row_labels_table *table, zn_error *err);
/* Wipes and frees the labels; NULL is fine. */
void zn_row_labels_close(zn_row_labels *l);

/* Decides n <= ZN_ROW_LABELS_ROWS rows in their order, and writes a zn_decision for each. */
void zn_row_labels_decide(zn_row_labels *l, const zn_row *rows, const zn_id *users, size_t n,
                          uint8_t *answers);
/* Returns the text that may be written for a released row i of the batch. */
zn_value zn_row_labels_value(const zn_row_labels *l, size_t i);

const zn_row_labels_stats *zn_row_labels_get_stats(const zn_row_labels *l);
const zn_levels *zn_row_labels_levels(const zn_row_labels *l);
size_t zn_row_labels_memory(const zn_row_labels *l);

#endif
