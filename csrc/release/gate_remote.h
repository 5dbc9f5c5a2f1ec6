/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of a probe: its votes are decided by a counter of all probes, which gets hashes.
 *
 * What zn_gate_decide asks the table here becomes questions of the asker, and the answers are kept
 * when its steps are done. A record is filled when all questions about its flow are answered: those
 * of its votes, and what it may show of the addresses and names that the table here would be asked
 * about when the flow closes.
 */
#ifndef ZN_RELEASE_GATE_REMOTE_H
#define ZN_RELEASE_GATE_REMOTE_H

#include "release/gate.h"

/* Asks about every vote cast for a time up to until_ns; later ones stay. */
void zn_gate_query_votes(zn_gate *g, int64_t until_ns);
/* Suppresses the votes for times after now_ns, to which the clock was set back. Clients of such
 * times are told of as of now_ns. */
void zn_gate_suppress_after(zn_gate *g, int64_t now_ns);
/* Ends the epochs before that of now_ns, if no vote of a client did. */
void zn_gate_enter_epoch(zn_gate *g, int64_t now_ns);
/* Asks at now_ns what the record of a closed flow may show, whose votes are asked about; there is
 * room for ZN_RECORD_STEPS steps. */
#define ZN_RECORD_STEPS 4u
void zn_gate_query_record(zn_gate *g, uint32_t flow, int64_t now_ns);
/* Keeps the answer of a step about a flow; zn_gate_releases has what it released. */
void zn_gate_take_answer(zn_gate *g, const zn_step *step);

#endif
