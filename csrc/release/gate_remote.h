/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate of a probe: the remote counter decides its votes, from hashes.
 *
 * A vote that zn_gate_decide would look up in the z-table becomes a query. The answer is kept when
 * the step of the query is done. When a flow closes, further queries ask which addresses and names
 * its record may show. The record is filled when all queries of its flow are answered.
 */
#ifndef ZN_RELEASE_GATE_REMOTE_H
#define ZN_RELEASE_GATE_REMOTE_H

#include "release/gate.h"

/* Queries every vote for a time up to until_ns. Later votes stay in the queue. */
void zn_gate_query_votes(zn_gate *g, int64_t until_ns);
/* Suppresses the votes for times after now_ns, to which the clock was set back. Reports clients of
 * later times with the time now_ns. */
void zn_gate_suppress_after(zn_gate *g, int64_t now_ns);
/* Ends all epochs before the epoch of now_ns, unless votes of clients have ended them. */
void zn_gate_enter_epoch(zn_gate *g, int64_t now_ns);
/* Queries at now_ns which addresses and names the record of a closed flow may show, after the votes
 * of the flow. The queue has room for ZN_RECORD_STEPS steps. */
#define ZN_RECORD_STEPS 4u
void zn_gate_query_record(zn_gate *g, uint32_t flow, int64_t now_ns);
/* Keeps the answer to a step of a flow. zn_gate_releases then returns the released observation. */
void zn_gate_take_answer(zn_gate *g, const zn_step *step);

#endif
