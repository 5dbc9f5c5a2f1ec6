/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of a flow besides its name, z-anonymized on their own: the name in a server's
 * certificate (ZN_VOTE_CERTIFICATE) and a client's user agent (ZN_VOTE_AGENT). Their texts lie in
 * the name store, outside their flow's list of names.
 */
#ifndef ZN_ANALYZER_SECONDARY_H
#define ZN_ANALYZER_SECONDARY_H

#include "analyzer/names.h"

/* Takes a text that a flow exposed. Returns its entry, whose vote is still to be cast, or 0 when
 * the text is suppressed at once. */
uint32_t zn_secondary_observed(zn_names *names, zn_vote_kind kind, const zn_hostname *text,
                               bool may_be_disclosed);
/* Casts the vote of an entry, with the packet time t_ns, once its evidence is complete; returns
 * false while that is missing. */
bool zn_secondary_vote(zn_names *names, zn_vote_kind kind, int64_t t_ns, uint32_t flow,
                       uint32_t entry);
/* Suppresses an entry: wipes its text, and counts it. */
void zn_secondary_suppress(zn_name_store *name_store, zn_stats *stats, zn_vote_kind kind,
                           uint32_t entry);
/* Suppresses an entry (0: none) of a closed flow, if its evidence never came. */
void zn_secondary_closed(zn_names *names, zn_vote_kind kind, uint32_t entry);

#endif
