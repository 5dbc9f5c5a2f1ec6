/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/layer7.h"

#include "analyzer/analyzers.h"
#include "analyzer/attributes.h"
#include "analyzer/message_sink.h"
#include "analyzer/secondary.h"
#include "analyzer/service.h"
#include "flow/flow_table.h"
#include "proto/ascii.h"
#include "proto/service_signature.h"
#include "proto/tls.h"

#define WATCHED_PACKETS 200u /* in which handshake and first data are looked for */
#define SERVER_SEGMENTS 40   /* segments in which a hello and a certificate are looked for */
#define STATUS_AT 9          /* offset of the status in "HTTP/1.1 200" */
#define TLS_1_3 0x0304

_Static_assert(ZN_TLS_VERSIONS == ZN_LAYER7_VERSIONS, "a flow keeps what a hello shows");

/* zn_layer7_state.session: Tstat's tls_session_stat */
enum { SESSION_ID = 1, CLIENT_PSK = 2, EARLY_DATA = 4, SERVER_PSK = 8, RETRY = 16 };

typedef struct context {
    zn_names *names;
    uint32_t flow;
    zn_flow *f;
    zn_flow_layer7 *l;
    const zn_packet *p;
} context;

static void count_http(zn_flow_layer7 *l, const zn_packet *p, bool from_client)
{
    zn_service_signature signature;
    if (!zn_service_may_be_http(zn_packet_start(p)))
        return;
    signature = zn_service_signature_of(p->payload);
    /* skips the addition if it is 0, because the counter lies in another cache line */
    if (from_client) {
        if (signature == ZN_SIGNATURE_HTTP_REQUEST || signature == ZN_SIGNATURE_HTTP_POST)
            ZN_LAYER7(l)->http_requests++;
    } else if (signature == ZN_SIGNATURE_HTTP_RESPONSE) {
        if (ZN_LAYER7(l)->http_responses++ == 0) {
            zn_cursor c = zn_cursor_over_span(p->payload, true);
            zn_span status;
            zn_cursor_skip(&c, STATUS_AT);
            status = zn_cursor_take(&c, sizeof ZN_LAYER7(l)->http_status);
            if (status.n != 0)
                memcpy(ZN_LAYER7(l)->http_status, status.p, status.n);
        }
    }
}

/* ---- certificate ---- */

/* Returns true if the client sent a TLS hello, at the start of the connection, or after a request
 * for a tunnel or for TLS. */
static bool has_hello(const zn_flow *f)
{
    return zn_service_is_tls(f, false) || ZN_STATE(f)->protocol == ZN_ANALYZER_TLS;
}

static void drop_stream(zn_names *names, zn_flow_layer7 *l)
{
    if (ZN_LAYER7(l)->stream != 0)
        zn_stream_give(&names->streams, ZN_LAYER7(l)->stream);
    ZN_LAYER7(l)->stream = 0;
}

static void finish_certificate(zn_names *names, zn_flow_layer7 *l)
{
    drop_stream(names, l);
    ZN_LAYER7(l)->state |= ZN_LAYER7_CERTIFICATE_DONE;
}

/* Normalises a certificate's name: a host's, perhaps after "*.". False for any other. */
static bool host_of(zn_span raw, zn_hostname *host)
{
    static const uint8_t any[] = {'*', '.'};
    zn_cursor c = zn_cursor_over_span(raw, true);
    zn_span start = zn_cursor_take(&c, sizeof any);
    bool wild = start.n != 0 && memcmp(start.p, any, sizeof any) == 0;
    zn_hostname rest;
    if (zn_hostname_normalize(wild ? zn_cursor_rest(&c) : raw, &rest) != ZN_HOST_NAME ||
        memchr(rest.text, '.', rest.n) == NULL || rest.n + sizeof any > ZN_HOSTNAME_MAX)
        return false;
    host->n = 0;
    if (wild) {
        memcpy(host->text, any, sizeof any);
        host->n = sizeof any;
    }
    memcpy(host->text + host->n, rest.text, rest.n);
    host->n = (uint8_t)(host->n + rest.n);
    return true;
}

