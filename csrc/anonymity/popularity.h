/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the users that exposed each attribute, window by window. A model of k-anonymity is fitted
 * to these counts.
 *
 * Windows lie end to end from the first time on, as long as the window of z-anonymity. Exposures
 * are counted in tables of their own that keep every user, as the table that decides keeps the z
 * latest only. Within a window their order does not matter. A window that has ended (`due`) stays
 * to be read until zn_popularity_next, or is remembered by zn_popularity_store. Only counts come
 * out. Statistics, never a release.
 */
#ifndef ZN_ANONYMITY_POPULARITY_H
#define ZN_ANONYMITY_POPULARITY_H

#include "anonymity/level_counts.h"
#include "util/attributes.h"
#include "util/clock.h"
#include "zanon/ztable.h"

/* A window and its counts. */
typedef struct zn_popularity_window {
    int64_t start_ns, end_ns; /* end_ns: of the full window, also where the input ended in it */
    uint64_t users;           /* distinct users with an exposure */
    uint64_t bins[ZN_ZTABLE_BINS]; /* attributes with 2^j to 2^(j+1) - 1 users, by j */
    bool whole;                    /* it was read to its end, with space for all */
} zn_popularity_window;

/* Tables of the counts of an attribute. */
typedef struct zn_popularity_counts {
    zn_ztable *table; /* NULL: nothing is counted */
    zn_ztable *users; /* all of them, under one attribute */
    uint64_t evicted; /* tuples that the tables had evicted when the window began */
} zn_popularity_counts;

typedef struct zn_popularity {
    zn_ztable *table;       /* NULL: nothing is counted */
    zn_ztable *users;       /* all of them, under one attribute */
    zn_level_counts levels; /* counts by level, of exposures with labels */
    bool with_levels;
    zn_popularity_counts attributes[ZN_ATTRIBUTE_COUNT]; /* of the same windows */
    zn_clock clock;
    int64_t start_ns, end_ns, window_ns;
    uint64_t evicted; /* tuples that the tables had evicted when the window began */
    bool due;         /* it has ended, and waits to be read */
    bool whole;       /* it was read to its end */
    zn_popularity_window *stored;
    size_t stored_count, stored_cap;
} zn_popularity;

/*
 * Begins to count, in windows of config->window_ns and within the caps of *config; a window that
 * needs more is not whole. *p is zero. Returns 0, or a negative zn_err with *err filled. A zeroed
 * struct counts nothing and may be closed.
 */
int zn_popularity_init(zn_popularity *p, const zn_ztable_config *config, zn_error *err);
/* Counts an attribute as well, within the caps of *config. Returns 0, or a negative zn_err with
 * *err filled. */
int zn_popularity_add(zn_popularity *p, zn_attribute attribute, const zn_ztable_config *config,
                      zn_error *err);
void zn_popularity_fini(zn_popularity *p);

/* Moves the clock to the time of the next exposure, in ns since the Unix epoch. Returns true when
 * the window ended before it and is due now. */
bool zn_popularity_reach(zn_popularity *p, int64_t t_ns);
/* Counts an exposure, if it lies in the window. */
void zn_popularity_see(zn_popularity *p, const zn_observation *o);
/* Counts an exposure of a name as zn_popularity_see does, and by level, with the ZN_NAME_LABELS
 * labels of the name; a label that the name lacks is {0, 0}. */
void zn_popularity_see_name(zn_popularity *p, const zn_observation *o, const zn_id *labels);
/* Counts an exposure of an attribute that is counted, if it lies in the window. */
void zn_popularity_see_attribute(zn_popularity *p, zn_attribute attribute, const zn_observation *o);
/* Ends the input: the window is due, and not whole. */
void zn_popularity_finish(zn_popularity *p);
/* Drops the window that is due, if any, and begins the window that contains the last time
 * reached. */
void zn_popularity_next(zn_popularity *p);
/* Appends the window that is due to `stored`, and then begins the next window as zn_popularity_next
 * does. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_popularity_store(zn_popularity *p, zn_error *err);

/* The window that is due, with its counts. */
zn_popularity_window zn_popularity_window_due(const zn_popularity *p);
/* The window that is due, with the counts of an attribute: zero if it is not counted. */
zn_popularity_window zn_popularity_attribute_due(const zn_popularity *p, zn_attribute attribute);
/* Sums the window that is due by level. Returns false without levels, or if exposures are
 * missing. */
bool zn_popularity_levels_due(zn_popularity *p, zn_level_shares *out);
/* Bytes of memory in use. */
size_t zn_popularity_memory(const zn_popularity *p);

#endif
