/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in the packets of a real engine against an exact oracle, as many conversations as asked
 * for:
 *   soak_packets [-n CASES] [-s SEED] [-r ROUND] [-b]
 * Each round is an engine with other settings, and a crowd of users who expose names over TLS,
 * HTTP, DNS and QUIC, as a bad network delivers it. `wrong` counts the labels of names, or parts of
 * them, in packets that left though the oracle did not let them out. -r begins at a round. -b has
 * the oracle ask for one user more than the engine, which has to be found out.
 *
 * Exit code: 0; 1 when anything was wrong; 2 for a wrong call.
 */
#include "judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define START_NS INT64_C(1700000000000000000)
#define CASES_A_ROUND 100000
#define ROUNDS_AT_LEAST 24 /* fewer do not cover the settings */
#define BLOCK 256          /* conversations that are planned at a time */
#define BATCH_MAX 512
#define TAKEN_MAX 1024

/* One engine and its traffic. */
typedef struct bout {
    const world *w;
    dice dice;
    quic_pool *pool;
    judge *judge;
    zn_engine *engine;
    steps steps;  /* that are to come */
    int64_t t_ns; /* of the newest frame that is not late */
    uint32_t late;
    uint32_t fed, batch; /* frames that wait to be fed, and how many shall */
    zn_frame frame[BATCH_MAX];
    uint8_t bytes[BATCH_MAX][FRAME_BYTES_MAX];
} bout;

static void fail(const char *why)
{
    fprintf(stderr, "soak: %s\n", why);
    exit(2);
}

/* ---- the engine ------------------------------------------------------------------------------ */

static const char *const internal[] = {"10.0.0.0/8", "172.16.0.0/12", "fc00::/7"};

static zn_engine *open_engine(const world *w)
{
    static zn_net nets[sizeof internal / sizeof *internal];
    zn_engine_config config = w->engine;
    zn_engine *engine;
    zn_error err;
    for (size_t i = 0; i < sizeof internal / sizeof *internal; i++)
        (void)zn_net_parse(&nets[i], internal[i], NULL);
    if (w->outer_users) {
        config.internal = nets;
        config.internal_count = sizeof internal / sizeof *internal;
    }
    if (zn_engine_open(&engine, &config, &err) != 0)
        fail(err.msg);
    return engine;
}

static void take(bout *b)
{
    static zn_frame out[TAKEN_MAX];
    size_t n;
    int more;
    do {
        more = zn_engine_take_packets(b->engine, out, TAKEN_MAX, &n);
        for (size_t i = 0; i < n; i++)
            judge_left(b->judge, &out[i]);
    } while (more == 1);
}

static void feed(bout *b)
{
    zn_error err;
    if (b->fed == 0)
        return;
    if (zn_engine_feed(b->engine, b->frame, b->fed, &err) != 0)
        fail(err.msg);
    judge_decide(b->judge);
    take(b);
    while (zn_engine_waiting(b->engine)) {
        if (zn_engine_flush(b->engine, &err) < 0)
            fail(err.msg);
        take(b);
    }
    judge_none_left(b->judge, false);
    b->fed = 0;
    b->batch = 1 + dice_below(&b->dice, b->w->batch);
}

