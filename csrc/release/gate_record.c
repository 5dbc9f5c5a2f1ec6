/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a flow record may say. A flow whose names were all released, or that exposed none, is told
 * exactly. Any other is told so that nothing beside the name gives the name away: no server
 * address, no uncommon server port, times floored to a minute, packets and bytes rounded up to
 * powers of the square root of two, everything else zero.
 */
#include "analyzer/analyzers.h"
#include "release/disclosure.h"
#include "release/gate_internal.h"

/* The flow exposed something that was not released. */
static bool has_withheld(const zn_gate *g, const zn_flow *f)
{
    for (uint32_t entry = f->names; entry != 0;
         entry = zn_name_store_at(g->name_store, entry)->next)
        if (zn_name_store_at(g->name_store, entry)->state != ZN_ENTRY_RELEASED &&
            zn_name_store_at(g->name_store, entry)->state != ZN_ENTRY_REPEATED)
            return true;
    return f->names_dropped;
}

/* The flow's first name: the entry that decided it, which may be a later one of its list. */
static uint32_t first_name(const zn_gate *g, const zn_flow *f)
{
    const zn_name_entry *e;
    for (uint32_t entry = f->names; entry != 0; entry = e->next) {
        e = zn_name_store_at(g->name_store, entry);
        if (e->state != ZN_ENTRY_REPEATED &&
            zn_id_equal(e->id, zn_name_store_at(g->name_store, f->names)->id))
            return entry;
    }
    return f->names;
}

static void fill_name(const zn_gate *g, const zn_flow *f, zn_record *r)
{
    uint32_t first = first_name(g, f);
    const zn_name_entry *e;
    if (first == 0) {
        r->status = f->names_dropped ? ZN_NAME_SUPPRESSED : ZN_NAME_NONE;
        return;
    }
    e = zn_name_store_at(g->name_store, first);
    r->source = (zn_name_source)e->source;
    switch ((zn_entry_state)e->state) {
    case ZN_ENTRY_RELEASED:
        r->status = ZN_NAME_RELEASED;
        r->name = zn_name_store_text(g->name_store, first);
        break;
    case ZN_ENTRY_PENDING:
    case ZN_ENTRY_UNCONFIRMED:
        r->status = ZN_NAME_UNCONFIRMED;
        break;
    case ZN_ENTRY_INVALID:
        r->status = ZN_NAME_INVALID;
        break;
    case ZN_ENTRY_VOTED:
    case ZN_ENTRY_REPEATED:
    case ZN_ENTRY_SUPPRESSED:
        r->status = ZN_NAME_SUPPRESSED;
        break;
    }
}

/* Times since the flow's start; 0 when it never happened, as Tstat has it. */
static int64_t since(const zn_flow *f, int64_t t_ns)
{
    return t_ns > f->first_ns ? t_ns - f->first_ns : 0;
}

/* The type of a flow that an analyzer recognised; else each side's by its looks. */
static uint8_t udp_type_of(const zn_flow *f, const zn_quic_facts *quic, unsigned side)
{
    if (quic != NULL && quic->both_ways)
        return ZN_UDP_QUIC;
    return f->protocol == ZN_ANALYZER_DTLS ? ZN_UDP_DTLS : zn_service_udp_type(f, side);
}

static void fill_side(const zn_gate *g, const zn_flow *f, unsigned i, zn_record_side *r)
{
    const zn_flow_side *side = &f->side[i];
    const zn_flow_flag_counts *flag_counts = &f->flag_counts[i];
    const zn_flow_retransmissions *retransmissions = zn_flow_retransmissions_of(g->flows, f, i);
    r->internal = f->internal[i];
    r->port = f->tuple.port[i];
    r->packets = side->packets;
    r->packets_data = side->packets_data;
    r->bytes_all = r->bytes_unique = side->bytes;
    if (retransmissions != NULL) {
        r->packets_retransmitted = retransmissions->packets;
        r->packets_out_of_order = retransmissions->packets_out_of_order;
        r->bytes_retransmitted = retransmissions->bytes;
        r->bytes_unique = side->bytes - retransmissions->bytes;
    }
    r->acks = side->acks;
    r->acks_pure = side->acks_pure;
    r->rst = flag_counts->rst;
    r->syn = flag_counts->syn;
    r->fin = side->fin;
    r->first_data_ns = since(f, side->first_data_ns);
    r->last_data_ns = since(f, side->last_data_ns);
    r->first_ack_ns = since(f, side->first_ack_ns);
}

/* The address that an end's pseudonym stands for: in a tunnel, the user's is that of its end. */
static const zn_addr *known_as(const zn_gate *g, const zn_flow *f, unsigned end)
{
    return f->user == end ? zn_flow_user(g->flows, f) : &f->tuple.addr[end];
}

/* There is none where it would stand for a special address. */
static void show_pseudonym(const zn_gate *g, const zn_flow *f, unsigned end, zn_record_side *r)
{
    zn_addr pseudonym = zn_flow_pseudonym(g->flows, f, end);
    if (zn_addr_is_unset(&pseudonym))
        return;
    r->addr = pseudonym;
    r->disclosure = ZN_DISCLOSURE_PSEUDONYM;
}