static bool may_be_disclosed(const context *s, const zn_hostname *host)
{
    const zn_roles *roles = s->names->roles;
    zn_hostname bare = *host;
    if (host->text[0] == '*') {
        bare.n = (uint8_t)(host->n - 2);
        memmove(bare.text, bare.text + 2, bare.n);
    }
    return zn_roles_may_vote(roles, s->f) && zn_roles_list_refuses(roles, &bare) == ZN_STAT_COUNT;
}

static void vote(const context *s)
{
    if (zn_secondary_vote(s->names, ZN_VOTE_CERTIFICATE, s->p->t_ns, s->flow,
                          ZN_LAYER7(s->l)->certificate))
        ZN_LAYER7(s->l)->state |= ZN_LAYER7_CERTIFICATE_VOTED;
}

static void observe_certificate(const context *s, zn_span certificate)
{
    const zn_packet_context of = {s->names, s->flow, s->f, s->p,
                                  &s->names->analyzers[ZN_ANALYZER_TLS]};
    zn_hostname host;
    zn_span name;
    ZN_ASSERT(has_hello(s->f)); /* zn_layer7_need counts on it */
    zn_attributes_see(&of, ZN_EXPOSES_CERTIFICATE, certificate);
    if (!s->names->common_names)
        return;
    if (zn_x509_common_name(certificate, &name) != ZN_DONE || !host_of(name, &host))
        return;
    ZN_LAYER7(s->l)->certificate =
        zn_secondary_observed(s->names, ZN_VOTE_CERTIFICATE, &host, may_be_disclosed(s, &host));
    if (ZN_LAYER7(s->l)->certificate != 0)
        vote(s);
}

/* ---- TLS ---- */

static void read_client(zn_flow_layer7 *l, const zn_flow *f, const zn_tls_details *d)
{
    if ((ZN_LAYER7(l)->state & (ZN_LAYER7_CLIENT_READ | ZN_LAYER7_SERVER_FOUND)) == 0)
        ZN_LAYER7(l)->server_seq = f->side[1 - f->client].next_seq; /* the server answers there */
    ZN_LAYER7(l)->state |= ZN_LAYER7_CLIENT_READ;
    ZN_LAYER7(l)->version_count = d->versions;
    memcpy(ZN_LAYER7(l)->versions, d->version, sizeof ZN_LAYER7(l)->versions);
    ZN_LAYER7(l)->alpn[f->client] = d->protocols;
    ZN_LAYER7(l)->session =
        (uint8_t)((ZN_LAYER7(l)->session & (SERVER_PSK | RETRY)) |
                  (d->session_id ? SESSION_ID : 0) | (d->pre_shared_key ? CLIENT_PSK : 0) |
                  (d->early_data ? EARLY_DATA : 0));
}

static void read_server(zn_flow_layer7 *l, const zn_flow *f, const zn_tls_details *d)
{
    ZN_LAYER7(l)->server_version = d->version[0];
    ZN_LAYER7(l)->alpn[1 - f->client] = d->protocols;
    ZN_LAYER7(l)->session |=
        (uint8_t)((d->pre_shared_key ? SERVER_PSK : 0) | (d->retry ? RETRY : 0));
}

/* Reads the server's bytes from its hello on, up to a certificate in the clear. Returns whether
 * there is nothing more to read. */
static bool read_server_bytes(const context *s, zn_span bytes)
{
    zn_names *names = s->names;
    zn_tls_details details;
    zn_span certificate = {NULL, 0}, handshake;
    bool ended;
    zn_parse result;
    handshake = zn_tls_handshake_bytes(bytes, names->tls.bytes, sizeof names->tls.bytes, &ended);
    zn_tls_read_details(handshake, &details);
    if (details.versions == 0 && ended)
        return true;
    if (details.versions != 0)
        read_server(s->l, s->f, &details);
    if (details.versions != 0 && (details.version[0] >= TLS_1_3 || details.version[0] < 0x0300))
        return true;
    result = zn_tls_first_certificate(handshake, &certificate);
    if (result == ZN_DONE)
        observe_certificate(s, certificate);
    return result != ZN_NEED_MORE || ended;
}

/* Reads the server's bytes so far, and passes them on when reading ends. */
static void see_server_bytes(const context *s, zn_span bytes)
{
    const zn_packet_context of = {s->names, s->flow, s->f, s->p, NULL};
    if (!read_server_bytes(s, bytes))
        return;
    zn_message_put(&of, &(zn_message){.kind = ZN_MESSAGE_TLS_FLIGHT,
                                      .bytes = bytes,
                                      .seq = ZN_LAYER7(s->l)->server_seq,
                                      .entry = ZN_LAYER7(s->l)->certificate});
    finish_certificate(s->names, s->l);
}

