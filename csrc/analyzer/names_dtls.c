/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in DTLS ClientHellos.
 *
 * A hello may come in fragments, in any order. Clients send it a second time when the server asks
 * them to prove their address (HelloVerifyRequest, RFC 6347 4.2.1): the cookie in it is the
 * evidence that the client is real, unless its side asked itself, which a server that echoes would
 * send back. Where the server does not ask, there is none: a name is then unconfirmed.
 */
#include "analyzer/names_internal.h"
#include "proto/dtls.h"

#define HELLOS_MAX 8       /* ClientHellos looked at in one flow */
#define COOKIE_BYTES_MIN 4 /* as hard to guess as a TCP sequence number */

static zn_dtls_state *state_of(const zn_packet_context *s)
{
    return &zn_names_datagram(s->names, s->f)->dtls;
}

static zn_id cookie_id(const zn_packet_context *s, zn_span cookie)
{
    return zn_hash128(&s->names->cookie_key, 0, cookie.p, cookie.n);
}

/* The hello in progress is read, or given up. */
static void end_hello(const zn_packet_context *s)
{
    zn_names_drop_stream(s->names, s->f);
    state_of(s)->collecting = false;
}

static void refuse(const zn_packet_context *s, zn_stat why)
{
    zn_names_rejected(s->names, s->f, ZN_SOURCE_TLS, why);
    end_hello(s);
}

static void see_hello(const zn_packet_context *s, const zn_tls_hello *hello)
{
    const zn_dtls_state *d = state_of(s);
    bool proves = d->cookie_known && !zn_flow_client_plays_server(s->f) &&
                  hello->cookie.n >= COOKIE_BYTES_MIN &&
                  zn_id_equal(d->cookie, cookie_id(s, hello->cookie));
    s->f->ech_offered |= hello->ech_offered;
    s->names->stats->n[ZN_STAT_HELLOS_ECH] += hello->ech_offered;
    s->f->client_acked = false; /* another association on the same ports may be forged */
    if (proves)
        zn_names_client_proven(s, 0);
    (void)zn_names_observed(s, ZN_SOURCE_TLS, hello->name);
}

