/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The z-table against an exact oracle on random streams, as many observations as asked for:
 *   soak_ztable [-n OBSERVATIONS] [-s SEED] [-b]
 * Each round draws a configuration and an order of time. An over-release is a release where the
 * oracle counts fewer than z users; on input in time order that no cap cuts, the decision and the
 * count have to be the oracle's (`wrong` counts those that are not). -b has the oracle look at a
 * window that is a nanosecond too short, which has to be found out.
 *
 *   soak_ztable -o WINDOW
 * answers each line `t user attribute` (small numbers) of the standard input with the oracle's
 * number of users, which the tests compare with tests/oracle.py.
 *
 * Exit code: 0; 1 when anything was wrong; 2 for a wrong call.
 */
#include "soak_stream.h"
#include "z_oracle.h"
#include "zanon/ztable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BATCH_MAX 300
#define ORACLE_USERS 64 /* of -o */
#define ORACLE_ATTRIBUTES 16

typedef struct tally {
    uint64_t observations, ordered, released, over_releases, wrong, broken, rounds;
    uint64_t released_in[SOAK_ORDERS], observations_in[SOAK_ORDERS];
} tally;

/* One table and what it is compared with. */
typedef struct bout {
    const soak_plan *plan;
    soak_stream *stream;
    zn_ztable *table;
    z_oracle *oracle;
    uint32_t z;
    int64_t window_ns; /* of the oracle */
    bool equal;        /* nothing but the window may take a user away */
} bout;