/* Returns true if a segment begins with the server's hello, or follows a hello that has not been
 * captured yet. */
static bool finds_server(const context *s)
{
    zn_flow_layer7 *l = s->l;
    uint32_t offset = s->p->seq - ZN_LAYER7(l)->server_seq;
    if (zn_service_signature_of(s->p->payload) == ZN_SIGNATURE_TLS_SERVER_HELLO) {
        if (offset != 0)
            drop_stream(s->names, l);
        ZN_LAYER7(l)->state |= ZN_LAYER7_SERVER_FOUND;
        ZN_LAYER7(l)->server_seq = s->p->seq;
        return true;
    }
    return (ZN_LAYER7(l)->state & ZN_LAYER7_CLIENT_READ) != 0 &&
           s->f->flag_counts[1 - s->f->client].syn != 0 && offset != 0 && offset < ZN_STREAM_MAX;
}

/* Takes a segment of the server, while its hello or certificate is looked for. */
static void see_server(const context *s)
{
    zn_names *names = s->names;
    zn_flow_layer7 *l = s->l;
    uint32_t offset;
    bool awaited; /* segments behind this one came before it */
    if ((ZN_LAYER7(l)->state & ZN_LAYER7_CERTIFICATE_DONE) != 0)
        return;
    if ((ZN_LAYER7(l)->state & ZN_LAYER7_SERVER_FOUND) == 0 && !finds_server(s)) {
        if (++ZN_LAYER7(l)->segments > SERVER_SEGMENTS)
            finish_certificate(names, l);
        return;
    }
    offset = s->p->seq - ZN_LAYER7(l)->server_seq;
    awaited = ZN_LAYER7(l)->stream != 0;
    if (!awaited && offset == 0) {
        see_server_bytes(s, s->p->payload);
        if ((ZN_LAYER7(l)->state & ZN_LAYER7_CERTIFICATE_DONE) != 0)
            return;
    }
    if (ZN_LAYER7(l)->stream == 0 && offset < ZN_STREAM_MAX)
        ZN_LAYER7(l)->stream = zn_stream_take(&names->streams);
    if (ZN_LAYER7(l)->stream == 0 || ++ZN_LAYER7(l)->segments > SERVER_SEGMENTS) {
        finish_certificate(names, l);
        return;
    }
    switch (zn_stream_add(&names->streams, ZN_LAYER7(l)->stream, offset, s->p->payload)) {
    case ZN_STREAM_GREW:
        if (offset != 0 || awaited)
            see_server_bytes(s, zn_stream_start(&names->streams, ZN_LAYER7(l)->stream));
        break;
    case ZN_STREAM_CONFLICT:
    case ZN_STREAM_OUTSIDE:
        finish_certificate(names, l);
        break;
    case ZN_STREAM_STORED:
    case ZN_STREAM_NOTHING:
        break;
    }
}

static bool is_application_data(zn_span segment)
{
    zn_cursor c = zn_cursor_over_span(segment, true);
    uint32_t start = zn_cursor_be24(&c);
    zn_cursor_skip(&c, 3);
    return zn_cursor_ok(&c) && start >= 0x170300 && start <= 0x170303;
}

/* Notes when each side sent its first segment that begins with application data, and the last one
 * before it; from the client's hello on. */
static void see_phase(const context *s)
{
    unsigned i = s->p->sender;
    const zn_flow_side *side = &s->f->side[i];
    zn_flow_layer7 *l = s->l;
    if (ZN_LAYER7(l)->appdata_ns[i] != 0 ||
        side->packets + s->f->side[1 - i].packets > WATCHED_PACKETS)
        return;
    if (zn_service_is_tls(s->f, true) && is_application_data(s->p->payload)) {
        ZN_LAYER7(l)->appdata_ns[i] = s->p->t_ns;
        ZN_LAYER7(l)->appdata_seq[i] =
            side->next_seq - (side->fin != 0) - side->isn - s->p->payload_len;
    } else {
        ZN_LAYER7(l)->last_handshake_ns[i] = s->p->t_ns;
    }
}

