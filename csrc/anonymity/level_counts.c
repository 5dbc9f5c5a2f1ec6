/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums go level by level. For each z, `fails` of a name says if the exposures of the name are left
 * for the next level. The users of all names are sorted by label and then by user. A user stands
 * behind a label for each z for which a name of the user is left.
 */
#include "anonymity/level_counts.h"

#include "util/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ORDER(label, name) ((uint64_t)(label) << 32 | (name))
#define ORDER_LABEL(order) ((uint32_t)((order) >> 32))
#define ORDER_NAME(order) ((uint32_t)(order))

/* Sums of one label, by z. */
typedef struct label_sums {
    uint32_t users[ZN_LEVEL_STEPS];
    uint64_t exposures[ZN_LEVEL_STEPS];
    uint64_t passes; /* bit j: at least z_j users */
} label_sums;

void zn_level_counts_fini(zn_level_counts *c)
{
    zn_id_set_fini(&c->names);
    zn_id_set_fini(&c->labels);
    zn_block_free(c->name, c->name_bytes);
    zn_block_free(c->user, c->user_bytes);
    zn_block_free(c->order, c->order_bytes);
    memset(c, 0, sizeof *c);
}

void zn_level_counts_clear(zn_level_counts *c)
{
    zn_id_set_clear(&c->names);
    zn_id_set_clear(&c->labels);
    c->user_count = 0;
    c->lost = false;
}

/* ---- exposures ---- */

/* Has room for n objects in a block afterwards. */
static bool grow(void *block_at, size_t *bytes, size_t n, size_t object_bytes)
{
    void **block = block_at, *larger;
    if (n * object_bytes <= *bytes)
        return true;
    larger = zn_block_grow(*block, bytes, n * object_bytes);
    if (larger != NULL)
        *block = larger;
    return larger != NULL;
}

static bool reserve(zn_level_counts *c)
{
    return zn_id_set_reserve(&c->names, NULL) == 0 &&
           grow(&c->name, &c->name_bytes, c->names.n + 1u, sizeof *c->name) &&
           grow(&c->user, &c->user_bytes, c->user_count + 1, sizeof *c->user);
}

/* Returns the number of a label + 1, or 0 if the name lacks the label. */
static uint32_t label_of(zn_level_counts *c, uint32_t level, zn_id label)
{
    if ((label.lo | label.hi) == 0)
        return 0;
    if (zn_id_set_reserve(&c->labels, NULL) != 0) {
        c->lost = true;
        return 0;
    }
    return zn_id_set_put(&c->labels, level, label) + 1;
}

void zn_level_counts_see(zn_level_counts *c, zn_id name, const zn_id *labels, uint64_t user,
                         bool is_new)
{
    uint32_t known = c->names.n, i;
    if (c->lost || !reserve(c)) {
        c->lost = true;
        return;
    }
    i = zn_id_set_put(&c->names, 0, name);
    if (i == known) {
        c->name[i].exposures = 0;
        for (uint32_t level = 0; level < ZN_NAME_LABELS; level++)
            c->name[i].label[level] = label_of(c, level, labels[level]);
    }
    c->name[i].exposures++;
    if (is_new) {
        c->names.at[i].count++;
        c->user[c->user_count++] = (zn_counted_user){user, i, 0};
    }
}

/* ---- sums ---- */

/* Returns what exposures of one kind add to the entropy of all exposures, in bits. */
static double part(uint64_t exposures, uint64_t all)
{
    double share = (double)exposures / (double)all;
    return exposures == 0 ? 0 : -share * log2(share);
}

static int compare_users(const void *a, const void *b)
{
    const zn_counted_user *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return x->user < y->user ? -1 : x->user > y->user;
}

