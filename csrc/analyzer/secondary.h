/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that a flow exposes beside its names: the name in a certificate, a user agent. Each kind is
 * a namespace of its own in the z-table. An entry waits until the flow's user is known to be real,
 * then votes once; like a name, its text is kept only until it is decided, and after that only if
 * it was released. `kind` is ZN_VOTE_CERTIFICATE or ZN_VOTE_AGENT.
 */
#ifndef ZN_ANALYZER_SECONDARY_H
#define ZN_ANALYZER_SECONDARY_H

#include "release/gate.h"

/* A text was seen. Its entry, for the caller to keep and to zn_name_store_forget_secondary; 0, and counted
 * as suppressed, when it may never be shown or there is no room. */
uint32_t zn_secondary_observed(zn_gate *g, zn_vote_kind kind, const zn_hostname *text,
                               bool may_be_disclosed);
/* Votes at t_ns for an entry that waits, if the flow's user is known to be real or need not be.
 * False: it still waits. */
bool zn_secondary_vote(zn_gate *g, zn_vote_kind kind, int64_t t_ns, uint32_t flow, uint32_t entry);
/* The entry is decided. */
void zn_secondary_decided(zn_gate *g, zn_vote_kind kind, uint32_t entry, bool release);
/* Its flow is closed: an entry that waits (0: none) is suppressed. */
void zn_secondary_closed(zn_gate *g, zn_vote_kind kind, uint32_t entry);

#endif
