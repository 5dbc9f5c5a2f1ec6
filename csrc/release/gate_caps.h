/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Caps against invented users, for the votes of a gate that decides alone. */
#ifndef ZN_RELEASE_GATE_CAPS_H
#define ZN_RELEASE_GATE_CAPS_H

#include "release/gate.h"

/* Returns true if a cap refuses the vote. The vote is then suppressed and counted. Call this
 * function only with caps, on each vote that is to be decided. o: observation of the vote. */
bool zn_gate_caps_refuse(zn_gate *g, const zn_vote *v, const zn_observation *o);

/* Counts the release of a name if the user of the vote is new. */
void zn_gate_caps_released(zn_gate *g, const zn_vote *v);

#endif