/* Reads a hello from what is there of its body. */
static void read_body(const zn_packet_context *s, zn_span body, bool cut)
{
    const zn_dtls_state *d = state_of(s);
    zn_tls_hello hello;
    if (body.n < d->length && !cut)
        return;
    switch (zn_tls_datagram_hello(body, d->length, &hello)) {
    case ZN_DONE:
        see_hello(s, &hello);
        end_hello(s);
        break;
    case ZN_NEED_MORE:
        refuse(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        break;
    case ZN_MALFORMED:
    case ZN_OTHER:
        refuse(s, ZN_STAT_SUPPRESSED_INVALID);
        break;
    }
}

static void collect(const zn_packet_context *s, const zn_dtls_fragment *part)
{
    zn_stream_pool *streams = &s->names->streams;
    zn_flow *f = s->f;
    if (!zn_names_has_stream(s)) {
        refuse(s, ZN_STAT_SUPPRESSED_CAPACITY);
    } else if (zn_stream_add(streams, f->stream, part->offset, part->bytes) == ZN_STREAM_CONFLICT) {
        refuse(s, ZN_STAT_SUPPRESSED_CONFLICT);
    } else {
        read_body(s, zn_stream_start(streams, f->stream), false);
    }
}

/* A part of the hello before comes again while this one is put together, as a copy does that the
 * network made or delayed: receivers drop it (RFC 6347 4.2.2). */
static bool is_late(const zn_dtls_state *d, const zn_dtls_fragment *part)
{
    return d->collecting && d->before != 0 && part->length == d->before &&
           part->message == d->message_before;
}

/* Another hello begins; the last one was read, or is given up now. False when there were too
 * many. */
static bool begin_hello(const zn_packet_context *s, const zn_dtls_fragment *part)
{
    zn_dtls_state *d = state_of(s);
    d->before = d->collecting ? 0 : d->length;
    if (d->collecting)
        refuse(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    d->message_before = d->message;
    d->message = part->message;
    d->length = part->length;
    if (d->hellos == HELLOS_MAX) {
        s->f->names_dropped = true; /* it may hold another name */
        s->names->stats->n[ZN_STAT_DTLS_HELLOS_LIMIT]++;
        return false;
    }
    d->hellos++;
    d->collecting = true;
    return true;
}

static void see_fragment(const zn_packet_context *s, const zn_dtls_fragment *part)
{
    zn_dtls_state *d = state_of(s);
    /* Old clients give the hello with the cookie the number of the first. */
    bool same = d->hellos != 0 && d->message == part->message &&
                (d->collecting || d->length == part->length);
    if (part->type != ZN_DTLS_CLIENT_HELLO || (same && !d->collecting))
        return;
    if (is_late(d, part)) {
        s->f->names_dropped = true; /* it may hold another name */
        return;
    }
    if (!same && !begin_hello(s, part))
        return;
    if (part->length != d->length)
        refuse(s, ZN_STAT_SUPPRESSED_CONFLICT);
    else if (part->cut || part->bytes.n == part->length)
        read_body(s, part->bytes, part->cut && part->offset == 0);
    else
        collect(s, part);
}

static void see_client(const zn_packet_context *s)
{
    zn_dtls_reader reader = zn_dtls_read(s->p->payload, zn_packet_payload_whole(s->p));
    zn_dtls_fragment part;
    while (zn_dtls_next_fragment(&reader, &part) == ZN_DONE) {
        if (part.type == ZN_DTLS_HELLO_VERIFY_REQUEST)
            zn_flow_note_server(s->f, s->f->client);
        see_fragment(s, &part);
    }
}

bool zn_names_dtls_may_answer(const zn_packet_context *s)
{
    zn_dtls_reader reader = zn_dtls_read(s->p->payload, zn_packet_payload_whole(s->p));
    zn_dtls_fragment part;
    while (zn_dtls_next_fragment(&reader, &part) == ZN_DONE)
        if (part.type == ZN_DTLS_HELLO_VERIFY_REQUEST)
            return true;
    return false;
}

static void see_server(const zn_packet_context *s)
{
    zn_dtls_reader reader = zn_dtls_read(s->p->payload, zn_packet_payload_whole(s->p));
    zn_dtls_state *d = state_of(s);
    zn_dtls_fragment part;
    zn_span cookie;
    while (zn_dtls_next_fragment(&reader, &part) == ZN_DONE) {
        if (part.type == ZN_DTLS_HELLO_VERIFY_REQUEST && part.bytes.n == part.length &&
            zn_dtls_verify_request(part.bytes, &cookie) == ZN_DONE) {
            d->cookie = cookie_id(s, cookie);
            d->cookie_known = true;
        }
    }
}

void zn_names_dtls(const zn_packet_context *s)
{
    if (s->f->datagram == 0)
        return;
    if (s->p->sender == s->f->client)
        see_client(s);
    else
        see_server(s);
}

bool zn_names_dtls_begins(const zn_packet_context *s)
{
    zn_dtls_reader reader = zn_dtls_read(s->p->payload, zn_packet_payload_whole(s->p));
    zn_dtls_fragment part;
    if (s->p->sender != s->f->client || zn_dtls_next_fragment(&reader, &part) != ZN_DONE ||
        part.type != ZN_DTLS_CLIENT_HELLO)
        return false;
    if (zn_names_open_datagram(s, ZN_PROTOCOL_DTLS, ZN_SOURCE_TLS))
        zn_names_dtls(s);
    return true;
}

void zn_names_dtls_closed(zn_names *names, zn_flow *f)
{
    if (zn_names_datagram(names, f)->dtls.collecting)
        zn_names_rejected(names, f, ZN_SOURCE_TLS, ZN_STAT_SUPPRESSED_INCOMPLETE);
}
