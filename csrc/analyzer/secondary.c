/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/secondary.h"

static void count_suppressed(zn_stats *stats, zn_vote_kind kind)
{
    stats->n[kind == ZN_VOTE_AGENT ? ZN_STAT_AGENTS_SUPPRESSED : ZN_STAT_CERTIFICATES_SUPPRESSED]++;
}

uint32_t zn_secondary_observed(zn_names *names, zn_vote_kind kind, const zn_hostname *text,
                               bool may_be_disclosed)
{
    zn_name_store *name_store = names->name_store;
    uint32_t entry = may_be_disclosed ? zn_name_store_add_secondary(name_store) : 0;
    names->stats->n[kind == ZN_VOTE_AGENT ? ZN_STAT_AGENTS : ZN_STAT_CERTIFICATES]++;
    if (entry == 0 || !zn_name_store_keep_text(name_store, entry, text)) {
        zn_name_store_forget_secondary(name_store, entry);
        count_suppressed(names->stats, kind);
        return 0;
    }
    zn_name_store_at(name_store, entry)->id =
        zn_votes_id(names->votes, kind, zn_hostname_span(text));
    return entry;
}

bool zn_secondary_vote(zn_names *names, zn_vote_kind kind, int64_t t_ns, uint32_t flow,
                       uint32_t entry)
{
    zn_name_entry *e = zn_name_store_at(names->name_store, entry);
    if (e->state != ZN_ENTRY_PENDING)
        return true;
    if (names->roles->established && !zn_flow_at(names->flows, flow)->client_acked)
        return false;
    e->state = ZN_ENTRY_VOTED;
    zn_name_store_voted(names->name_store, entry);
    if (!zn_votes_cast(names->votes, kind, t_ns, flow, entry))
        zn_secondary_suppress(names->name_store, names->stats, kind, entry);
    return true;
}

void zn_secondary_suppress(zn_name_store *name_store, zn_stats *stats, zn_vote_kind kind,
                           uint32_t entry)
{
    zn_name_store_at(name_store, entry)->state = ZN_ENTRY_SUPPRESSED;
    zn_name_store_wipe_text(name_store, entry);
    count_suppressed(stats, kind);
}

void zn_secondary_closed(zn_names *names, zn_vote_kind kind, uint32_t entry)
{
    if (entry != 0 && zn_name_store_at(names->name_store, entry)->state == ZN_ENTRY_PENDING)
        zn_secondary_suppress(names->name_store, names->stats, kind, entry);
}
