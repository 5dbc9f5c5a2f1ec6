/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Stable sort of indices, without memory of its own. */
#ifndef ZN_UTIL_SORT_H
#define ZN_UTIL_SORT_H

#include "util/base.h"

#include <string.h>

#define ZN_SORT_RUN 12 /* length of runs that are sorted by insertion */

/* Returns true if a sorts before b. */
typedef bool (*zn_sort_less)(const void *context, uint32_t a, uint32_t b);

static inline void zn_sort_run(uint32_t *at, size_t n, zn_sort_less less, const void *context)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t moved = at[i];
        size_t j = i;
        for (; j != 0 && less(context, moved, at[j - 1]); j--)
            at[j] = at[j - 1];
        at[j] = moved;
    }
}

/* Merges the sorted at[0 .. middle) and at[middle .. n); scratch has space for the first half. */
static inline void zn_sort_merge(uint32_t *at, uint32_t *scratch, size_t middle, size_t n,
                                 zn_sort_less less, const void *context)
{
    size_t i = 0, j = middle, to = 0;
    memcpy(scratch, at, middle * sizeof *at);
    while (i < middle) {
        if (j < n && less(context, at[j], scratch[i]))
            at[to++] = at[j++];
        else
            at[to++] = scratch[i++];
    }
}

/* Sorts n numbers; scratch has space for as many. In line, so that `less` can be, too. */
static inline __attribute__((always_inline)) void zn_sort(uint32_t *at, uint32_t *scratch, size_t n,
                                                          zn_sort_less less, const void *context)
{
    for (size_t i = 0; i < n; i += ZN_SORT_RUN)
        zn_sort_run(at + i, n - i < ZN_SORT_RUN ? n - i : ZN_SORT_RUN, less, context);
    for (size_t run = ZN_SORT_RUN; run < n; run *= 2)
        for (size_t i = 0; i + run < n; i += 2 * run)
            zn_sort_merge(at + i, scratch, run, n - i < 2 * run ? n - i : 2 * run, less, context);
}

#endif
