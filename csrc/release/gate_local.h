/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Gate of a standalone engine: the z-table of this process decides its votes. */
#ifndef ZN_RELEASE_GATE_LOCAL_H
#define ZN_RELEASE_GATE_LOCAL_H

#include "release/gate.h"

/* Decides every vote cast since the last call. */
void zn_gate_decide(zn_gate *g);
/* Adds the client of a closed flow to the clients of this epoch, before its record is made. */
void zn_gate_flow_closed(zn_gate *g, const zn_flow *f);

#endif
