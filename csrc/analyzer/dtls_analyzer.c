/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in DTLS ClientHellos.
 *
 * A hello may come in fragments, in any order. Clients send it a second time when the server asks
 * them to prove their address (HelloVerifyRequest, RFC 6347 4.2.1): the cookie in the second hello
 * is the evidence that the client is real. It is no evidence if the client's side sent a
 * HelloVerifyRequest itself, because an echo server would send it back. If the server does not ask,
 * the name stays unconfirmed.
 */
#include "analyzer/analyzer.h"
#include "analyzer/attributes.h"
#include "analyzer/message_sink.h"
#include "analyzer/parse_state.h"
#include "proto/dtls.h"

#define HELLOS_MAX 8       /* ClientHellos looked at in one flow */
#define COOKIE_BYTES_MIN 4 /* as hard to guess as a TCP sequence number */

/* The state of a flow. */
typedef struct dtls_flow {
    uint32_t link;    /* the slab's, while free */
    uint32_t length;  /* of the hello in progress */
    zn_id cookie;     /* identity of the server's cookie */
    uint32_t before;  /* length of the hello before, 0: there was none */
    uint16_t message; /* number of the hello in progress, or of the last one read */
    uint16_t message_before;
    uint8_t hellos;  /* how many were begun */
    uint8_t earlier; /* datagrams of the client since its last fragment; 255 means 255 or more */
    bool collecting : 1;
    bool cookie_known : 1;
} dtls_flow;

static int open_key(void **state, uint32_t max_flows, zn_error *err)
{
    zn_hash_key *key = *state = zn_heap_alloc(sizeof *key);
    (void)max_flows;
    if (key == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a key");
    return zn_hash_key_random(key, err);
}

static dtls_flow *state_of(const zn_packet_context *s)
{
    return zn_names_datagram(s->names, s->f);
}

/* Cookies are compared by identities under a key of the run. */
static zn_id cookie_id(const zn_packet_context *s, zn_span cookie)
{
    return zn_hash128(zn_analyzer_state(s), 0, cookie.p, cookie.n);
}

/* Ends the hello in progress, which was read or is abandoned. */
static void end_hello(const zn_packet_context *s)
{
    zn_names_drop_stream(s->names, s->f);
    state_of(s)->collecting = false;
}

static void reject(const zn_packet_context *s, zn_stat why)
{
    zn_names_rejected(s, why);
    end_hello(s);
}

static void see_hello(const zn_packet_context *s, const zn_tls_hello *hello)
{
    const dtls_flow *d = state_of(s);
    bool proves = d->cookie_known && !zn_flow_client_plays_server(s->f) &&
                  hello->cookie.n >= COOKIE_BYTES_MIN &&
                  zn_id_equal(d->cookie, cookie_id(s, hello->cookie));
    ZN_FACTS(s->f)->ech_offered |= hello->ech_offered;
    s->names->stats->n[ZN_STAT_HELLOS_ECH] += hello->ech_offered;
    s->f->client_acked = false; /* another association on the same ports may be forged */
    if (proves)
        zn_names_client_proven(s, 0);
    (void)zn_names_observed(s, hello->name);
    if (proves || !s->names->roles->established)
        zn_attributes_see(s, ZN_EXPOSES_CLIENT_HELLO, hello->body);
}

/* Reads a hello from the bytes of its body that are there. */
static void read_body(const zn_packet_context *s, zn_span body, bool cut)
{
    const dtls_flow *d = state_of(s);
    zn_tls_hello hello;
    if (body.n < d->length && !cut)
        return;
    switch (zn_tls_datagram_hello(body, d->length, &hello)) {
    case ZN_DONE:
        if (body.n == d->length)
            zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_DTLS_HELLO,
                                            .bytes = body,
                                            .seq = d->message,
                                            .earlier = d->earlier});
        see_hello(s, &hello);
        ZN_STATE(s->f)->parse = ZN_PARSE_OFF; /* all names so far are read */
        end_hello(s);
        break;
    case ZN_NEED_MORE:
        reject(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        break;
    case ZN_MALFORMED:
    case ZN_OTHER:
        reject(s, ZN_STAT_SUPPRESSED_INVALID);
        break;
    }
}

