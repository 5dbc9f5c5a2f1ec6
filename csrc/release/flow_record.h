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

/* Returns true if a DNS vote decided the server of a flow that turned out to have another protocol.
 * Neither its record nor its packets may follow that vote. Only over TCP is the protocol known
 * after the vote. */
bool zn_flow_record_votes_for_dns_only(const zn_policy *policy, const zn_flow *f);

/* Prefetches the memory that zn_flow_record_fill reads. Returns the `server` of
 * zn_flow_record_fill. */
uint64_t zn_flow_record_prefetch(const zn_gate *g, const zn_flow *f);
/* Prefetches the text of the name, some time after zn_flow_record_prefetch. */
void zn_flow_record_prefetch_name(const zn_gate *g, const zn_flow *f);

/* Fills *record, which is zero or was filled by this function, with the disclosed values of a
 * closed flow that has a user. `quic` is NULL for a flow without QUIC. `server` is the result of
 * zn_flow_record_prefetch, or 0. `attributes` is the result of zn_attributes_first. */
void zn_flow_record_fill(const zn_gate *g, const zn_flow *f, const zn_quic_facts *quic,
                         uint64_t server, uint32_t attributes, zn_record *record);

#endif
