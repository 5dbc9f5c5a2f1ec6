/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "soak_stream.h"

#include <stdio.h>
#include <stdlib.h>

#define SECOND ZN_NS_PER_S
#define DAY (86400 * SECOND)
#define YEAR (365 * DAY)
#define NOW (INT64_C(1700000000) * SECOND)
#define CLOCKS 5 /* of SOAK_INTERLEAVED */
#define RECENT 64

typedef struct dice {
    uint64_t state;
} dice;

struct soak_stream {
    soak_plan plan;
    dice dice;
    int64_t t_ns;
    int64_t clock[CLOCKS];
    soak_event recent[RECENT];
    uint32_t n;
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- chance
 * ----------------------------------------------------------------------------------- */

static uint64_t roll(dice *d)
{
    uint64_t x = d->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint32_t below(dice *d, uint32_t n)
{
    return (uint32_t)((roll(d) >> 32) * n >> 32);
}

/* From 0 to n, both possible. */
static int64_t up_to(dice *d, int64_t n)
{
    return (int64_t)(roll(d) % ((uint64_t)n + 1));
}

/* Small numbers are much more likely: the users and attributes of the real world. */
static uint32_t skewed(dice *d, uint32_t n)
{
    uint32_t most = 1 + below(d, n);
    return below(d, most);
}

uint32_t soak_below(soak_stream *s, uint32_t n)
{
    return below(&s->dice, n);
}

/* ---- configurations
 * --------------------------------------------------------------------------- */

const char *soak_order_name(int order)
{
#define SOAK_ORDER_NAME(name, text) text,
    static const char *const names[] = {SOAK_ORDER_LIST(SOAK_ORDER_NAME)};
#undef SOAK_ORDER_NAME
    return names[order];
}

static void draw_people(soak_plan *p, dice *d)
{
    static const struct {
        uint32_t users, attributes, observations;
    } sizes[] = {{3, 2, 500},        {9, 4, 3000},     {30, 10, 10000},  {64, 300, 40000},
                 {20, 9000, 100000}, {300, 40, 30000}, {2500, 6, 40000}, {6000, 2, 30000}};
    uint32_t i = below(d, LENGTH(sizes));
    p->users = sizes[i].users;
    p->attributes = sizes[i].attributes;
    p->observations = 1 + below(d, sizes[i].observations);
}

static void draw_thresholds(soak_plan *p, dice *d)
{
    static const uint32_t large[] = {10, 20, 50, 150, 350, 1200};
    zn_ztable_config *c = &p->config;
    c->z = 1 + below(d, 6);
    if (below(d, 3) == 0)
        c->z = large[below(d, LENGTH(large))];
    if (c->z > p->users)
        c->z = 1 + below(d, p->users);
    switch (below(d, 5)) {
    case 0:
        c->keep = c->z;
        break;
    case 1:
        c->keep = c->z + below(d, 4);
        break;
    case 2:
        c->keep = c->z + below(d, 1500);
        break;
    default:
        c->keep = 0;
    }
    p->change_z = below(d, 3) == 0;
}

static void draw_limits(soak_plan *p, dice *d)
{
    zn_ztable_config *c = &p->config;
    uint32_t tuples = p->users * p->attributes;
    c->max_tuples = tuples + 1;
    c->max_attributes = p->attributes + 1;
    c->max_jump_ns = 0;
    p->exact = p->order == SOAK_IN_ORDER || p->order == SOAK_DUPLICATED;
    if (below(d, 3) == 0) { /* small caps; or some that are just not enough */
        c->max_tuples = below(d, 2) == 0 ? 1 + below(d, 50) : 1 + below(d, tuples);
        p->exact = false;
    }
    if (below(d, 4) == 0) {
        c->max_attributes = 1 + below(d, p->attributes);
        p->exact = false;
    }
    if (below(d, 6) == 0) {
        c->max_jump_ns = 1 + up_to(d, 3 * c->window_ns);
        p->exact = false;
    }
    c->rebase_after = below(d, 2) == 0 ? 256 : 1 + below(d, 8);
}

soak_plan soak_draw(uint64_t seed)
{
    static const int64_t windows[] = {1,   2,    10,       1000, SECOND, 60 * SECOND, 3600 * SECOND,
                                      DAY, YEAR, 10 * YEAR};
    soak_plan p = {.seed = seed};
    dice d = {seed};
    if (below(&d, 4) != 0) /* else in order, which is compared both ways */
        p.order = (soak_order)below(&d, SOAK_ORDERS);
    draw_people(&p, &d);
    p.config = zn_ztable_default_config(1, windows[below(&d, LENGTH(windows))]);
    draw_thresholds(&p, &d);
    draw_limits(&p, &d);
    p.per_window = 1 + below(&d, UINT32_C(1) << below(&d, 16));
    return p;
}

/* ---- time
 * ------------------------------------------------------------------------------------- */

static int64_t later(int64_t t_ns, int64_t by)
{
    return t_ns > INT64_MAX - by ? INT64_MAX : t_ns + by;
}

static int64_t earlier(int64_t t_ns, int64_t by)
{
    return t_ns < by ? 0 : t_ns - by;
}

static int64_t moved(dice *d, int64_t t_ns, int64_t by)
{
    return below(d, 2) == 0 ? later(t_ns, by) : earlier(t_ns, by);
}

/* A step so that about `per_window` fit into a window. */
static int64_t small_step(soak_stream *s)
{
    int64_t mean = s->plan.config.window_ns / s->plan.per_window;
    if (mean != 0)
        return up_to(&s->dice, 2 * mean);
    return below(&s->dice, s->plan.per_window) < (uint64_t)s->plan.config.window_ns;
}

/* Now and then as long as the window, a nanosecond more or less, or very long. */
static int64_t step_of(soak_stream *s)
{
    int64_t window_ns = s->plan.config.window_ns;
    uint32_t chance = below(&s->dice, 2000);
    if (chance < 4)
        return window_ns - 1 + below(&s->dice, 3);
    if (chance < 6)
        return window_ns / 2;
    if (chance == 7)
        return window_ns * 2;
    if (chance == 8 && below(&s->dice, 8) == 0)
        return YEAR;
    return small_step(s);
}

static int64_t jump_of(dice *d, int64_t window_ns)
{
    static const int64_t jumps[] = {1, SECOND, 60 * SECOND, 3600 * SECOND, DAY, YEAR, 20 * YEAR};
    switch (below(d, 4)) {
    case 0:
        return jumps[below(d, LENGTH(jumps))];
    case 1:
        return window_ns - 1 + below(d, 3);
    default:
        return up_to(d, window_ns);
    }
}

static int64_t edge_of(dice *d, int64_t window_ns)
{
    int64_t near[] = {0, 1, window_ns - 1, window_ns, later(window_ns, 1), 2 * window_ns};
    int64_t t_ns = near[below(d, LENGTH(near))];
    return below(d, 2) == 0 ? t_ns : INT64_MAX - t_ns;
}

static int64_t time_of(soak_stream *s)
{
    dice *d = &s->dice;
    int64_t window_ns = s->plan.config.window_ns, *clock;
    switch (s->plan.order) {
    case SOAK_LATE:
        s->t_ns = later(s->t_ns, step_of(s));
        if (below(d, 4) != 0)
            return s->t_ns;
        return earlier(s->t_ns, up_to(d, below(d, 2) == 0 ? window_ns / 8 : window_ns + 1));
    case SOAK_INTERLEAVED:
        clock = s->clock + below(d, CLOCKS);
        return *clock = later(*clock, step_of(s));
    case SOAK_SHUFFLED:
        return later(s->t_ns, up_to(d, below(d, 2) == 0 ? window_ns : 3 * window_ns));
    case SOAK_JUMPING:
        if (below(d, 8) == 0)
            return s->t_ns = moved(d, s->t_ns, jump_of(d, window_ns));
        return s->t_ns = later(s->t_ns, small_step(s));
    case SOAK_CORRUPT:
        s->t_ns = later(s->t_ns, step_of(s));
        return below(d, 400) == 0 ? (int64_t)(roll(d) >> 1) : s->t_ns;
    case SOAK_BACKWARDS:
        return s->t_ns = earlier(s->t_ns, step_of(s));
    case SOAK_EDGES:
        return edge_of(d, window_ns);
    default:
        return s->t_ns = later(s->t_ns, step_of(s));
    }
}

/* ---- streams
 * ---------------------------------------------------------------------------------- */

soak_stream *soak_stream_open(const soak_plan *plan, uint64_t salt)
{
    soak_stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        fputs("soak: out of memory\n", stderr);
        exit(2);
    }
    s->plan = *plan;
    s->dice.state = plan->seed ^ salt << 20;
    s->t_ns = below(&s->dice, 8) == 0 ? edge_of(&s->dice, plan->config.window_ns) : NOW;
    for (int i = 0; i < CLOCKS; i++)
        s->clock[i] = moved(&s->dice, s->t_ns, jump_of(&s->dice, plan->config.window_ns));
    return s;
}

void soak_stream_close(soak_stream *s)
{
    free(s);
}

soak_event soak_next(soak_stream *s)
{
    dice *d = &s->dice;
    soak_event *slot = s->recent + s->n % RECENT, e;
    bool again = s->n >= RECENT && below(d, 2) == 0;
    if (again && s->plan.order == SOAK_DUPLICATED) { /* once more, now */
        e = s->recent[below(d, RECENT)];
        e.t_ns = s->t_ns;
    } else if (again && s->plan.order == SOAK_LATE && below(d, 4) == 0) { /* once more, as it was */
        e = s->recent[below(d, RECENT)];
    } else {
        e.t_ns = time_of(s);
        e.user = skewed(d, s->plan.users);
        e.attribute = skewed(d, s->plan.attributes);
    }
    s->n++;
    return *slot = e;
}
