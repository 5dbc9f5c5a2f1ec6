/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"

#include <string.h>

void zn_clock_init(zn_clock *c, int64_t window_ns, int64_t max_jump_ns, uint32_t rebase_after)
{
    memset(c, 0, sizeof *c);
    c->window_ns = window_ns;
    c->max_jump_ns = max_jump_ns;
    c->rebase_after = rebase_after;
}

static zn_clock_verdict accept(zn_clock *c, int64_t t_ns, zn_clock_verdict verdict)
{
    c->rejected_late = c->rejected_ahead = 0;
    if (verdict != ZN_CLOCK_LATE)
        c->now_ns = t_ns;
    c->started = true;
    return verdict;
}

zn_clock_verdict zn_clock_judge(zn_clock *c, int64_t t_ns)
{
    if (!c->started)
        return accept(c, t_ns, ZN_CLOCK_ON_TIME);
    if (t_ns >= c->now_ns) {
        if (c->max_jump_ns == 0 || t_ns - c->now_ns <= c->max_jump_ns)
            return accept(c, t_ns, ZN_CLOCK_ON_TIME);
        c->rejected_late = 0;
        if (++c->rejected_ahead >= c->rebase_after)
            return accept(c, t_ns, ZN_CLOCK_REBASED);
        return ZN_CLOCK_REJECTED;
    }
    if (c->now_ns - t_ns <= c->window_ns)
        return accept(c, t_ns, ZN_CLOCK_LATE);
    c->rejected_ahead = 0;
    if (++c->rejected_late >= c->rebase_after)
        return accept(c, t_ns, ZN_CLOCK_REBASED);
    return ZN_CLOCK_REJECTED;
}
