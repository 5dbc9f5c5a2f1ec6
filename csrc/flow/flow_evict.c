/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in a full table. Lingering flows go first: their records are written. Then the flows that
 * are idle for longest: the wheel's lists are sorted by how long their flows were idle when they
 * went in, which is true to ZN_FLOW_VISIT_S; of the first ROOM_CHOICE times as many as are wanted,
 * the oldest are taken. What a flow more costs is thereby bounded, however large the table is.
 */
#include "flow/flow_internal.h"

#include <stdlib.h>

#define EVICT_CHOICE 4

typedef struct candidate {
    int64_t last_ns;
    uint32_t flow;
    uint32_t order; /* ties keep it */
} candidate;

typedef struct zn_flow_search {
    candidate found[EVICT_CHOICE * ZN_FLOW_EVICT_MAX];
    uint32_t n, most;
} search;

/* Takes open flows out of the wheel, from the front of a list, until it is empty or there are
 * enough. */
static void search_list(zn_flow_table *t, search *s, unsigned number)
{
    uint32_t flow;
    while (s->n < s->most && (flow = zn_flow_wheel_first(t, number)) != 0) {
        s->found[s->n] = (candidate){zn_flow_at(t, flow)->last_ns, flow, s->n};
        s->n++;
        zn_flow_wheel_remove(t, flow);
    }
}

static int by_age(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->last_ns != b->last_ns)
        return a->last_ns < b->last_ns ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

void zn_flow_evict(zn_flow_table *t, uint32_t want)
{
    search *s = t->search;
    want = want < ZN_FLOW_EVICT_MAX ? want : ZN_FLOW_EVICT_MAX;
    for (; want != 0 && t->lingering.first != 0; want--)
        zn_flow_free_lingering(t);
    s->n = 0;
    s->most = EVICT_CHOICE * want;
    for (unsigned age = ZN_WHEEL_AGES; age-- > 0 && s->n < s->most;)
        for (unsigned i = 1; i <= ZN_WHEEL_SLOTS && s->n < s->most; i++)
            search_list(t, s, zn_flow_wheel_at(t->wheel_s + i, age));
    qsort(s->found, s->n, sizeof *s->found, by_age);
    for (uint32_t i = 0; i < s->n; i++) {
        zn_flow_timer_start(t, s->found[i].flow);
        if (i < want) {
            zn_flow_close(t, s->found[i].flow, ZN_FLOW_EVICTED);
            t->stats->n[ZN_STAT_FLOWS_EVICTED]++;
        }
    }
}

size_t zn_flow_search_bytes(void)
{
    return sizeof(search);
}