static void collect(const zn_packet_context *s, const zn_dtls_fragment *part)
{
    zn_stream_pool *streams = &s->names->streams;
    zn_flow *f = s->f;
    if (!zn_names_has_stream(s)) {
        reject(s, ZN_STAT_SUPPRESSED_CAPACITY);
    } else if (zn_stream_add(streams, ZN_STATE(f)->stream, part->offset, part->bytes) ==
               ZN_STREAM_CONFLICT) {
        reject(s, ZN_STAT_SUPPRESSED_CONFLICT);
    } else {
        read_body(s, zn_stream_start(streams, ZN_STATE(f)->stream), false);
    }
}

/* Returns whether the fragment is of the hello before, while this one is put together: the network
 * copied or delayed it, and receivers drop it (RFC 6347 4.2.2). */
static bool is_late(const dtls_flow *d, const zn_dtls_fragment *part)
{
    return d->collecting && d->before != 0 && part->length == d->before &&
           part->message == d->message_before;
}

/* Begins another hello; the previous hello was read, or is abandoned now. Returns false if the flow
 * had too many hellos. */
static bool begin_hello(const zn_packet_context *s, const zn_dtls_fragment *part)
{
    dtls_flow *d = state_of(s);
    d->before = d->collecting ? 0 : d->length;
    if (d->collecting)
        reject(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    d->message_before = d->message;
    d->message = part->message;
    d->length = part->length;
    if (d->hellos == HELLOS_MAX) {
        s->f->names_dropped = true; /* it may hold another name */
        s->names->stats->n[ZN_STAT_DTLS_HELLOS_LIMIT]++;
        return false;
    }
    d->hellos++;
    d->earlier = 0;
    d->collecting = true;
    return true;
}

static void see_fragment(const zn_packet_context *s, const zn_dtls_fragment *part)
{
    dtls_flow *d = state_of(s);
    /* Old clients number the hello with the cookie like the first one. */
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
        reject(s, ZN_STAT_SUPPRESSED_CONFLICT);
    else if (part->cut || part->bytes.n == part->length)
        read_body(s, part->bytes, part->cut && part->offset == 0);
    else
        collect(s, part);
}

static void see_client(const zn_packet_context *s)
{
    zn_dtls_reader reader = zn_dtls_read(s->p->payload, zn_packet_payload_whole(s->p));
    dtls_flow *d = state_of(s);
    zn_dtls_fragment part;
    bool has_hello = false;
    if (d->earlier < UINT8_MAX)
        d->earlier++;
    while (zn_dtls_next_fragment(&reader, &part) == ZN_DONE) {
        if (part.type == ZN_DTLS_HELLO_VERIFY_REQUEST)
            zn_flow_note_server(s->f, s->f->client);
        has_hello |= part.type == ZN_DTLS_CLIENT_HELLO;
        see_fragment(s, &part);
    }
    if (has_hello && zn_packet_payload_whole(s->p))
        zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_DTLS, .bytes = s->p->payload});
}

static bool may_answer(const zn_packet_context *s)
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
    dtls_flow *d = state_of(s);
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

static bool datagram(const zn_packet_context *s)
{
    if (s->p->sender == s->f->client)
        see_client(s);
    else
        see_server(s);
    return true;
}

static bool starts(const zn_packet_context *s, zn_span bytes)
{
    zn_dtls_reader reader = zn_dtls_read(bytes, zn_packet_payload_whole(s->p));
    zn_dtls_fragment part;
    return zn_dtls_next_fragment(&reader, &part) == ZN_DONE && part.type == ZN_DTLS_CLIENT_HELLO &&
           (s->p->sender == s->f->client || zn_names_opens_late(s));
}

/* Counts a hello that never became whole. */
static void closed(const zn_packet_context *s)
{
    if (state_of(s)->collecting)
        zn_names_rejected(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

const zn_analyzer_functions zn_dtls_functions = {
    .starts = starts,
    .datagram = datagram,
    .state_bytes = sizeof(dtls_flow),
    .may_answer = may_answer,
    .closed = closed,
    .open = open_key,
    .close = zn_heap_free,
};
