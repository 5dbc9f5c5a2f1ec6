/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a closed flow: its measurements and the names that the gate released, as far as
 * release/disclosure leaves them.
 */
#ifndef ZN_RELEASE_FLOW_RECORD_H
#define ZN_RELEASE_FLOW_RECORD_H

#include "analyzer/quic_analyzer.h"
#include "release/gate.h"
#include "release/record.h"

/* Returns whether the vote on the flow's server was one of DNS, which neither the record nor the
 * packets of another protocol may follow. Only over TCP is the protocol known after the vote. */
bool zn_flow_record_votes_for_dns_only(const zn_policy *policy, const zn_flow *f);

/* Prefetches the memory that zn_flow_record_fill reads; a second step, some time later, prefetches
 * the text of the name. Returns the `server` of zn_flow_record_fill. */
uint64_t zn_flow_record_prefetch(const zn_gate *g, const zn_flow *f);
void zn_flow_record_prefetch_name(const zn_gate *g, const zn_flow *f);

/* Fills *record, which is zero or was filled here before, with what may be disclosed of a closed
 * flow. Returns false for a flow without a user, which has no record. quic: NULL for a flow without
 * QUIC. server: from zn_flow_record_prefetch, or 0. */
bool zn_flow_record_fill(const zn_gate *g, const zn_flow *f, const zn_quic_facts *quic,
                         uint64_t server, zn_record *record);

#endif