/* Looks at a segment of a flow that is not done. */
static void see_segment(const context *s)
{
    bool from_client = s->p->sender == s->f->client;
    bool tls = has_hello(s->f);
    /* Flows without TLS have no certificate: *l need not be fetched for them. */
    if (tls && ZN_LAYER7(s->l)->certificate != 0)
        vote(s);
    if (s->p->payload.n == 0)
        return;
    count_http(s->l, s->p, from_client);
    if (!tls)
        return;
    if (zn_service_is_tls(s->f, false)) /* zn_layer7_need counts on it */
        see_phase(s);
    if (!from_client)
        see_server(s);
    else if ((ZN_LAYER7(s->l)->state & ZN_LAYER7_CLIENT_READ) == 0)
        zn_layer7_client_hello(s->names, s->f, s->p->payload, NULL);
}

void zn_layer7_need(const zn_names *names, const zn_flow *f, zn_watch_need *need)
{
    const zn_flow_layer7 *l = zn_flow_layer7_entry(names->flows, f);
    uint32_t packets;
    if (l == NULL || !zn_flow_has_user(f))
        return;
    zn_watch_need_both(need, ZN_WATCH_TEXT); /* a request or response */
    /* Other flows have no certificate, and no column has the times of their handshake. */
    if (ZN_STATE(f)->service != ZN_SERVICE_TLS && ZN_STATE(f)->protocol != ZN_ANALYZER_TLS)
        return;
    if (ZN_LAYER7(l)->certificate != 0 && (ZN_LAYER7(l)->state & ZN_LAYER7_CERTIFICATE_VOTED) == 0)
        zn_watch_need_both(need, ZN_WATCH_PACKET);
    packets = f->side[0].packets + f->side[1].packets;
    for (unsigned i = 0; i < 2; i++) {
        uint8_t read = i == f->client ? ZN_LAYER7_CLIENT_READ : ZN_LAYER7_CERTIFICATE_DONE;
        if ((ZN_LAYER7(l)->state & read) == 0) {
            need->side[i] |= ZN_WATCH_PAYLOAD;
        } else if (ZN_STATE(f)->service == ZN_SERVICE_TLS && ZN_LAYER7(l)->appdata_ns[i] == 0 &&
                   packets < WATCHED_PACKETS) {
            need->side[i] |= ZN_WATCH_START | ZN_WATCH_TIME;
            zn_watch_need_after(need, WATCHED_PACKETS + 1 - packets);
        }
    }
}

void zn_layer7_packet(zn_names *names, uint32_t flow, zn_flow *f, const zn_packet *p)
{
    zn_flow_layer7 *l = zn_flow_layer7_entry(names->flows, f);
    context s;
    if (l == NULL || !zn_flow_has_user(f) || (p->tcp_flags & ZN_TCP_RST) != 0)
        return;
    s = (context){names, flow, f, l, p};
    see_segment(&s);
}

void zn_layer7_client_hello(zn_names *names, const zn_flow *f, zn_span bytes,
                            const zn_tls_details *details)
{
    zn_flow_layer7 *l = zn_flow_layer7_of(names->flows, f);
    zn_tls_details read;
    bool ended;
    if (l == NULL)
        return;
    if (details == NULL || details->versions == 0) {
        zn_tls_read_details(
            zn_tls_handshake_bytes(bytes, names->tls.bytes, sizeof names->tls.bytes, &ended),
            &read);
        details = &read;
    }
    if (details->versions != 0)
        read_client(l, f, details);
}

void zn_layer7_closed(zn_names *names, const zn_flow *f)
{
    zn_flow_layer7 *l = zn_flow_layer7_of(names->flows, f);
    if (l == NULL)
        return;
    drop_stream(names, l);
    zn_secondary_closed(names, ZN_VOTE_CERTIFICATE, ZN_LAYER7(l)->certificate);
}

void zn_layer7_forget(zn_names *names, const zn_flow *f)
{
    zn_flow_layer7 *l = zn_flow_layer7_of(names->flows, f);
    if (l == NULL)
        return;
    zn_name_store_forget_secondary(names->name_store, ZN_LAYER7(l)->certificate);
    ZN_LAYER7(l)->certificate = 0;
}
