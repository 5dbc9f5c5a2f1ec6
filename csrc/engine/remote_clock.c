/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/remote_clock.h"

#define CONFIRM_NS ZN_NS_PER_S /* confirms a jump; a burst of wrong times is shorter */

void zn_remote_clock_init(zn_remote_clock *c, int64_t window_ns)
{
    *c = (zn_remote_clock){window_ns, 0, INT64_MIN, INT64_MIN};
}

void zn_remote_clock_jump(zn_remote_clock *c, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < c->quiet_ns)
        from_ns = c->quiet_ns;
    if (to_ns - from_ns <= c->window_ns ||
        (zn_remote_clock_doubts(c) && to_ns - c->jump_ns < CONFIRM_NS))
        return;
    c->now_ns = from_ns; /* packets confirmed an earlier jump up to here */
    c->jump_ns = to_ns;
}

void zn_remote_clock_see(zn_remote_clock *c, int64_t packet_ns, bool sure)
{
    if (zn_remote_clock_doubts(c) && !sure && packet_ns - c->jump_ns < CONFIRM_NS)
        return;
    c->jump_ns = INT64_MIN;
    c->now_ns = packet_ns > c->quiet_ns ? packet_ns : c->quiet_ns;
}

void zn_remote_clock_set(zn_remote_clock *c, int64_t t_ns)
{
    zn_remote_clock_init(c, c->window_ns);
    c->now_ns = t_ns;
}
