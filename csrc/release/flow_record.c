/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/flow_record.h"

#include "analyzer/analyzers.h"
#include "analyzer/service.h"
#include "analyzer/unread.h"
#include "release/disclosure.h"
#include "release/gate_levels.h"

/* Returns true if the flow exposed a name that was not released, or may have. An unread flow counts
 * like a flow with a name where records are exact. */
static bool has_withheld(const zn_gate *g, const zn_flow *f)
{
    if (zn_unread(f))
        return !g->policy->exact;
    for (uint32_t entry = ZN_FACTS(f)->names; entry != 0;
         entry = zn_name_store_at(g->name_store, entry)->next)
        if (zn_name_store_at(g->name_store, entry)->state != ZN_ENTRY_RELEASED &&
            zn_name_store_at(g->name_store, entry)->state != ZN_ENTRY_REPEATED)
            return true;
    return f->names_dropped;
}

/* Returns the first entry of the list that is a hostname, or the first entry if none is. */
static uint32_t first_valid(const zn_gate *g, const zn_flow *f)
{
    uint32_t entry = ZN_FACTS(f)->names;
    while (entry != 0 && zn_name_store_at(g->name_store, entry)->state == ZN_ENTRY_INVALID)
        entry = zn_name_store_at(g->name_store, entry)->next;
    return entry != 0 ? entry : ZN_FACTS(f)->names;
}

/* Returns the entry that decided the flow's first hostname, which may be a later entry of the
 * list. */
static uint32_t first_name(const zn_gate *g, const zn_flow *f)
{
    uint32_t first = first_valid(g, f);
    const zn_name_entry *e;
    for (uint32_t entry = first; entry != 0; entry = e->next) {
        e = zn_name_store_at(g->name_store, entry);
        if (e->state != ZN_ENTRY_REPEATED &&
            zn_id_equal(e->id, zn_name_store_at(g->name_store, first)->id))
            return entry;
    }
    return first;
}

