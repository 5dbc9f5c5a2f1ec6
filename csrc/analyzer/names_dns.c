/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/names_internal.h"

/* A name that is there, and cannot be written as one or was not read. */
static void refuse(const zn_packet_context *s)
{
    s->names->stats->n[ZN_STAT_NAMES_DNS]++;
    zn_names_rejected(s->names, s->f, ZN_SOURCE_DNS, ZN_STAT_SUPPRESSED_INVALID);
}

static void found(const zn_packet_context *s, const zn_dns_question *q)
{
    uint32_t entry = zn_names_observed(s, ZN_SOURCE_DNS, (zn_span){q->name, q->name_bytes});
    zn_name_entry *e;
    if (entry == 0)
        return;
    e = zn_name_store_at(s->names->name_store, entry);
    e->dns_id = q->id;
    e->dns_type = q->type;
}

void zn_names_question(const zn_packet_context *s, const zn_dns_question *q)
{
    if (q->name_odd)
        refuse(s);
    else
        found(s, q);
    if (q->more)
        refuse(s);
}
