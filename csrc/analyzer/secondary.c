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

uint32_t zn_beside_found(zn_gate *g, zn_vote_kind kind, const zn_hostname *text, bool may_be_shown)
{
    uint32_t entry = may_be_shown ? zn_book_add_beside(g->book) : 0;
    count(g, kind, ZN_STAT_CERTIFICATES, ZN_STAT_AGENTS);
    if (entry == 0 || !zn_book_keep_text(g->book, entry, text)) {
        zn_book_forget_beside(g->book, entry);
        count_suppressed(g, kind);
        return 0;
    }
    zn_book_at(g->book, entry)->id = zn_gate_beside_id(g, kind, text);
    return entry;
}

bool zn_beside_vote(zn_gate *g, zn_vote_kind kind, int64_t t_ns, uint32_t flow, uint32_t entry)
{
    zn_name_entry *e = zn_book_at(g->book, entry);
    if (e->state != ZN_ENTRY_PENDING)
        return true;
    if (g->policy->established && !zn_flow_at(g->flows, flow)->client_acked)
        return false;
    e->state = ZN_ENTRY_VOTED;
    if (!zn_gate_vote(g, kind, t_ns, flow, entry))
        zn_beside_settle(g, kind, entry, false);
    return true;
}

void zn_beside_settle(zn_gate *g, zn_vote_kind kind, uint32_t entry, bool release)
{
    if (release) {
        zn_book_at(g->book, entry)->state = ZN_ENTRY_RELEASED;
        count(g, kind, ZN_STAT_CERTIFICATES_RELEASED, ZN_STAT_AGENTS_RELEASED);
        return;
    }
    zn_book_at(g->book, entry)->state = ZN_ENTRY_SUPPRESSED;
    zn_book_wipe_text(g->book, entry);
    count_suppressed(g, kind);
}

void zn_beside_closed(zn_gate *g, zn_vote_kind kind, uint32_t entry)
{
    if (entry != 0 && zn_book_at(g->book, entry)->state == ZN_ENTRY_PENDING)
        zn_beside_settle(g, kind, entry, false);
}
