/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a window, for the files rows/window*.c. */
#ifndef ZN_ROWS_WINDOW_INTERNAL_H
#define ZN_ROWS_WINDOW_INTERNAL_H

#include "rows/window.h"

#define ZN_WINDOW_LOGS 256

/*
 * Rows stand in parallel arrays, in order of arrival; in a sliding buffer with a delay, of their
 * times. In a tumbling one `carried` of them waited for this window.
 */
struct zn_window {
    zn_window_config config;
    const zn_taxonomy *columns[ZN_GROUPS_COLUMNS_MAX];
    size_t quasi_count, sensitive_count;
    zn_groups *groups;
    zn_adaptive_l adaptive;
    zn_once once;
    size_t cap, n, carried;
    int64_t *t_ns;
    uint64_t *user_lo, *user_hi, *payload, *sensitive;
    zn_node *quasi;
    uint8_t *fate;
    uint32_t *order, *scratch; /* for sorting rows */
    int64_t now_ns;            /* latest time; with a delay the stream's clock */
    int64_t oldest_ns;         /* of the rows in the buffer; INT64_MAX: no row */
    uint32_t late_in_a_row;
    bool started;                   /* now_ns is set */
    zn_groups_stats seen;           /* of the groups' counters */
    double n_log_n[ZN_WINDOW_LOGS]; /* by the logarithm to base 2; 0 where it is not known yet */
    zn_window_stats stats;
};

/* Adds what leaves to the counters, w->fate and the groups say what that is. */
void zn_window_count(zn_window *w, int64_t release_ns);
/* The users of the rows that have one of these fates, a bit for each. */
size_t zn_window_users(zn_window *w, uint32_t fates);

#endif
