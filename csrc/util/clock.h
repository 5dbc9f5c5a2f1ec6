/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet time. The clock is the largest timestamp accepted so far; the wall clock plays no part.
 *
 * A timestamp is on time (at or after the clock, which moves to it), late (inside the window before
 * the clock), or too late. `rebase_after` timestamps in a row that are too late mean that the clock
 * is wrong and not the packets: the clock is set back, and its owner starts afresh. With
 * max_jump_ns, a larger step forward is rejected in the same way until `rebase_after` in a row
 * confirm it. So one corrupt timestamp costs little, and never the rest of a run.
 */
#ifndef ZN_UTIL_CLOCK_H
#define ZN_UTIL_CLOCK_H

#include "util/base.h"

#define ZN_CLOCK_REBASE_AFTER 256 /* packets: too many for an accident, few enough to lose */

typedef enum zn_clock_verdict {
    ZN_CLOCK_ON_TIME,  /* t >= clock: accepted, the clock is now t */
    ZN_CLOCK_LATE,     /* clock - window <= t < clock: accepted, the clock stays */
    ZN_CLOCK_REJECTED, /* too late, or too far ahead: its owner must not use it */
    ZN_CLOCK_REBASED   /* accepted, the clock is now t, and its owner must forget all from before */
} zn_clock_verdict;

typedef struct zn_clock {
    int64_t now_ns; /* meaningful once started */
    int64_t window_ns;
    int64_t max_jump_ns; /* 0: any step forward is accepted */
    uint32_t rebase_after;
    uint32_t rejected_late;  /* too late in a row */
    uint32_t rejected_ahead; /* too far ahead in a row */
    bool started;
} zn_clock;

/* Prepares a clock that no timestamp has set yet. Times in ns; rebase_after >= 1. */
void zn_clock_init(zn_clock *c, int64_t window_ns, int64_t max_jump_ns, uint32_t rebase_after);

/* Judges t_ns >= 0 and moves the clock: the slow path of zn_clock_see. */
zn_clock_verdict zn_clock_judge(zn_clock *c, int64_t t_ns);

/* Judges a timestamp in ns since the Unix epoch (>= 0) and moves the clock where it is accepted. */
static inline zn_clock_verdict zn_clock_see(zn_clock *c, int64_t t_ns)
{
    if (ZN_LIKELY(c->started && c->max_jump_ns == 0 && t_ns >= c->now_ns)) {
        c->now_ns = t_ns;
        c->rejected_late = 0;
        return ZN_CLOCK_ON_TIME;
    }
    return zn_clock_judge(c, t_ns);
}

/* Returns what the clock would show after a packet of t_ns (>= 0), but for a rebase. */
static inline int64_t zn_clock_would_show(const zn_clock *c, int64_t t_ns)
{
    bool moves = !c->started ||
                 (t_ns > c->now_ns && (c->max_jump_ns == 0 || t_ns - c->now_ns <= c->max_jump_ns));
    return moves ? t_ns : c->now_ns;
}

/* Returns true when packets from t_ns on, none older than the one before it, will all be on
 * time. */
static inline bool zn_clock_expects(const zn_clock *c, int64_t t_ns)
{
    return c->started && c->max_jump_ns == 0 && t_ns >= c->now_ns;
}

#endif
