/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions for the release of a class of rows: k distinct users (Sweeney 2002), and diverse
 * sensitive values (Machanavajjhala et al. 2007: distinct, entropy and recursive l-diversity; Li et
 * al. 2007: t-closeness, with equal distances between values).
 *
 * Counts are of users, not of rows: a user's rows with one value count once.
 */
#ifndef ZN_MICRODATA_DIVERSITY_H
#define ZN_MICRODATA_DIVERSITY_H

#include "util/base.h"

typedef enum zn_diversity_kind {
    ZN_DIVERSITY_DISTINCT, /* l different values */
    ZN_DIVERSITY_ENTROPY,  /* the entropy of the values is at least log l */
    ZN_DIVERSITY_RECURSIVE /* r_1 < c (r_l + ... + r_m), r_1 the commonest value's count */
} zn_diversity_kind;

typedef struct zn_class_rule {
    uint32_t k; /* at least 1 */
    uint32_t l; /* at least 1, which asks for nothing */
    zn_diversity_kind kind;
    double c;         /* for ZN_DIVERSITY_RECURSIVE, > 0 */
    double max_share; /* of the commonest value; 1 asks for nothing */
    double t;         /* most distance to the whole; 1 asks for nothing */
} zn_class_rule;

/* Why a class may not be released; the first that is found. */
typedef enum zn_class_fault {
    ZN_CLASS_GOOD,
    ZN_CLASS_USERS,     /* fewer than k users */
    ZN_CLASS_DIVERSITY, /* not l-diverse */
    ZN_CLASS_SHARE,     /* one value has more than max_share */
    ZN_CLASS_DISTANCE,  /* further than t from the whole */
    ZN_CLASS_FAULTS
} zn_class_fault;

/*
 * Judges a class of `users` users by one sensitive column. counts: counts of the n values that
 * occur, each at least 1. whole: share of each of these values in the whole table, read only if
 * rule->t < 1.
 */
zn_class_fault zn_class_judge(const zn_class_rule *rule, uint32_t users, const uint32_t *counts,
                              const double *whole, size_t n);

#endif