static int compare_orders(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Sums the names, and sets `fails`. Returns the entropy of names in bits. */
static double sum_names(zn_level_counts *c, zn_level_shares *out)
{
    double entropy = 0;
    for (uint32_t i = 0; i < c->names.n; i++) {
        zn_counted_name *name = &c->name[i];
        double own = part(name->exposures, out->exposures);
        uint32_t j = 0;
        for (; j < out->steps && zn_level_step(j) <= c->names.at[i].count; j++) {
            out->shared[j][0] += name->exposures;
            out->kept[j] += own;
        }
        name->fails = ((UINT64_C(1) << out->steps) - 1) & ~((UINT64_C(1) << j) - 1);
        entropy += own;
    }
    return entropy;
}

/* Counts the users behind a label, whose users are the first n. */
static void count_users(const zn_level_counts *c, const zn_counted_user *user, size_t n,
                        label_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (size_t i = 0, next; i < n; i = next) {
        uint64_t left = 0;
        for (next = i; next < n && user[next].user == user[i].user; next++)
            left |= c->name[user[next].name].fails;
        for (; left != 0; left &= left - 1)
            sums->users[__builtin_ctzll(left)]++;
    }
    for (uint32_t j = 0; j < ZN_LEVEL_STEPS; j++)
        if (sums->users[j] >= zn_level_step(j))
            sums->passes |= UINT64_C(1) << j;
}

/* Adds the exposures of a name that its label shows. */
static void add_name(zn_counted_name *name, uint32_t level, label_sums *sums, zn_level_shares *out)
{
    uint64_t passed = name->fails & sums->passes;
    name->fails &= ~passed;
    for (; passed != 0; passed &= passed - 1) {
        int j = __builtin_ctzll(passed);
        out->shared[j][level + 1] += name->exposures;
        sums->exposures[j] += name->exposures;
    }
}

/* Sums the labels of one level. Users and names with the same label follow each other. */
static void sum_labels(zn_level_counts *c, uint32_t level, zn_level_shares *out)
{
    label_sums sums;
    size_t at = 0, end = 0;
    for (uint32_t i = 0; i < c->names.n; at = end) {
        uint32_t label = ORDER_LABEL(c->order[i]);
        for (end = at; end < c->user_count && c->user[end].label == label; end++)
            continue;
        if (label != 0)
            count_users(c, c->user + at, end - at, &sums);
        for (; i < c->names.n && ORDER_LABEL(c->order[i]) == label; i++)
            if (label != 0)
                add_name(&c->name[ORDER_NAME(c->order[i])], level, &sums, out);
        for (uint32_t j = 0; label != 0 && j < out->steps; j++)
            out->kept[j] += part(sums.exposures[j], out->exposures);
    }
}

static void sort_level(zn_level_counts *c, uint32_t level)
{
    for (size_t i = 0; i < c->user_count; i++)
        c->user[i].label = c->name[c->user[i].name].label[level];
    for (uint32_t i = 0; i < c->names.n; i++)
        c->order[i] = ORDER(c->name[i].label[level], i);
    qsort(c->user, c->user_count, sizeof *c->user, compare_users);
    qsort(c->order, c->names.n, sizeof *c->order, compare_orders);
}

bool zn_level_counts_sum(zn_level_counts *c, uint64_t users, zn_level_shares *out)
{
    double entropy;
    memset(out, 0, sizeof *out);
    if (c->lost || !grow(&c->order, &c->order_bytes, c->names.n, sizeof *c->order))
        return false;
    while (out->steps < ZN_LEVEL_STEPS && zn_level_step(out->steps) <= users)
        out->steps++;
    for (uint32_t i = 0; i < c->names.n; i++)
        out->exposures += c->name[i].exposures;
    entropy = sum_names(c, out);
    for (uint32_t level = 0; level < ZN_NAME_LABELS && c->names.n != 0; level++) {
        sort_level(c, level);
        sum_labels(c, level, out);
    }
    for (uint32_t j = 0; j < out->steps; j++)
        out->kept[j] = entropy > 0 ? fmin(out->kept[j] / entropy, 1) : out->shared[j][0] != 0;
    return true;
}

size_t zn_level_counts_memory(const zn_level_counts *c)
{
    return zn_id_set_memory(&c->names) + zn_id_set_memory(&c->labels) + c->name_bytes +
           c->user_bytes + c->order_bytes;
}
