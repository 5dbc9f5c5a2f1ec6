/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "microdata/diversity.h"

#include <math.h>

/* A sum of rounded terms may miss a bound that it meets by definition: two equal values have an
 * entropy of log 2. */
#define ROUNDING 1e-9

static uint64_t total_of(const uint32_t *counts, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += counts[i];
    return total;
}

static uint32_t largest_of(const uint32_t *counts, size_t n)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++)
        if (counts[i] > largest)
            largest = counts[i];
    return largest;
}

static bool is_entropy_diverse(uint32_t l, const uint32_t *counts, size_t n)
{
    double total = (double)total_of(counts, n), entropy = 0;
    for (size_t i = 0; i < n; i++)
        entropy -= counts[i] / total * log(counts[i] / total);
    return entropy >= log(l) - ROUNDING;
}

/* Sums the counts from the l-th largest on, without sorting: l is small, and so mostly is n. */
static uint64_t tail_of(uint32_t l, const uint32_t *counts, size_t n)
{
    uint64_t tail = 0;
    for (size_t i = 0; i < n; i++) {
        size_t larger = 0;
        for (size_t j = 0; j < n && larger < l; j++)
            larger += counts[j] > counts[i] || (counts[j] == counts[i] && j < i);
        if (larger + 1 >= l)
            tail += counts[i];
    }
    return tail;
}

static bool is_diverse(const zn_class_rule *rule, const uint32_t *counts, size_t n)
{
    if (rule->l <= 1 && rule->kind != ZN_DIVERSITY_RECURSIVE)
        return true;
    switch (rule->kind) {
    case ZN_DIVERSITY_DISTINCT:
        return n >= rule->l;
    case ZN_DIVERSITY_ENTROPY:
        return n >= rule->l && is_entropy_diverse(rule->l, counts, n);
    case ZN_DIVERSITY_RECURSIVE:
        return n >= rule->l &&
               largest_of(counts, n) < rule->c * (double)tail_of(rule->l, counts, n);
    }
    return false;
}

/* The variational distance: what the values that are commoner here have more than in the whole. */
static double distance(const uint32_t *counts, const double *whole, size_t n)
{
    double total = (double)total_of(counts, n), sum = 0;
    for (size_t i = 0; i < n; i++) {
        double more = counts[i] / total - whole[i];
        if (more > 0)
            sum += more;
    }
    return sum;
}

zn_class_fault zn_class_judge(const zn_class_rule *rule, uint32_t users, const uint32_t *counts,
                              const double *whole, size_t n)
{
    if (users < rule->k)
        return ZN_CLASS_USERS;
    if (!is_diverse(rule, counts, n))
        return ZN_CLASS_DIVERSITY;
    if (rule->max_share < 1 &&
        largest_of(counts, n) > rule->max_share * (double)total_of(counts, n) + ROUNDING)
        return ZN_CLASS_SHARE;
    if (rule->t < 1 && distance(counts, whole, n) > rule->t + ROUNDING)
        return ZN_CLASS_DISTANCE;
    return ZN_CLASS_GOOD;
}
