/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface of the two deciders. decide_local.c decides the votes of an engine by the z-table of
 * this process. decide_remote.c queries the remote counter, which counts the votes of all probes.
 *
 * A decider handles whole batches. The engine calls no function of a decider for each packet.
 * Functions that return int return 0, or a negative zn_err with *err filled.
 */
#ifndef ZN_ENGINE_DECIDER_H
#define ZN_ENGINE_DECIDER_H

#include "zanon/zanon.h"

typedef struct zn_decider {
    /* Decides the votes cast so far. Writes the records of closed flows until the outputs are full,
     * or, with `all`, all of them. */
    int (*decide)(zn_engine *e, bool all, zn_error *err);
    /* Continues to write after the program has emptied the outputs or has brought answers. */
    int (*resume)(zn_engine *e, zn_error *err);
    /* Writes the queues of minutes before `minute`, after all that was decided before. */
    int (*end_minutes)(zn_engine *e, int64_t minute, zn_error *err);
    /* Begins the period of the outputs that starts at start_ns, after all that was decided
     * before. */
    int (*begin_period)(zn_engine *e, int64_t start_ns, zn_error *err);
    /* Notes that the packet clock moved forward by more than the window. */
    void (*time_jumped)(zn_engine *e, int64_t from_ns, int64_t to_ns);
    /* Notes that no packet came until now_ns of packet time. */
    void (*time_passed)(zn_engine *e, int64_t now_ns);
    /* Finishes what belongs to the old time, because the packet clock was set back to t_ns. The
     * flows are still open. */
    int (*set_back)(zn_engine *e, int64_t t_ns, zn_error *err);
    /* Starts again after set_back, when all flows are closed. */
    int (*restart)(zn_engine *e, zn_error *err);
    /* Frees flows that wait for a decision, because the flow table is full. */
    int (*make_space)(zn_engine *e, zn_error *err);
    /* Returns true if the program should bring answers before it feeds more packets. */
    bool (*must_wait)(const zn_engine *e);
    /* Ends the input. rc: result of the last flush, 0 or 1. Returns 1 if it must be called again,
     * 0, or a negative zn_err. */
    int (*end)(zn_engine *e, int rc, zn_error *err);
} zn_decider;

extern const zn_decider zn_decide_local, zn_decide_remote;

#endif
