/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the exposures of a window by the level at which z users share them, for many z at once.
 *
 * A user stands behind a domain if the user exposed a name of the domain that fewer than z users
 * exposed. A user stands behind a category if the user exposed a name of the category that fewer
 * than z users exposed and whose domain has fewer than z users behind it. An exposure counts for
 * the first level that has z users: name, domain, category. Only sums over all names come out.
 * Statistics, never a release.
 */
#ifndef ZN_ANONYMITY_LEVEL_COUNTS_H
#define ZN_ANONYMITY_LEVEL_COUNTS_H

#include "util/id_set.h"

#define ZN_LEVEL_STEPS 60 /* values of z: 1, 2, 3, 4, 6, 8, 12, ... */
#define ZN_NAME_LABELS 2  /* labels of a name: domain, category */

/* Sums of a window. Arrays have a place for each of the first `steps` values of z. */
typedef struct zn_level_shares {
    uint64_t exposures;
    uint32_t steps; /* values of z up to the number of users */
    /* Exposures that z users share by name, by domain and by category. */
    uint64_t shared[ZN_LEVEL_STEPS][ZN_NAME_LABELS + 1];
    /* Share of the entropy of names that is left if each exposure shows its level only: 0 to 1. */
    double kept[ZN_LEVEL_STEPS];
} zn_level_shares;

/* Facts of a name. Its number of users is the count in zn_level_counts.names. */
typedef struct zn_counted_name {
    uint32_t label[ZN_NAME_LABELS]; /* number in zn_level_counts.labels + 1; 0: no such label */
    uint64_t exposures;
    uint64_t fails; /* bit j: fewer than z_j users share the name, and no label so far */
} zn_counted_name;

/* User of a name. */
typedef struct zn_counted_user {
    uint64_t user;
    uint32_t name, label;
} zn_counted_user;

/* Counts of the open window. Zeroed, they are empty and without memory. */
typedef struct zn_level_counts {
    zn_id_set names;
    zn_id_set labels; /* the owner of a label is its place in zn_counted_name.label */
    zn_counted_name *name;
    zn_counted_user *user;
    uint64_t *order; /* label and number of each name, while a level is summed */
    size_t user_count;
    size_t name_bytes, user_bytes, order_bytes;
    bool lost; /* the window has no sums: no memory was left, or the caller's caps were reached */
} zn_level_counts;

/* Returns value j of z, j < ZN_LEVEL_STEPS. */
static inline uint32_t zn_level_step(uint32_t j)
{
    if (j == 0)
        return 1;
    return j % 2 != 0 ? UINT32_C(1) << (j + 1) / 2 : UINT32_C(3) << (j / 2 - 1);
}

/* Gives the memory back. */
void zn_level_counts_fini(zn_level_counts *c);
/* Forgets the window. */
void zn_level_counts_clear(zn_level_counts *c);
/* Counts an exposure of a name with these labels; a label that the name lacks is {0, 0}. is_new:
 * the user did not expose the name before in this window. */
void zn_level_counts_see(zn_level_counts *c, zn_id name, const zn_id *labels, uint64_t user,
                         bool is_new);
/* Sums the window, in which `users` users exposed names. Returns false if memory was lacking. */
bool zn_level_counts_sum(zn_level_counts *c, uint64_t users, zn_level_shares *out);
/* Returns the bytes of memory laid out. */
size_t zn_level_counts_memory(const zn_level_counts *c);

#endif