static uint64_t mix(uint64_t x)
{
    x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static zn_id id_of(uint32_t attribute)
{
    zn_id id = {mix(attribute), mix(attribute ^ UINT64_C(0x5bd1e995) << 32)};
    return id;
}

/* What the table said, and what it should have said. */
static void judge(bout *b, const soak_event *e, uint8_t decision, tally *sum)
{
    int64_t from_ns = e->t_ns - b->window_ns;
    uint32_t users;
    z_oracle_add(b->oracle, e->t_ns, e->user, e->attribute);
    sum->observations++;
    sum->observations_in[b->plan->order]++;
    sum->ordered += b->equal;
    if (decision != ZN_RELEASE && !b->equal)
        return;
    sum->released += decision == ZN_RELEASE;
    sum->released_in[b->plan->order] += decision == ZN_RELEASE;
    users = z_oracle_users(b->oracle, e->attribute, from_ns, e->t_ns, b->z);
    if (decision == ZN_RELEASE && users < b->z)
        sum->over_releases++;
    else if (b->equal && decision != (users >= b->z ? ZN_RELEASE : ZN_BELOW_Z))
        sum->wrong++;
}

/* The number of users of the attribute of an observation that is on time, up to `keep`. */
static void judge_count(const bout *b, const soak_event *e, tally *sum)
{
    uint32_t keep = b->plan->config.keep, most = keep != 0 ? keep : UINT32_MAX;
    uint32_t users = z_oracle_users(b->oracle, e->attribute, e->t_ns - b->window_ns, e->t_ns, most);
    if (zn_ztable_count(b->table, id_of(e->attribute)) != users)
        sum->wrong++;
}

static void step(bout *b, size_t n, tally *sum)
{
    static soak_event event[BATCH_MAX];
    static zn_observation o[BATCH_MAX];
    static uint8_t decision[BATCH_MAX];
    for (size_t i = 0; i < n; i++) {
        event[i] = soak_next(b->stream);
        o[i].t_ns = event[i].t_ns;
        o[i].user = mix(event[i].user);
        o[i].attribute = id_of(event[i].attribute);
    }
    if (n == 1)
        decision[0] = (uint8_t)zn_ztable_observe(b->table, o);
    else
        zn_ztable_observe_batch(b->table, o, n, decision);
    for (size_t i = 0; i < n; i++)
        judge(b, event + i, decision[i], sum);
    if (b->equal && soak_below(b->stream, 8) == 0)
        judge_count(b, event + n - 1, sum);
}

/* Now and then z changes, or a whole invariant check is made. */
static void disturb(bout *b, tally *sum)
{
    const zn_ztable_config *c = &b->plan->config;
    if (b->plan->change_z && soak_below(b->stream, 50) == 0) {
        b->z = 1 + soak_below(b->stream, c->z);
        if (zn_ztable_set_z(b->table, b->z, NULL) != 0)
            sum->broken++;
    }
    if (b->plan->users * b->plan->attributes < 200 && soak_below(b->stream, 4) == 0)
        sum->broken += zn_ztable_check(b->table) != NULL;
}

static void fight(bout *b, uint64_t n, tally *sum)
{
    while (n != 0) {
        uint64_t most = n < BATCH_MAX ? n : BATCH_MAX;
        size_t m = soak_below(b->stream, 2) == 0 ? 1 : 1 + soak_below(b->stream, (uint32_t)most);
        step(b, m, sum);
        disturb(b, sum);
        n -= m;
    }
    sum->broken += zn_ztable_check(b->table) != NULL;
}

/* One configuration, twice on the same table: the second time after it was told to forget. */
static int play(const soak_plan *plan, uint64_t n, bool blunt, tally *sum)
{
    zn_error err;
    bout b = {.plan = plan, .equal = plan->exact, .window_ns = plan->config.window_ns - blunt};
    if (zn_ztable_open(&b.table, &plan->config, &err) != 0) {
        fprintf(stderr, "soak: %s\n", err.msg);
        return -1;
    }
    for (int half = 0; half < 2 && n != 0; half++) {
        uint64_t share = half == 0 && n > 1 ? n / 2 : n;
        zn_ztable_clear(b.table);
        b.z = plan->config.z;
        (void)zn_ztable_set_z(b.table, b.z, NULL);
        b.oracle = z_oracle_open(plan->users, plan->attributes);
        b.stream = soak_stream_open(plan, sum->observations);
        fight(&b, share, sum);
        soak_stream_close(b.stream);
        z_oracle_close(b.oracle);
        n -= share;
    }
    zn_ztable_close(b.table);
    sum->rounds++;
    return 0;
}

static int soak(uint64_t n, uint64_t seed, bool blunt)
{
    tally sum = {0};
    for (uint64_t round = 0; sum.observations < n; round++) {
        soak_plan plan = soak_draw(mix(seed) + round);
        uint64_t left = n - sum.observations;
        if (play(&plan, plan.observations < left ? plan.observations : left, blunt, &sum) != 0)
            return 2;
    }
    printf("observations %" PRIu64 "\nrounds %" PRIu64 "\ncompared-both-ways %" PRIu64
           "\nreleased %" PRIu64 "\n",
           sum.observations, sum.rounds, sum.ordered, sum.released);
    for (int order = 0; order < SOAK_ORDERS; order++)
        printf("%s %" PRIu64 " of %" PRIu64 "\n", soak_order_name(order), sum.released_in[order],
               sum.observations_in[order]);
    printf("over-releases %" PRIu64 "\nwrong %" PRIu64 "\nbroken-invariants %" PRIu64 "\n",
           sum.over_releases, sum.wrong, sum.broken);
    return sum.over_releases + sum.wrong + sum.broken != 0;
}

static int answer(int64_t window_ns)
{
    z_oracle *o = z_oracle_open(ORACLE_USERS, ORACLE_ATTRIBUTES);
    int64_t t_ns;
    uint32_t user, attribute;
    while (scanf("%" SCNd64 " %" SCNu32 " %" SCNu32, &t_ns, &user, &attribute) == 3) {
        z_oracle_add(o, t_ns, user % ORACLE_USERS, attribute % ORACLE_ATTRIBUTES);
        printf("%" PRIu32 "\n", z_oracle_users(o, attribute % ORACLE_ATTRIBUTES, t_ns - window_ns,
                                               t_ns, UINT32_MAX));
    }
    z_oracle_close(o);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t n = 10 * 1000 * 1000, seed = 1;
    int64_t window_ns = 0;
    bool blunt = false;
    for (int option; (option = getopt(argc, argv, "n:s:o:b")) != -1;) {
        if (option == 'n')
            n = strtoull(optarg, NULL, 10);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 'o')
            window_ns = strtoll(optarg, NULL, 10);
        else if (option == 'b')
            blunt = true;
        else
            return 2;
    }
    return window_ns != 0 ? answer(window_ns) : soak(n, seed, blunt);
}
