/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a closed flow: what was measured and what the gate released, and then only as much
 * of it as release/disclosure leaves.
 */
#ifndef ZN_RELEASE_FLOW_RECORD_H
#define ZN_RELEASE_FLOW_RECORD_H

#include "analyzer/quic_analyzer.h"
#include "release/gate.h"
#include "release/record.h"

/* Fetches what zn_flow_record_fill will look at; the name, which lies behind it, in a second step.
 * Returns what zn_flow_record_fill takes. */
uint64_t zn_flow_record_prefetch(const zn_gate *g, const zn_flow *f);
void zn_flow_record_prefetch_name(const zn_gate *g, const zn_flow *f);

/* Fills *record, which is zero or was filled here before, with what may be said of a closed flow;
 * false for a flow that has none. quic: NULL for a flow without QUIC. server: of
 * zn_flow_record_prefetch, or 0. */
bool zn_flow_record_fill(const zn_gate *g, const zn_flow *f, const zn_quic_facts *quic,
                         uint64_t server, zn_record *record);

#endif
