/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine that is a probe: a counter of all probes decides its votes. What a batch would decide
 * and write becomes steps of the asker (release/asker.h), which are done when they are answered.
 *
 * Flows whose records wait stay in the flow table. zn_engine_asks_too_much says when the program
 * should wait for answers before it feeds more, or give up on them.
 */
#ifndef ZN_ENGINE_ASK_H
#define ZN_ENGINE_ASK_H

#include "engine/engine_state.h"

#define ZN_ASK_VOTES_HELD (ZN_ENGINE_BATCH_VOTES / 4) /* most votes of a time that is not sure */

/* Prepares the asking of an engine whose keys, votes and gate are open, if its config names a
 * probe. Returns 0, or a negative zn_err with *err filled. */
int zn_engine_open_ask(zn_engine *e, const zn_engine_config *config, zn_error *err);
void zn_engine_close_ask(zn_engine *e);

/* Asks about the votes cast so far and about closed flows, makes messages when they are due, and
 * does what is answered. With `all`, about every closed flow, for which the oldest steps may be
 * given up. Returns 0, or a negative zn_err. */
int zn_engine_ask(zn_engine *e, bool all, zn_error *err);
/* Put the end of minutes, and the begin of a period, behind the steps so far. Return 0, or a
 * negative zn_err. */
int zn_engine_ask_minutes(zn_engine *e, int64_t minute, zn_error *err);
int zn_engine_ask_period(zn_engine *e, int64_t start_ns, zn_error *err);
/* Follows the packet clock, which was set back to t_ns: suppresses what is to be asked for later
 * times. Then everything is to be asked, and given up. */
void zn_engine_ask_set_back(zn_engine *e, int64_t t_ns);
/* Gives up all that waits. Returns 0, or a negative zn_err. */
int zn_engine_ask_give_up(zn_engine *e, zn_error *err);
/* Begins anew after that, once no flow is open: under another number, where watermarks of this one
 * are of later times. Returns 0, or a negative zn_err. */
int zn_engine_ask_anew(zn_engine *e, zn_error *err);
/* Gives up all that waits where it leaves too little room for other flows. Returns 0, or a negative
 * zn_err. */
int zn_engine_ask_make_space(zn_engine *e, zn_error *err);
/* Notes that it is now_ns by a clock beside the packets', as none came for a while. */
void zn_engine_ask_quiet(zn_engine *e, int64_t now_ns);
/* After the end of input, makes the last messages when all flows are asked about. rc: of a flush, 0
 * or 1. Returns 1 when it must be called again, 0, or a negative zn_err. */
int zn_engine_ask_end(zn_engine *e, int rc, zn_error *err);
/* Gives up what waits as zn_engine_give_up says. */
void zn_engine_stop_waiting(zn_engine *e, bool all);
/* Does the steps that can be done, until the outputs are full. Returns 0, or a negative zn_err. */
int zn_engine_do_steps(zn_engine *e, zn_error *err);

#endif