static void fill_name(const zn_gate *g, const zn_flow *f, zn_record *r)
{
    uint32_t first = first_name(g, f);
    const zn_name_entry *e;
    if (first == 0) {
        r->status = f->names_dropped || zn_unread(f) ? ZN_NAME_SUPPRESSED : ZN_NAME_NONE;
        return;
    }
    e = zn_name_store_at(g->name_store, first);
    r->source = (zn_name_source)e->source;
    switch ((zn_entry_state)e->state) {
    case ZN_ENTRY_RELEASED:
        r->status = ZN_NAME_RELEASED;
        r->name_level = ZN_NAME_LEVEL_NAME;
        r->name = zn_name_store_text(g->name_store, first);
        break;
    case ZN_ENTRY_DOMAIN:
    case ZN_ENTRY_CATEGORY:
        r->status = ZN_NAME_GENERALIZED;
        r->name_level = e->state == ZN_ENTRY_DOMAIN ? ZN_NAME_LEVEL_DOMAIN : ZN_NAME_LEVEL_CATEGORY;
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

/* Returns the ns from the flow's start to t_ns, or 0 if t_ns never came, as Tstat does. */
static int64_t since(const zn_flow *f, int64_t t_ns)
{
    return t_ns > f->first_ns ? t_ns - f->first_ns : 0;
}

/* Returns the type of a flow that an analyzer recognised, or the type by the looks of a side. */
static uint8_t udp_type_of(const zn_flow *f, const zn_quic_facts *quic, unsigned side)
{
    if (quic != NULL && quic->both_ways)
        return ZN_UDP_QUIC;
    return ZN_STATE(f)->protocol == ZN_ANALYZER_DTLS ? ZN_UDP_DTLS : zn_service_udp_type(f, side);
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

/* Returns the address that an end's pseudonym replaces. The user of a tunnel has the address of the
 * tunnel's end. */
static const zn_addr *known_as(const zn_gate *g, const zn_flow *f, unsigned end)
{
    return f->user == end ? zn_flow_user(g->flows, f) : &f->tuple.addr[end];
}

/* Sets the pseudonym of an end. Special addresses have no pseudonym. */
static void set_pseudonym(const zn_gate *g, const zn_flow *f, unsigned end, zn_record_side *r)
{
    zn_addr pseudonym = zn_flow_pseudonym(g->flows, f, end);
    if (zn_addr_is_unset(&pseudonym))
        return;
    r->addr = pseudonym;
    r->disclosure = ZN_DISCLOSURE_PSEUDONYM;
}

static void set_client(const zn_gate *g, const zn_flow *f, zn_record_side *r)
{
    if (!zn_addr_is_special(known_as(g, f, f->client)))
        set_pseudonym(g, f, f->client, r);
}

/* Returns the hash by which the server's address is looked for among the clients; 0 if neither the
 * address nor a label of the address was published. */
static uint64_t server_hash(const zn_gate *g, const zn_flow *f)
{
    if (ZN_STATE(f)->addr_vote < ZN_ADDR_RELEASED || ZN_STATE(f)->addr_vote == ZN_ADDR_SUPPRESSED ||
        f->internal[1 - f->client])
        return 0;
    return zn_clients_hash(&g->clients, &f->tuple.addr[1 - f->client]);
}

bool zn_flow_record_votes_for_dns_only(const zn_policy *policy, const zn_flow *f)
{
    return policy->roles->dns_votes == ZN_DNS_VOTES_OWN && f->tuple.proto == ZN_PROTO_TCP &&
           f->tuple.port[1 - f->client] == ZN_DNS_PORT && ZN_STATE(f)->protocol != 0 &&
           ZN_STATE(f)->protocol != ZN_ANALYZER_DNS;
}

/* Sets the server's released address, or the label by which the address is published. */
static void show_server(const zn_gate *g, const zn_flow *f, zn_record *r)
{
    const zn_addr *real = &f->tuple.addr[1u - f->client];
    if (ZN_STATE(f)->addr_vote == ZN_ADDR_RELEASED) {
        r->server_level = ZN_SERVER_LEVEL_ADDRESS;
        r->server.addr = *real;
        r->server.disclosure = ZN_DISCLOSURE_RELEASED;
        return;
    }
    r->server_level =
        ZN_STATE(f)->addr_vote == ZN_ADDR_AS ? ZN_SERVER_LEVEL_AS : ZN_SERVER_LEVEL_COUNTRY;
    r->server_label = zn_labels_place(&g->levels->labels, r->server_level, real);
}

/* Sets the server's address, its pseudonym or its label. server: from server_hash. */
static void set_server(const zn_gate *g, const zn_flow *f, uint64_t server, zn_record *r)
{
    unsigned end = 1u - f->client;
    const zn_addr *real = &f->tuple.addr[end];
    bool special = zn_addr_is_special(real);
    if (special ? !zn_addr_is_group(real) : zn_addr_is_special(known_as(g, f, end)))
        return;
    if (f->internal[end] && !special) {
        set_pseudonym(g, f, end, &r->server);
    } else if (server != 0 && g->decider->server_may_show(g, server) &&
               !zn_flow_record_votes_for_dns_only(g->policy, f)) {
        show_server(g, f, r);
    }
}

static const zn_anomaly anomaly_columns[] = {
    ZN_RETRANSMITTED_RTO, ZN_RETRANSMITTED_FAST, ZN_REORDERED,    ZN_DUPLICATED,
    ZN_ANOMALY_UNKNOWN,   ZN_FLOW_CONTROL,       ZN_UNNEEDED_RTO, ZN_UNNEEDED_FAST,
};
_Static_assert(sizeof anomaly_columns / sizeof anomaly_columns[0] ==
                   sizeof((zn_record_side *)NULL)->anomalies / sizeof(uint64_t),
               "a column for each");
_Static_assert(ZN_RECORD_VERSIONS == ZN_LAYER7_VERSIONS, "a record has what a flow kept");

static void fill_path(const zn_path_side *side, zn_record_side *r)
{
    r->rtt_mean_ns = zn_path_rtt_mean(side);
    r->rtt_min_ns = side->rtt_min_ns;
    r->rtt_max_ns = side->rtt_max_ns;
    r->rtt_deviation_ns = zn_path_rtt_deviation(side);
    r->rtt_count = side->rtt_count;
    r->ttl_min = side->ttl_min;
    r->ttl_max = side->ttl_max;
    r->scale_seen = side->scale_seen;
    r->timestamps = side->timestamps;
    r->scale = side->scale;
    r->sack_permitted = side->sack_permitted;
    r->sacks = side->sacks;
    r->mss = side->mss;
    r->segment_max = side->segment_max;
    r->segment_min = side->segment_min;
    r->window_max = side->window_max;
    r->window_min = side->window_min;
    r->window_zero = side->window_zero;
    r->flight_max = side->flight_max;
    r->flight_min = side->flight_min;
    r->flight_first = side->flight_first;
    for (size_t i = 0; i < sizeof anomaly_columns / sizeof anomaly_columns[0]; i++)
        r->anomalies[i] = side->anomalies[anomaly_columns[i]];
    r->flags_moved = side->flags_moved;
}

static void fill_layer7_side(const zn_flow *f, const zn_flow_layer7 *l, unsigned i,
                             zn_record_side *r)
{
    bool tls = zn_service_is_tls(f, true);
    r->messages = l->messages[i] + f->side[i].messages;
    r->protocols = ZN_LAYER7(l)->alpn[i];
    if (tls && ZN_LAYER7(l)->last_handshake_ns[i] > f->first_ns)
        r->last_handshake_ns = ZN_LAYER7(l)->last_handshake_ns[i] - f->first_ns;
    if (tls && ZN_LAYER7(l)->appdata_ns[i] > f->first_ns) {
        r->appdata_ns = ZN_LAYER7(l)->appdata_ns[i] - f->first_ns;
        r->appdata_bytes = ZN_LAYER7(l)->appdata_seq[i];
    }
}

/* Returns the status as Tstat prints it: its digits, or "000" without digits. */
static zn_span status_of(const zn_flow_layer7 *l)
{
    static const uint8_t none[] = {'0', '0', '0'};
    zn_span digits = {(const uint8_t *)ZN_LAYER7(l)->http_status, 0};
    while (digits.n < sizeof ZN_LAYER7(l)->http_status &&
           ZN_LAYER7(l)->http_status[digits.n] >= '0' && ZN_LAYER7(l)->http_status[digits.n] <= '9')
        digits.n++;
    return digits.n != 0 ? digits : (zn_span){none, sizeof none};
}

static void fill_layer7(const zn_gate *g, const zn_flow *f, const zn_flow_layer7 *l, zn_record *r)
{
    if (r->filled_after_core == 0)
        r->filled_after_core = ZN_RECORD_LAYER7 - ZN_RECORD_CORE;
    fill_layer7_side(f, l, f->client, &r->client);
    fill_layer7_side(f, l, 1u - f->client, &r->server);
    r->http_requests = ZN_LAYER7(l)->http_requests;
    r->http_responses = ZN_LAYER7(l)->http_responses;
    if (r->connection_type == ZN_CONNECTION_HTTP)
        r->http_status = status_of(l);
    r->tls_session = ZN_LAYER7(l)->session;
    r->client.tls_versions = ZN_LAYER7(l)->version_count;
    memcpy(r->client.tls_version, ZN_LAYER7(l)->versions, sizeof ZN_LAYER7(l)->versions);
    r->server.tls_version[0] = ZN_LAYER7(l)->server_version;
    r->server.tls_versions = ZN_LAYER7(l)->server_version != 0;
    if (ZN_LAYER7(l)->certificate != 0 &&
        zn_name_store_at(g->name_store, ZN_LAYER7(l)->certificate)->state == ZN_ENTRY_RELEASED)
        r->certificate = zn_name_store_text(g->name_store, ZN_LAYER7(l)->certificate);
}

static void fill_sets(const zn_gate *g, const zn_flow *f, zn_record *r)
{
    const zn_tcp_path *path = zn_flow_path(g->flows, f);
    const zn_flow_layer7 *l = zn_flow_layer7_of(g->flows, f);
    if (path != NULL) {
        r->filled_after_core = sizeof(zn_record_side) - ZN_RECORD_CORE;
        fill_path(&path->side[f->client], &r->client);
        fill_path(&path->side[1 - f->client], &r->server);
    }
    if (l != NULL)
        fill_layer7(g, f, l, r);
}

static void fill_quic(const zn_gate *g, const zn_quic_facts *quic, zn_record *r)
{
    if (quic == NULL)
        return;
    if (quic->agent != 0 &&
        zn_name_store_at(g->name_store, quic->agent)->state == ZN_ENTRY_RELEASED)
        r->user_agent = zn_name_store_text(g->name_store, quic->agent);
    if (!quic->both_ways)
        return;
    r->client.quic_version = quic->version[0];
    r->server.quic_version = quic->version[1];
    r->quic_zero_rtt = quic->zero_rtt;
    r->quic_ech_bytes = quic->ech_bytes;
}

/* Fills the attributes that may be shown. A flow that may have a name shows none. */
static void fill_attributes(const zn_gate *g, const zn_flow *f, uint32_t entry, zn_record *r)
{
    if (!g->policy->roles->release_all && zn_unread(f))
        return;
    while (entry != 0) {
        const zn_name_entry *e = zn_name_store_at(g->name_store, entry);
        if (e->state == ZN_ENTRY_RELEASED)
            r->attribute[e->attribute] = zn_name_store_text(g->name_store, entry);
        entry = e->next;
    }
}

static void set_resolver(const zn_gate *g, const zn_resolution *from, zn_record *r)
{
    if (zn_addr_is_special(&from->resolver))
        return;
    if (from->resolver_internal) {
        if (from->epoch != r->epoch || /* the resolver has another pseudonym now */
            zn_addr_is_unset(&from->resolver_pseudonym))
            return;
        r->resolver = from->resolver_pseudonym;
        r->resolver_disclosure = ZN_DISCLOSURE_PSEUDONYM;
    } else if (g->decider->resolver_may_show(g, from, r->epoch)) {
        r->resolver = from->resolver;
        r->resolver_disclosure = ZN_DISCLOSURE_RELEASED;
    }
}

static void fill_resolution(const zn_gate *g, const zn_flow *f, zn_record *r)
{
    const zn_resolution *from = zn_dn_hunter_of(g->dn_hunter, f);
    if (from == NULL || ZN_FACTS(f)->ech_offered || !g->decider->host_is_shared(g, from))
        return;
    r->fqdn = zn_hostname_span(&from->host);
    r->resolver_query_ns = from->query_ns;
    r->resolver_answer_ns = from->answer_ns;
    set_resolver(g, from, r);
}

uint64_t zn_flow_record_prefetch(const zn_gate *g, const zn_flow *f)
{
    uint64_t server = server_hash(g, f);
    if (ZN_FACTS(f)->names != 0)
        ZN_PREFETCH_WRITE(zn_name_store_at(g->name_store, ZN_FACTS(f)->names));
    if (server != 0) {
        zn_clients_prefetch(&g->clients, server);
    }
    return server;
}

void zn_flow_record_prefetch_name(const zn_gate *g, const zn_flow *f)
{
    if (ZN_FACTS(f)->names != 0)
        zn_name_store_prefetch_text(g->name_store, ZN_FACTS(f)->names);
}

/* Clears the members that the last record filled. */
static void clear(zn_record *r)
{
    size_t filled = ZN_RECORD_CORE + r->filled_after_core;
    memset(r, 0, offsetof(zn_record, client));
    memset(&r->client, 0, filled);
    memset(&r->server, 0, filled);
}

static zn_flag flag(bool is)
{
    return is ? ZN_FLAG_YES : ZN_FLAG_NO;
}

/* Fills the members that every flow has. */
static void fill_flow(const zn_gate *g, const zn_flow *f, const zn_quic_facts *quic, zn_record *r)
{
    r->proto = (uint8_t)f->tuple.proto;
    r->complete = zn_flow_complete(f) || f->tuple.proto == ZN_PROTO_UDP;
    r->midstream = f->midstream;
    r->is_complete = flag(r->complete && !r->midstream);
    r->is_midstream = flag(r->midstream);
    r->is_early = flag(f->end == ZN_FLOW_EVICTED);
    r->connection_type = zn_service_connection(f);
    r->http_method = r->connection_type == ZN_CONNECTION_HTTP ? ZN_FACTS(f)->http_method : 0;
    r->ech = ZN_FACTS(f)->ech_offered ? ZN_ECH_OFFERED : ZN_ECH_NONE;
    r->epoch = zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns);
    r->first_ns = f->first_ns;
    r->last_ns = f->last_ns;
    r->closed_ns = zn_policy_time(f->closed_ns, ZN_COARSE_TIME_NS);
    fill_name(g, f, r);
    fill_side(g, f, f->client, &r->client);
    fill_side(g, f, 1u - f->client, &r->server);
    r->client.udp_type = udp_type_of(f, quic, f->client);
    r->server.udp_type = udp_type_of(f, quic, 1u - f->client);
}

void zn_flow_record_fill(const zn_gate *g, const zn_flow *f, const zn_quic_facts *quic,
                         uint64_t server, uint32_t attributes, zn_record *r)
{
    const zn_roles *roles = g->policy->roles;
    zn_disclosure_case c = {.policy = g->policy,
                            .is_dns = ZN_STATE(f)->protocol == ZN_ANALYZER_DNS};
    clear(r);
    fill_flow(g, f, quic, r);
    c.withheld = !roles->release_all && has_withheld(g, f);
    c.coarse = c.withheld && !g->policy->exact;
    c.keep_client_port = g->policy->keep_client_port &&
                         (roles->release_all || (r->status == ZN_NAME_RELEASED && !c.withheld));
    set_client(g, f, &r->client);
    if (!c.withheld)
        set_server(g, f, server != 0 ? server : server_hash(g, f), r);
    if (!c.coarse) {
        fill_sets(g, f, r);
        fill_quic(g, quic, r);
    }
    if (!c.withheld && ZN_UNLIKELY(attributes != 0))
        fill_attributes(g, f, attributes, r);
    if (!c.withheld && roles->dn_hunter)
        fill_resolution(g, f, r);
    if (!roles->dn_hunter && r->proto == ZN_PROTO_UDP && r->source == ZN_SOURCE_DNS)
        r->fqdn = r->name;
    zn_disclose(&c, r);
    r->coarse = c.coarse;
}
