/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock of the queries of a probe.
 *
 * The clock follows packet time, except for jumps that packet time may take back. A packet with a
 * wrong time may set packet time ahead by more than the window. All other packets are then too late
 * until packet time is set back (util/clock.h). The counter cannot take back a watermark or a vote
 * of such a time. After a jump this clock therefore stops until packets continue from the new time.
 */
#ifndef ZN_ENGINE_REMOTE_CLOCK_H
#define ZN_ENGINE_REMOTE_CLOCK_H

#include "util/base.h"

typedef struct zn_remote_clock {
    int64_t window_ns;
    int64_t now_ns;   /* 0: nothing was seen */
    int64_t quiet_ns; /* packet time that has passed without a packet; INT64_MIN: unknown */
    int64_t jump_ns;  /* target of an unconfirmed jump of packet time; INT64_MIN: no jump */
} zn_remote_clock;

/* Prepares a clock that has seen nothing. */
void zn_remote_clock_init(zn_remote_clock *c, int64_t window_ns);
/* Notes that packet time jumped forward by more than the window. */
void zn_remote_clock_jump(zn_remote_clock *c, int64_t from_ns, int64_t to_ns);
/* Follows packet time. sure: true to follow an unconfirmed jump as well. */
void zn_remote_clock_see(zn_remote_clock *c, int64_t packet_ns, bool sure);
/* Restarts at t_ns, to which packet time was set back. */
void zn_remote_clock_set(zn_remote_clock *c, int64_t t_ns);

static inline bool zn_remote_clock_doubts(const zn_remote_clock *c)
{
    return c->jump_ns != INT64_MIN;
}

#endif
