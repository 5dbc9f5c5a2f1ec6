/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/secondary.h"

static void count(zn_gate *g, zn_vote_kind kind, zn_stat certificates, zn_stat agents)
{
    g->stats->n[kind == ZN_VOTE_AGENT ? agents : certificates]++;
}

static void count_suppressed(zn_gate *g, zn_vote_kind kind)
{
    count(g, kind, ZN_STAT_CERTIFICATES_SUPPRESSED, ZN_STAT_AGENTS_SUPPRESSED);
}

uint32_t zn_secondary_observed(zn_gate *g, zn_vote_kind kind, const zn_hostname *text,
                               bool may_be_disclosed)
{
    uint32_t entry = may_be_disclosed ? zn_name_store_add_secondary(g->name_store) : 0;
    count(g, kind, ZN_STAT_CERTIFICATES, ZN_STAT_AGENTS);
    if (entry == 0 || !zn_name_store_keep_text(g->name_store, entry, text)) {
        zn_name_store_forget_secondary(g->name_store, entry);
        count_suppressed(g, kind);
        return 0;
    }
    zn_name_store_at(g->name_store, entry)->id = zn_gate_secondary_id(g, kind, text);
    return entry;
}

bool zn_secondary_vote(zn_gate *g, zn_vote_kind kind, int64_t t_ns, uint32_t flow, uint32_t entry)
{
    zn_name_entry *e = zn_name_store_at(g->name_store, entry);
    if (e->state != ZN_ENTRY_PENDING)
        return true;
    if (g->policy->established && !zn_flow_at(g->flows, flow)->client_acked)
        return false;
    e->state = ZN_ENTRY_VOTED;
    if (!zn_gate_vote(g, kind, t_ns, flow, entry))
        zn_secondary_decided(g, kind, entry, false);
    return true;
}

void zn_secondary_decided(zn_gate *g, zn_vote_kind kind, uint32_t entry, bool release)
{
    if (release) {
        zn_name_store_at(g->name_store, entry)->state = ZN_ENTRY_RELEASED;
        count(g, kind, ZN_STAT_CERTIFICATES_RELEASED, ZN_STAT_AGENTS_RELEASED);
        return;
    }
    zn_name_store_at(g->name_store, entry)->state = ZN_ENTRY_SUPPRESSED;
    zn_name_store_wipe_text(g->name_store, entry);
    count_suppressed(g, kind);
}

void zn_secondary_closed(zn_gate *g, zn_vote_kind kind, uint32_t entry)
{
    if (entry != 0 && zn_name_store_at(g->name_store, entry)->state == ZN_ENTRY_PENDING)
        zn_secondary_decided(g, kind, entry, false);
}
