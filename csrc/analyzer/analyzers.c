/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/analyzers.h"

#include "analyzer/attributes.h"
#include "analyzer/exchange_attributes.h"
#include "analyzer/parse_state.h"
#include "analyzer/tcp_stream.h"
#include "analyzer/unread.h"

#define X(ID, name, ...) extern const zn_analyzer_functions zn_##name##_functions;
ZN_ANALYZERS(X)
#undef X

/* No analyzer. A message that is abandoned before its analyzer is known was most likely TLS. */
static const zn_analyzer_functions no_functions;
#define NONE                                                                                       \
    {.name = "none", .functions = &no_functions, .source = ZN_SOURCE_TLS, .seen = ZN_STAT_NAMES_TLS}

static const zn_analyzer analyzers[ZN_ANALYZERS_END] = {NONE,
#define X(ID, name, transports, port, starts, source, seen)                                        \
    {#name, &zn_##name##_functions, port, ZN_ANALYZER_##ID, transports, source, seen},
                                                        ZN_ANALYZERS(X)
#undef X
};

int zn_analyzers_open(zn_names *names, uint32_t max_flows, zn_error *err)
{
    size_t datagram_bytes = sizeof(uint64_t);
    int rc = 0;
    for (unsigned id = 1; id < ZN_ANALYZERS_END && rc == 0; id++) {
        const zn_analyzer_functions *functions = analyzers[id].functions;
        if (functions->state_bytes > datagram_bytes)
            datagram_bytes = functions->state_bytes;
        if (functions->open != NULL)
            rc = functions->open(&names->state[id], max_flows, err);
    }
    names->analyzers = analyzers;
    names->analyzer_count = ZN_ANALYZERS_END;
    return rc == 0 ? zn_names_init(names, max_flows, datagram_bytes, err) : rc;
}

void zn_analyzers_close(zn_names *names)
{
    zn_names_fini(names);
    zn_attributes_close(names->attributes);
    for (unsigned id = 1; id < ZN_ANALYZERS_END; id++)
        if (names->state[id] != NULL)
            analyzers[id].functions->close(names->state[id]);
}

size_t zn_analyzers_memory(const zn_names *names)
{
    size_t bytes = zn_names_memory(names) + zn_attributes_memory(names->attributes);
    for (unsigned id = 1; id < ZN_ANALYZERS_END; id++)
        if (analyzers[id].functions->memory != NULL)
            bytes += analyzers[id].functions->memory(names->state[id]);
    return bytes;
}

/* ---- datagrams ------------------------------------------------------------------------------- */

static bool is_over_udp(const zn_analyzer *a)
{
    return (a->transports & ZN_OVER_UDP) != 0;
}

bool zn_analyzers_may_be_answer(const zn_packet *p)
{
    uint16_t port = p->tuple.port[p->sender];
    for (unsigned id = 1; p->tuple.proto == ZN_PROTO_UDP && id < ZN_ANALYZERS_END; id++)
        if (is_over_udp(&analyzers[id]) && analyzers[id].port == port && port != 0)
            return true;
    return false;
}

/* Notes a client's datagram that no analyzer reads: an echo of it may look like an answer. */
static void note_unsupported(const zn_packet_context *s)
{
    if (s->p->sender != s->f->client)
        return;
    if (ZN_UNLIKELY(s->names->attributes != NULL))
        zn_exchange_attributes_note(s);
    for (unsigned id = 1; id < ZN_ANALYZERS_END; id++) {
        const zn_analyzer_functions *functions = analyzers[id].functions;
        if (functions->may_answer != NULL && functions->may_answer(s)) {
            zn_flow_note_server(s->f, s->f->client);
            return;
        }
    }
}

/* Notes a datagram that anybody may have sent. */
static void disregard_datagram(zn_packet_context *s)
{
    s->analyzer = &analyzers[ZN_STATE(s->f)->protocol];
    if (s->analyzer->functions->disregard == NULL)
        note_unsupported(s);
    else if (s->f->datagram != 0)
        s->analyzer->functions->disregard(s);
}

/* Takes a state for a flow that the analyzer recognised. Returns false when there is no room: all
 * that the flow exposes is then suppressed. */
static bool open_datagram(const zn_packet_context *s)
{
    ZN_STATE(s->f)->protocol = s->analyzer->id & 0x1fu;
    s->f->datagram = zn_slab_take(&s->names->datagrams);
    if (s->f->datagram != 0)
        return true;
    s->names->stats->n[ZN_STAT_DATAGRAMS_FULL]++;
    zn_names_rejected(s, ZN_STAT_SUPPRESSED_CAPACITY);
    return false;
}

/* Has an analyzer read a datagram, of a flow that no analyzer with a state has; returns whether it
 * took the datagram. */
static bool takes_datagram(zn_packet_context *s, const zn_analyzer *a)
{
    if (!is_over_udp(a) || (a->port == 0 ? ZN_STATE(s->f)->protocol != ZN_ANALYZER_NONE
                                         : !zn_analyzer_has_port(a, &s->f->tuple)))
        return false;
    s->analyzer = a;
    if (a->functions->starts != NULL && !a->functions->starts(s, s->p->payload))
        return false;
    if (a->functions->state_bytes == 0)
        return a->functions->datagram(s);
    if (open_datagram(s))
        (void)a->functions->datagram(s);
    return true;
}

static void see_datagram(zn_packet_context *s)
{
    s->analyzer = &analyzers[ZN_STATE(s->f)->protocol];
    if (s->analyzer->functions->state_bytes != 0) {
        if (s->f->datagram != 0)
            (void)s->analyzer->functions->datagram(s);
        return;
    }
    for (unsigned id = 1; id < ZN_ANALYZERS_END; id++)
        if (takes_datagram(s, &analyzers[id]))
            return;
    zn_unread_datagram(s);
    if (ZN_UNLIKELY(s->names->attributes != NULL))
        zn_exchange_attributes_read(s);
    if (ZN_STATE(s->f)->protocol == ZN_ANALYZER_NONE)
        note_unsupported(s);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* Notes a packet that came by another tunnel than its flow: it does not prove the user either. */
static void disregard(zn_packet_context *s)
{
    zn_flow *f = s->f;
    s->names->stats->n[ZN_STAT_TUNNEL_MISMATCH]++;
    zn_unread_disregard(s);
    if (ZN_STATE(f)->addr_vote == ZN_ADDR_PENDING) {
        f->syn_acked = f->client_acked = false;
        f->side[0].isn_claimed = f->side[1].isn_claimed = false;
    }
    if (s->p->tuple.proto == ZN_PROTO_UDP && s->p->payload_len != 0)
        disregard_datagram(s);
}

bool zn_analyzers_packet(zn_names *names, uint32_t flow, zn_flow *f, const zn_packet *p)
{
    zn_packet_context s = {names, flow, f, p, NULL};
    if (ZN_UNLIKELY(!ZN_FACTS(f)->client_marked))
        zn_names_mark_client(&s);
    if (!zn_flow_has_user(f))
        return true;
    if (ZN_FACTS(f)->client_bytes == ZN_CLIENT_SILENT)
        zn_unread_see(&s);
    if (ZN_UNLIKELY(p->tunnel_count != 0 || f->user_outside) &&
        !zn_roles_is_user(names->roles, names->flows, f, p)) {
        disregard(&s);
        return false;
    }
    if (ZN_STATE(f)->addr_vote == ZN_ADDR_PENDING)
        zn_names_check_evidence(&s);
    if (p->payload_len == 0)
        return true;
    if (p->tuple.proto == ZN_PROTO_TCP)
        zn_tcp_stream_segment(&s);
    else
        see_datagram(&s);
    return true;
}

/* Has its analyzer finish a flow that is in the middle of a message. */
static void finish_flow(zn_names *names, uint32_t flow, zn_flow *f)
{
    zn_packet last = {.t_ns = f->side[f->client].last_data_ns};
    zn_packet_context s = {names, flow, f, &last, &analyzers[ZN_STATE(f)->protocol]};
    last.tuple = f->tuple;
    last.sender = f->client;
    if (f->tuple.proto == ZN_PROTO_TCP)
        zn_tcp_stream_closed(&s);
    else if (s.analyzer->functions->closed != NULL)
        s.analyzer->functions->closed(&s);
    zn_names_drop_stream(names, f);
}

void zn_analyzers_flow_closed(zn_names *names, uint32_t flow, zn_flow *f)
{
    bool udp = f->tuple.proto != ZN_PROTO_TCP;
    uint8_t parse = zn_parse_state_of(f);
    bool after_message = parse == ZN_PARSE_BETWEEN || parse >= ZN_PARSE_OWN;
    if (udp ? f->datagram != 0 : ZN_STATE(f)->stream != 0 || after_message)
        finish_flow(names, flow, f);
    if (!udp)
        zn_parse_end(names, f);
    zn_names_closed(names, f);
    zn_attributes_closed(names, flow);
}

void zn_analyzers_forget(zn_names *names, zn_flow *f)
{
    const zn_analyzer_functions *functions = analyzers[ZN_STATE(f)->protocol].functions;
    if (f->tuple.proto != ZN_PROTO_UDP || f->datagram == 0)
        return;
    if (functions->forget != NULL)
        functions->forget(names, f);
    zn_slab_give(&names->datagrams, f->datagram);
    f->datagram = 0;
}
