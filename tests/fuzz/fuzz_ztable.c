/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The z-table against brute force: the input's first bytes choose a configuration, the rest are
 * observations of four bytes with time going every way. Traps on a release that brute force
 * suppresses, on another decision than brute force for input in order without caps, on another
 * decision of a batch than of single calls, and on a broken invariant.
 */
#include "state/ztable.h"

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

typedef struct run {
    zn_ztable *table;
    zn_ztable_config config;
    bool ordered; /* so far, and nothing but the window can take an observation away */
    size_t n;
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

/* Distinct users of the attribute in [t - window, t] among all observations so far. */
static uint32_t brute_force(const run *r, int64_t t_ns, uint8_t attribute)
{
    bool counted[256] = {false};
    uint32_t users = 0;
    for (size_t i = 0; i < r->n; i++) {
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

static void one(run *r, int64_t t_ns, uint8_t user, uint8_t attribute)
{
    zn_observation o = {t_ns, mix(user), id_of(attribute)};
    seen s = {t_ns, user, attribute};
    zn_decision decision;
    uint32_t users, z = r->config.z;
    if (r->n != 0 && t_ns < r->past[r->n - 1].t_ns)
        r->ordered = false;
    r->past[r->n] = s;
    r->observations[r->n++] = o;
    users = brute_force(r, t_ns, attribute);
    decision = zn_ztable_observe(r->table, &o);
    r->decisions[r->n - 1] = (uint8_t)decision;
    require(decision != ZN_RELEASE || users >= z);
    if (r->ordered) {
        uint32_t keep = r->config.keep;
        require(decision == (users >= z ? ZN_RELEASE : ZN_BELOW_Z));
        require(zn_ztable_count(r->table, o.attribute) ==
                (keep != 0 && users > keep ? keep : users));
    }
    if (r->n < CHECKED_ALL || r->n % CHECKED_EACH == 0)
        require(zn_ztable_check(r->table) == NULL);
}

/* A second table that takes everything in batches decides the same. */
static void repeat_in_batches(run *r)
{
    uint8_t decisions[OBSERVATIONS_MAX];
    zn_ztable *table;
    require(zn_ztable_open(&table, &r->config, NULL) == 0);
    zn_ztable_observe_batch(table, r->observations, r->n / 2, decisions);
    zn_ztable_observe_batch(table, r->observations + r->n / 2, r->n - r->n / 2,
                            decisions + r->n / 2);
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
    r->ordered = head[3] == 0 && head[4] == 0 && (head[5] & 1) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static run r;
    int64_t t_ns = INT64_C(1700000000) * ZN_NS_PER_S;
    if (size < HEADER_BYTES)
        return 0;
    r.n = 0;
    configure(&r, data);
    require(zn_ztable_open(&r.table, &r.config, NULL) == 0);
    data += HEADER_BYTES;
    size -= HEADER_BYTES;
    for (; size >= RECORD_BYTES && r.n < OBSERVATIONS_MAX; size -= RECORD_BYTES) {
        uint8_t crowd = data[3] & 0xc0 ? 0 : data[3]; /* now and then, many users in a row */
        t_ns = next_time(&r, t_ns, data[0]);
        one(&r, t_ns, data[1], data[2] % ATTRIBUTES);
        for (uint8_t i = 0; i < crowd && r.n < OBSERVATIONS_MAX; i++)
            one(&r, t_ns, (uint8_t)(data[1] + i), data[2] % ATTRIBUTES);
        data += RECORD_BYTES;
    }
    zn_ztable_close(r.table);
    repeat_in_batches(&r);
    return 0;
}
