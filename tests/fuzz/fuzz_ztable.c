/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The z-table against brute force: the input's first bytes choose a configuration, the rest are
 * steps of four bytes: observations with time going every way, another z, a clear. Traps on a
 * release that brute force suppresses, on another decision or count than brute force's for input in
 * order without caps, on another decision of a batch than of single calls, and on a broken
 * invariant.
 *
 * To be built with the default layout, and with -DZN_ZRECORD_USERS_MAX=5 -DZN_ZLIST_FROM=3
 * -DZN_ZTRIM_MAX=2, which brings a few users to every form that an attribute can take.
 */
#include "zanon/ztable.h"

#include <string.h>

#define OBSERVATIONS_MAX 600
#define HEADER_BYTES 8
#define RECORD_BYTES 4
#define ATTRIBUTES 16
#define CHECKED_ALL 100 /* all invariants are checked so long after each observation, */
#define CHECKED_EACH 16 /* then after every 16th */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct seen {
    int64_t t_ns;
    uint8_t user, attribute;
} seen;

/* What happened between two observations: another z, or 0 for a clear. */
typedef struct change {
    size_t at;
    uint32_t z;
} change;

typedef struct run {
    zn_ztable *table;
    zn_ztable_config config;
    uint32_t z;      /* in force */
    bool exact;      /* nothing but the window can take an observation away, */
    bool ordered;    /* and all are in time order so far */
    size_t n, first; /* the table has forgotten those before `first` */
    size_t changes;
    change change[OBSERVATIONS_MAX];
    seen past[OBSERVATIONS_MAX];
    zn_observation observations[OBSERVATIONS_MAX];
    uint8_t decisions[OBSERVATIONS_MAX];
} run;

