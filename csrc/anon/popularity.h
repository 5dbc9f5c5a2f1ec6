/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many users exposed each name, window by window: what a model of k-anonymity is fitted to.
 *
 * Windows lie end to end from the first frame on, as long as the window of z-anonymity. Names are
 * counted in a table of their own that keeps every user: the one that decides keeps the z latest.
 * A window that has ended (`due`) stays to be read until zn_popularity_next. Only counts come out.
 * Statistics, never a release.
 */
#ifndef ZN_ANON_POPULARITY_H
#define ZN_ANON_POPULARITY_H

#include "base/clock.h"
#include "state/addr_set.h"
#include "state/ztable.h"

typedef struct zn_popularity {
    zn_ztable *table; /* NULL: nothing is counted */
    zn_addr_set users;
    zn_clock clock; /* of frames */
    int64_t start_ns, end_ns, window_ns;
    uint64_t evicted; /* by the table when the window began */
    bool due;         /* it has ended, and waits to be read */
    bool whole;       /* it was read to its end */
} zn_popularity;

typedef struct zn_popularity_limits {
    uint32_t max_tuples, max_attributes, max_users;
} zn_popularity_limits;

/* What is known of the window that is due. */
typedef struct zn_popularity_window {
    int64_t start_ns, end_ns; /* end: that of its time, also where it was cut */
    uint64_t users;           /* distinct ones with a name */
    uint64_t names;           /* an upper bound of how many counts there are */
    bool whole;               /* read to its end, with room for all */
} zn_popularity_window;

/* 0, or a negative zn_err with *err filled. A zeroed struct counts nothing and may be closed. */
int zn_popularity_init(zn_popularity *p, int64_t window_ns, const zn_popularity_limits *limits,
                       zn_error *err);
void zn_popularity_fini(zn_popularity *p);

/* A frame of this time comes next: true when the window ends before it, and is due now. */
bool zn_popularity_reach(zn_popularity *p, int64_t t_ns);
/* Counts a user's exposure of a name in the window; not one of before it. */
void zn_popularity_see(zn_popularity *p, const zn_observation *o, const zn_addr *user);
/* End of input: the window is due, and cut. */
void zn_popularity_finish(zn_popularity *p);
/* Forgets the window that is due, and begins the one that holds the last frame reached. */
void zn_popularity_next(zn_popularity *p);

zn_popularity_window zn_popularity_window_due(const zn_popularity *p);
/* Bytes of memory in use. */
size_t zn_popularity_memory(const zn_popularity *p);

#endif
