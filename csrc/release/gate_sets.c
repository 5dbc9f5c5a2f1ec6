/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The E2E, OPTIONS, LAYER7 and DNS columns of a flow whose record may tell everything measured. */
#include "analyzer/names.h"
#include "release/gate_internal.h"

static const zn_anomaly columns[] = {
    ZN_RETRANSMITTED_RTO, ZN_RETRANSMITTED_FAST, ZN_REORDERED,    ZN_DUPLICATED,
    ZN_ANOMALY_UNKNOWN,   ZN_FLOW_CONTROL,       ZN_UNNEEDED_RTO, ZN_UNNEEDED_FAST,
};
_Static_assert(sizeof columns / sizeof columns[0] ==
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
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        r->anomalies[i] = side->anomalies[columns[i]];
    r->flags_moved = side->flags_moved;
}

static void fill_layer7_side(const zn_flow *f, const zn_flow_layer7 *l, unsigned i,
                             zn_record_side *r)
{
    bool tls = zn_service_is_tls(f, true);
    r->messages = l->messages[i] + f->side[i].messages;
    r->protocols = l->alpn[i];
    if (tls && l->last_handshake_ns[i] > f->first_ns)
        r->last_handshake_ns = l->last_handshake_ns[i] - f->first_ns;
    if (tls && l->appdata_ns[i] > f->first_ns) {
        r->appdata_ns = l->appdata_ns[i] - f->first_ns;
        r->appdata_bytes = l->appdata_seq[i];
    }
}

/* As Tstat has it: the digits there are, "000" when there are none. */
static zn_span status_of(const zn_flow_layer7 *l)
{
    static const uint8_t none[] = {'0', '0', '0'};
    zn_span digits = {(const uint8_t *)l->http_status, 0};
    while (digits.n < sizeof l->http_status && l->http_status[digits.n] >= '0' &&
           l->http_status[digits.n] <= '9')
        digits.n++;
    return digits.n != 0 ? digits : (zn_span){none, sizeof none};
}

static void fill_layer7(const zn_gate *g, const zn_flow *f, const zn_flow_layer7 *l, zn_record *r)
{
    if (r->beyond_core == 0)
        r->beyond_core = ZN_RECORD_LAYER7 - ZN_RECORD_CORE;
    fill_layer7_side(f, l, f->client, &r->client);
    fill_layer7_side(f, l, 1u - f->client, &r->server);
    r->http_requests = l->http_requests;
    r->http_responses = l->http_responses;
    if (r->connection_type == ZN_CONNECTION_HTTP)
        r->http_status = status_of(l);
    r->tls_session = l->session;
    r->client.tls_versions = l->version_count;
    memcpy(r->client.tls_version, l->versions, sizeof l->versions);
    r->server.tls_version[0] = l->server_version;
    r->server.tls_versions = l->server_version != 0;
    if (l->certificate != 0 &&
        zn_name_store_at(g->name_store, l->certificate)->state == ZN_ENTRY_RELEASED)
        r->certificate = zn_name_store_text(g->name_store, l->certificate);
}

void zn_gate_fill_sets(const zn_gate *g, const zn_flow *f, zn_record *r)
{
    const zn_tcp_path *path = zn_flow_path(g->flows, f);
    const zn_flow_layer7 *l = zn_flow_layer7_of(g->flows, f);
    if (path != NULL) {
        r->beyond_core = sizeof(zn_record_side) - ZN_RECORD_CORE;
        fill_path(&path->side[f->client], &r->client);
        fill_path(&path->side[1 - f->client], &r->server);
    }
    if (l != NULL)
        fill_layer7(g, f, l, r);
}

void zn_gate_fill_quic(const zn_gate *g, const zn_quic_facts *quic, zn_record *r)
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

static void show_resolver(const zn_gate *g, const zn_resolution *from, zn_record *r)
{
    zn_id id = zn_votes_id(g->votes, ZN_VOTE_ADDR, zn_addr_span(&from->resolver));
    if (zn_addr_is_special(&from->resolver))
        return;
    if (from->resolver_internal) {
        if (from->epoch != r->epoch || /* it has another pseudonym by now */
            zn_addr_is_unset(&from->resolver_pseudonym))
            return;
        r->resolver = from->resolver_pseudonym;
        r->resolver_disclosure = ZN_DISCLOSURE_PSEUDONYM;
    } else if (r->epoch + 1 < g->clients_epoch) { /* who was a client then is forgotten */
        return;
    } else if (!zn_gate_was_client(g, &from->resolver) && zn_gate_is_shared(g, id)) {
        r->resolver = from->resolver;
        r->resolver_disclosure = ZN_DISCLOSURE_RELEASED;
    }
}

void zn_gate_fill_resolution(const zn_gate *g, const zn_flow *f, zn_record *r)
{
    const zn_resolution *from = zn_dn_hunter_of(g->dn_hunter, f);
    if (from == NULL || f->ech_offered ||
        !zn_gate_is_shared(g, zn_votes_id(g->votes, ZN_VOTE_NAME, zn_hostname_span(&from->host))))
        return;
    r->fqdn = zn_hostname_span(&from->host);
    r->resolver_query_ns = from->query_ns;
    r->resolver_answer_ns = from->answer_ns;
    show_resolver(g, from, r);
}