static uint64_t mix(uint64_t x)
{
    x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static zn_id id_of(uint8_t attribute)
{
    zn_id id = {mix(attribute), mix(attribute + UINT64_C(1000))};
    return id;
}

/* Distinct users of the attribute in [t - window, t] among all observations not forgotten. */
static uint32_t brute_force(const run *r, int64_t t_ns, uint8_t attribute)
{
    bool counted[256] = {false};
    uint32_t users = 0;
    for (size_t i = r->first; i < r->n; i++) {
        const seen *s = r->past + i;
        if (s->attribute == attribute && s->t_ns <= t_ns && s->t_ns >= t_ns - r->config.window_ns &&
            !counted[s->user]) {
            counted[s->user] = true;
            users++;
        }
    }
    return users;
}

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static int64_t next_time(const run *r, int64_t t_ns, uint8_t code)
{
    static const int64_t unit[8] = {0,
                                    1,
                                    2,
                                    7,
                                    ZN_NS_PER_S,
                                    3600 * ZN_NS_PER_S,
                                    INT64_C(31536000) * ZN_NS_PER_S,
                                    INT64_MAX / 4};
    int64_t window = r->config.window_ns, step = unit[code >> 1 & 7];
    if (code >> 4 & 1)
        step = window / 4 * (code >> 1 & 7);
    else if (code >> 5 & 1)
        step = window + (code >> 1 & 3) - 1;
    if (code & 1)
        return t_ns < step ? 0 : t_ns - step;
    return t_ns > INT64_MAX - step ? INT64_MAX : t_ns + step;
}

/* A clock that was set back, or a clear: nothing from before may count. */
static void forget(run *r, size_t first)
{
    r->first = first;
    r->ordered = r->exact;
}

/* All counts at once, and by powers of two, are those of each attribute. */
static void check_counts(const zn_ztable *table)
{
    uint32_t counts[ATTRIBUTES + 1];
    uint64_t bins[ZN_ZTABLE_BINS], expected[ZN_ZTABLE_BINS] = {0}, sum = 0;
    size_t n = zn_ztable_counts(table, counts, ATTRIBUTES + 1), alive = 0;
    for (uint8_t a = 0; a < ATTRIBUTES; a++) {
        uint64_t users = zn_ztable_count(table, id_of(a));
        alive += users != 0;
        sum += users;
        if (users != 0)
            expected[63 - __builtin_clzll(users)]++;
    }
    zn_ztable_histogram(table, bins);
    require(n == alive && memcmp(bins, expected, sizeof bins) == 0);
    while (n != 0)
        sum -= counts[--n];
    require(sum == 0);
}

static void one(run *r, int64_t t_ns, uint8_t user, uint8_t attribute)
{
    zn_observation o = {t_ns, mix(user), id_of(attribute)};
    seen s = {t_ns, user, attribute};
    uint64_t jumps = zn_ztable_get_stats(r->table).clock_jumps;
    zn_decision decision;
    uint32_t users, keep = r->config.keep;
    if (r->n != r->first && t_ns < r->past[r->n - 1].t_ns)
        r->ordered = false;
    r->past[r->n] = s;
    r->observations[r->n++] = o;
    decision = zn_ztable_observe(r->table, &o);
    r->decisions[r->n - 1] = (uint8_t)decision;
    if (zn_ztable_get_stats(r->table).clock_jumps != jumps)
        forget(r, r->n - 1);
    users = brute_force(r, t_ns, attribute);
    require(decision != ZN_RELEASE || users >= r->z);
    if (r->ordered) {
        require(decision == (users >= r->z ? ZN_RELEASE : ZN_BELOW_Z));
        require(zn_ztable_count(r->table, o.attribute) ==
                (keep != 0 && users > keep ? keep : users));
    }
    if (r->n < CHECKED_ALL || r->n % CHECKED_EACH == 0) {
        require(zn_ztable_check(r->table) == NULL);
        check_counts(r->table);
    }
}

static void apply(zn_ztable *table, uint32_t z)
{
    if (z == 0)
        zn_ztable_clear(table);
    else
        require(zn_ztable_set_z(table, z, NULL) == 0);
}

/* The z that the input asks for, as far as it is valid; 0 clears. */
static void disturb(run *r, uint32_t z)
{
    change c = {r->n, z > r->config.z ? r->config.z : z};
    if (r->changes == OBSERVATIONS_MAX)
        return;
    r->change[r->changes++] = c;
    apply(r->table, c.z);
    if (c.z == 0)
        forget(r, r->n);
    else
        r->z = c.z;
    require(zn_ztable_check(r->table) == NULL);
}

/* A second table that takes everything in batches decides the same. */
static void repeat_in_batches(run *r)
{
    uint8_t decisions[OBSERVATIONS_MAX];
    zn_ztable *table;
    size_t from = 0;
    require(zn_ztable_open(&table, &r->config, NULL) == 0);
    for (size_t i = 0; i <= r->changes; i++) {
        size_t to = i < r->changes ? r->change[i].at : r->n;
        zn_ztable_observe_batch(table, r->observations + from, to - from, decisions + from);
        if (i < r->changes)
            apply(table, r->change[i].z);
        from = to;
    }
    require(memcmp(decisions, r->decisions, r->n) == 0);
    require(zn_ztable_check(table) == NULL);
    zn_ztable_close(table);
}

static void configure(run *r, const uint8_t *head)
{
    static const int64_t window[8] = {1,
                                      2,
                                      10,
                                      1000,
                                      ZN_NS_PER_S,
                                      600 * ZN_NS_PER_S,
                                      86400 * ZN_NS_PER_S,
                                      INT64_C(315360000) * ZN_NS_PER_S};
    r->config = zn_ztable_default_config(head[0] % 6 + 1u, window[head[1] & 7]);
    if (head[2] != 0)
        r->config.keep = r->config.z + head[2] % 80u;
    r->config.max_tuples = head[3] != 0 ? head[3] % 100u + 1 : 1024;
    r->config.max_attributes = head[4] != 0 ? head[4] % 20u + 1 : 64;
    r->config.max_jump_ns = head[5] & 1 ? window[head[5] >> 1 & 7] : 0;
    r->config.rebase_after = head[6] % 8u + 1;
    r->config.reserve = head[6] >= 0xe0; /* not often: it takes time */
    r->exact = r->ordered = head[3] == 0 && head[4] == 0 && (head[5] & 1) == 0;
    r->z = r->config.z;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static run r;
    int64_t t_ns = INT64_C(1700000000) * ZN_NS_PER_S;
    if (size < HEADER_BYTES)
        return 0;
    r.n = r.first = r.changes = 0;
    configure(&r, data);
    require(zn_ztable_open(&r.table, &r.config, NULL) == 0);
    data += HEADER_BYTES;
    size -= HEADER_BYTES;
    for (; size >= RECORD_BYTES && r.n < OBSERVATIONS_MAX; size -= RECORD_BYTES) {
        uint8_t more = data[3] & 0x3f, attribute = data[2] % ATTRIBUTES;
        t_ns = next_time(&r, t_ns, data[0]);
        if (data[3] >> 6 == 3)
            disturb(&r, more);
        if (data[3] >> 6 != 0) /* one user; else many in a row */
            more = 0;
        one(&r, t_ns, data[1], attribute);
        for (uint8_t i = 0; i < more && r.n < OBSERVATIONS_MAX; i++)
            one(&r, t_ns, (uint8_t)(data[1] + i), attribute);
        data += RECORD_BYTES;
    }
    repeat_in_batches(&r);
    zn_ztable_close(r.table);
    return 0;
}
