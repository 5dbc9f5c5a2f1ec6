/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by gate.c, gate_record.c (what a record may say) and gate_sets.c (the sets beside the
 * core). */
#ifndef ZN_RELEASE_GATE_INTERNAL_H
#define ZN_RELEASE_GATE_INTERNAL_H

#include "analyzer/service.h"
#include "release/gate.h"

/* Of an address in g->clients, where one that carries an IPv4 address is that one. */
uint64_t zn_gate_client_hash(const zn_gate *g, const zn_addr *a);
/* zn_gate_was_client of an address with this hash. */
bool zn_gate_was_client_hash(const zn_gate *g, uint64_t hash);
/* Fills the E2E, OPTIONS and LAYER7 members of a record that may tell them. */
void zn_gate_fill_sets(const zn_gate *g, const zn_flow *f, zn_record *r);
/* The same for the QUIC columns; quic may be NULL. */
void zn_gate_fill_quic(const zn_gate *g, const zn_quic_facts *quic, zn_record *r);
/* Fills what tells how the client came by the server's address, for a record that may tell it. */
void zn_gate_fill_resolution(const zn_gate *g, const zn_flow *f, zn_record *r);

#endif