static void show_client(const zn_gate *g, const zn_flow *f, zn_record_side *r)
{
    if (!zn_addr_is_special(known_as(g, f, f->client)))
        show_pseudonym(g, f, f->client, r);
}

/* What is looked for among the clients: the server's address, where it may be told. */
static uint64_t server_hash(const zn_gate *g, const zn_flow *f)
{
    if (f->addr_vote != ZN_ADDR_RELEASED || f->internal[1 - f->client])
        return 0;
    return zn_gate_client_hash(g, &f->tuple.addr[1 - f->client]);
}

/* server: server_hash. */
static void show_server(const zn_gate *g, const zn_flow *f, uint64_t server, zn_record_side *r)
{
    unsigned end = 1u - f->client;
    const zn_addr *real = &f->tuple.addr[end];
    if (zn_addr_is_special(real) || zn_addr_is_special(known_as(g, f, end)))
        return;
    if (f->internal[end]) {
        show_pseudonym(g, f, end, r);
    } else if (server != 0 && !zn_gate_was_client_hash(g, server)) {
        r->addr = *real;
        r->disclosure = ZN_DISCLOSURE_RELEASED;
    }
}

uint64_t zn_gate_prefetch(const zn_gate *g, const zn_flow *f)
{
    uint64_t server = server_hash(g, f);
    if (f->names != 0)
        ZN_PREFETCH_WRITE(zn_name_store_at(g->name_store, f->names));
    if (server != 0) {
        zn_addr_set_prefetch(&g->clients[0], server);
        zn_addr_set_prefetch(&g->clients[1], server);
    }
    return server;
}

void zn_gate_prefetch_name(const zn_gate *g, const zn_flow *f)
{
    if (f->names != 0)
        zn_name_store_prefetch_text(g->name_store, f->names);
}

/* Zeroes what is not zero. */
static void clear(zn_record *r)
{
    size_t filled = ZN_RECORD_CORE + r->beyond_core;
    memset(r, 0, offsetof(zn_record, client));
    memset(&r->client, 0, filled);
    memset(&r->server, 0, filled);
}

static zn_flag flag(bool is)
{
    return is ? ZN_FLAG_YES : ZN_FLAG_NO;
}

/* Fills what every flow has. */
static void fill_flow(const zn_gate *g, const zn_flow *f, const zn_quic_facts *quic, zn_record *r)
{
    r->proto = (uint8_t)f->tuple.proto;
    r->complete = zn_flow_complete(f) || f->tuple.proto == ZN_PROTO_UDP;
    r->midstream = f->midstream;
    r->is_complete = flag(r->complete && !r->midstream);
    r->is_midstream = flag(r->midstream);
    r->is_early = flag(f->end == ZN_FLOW_EVICTED);
    r->connection_type = zn_service_connection(f);
    r->http_method = r->connection_type == ZN_CONNECTION_HTTP ? f->http_method : 0;
    r->ech = f->ech_offered ? ZN_ECH_OFFERED : ZN_ECH_NONE;
    r->epoch = zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns);
    r->first_ns = f->first_ns;
    r->last_ns = f->last_ns;
    fill_name(g, f, r);
    fill_side(g, f, f->client, &r->client);
    fill_side(g, f, 1u - f->client, &r->server);
    r->client.udp_type = udp_type_of(f, quic, f->client);
    r->server.udp_type = udp_type_of(f, quic, 1u - f->client);
}

bool zn_gate_record(const zn_gate *g, const zn_flow *f, const zn_quic_facts *quic, uint64_t ahead,
                    zn_record *r)
{
    const zn_roles *roles = g->policy->roles;
    zn_disclosure_case c = {.is_dns = f->protocol == ZN_ANALYZER_DNS,
                            .dn_hunter = roles->dn_hunter,
                            .rotate_ns = roles->rotate_ns};
    clear(r);
    if (!zn_flow_has_user(f))
        return false;
    fill_flow(g, f, quic, r);
    c.withheld = !roles->release_all && has_withheld(g, f);
    c.coarse = c.withheld && !g->policy->exact;
    c.keep_client_port = g->policy->keep_client_port &&
                         (roles->release_all || (r->status == ZN_NAME_RELEASED && !c.withheld));
    show_client(g, f, &r->client);
    if (!c.withheld)
        show_server(g, f, ahead != 0 ? ahead : server_hash(g, f), &r->server);
    if (!c.coarse) {
        zn_gate_fill_sets(g, f, r);
        zn_gate_fill_quic(g, quic, r);
    }
    if (!c.withheld && roles->dn_hunter)
        zn_gate_fill_resolution(g, f, r);
    if (!roles->dn_hunter && r->proto == ZN_PROTO_UDP && r->source == ZN_SOURCE_DNS)
        r->fqdn = r->name;
    zn_disclose(&c, r);
    return true;
}