static void finish(bout *b)
{
    zn_error err;
    int rc;
    feed(b);
    while ((rc = zn_engine_finish(b->engine, &err)) == 1)
        take(b);
    if (rc < 0)
        fail(err.msg);
    take(b);
    judge_none_left(b->judge, true);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The time of a frame: even in order, odd and of another microsecond where it is late, so that no
 * two have the same. */
static int64_t time_of(bout *b, int64_t at_ns)
{
    const world *w = b->w;
    if (w->order != WORLD_IN_ORDER && dice_percent(&b->dice, 8)) {
        int64_t t_ns = at_ns - dice_up_to(&b->dice, w->late_ns);
        return (t_ns & ~INT64_C(1023)) | (b->late++ % 512) << 1 | 1;
    }
    b->t_ns = at_ns > b->t_ns + 1 ? at_ns & ~INT64_C(1) : b->t_ns + 2;
    return b->t_ns;
}

static void send(bout *b, const step *s)
{
    const talk *t = judge_talk(b->judge, s->talk);
    frame_labels labels;
    zn_frame *f = &b->frame[b->fed];
    f->t_ns = time_of(b, s->at_ns);
    f->data = b->bytes[b->fed];
    f->captured = f->wire = frame_write(b->w, b->pool, t, s, b->bytes[b->fed], &labels);
    f->link_type = 1;
    judge_goes_in(b->judge, s, f->t_ns, &labels);
    if (++b->fed >= b->batch)
        feed(b);
}

static int by_time(const void *left, const void *right)
{
    const step *a = left, *b = right;
    return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

/* Sends the frames that come before until_ns, and keeps the others. */
static void send_until(bout *b, int64_t until_ns)
{
    step *at = b->steps.at;
    uint32_t n = b->steps.n, due = 0;
    for (uint32_t i = 0; i < n; i++)
        if (at[i].at_ns < until_ns) {
            step swapped = at[i];
            at[i] = at[due];
            at[due++] = swapped;
        }
    qsort(at, due, sizeof *at, by_time);
    for (uint32_t i = 0; i < due; i++)
        send(b, &at[i]);
    memmove(at, at + due, (n - due) * sizeof *at);
    b->steps.n = n - due;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void fight(bout *b, uint64_t cases)
{
    int64_t at_ns = START_NS;
    for (uint64_t n = 0; n < cases; n++) {
        uint32_t place = (uint32_t)(n % JUDGE_TALKS);
        talk_plan(judge_new_talk(b->judge, place), place, n, b->w, &b->dice, at_ns, &b->steps);
        at_ns += 1 + dice_up_to(&b->dice, 2 * b->w->gap_ns);
        if (n % BLOCK == BLOCK - 1)
            send_until(b, at_ns);
    }
    send_until(b, INT64_MAX);
    finish(b);
}

static void play(uint64_t cases, uint64_t seed, uint64_t round, bool blunt, tally *sum)
{
    static world w;
    static bout b;
    world_draw(&w, seed, round);
    memset(&b, 0, sizeof b);
    b.w = &w;
    b.dice.state = w.seed;
    b.pool = quic_pool_open(w.seed);
    b.judge = judge_open(&w, b.pool, w.engine.z + blunt, sum);
    b.engine = open_engine(&w);
    b.batch = 1 + dice_below(&b.dice, w.batch);
    fight(&b, cases);
    zn_engine_close(b.engine);
    judge_close(b.judge);
    quic_pool_close(b.pool);
    free(b.steps.at);
    sum->cases += cases;
    sum->rounds++;
}

static void print(const tally *sum, double seconds)
{
    static const char *const kinds[] = {"dns", "dns-tcp", "http", "tls", "quic"};
    printf("cases %" PRIu64 "\nrounds %" PRIu64 "\nframes %" PRIu64 "\nleft %" PRIu64
           "\nshown %" PRIu64 "\n",
           sum->cases, sum->rounds, sum->frames, sum->left, sum->shown);
    for (int kind = 0; kind <= TALK_QUIC; kind++)
        printf("shown-%s %" PRIu64 "\n", kinds[kind], sum->shown_in[kind]);
    printf("expected %" PRIu64 "\nmissed %" PRIu64 "\nwrong %" PRIu64 "\nstrange %" PRIu64
           "\nseconds %.1f\n",
           sum->expected, sum->missed, sum->wrong, sum->strange, seconds);
    fflush(stdout);
}

static int soak(uint64_t n, uint64_t seed, uint64_t round, bool blunt)
{
    tally sum = {0};
    uint64_t most =
        n / ROUNDS_AT_LEAST + 1 < CASES_A_ROUND ? n / ROUNDS_AT_LEAST + 1 : CASES_A_ROUND;
    clock_t start = clock();
    while (sum.cases < n) {
        uint64_t left = n - sum.cases;
        play(left < most ? left : most, seed, round++, blunt, &sum);
    }
    print(&sum, (double)(clock() - start) / CLOCKS_PER_SEC);
    return sum.wrong + sum.strange != 0;
}

int main(int argc, char **argv)
{
    uint64_t n = 1000 * 1000, seed = 1, round = 0;
    bool blunt = false;
    for (int option; (option = getopt(argc, argv, "n:s:r:b")) != -1;) {
        if (option == 'n')
            n = strtoull(optarg, NULL, 10);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 'r')
            round = strtoull(optarg, NULL, 10);
        else if (option == 'b')
            blunt = true;
        else
            return 2;
    }
    messages_init();
    return soak(n, seed, round, blunt);
}
