/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/window_internal.h"
#include "util/sort.h"

#include <math.h>

/* ---- delays ---- */

/* 16 buckets for each power of two; below 16 each number has its own. */
static size_t bucket_of(int64_t delay)
{
    unsigned bits;
    if (delay < 16)
        return (size_t)delay;
    bits = 63u - (unsigned)__builtin_clzll((unsigned long long)delay);
    return (size_t)(bits - 3) * 16 + ((size_t)(delay >> (bits - 4)) & 15);
}

/* The largest delay of a bucket. */
static int64_t bucket_end(size_t bucket)
{
    size_t bits = bucket / 16 + 3;
    if (bucket < 16)
        return (int64_t)bucket;
    return (int64_t)(((UINT64_C(16) + bucket % 16 + 1) << (bits - 4)) - 1);
}

static void count_delay(zn_window_stats *stats, int64_t delay)
{
    if (delay < 0) /* the clock was set back */
        delay = 0;
    stats->delay_sum += (double)delay;
    if (delay > stats->delay_max)
        stats->delay_max = delay;
    stats->delays[bucket_of(delay)]++;
}

int64_t zn_window_delay_quantile(const zn_window *w, double p)
{
    const zn_window_stats *stats = &w->stats;
    uint64_t all = 0, seen = 0;
    for (size_t i = 0; i < ZN_DELAY_BUCKETS; i++)
        all += stats->delays[i];
    for (size_t i = 0; i < ZN_DELAY_BUCKETS; i++) {
        seen += stats->delays[i];
        if (seen != 0 && (double)seen >= p * (double)all) {
            int64_t end = bucket_end(i);
            return end < stats->delay_max ? end : stats->delay_max;
        }
    }
    return 0;
}

/* ---- groups ---- */

typedef struct pair_order {
    const uint64_t *first, *second; /* of each row, `stride` apart; second may be NULL */
    size_t stride;
} pair_order;

static bool pair_less(const void *context, uint32_t a, uint32_t b)
{
    const pair_order *by = context;
    uint64_t first_a = by->first[a * by->stride], first_b = by->first[b * by->stride];
    if (first_a != first_b || by->second == NULL)
        return first_a < first_b;
    return by->second[a] < by->second[b];
}

/* The different users of n rows; they come back sorted. */
static size_t users_of(const zn_window *w, uint32_t *rows, size_t n)
{
    pair_order by = {w->user_lo, NULL, 1};
    size_t users = 0;
    if (!w->config.with_user)
        return n;
    zn_sort(rows, w->scratch, n, pair_less, &by);
    for (size_t i = 0; i < n; i++)
        users += i == 0 || w->user_lo[rows[i]] != w->user_lo[rows[i - 1]];
    return users;
}

size_t zn_window_users(zn_window *w, uint32_t fates)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if ((fates >> w->fate[i] & 1) != 0)
            w->order[n++] = (uint32_t)i;
    return users_of(w, w->order, n);
}

/* n log n; most groups are small, and logarithms are slow. */
static double n_log_n(zn_window *w, uint64_t n)
{
    double x = (double)n;
    if (n >= ZN_WINDOW_LOGS)
        return x * log2(x);
    if (n > 1 && w->n_log_n[n] == 0)
        w->n_log_n[n] = x * log2(x);
    return w->n_log_n[n];
}

/* Counts the values of one sensitive column in a group, each once for a user. */
static void count_values(zn_window *w, size_t column, uint32_t *rows, size_t n)
{
    const uint64_t *value = w->sensitive + column;
    const uint64_t *user = w->config.with_user ? w->user_lo : NULL;
    pair_order by = {value, user, w->sensitive_count};
    zn_window_stats *stats = &w->stats;
    uint64_t distinct = 0, total = 0, largest = 0;
    double sum_log = 0, entropy;
    zn_sort(rows, w->scratch, n, pair_less, &by);
    for (size_t i = 0; i < n; distinct++) {
        uint64_t own = value[rows[i] * w->sensitive_count], count = 0;
        for (size_t first = i; i < n && value[rows[i] * w->sensitive_count] == own; i++)
            count += i == first || user == NULL || user[rows[i]] != user[rows[i - 1]];
        sum_log += n_log_n(w, count);
        total += count;
        if (count > largest)
            largest = count;
    }
    entropy = (n_log_n(w, total) - sum_log) / (double)total;
    stats->distinct_sum[column] += distinct;
    stats->entropy_sum[column] += entropy;
    if (stats->groups == 0 || distinct < stats->distinct_min[column])
        stats->distinct_min[column] = distinct;
    if (stats->groups == 0 || entropy < stats->entropy_min[column])
        stats->entropy_min[column] = entropy;
    if ((double)largest / (double)total > stats->share_max[column])
        stats->share_max[column] = (double)largest / (double)total;
}

static void count_group(zn_window *w, uint32_t group, uint32_t *rows, size_t n)
{
    const zn_node *nodes = zn_groups_nodes(w->groups, group);
    size_t users = users_of(w, rows, n);
    for (size_t i = 0; i < w->quasi_count; i++)
        w->stats.loss[i] += (double)n * zn_taxonomy_loss(w->columns[i], nodes[i]);
    for (size_t i = 0; i < w->sensitive_count; i++)
        count_values(w, i, rows, n);
    if (w->stats.groups == 0 || users < w->stats.users_min)
        w->stats.users_min = users;
    w->stats.groups++;
}

static bool group_less(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *group = context;
    return group[a] < group[b];
}

void zn_window_count(zn_window *w, int64_t release_ns)
{
    const uint32_t *group = zn_groups_of(w->groups);
    zn_groups_stats grouping = zn_groups_get_stats(w->groups);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (!w->config.sliding || w->fate[i] != ZN_FATE_WAITS) /* there all others stay */
            w->stats.fates[w->fate[i]]++;
        if (w->fate[i] != ZN_FATE_RELEASED)
            continue;
        w->order[n++] = (uint32_t)i;
        count_delay(&w->stats, release_ns - w->t_ns[i]);
    }
    zn_sort(w->order, w->scratch, n, group_less, group);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && group[w->order[end]] == group[w->order[i]]; end++)
            ;
        count_group(w, group[w->order[i]], w->order + i, end - i);
    }
    w->stats.swaps += grouping.swaps - w->seen.swaps;
    w->stats.merges += grouping.merges - w->seen.merges;
    w->seen = grouping;
}
