/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Window over many rows at once whose values are codes, for callers that keep the values
 * themselves: numbers of rows in, numbers of rows and the nodes of their groups out. The text that
 * a caller writes for the rows has to pass release/tuple_gate.
 */
#ifndef ZN_ROWS_RELEASE_LIST_H
#define ZN_ROWS_RELEASE_LIST_H

#include "rows/window.h"

/* Rows by columns. */
typedef struct zn_coded_rows {
    size_t n;
    const int64_t *t_ns;                              /* >= 0 */
    const uint64_t *user;                             /* keyed hashes; NULL without users */
    const int32_t *quasi[ZN_GROUPS_COLUMNS_MAX];      /* nodes of each column; -1: unknown */
    const uint64_t *sensitive[ZN_GROUPS_COLUMNS_MAX]; /* keyed hashes */
    uint64_t first_number;                            /* of the first row; others follow */
} zn_coded_rows;

/* Rows that left since the list was last emptied (n = releases = 0). */
typedef struct zn_release_list {
    zn_window *window;
    size_t n, releases;
    uint64_t *number, *user; /* of each row, in the order of their arrival in each release */
    uint32_t *release;       /* of each row */
    zn_node *nodes;          /* of each row, a column after the other */
    int64_t *release_ns;     /* of each release */
    size_t number_bytes, user_bytes, release_bytes, nodes_bytes, release_ns_bytes;
    size_t quasi_count, sensitive_count;
} zn_release_list;

/* Opens the window whose rows leave to the list, which is all zeros; leave and owner of *config are
 * set here. As zn_window_open. */
int zn_release_list_open(zn_release_list *list, const zn_window_config *config, zn_error *err);
/* Wipes and frees, with the window. */
void zn_release_list_fini(zn_release_list *list);

/* Takes rows; one with a node of -1 is dropped as UNKNOWN. As zn_window_take. */
int zn_release_list_take(zn_release_list *list, const zn_coded_rows *rows, zn_error *err);

#endif
