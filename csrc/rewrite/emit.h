/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From packets of flows to anonymized packets: each waits in the delay line until it is due, gets
 * its fate and its addresses at the gate, and is built into the outputs.
 *
 * A view is a further output of the same packets, with a delay line, a gate and images of its own.
 * Its delay line has the same entries at the same places, and a packet leaves all outputs in one
 * step, the main one first: what that drops, no view shows.
 */
#ifndef ZN_REWRITE_EMIT_H
#define ZN_REWRITE_EMIT_H

#include "engine/engine_state.h"

/* Returns whether packets are among the outputs. */
bool zn_engine_has_packets(const zn_engine_config *config);
/* Prepares the packets of an engine whose keys, flows and gate are open, if its outputs have any.
 * Returns 0, or a negative zn_err with *err filled. */
int zn_engine_open_packets(zn_engine *e, const zn_engine_config *config, zn_error *err);
void zn_engine_close_packets(zn_engine *e);
/* Follows a packet clock that was set anew to t_ns, when all packets have left. Returns 0, or a
 * negative zn_err with *err filled. */
int zn_engine_rebase_packets(zn_engine *e, int64_t t_ns, zn_error *err);

/* Make the plan of a flow that has opened, and anew when its client has changed at t_ns. */
void zn_engine_plan_flow(zn_engine *e, uint32_t flow);
void zn_engine_replan_flow(zn_engine *e, uint32_t flow, int64_t t_ns);
/* Takes note of a flow's names after a look at its packet. */
void zn_engine_note_names(zn_engine *e, uint32_t flow, const zn_flow *f);
/* Sets when those are due that came while the clock was behind their time, before a packet of
 * t_ns moves it; e->packets[0].undated is one of them. */
void zn_engine_set_due(zn_engine *e, int64_t t_ns);
/* Has a fragment wait, there is room for it. It leaves where the datagram that it is of is whole
 * when the first of its fragments is due, and the flow's packets leave then. */
void zn_engine_hold_fragment(zn_engine *e, const zn_fragment_frame *frame);
/* Has a packet of the flow (0: of none) wait, there is room for it. One put together from fragments
 * does not wait: they do, and the last of them came right before it. */
void zn_engine_hold_packet(zn_engine *e, const zn_packet *p, uint32_t flow);

/* Forgets a flow whose record is written and whose packets have left. */
void zn_engine_forget_flow(zn_engine *e, uint32_t flow);

/* Has the packets that are due before now_ns leave; INT64_MAX: all. Stops, and sets e->waiting,
 * when the outputs are more than full, unless `all`. Every vote of before is decided. */
void zn_engine_emit(zn_engine *e, int64_t now_ns, bool all);
/* Returns whether so many bytes of packets have gathered that the program should take them. */
bool zn_engine_packets_full(const zn_engine *e);
/* Takes note that a flow closed and its record is written. Returns whether packets of it wait: then
 * it is forgotten when they have left. */
bool zn_engine_flow_is_held(zn_engine *e, uint32_t flow);
/* Makes room for the packets of a group, if need be by having the oldest leave early; votes are
 * decided. */
void zn_engine_emit_early(zn_engine *e);
/* Returns whether a group's packets find room. */
bool zn_engine_hold_reserve(zn_engine *e);

#endif
