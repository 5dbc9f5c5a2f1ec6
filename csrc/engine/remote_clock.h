/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time by which a probe asks its counter.
 *
 * It is packet time, but for steps that packet time may yet take back: after a step by more than
 * the window, one packet with a wrong time sets the clock there, and all others are too late until
 * the clock is set back (util/clock.h). A watermark or a vote of such a time cannot be taken back:
 * the counter would refuse it, and all that follows, or believe it. So after such a step time
 * stands still here until packets go on from there.
 */
#ifndef ZN_ENGINE_REMOTE_CLOCK_H
#define ZN_ENGINE_REMOTE_CLOCK_H

#include "util/base.h"

typedef struct zn_remote_clock {
    int64_t window_ns;
    int64_t now_ns;   /* 0: nothing was seen */
    int64_t quiet_ns; /* packet time that must have come, as nothing did; INT64_MIN: unknown */
    int64_t step_ns;  /* where packet time stepped to, which is not sure; INT64_MIN: it is */
} zn_remote_clock;

/* Prepares a clock that has seen nothing. */
void zn_remote_clock_init(zn_remote_clock *c, int64_t window_ns);
/* Notes that the packet clock stepped forward by more than the window. */
void zn_remote_clock_jump(zn_remote_clock *c, int64_t from_ns, int64_t to_ns);
/* Follows the packet clock. sure: also where it may be taken back. */
void zn_remote_clock_see(zn_remote_clock *c, int64_t packet_ns, bool sure);
/* Begins anew at t_ns, to which the packet clock was set back. */
void zn_remote_clock_set(zn_remote_clock *c, int64_t t_ns);

static inline bool zn_remote_clock_doubts(const zn_remote_clock *c)
{
    return c->step_ns != INT64_MIN;
}

#endif
