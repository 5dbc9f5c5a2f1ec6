/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in QUIC Initials, and who is behind them.
 *
 * A flow's connection begins with the first client Initial that authenticates under keys from its
 * own Destination Connection ID. Those keys open the client's later Initials whatever ID they are
 * addressed to, until a Retry gives new ones. An Initial with yet another ID that authenticates
 * under itself begins another connection on the same ports: its name needs evidence of its own.
 * Anything that does not authenticate is counted and left alone.
 * What proves its client is in names_quic_proof.c.
 */
#include "analyzer/names_internal.h"
#include "analyzer/secondary.h"

/* Client Initials tried in one connection: the longest hello that is put together in datagrams of
 * FIRST_DATAGRAM_MIN, all of them sent twice. */
#define INITIALS_MAX 32
#define CONNECTIONS_MAX 8       /* connections of one flow that are looked at */
#define FIRST_DATAGRAM_MIN 1200 /* RFC 9000 14.1: a client's first datagram has at least this */
#define FIRST_DCID_MIN 8        /* RFC 9000 7.2 */
#define FIXED_BIT 0x40u

static zn_quic_state *state_of(const zn_packet_context *s)
{
    return &zn_names_datagram(s->names, s->f)->quic;
}

/* Gives up on the connection's name, which counts as suppressed. */
static void refuse(const zn_packet_context *s, zn_stat why)
{
    zn_names_rejected(s->names, s->f, ZN_SOURCE_QUIC, why);
    zn_names_drop_stream(s->names, s->f);
    state_of(s)->done = true;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Whether the packet opens under keys from `dcid`; they are then the connection's. */
static bool opens_under(const zn_packet_context *s, const zn_quic_packet *packet, zn_span dcid,
                        zn_span *plain)
{
    zn_quic_state *q = state_of(s);
    zn_quic *quic = s->names->quic;
    zn_quic_secret sides[2];
    zn_quic_keys keys;
    if (!zn_quic_derive(quic, packet->version, dcid, sides) ||
        !zn_quic_expand(packet->version, &sides[ZN_QUIC_CLIENT], &keys) ||
        zn_quic_unseal(quic, &keys, packet, plain) != ZN_DONE)
        return false;
    q->keys = keys;
    q->server_secret = sides[ZN_QUIC_SERVER];
    q->version = packet->version;
    return true;
}

/* The first connection of the flow, or another one: nothing that was proven before is of use. */
static void begin_connection(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_state *q = state_of(s);
    zn_quic_state fresh = {
        .version = q->version, .keys = q->keys, .server_secret = q->server_secret, .opened = true};
    if (q->opened && !q->done)
        refuse(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    fresh.first = zn_quic_id_from(packet->dcid);
    fresh.client = zn_quic_id_from(packet->scid);
    memcpy(fresh.own, q->own, sizeof fresh.own);
    fresh.owns = q->owns;
    fresh.connections = (uint8_t)(q->connections + 1);
    fresh.answered_before = s->f->side[1 - s->f->client].bytes;
    fresh.initials = 1;
    fresh.facts = q->facts;
    *q = fresh;
    s->f->client_acked = false;
}

/* The packet goes to an ID of this connection. */
static bool is_addressed_here(const zn_quic_state *q, const zn_quic_packet *packet)
{
    return q->opened && (zn_quic_is_id(&q->first, packet->dcid) ||
                         (q->server_known && zn_quic_is_id(&q->server, packet->dcid)));
}

/* Whether an Initial of the connection opens: under its keys, those of another version from the
 * same ID, or those that a Retry asked for, which the client then starts its hello over with. */
static bool opens_here(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    zn_quic_state *q = state_of(s);
    bool opens = q->version == packet->version
                     ? zn_quic_unseal(s->names->quic, &q->keys, packet, plain) == ZN_DONE
                     : opens_under(s, packet, zn_quic_id_span(&q->first), plain);
    if (opens || !q->retried || !opens_under(s, packet, zn_quic_id_span(&q->retry), plain))
        return opens;
    zn_names_drop_stream(s->names, s->f);
    q->first = q->retry;
    q->retried = false;
    return true;
}

/* The plaintext of a client's Initial, under the keys of its connection or as a new one. */
static bool open_initial(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    zn_quic_state *q = state_of(s);
    if (q->opened && opens_here(s, packet, plain))
        return true;
    if (is_addressed_here(q, packet) || !opens_under(s, packet, packet->dcid, plain))
        return false;
    begin_connection(s, packet);
    return true;
}

/* ---- the hello ------------------------------------------------------------------------------- */

/* Reads what is there of the hello. */
static void see_hello(const zn_packet_context *s, zn_span head)
{
    zn_quic_state *q = state_of(s);
    zn_tls_hello hello;
    switch (zn_tls_bare_hello(head, &hello)) {
    case ZN_DONE:
        s->f->ech_offered |= hello.ech_offered;
        s->names->stats->n[ZN_STAT_HELLOS_ECH] += hello.ech_offered;
        q->name = zn_names_observed(s, ZN_SOURCE_QUIC, hello.name);
        zn_names_quic_hello(s, &hello);
        zn_names_drop_stream(s->names, s->f);
        q->done = true;
        break;
    case ZN_NEED_MORE:
        break;
    case ZN_MALFORMED:
    case ZN_OTHER:
        refuse(s, ZN_STAT_SUPPRESSED_INVALID);
        break;
    }
}

/* Puts the frames of an Initial in order with those of earlier ones. */
static void collect(const zn_packet_context *s, const zn_quic_crypto_frames *frames)
{
    zn_stream_pool *streams = &s->names->streams;
    zn_flow *f = s->f;
    if (!zn_names_has_stream(s)) {
        refuse(s, ZN_STAT_SUPPRESSED_CAPACITY);
        return;
    }
    for (size_t i = 0; i < frames->n; i++) {
        const zn_quic_crypto_frame *frame = &frames->frame[i];
        uint32_t offset = frame->offset < ZN_STREAM_MAX ? (uint32_t)frame->offset : ZN_STREAM_MAX;
        if (zn_stream_add(streams, f->stream, offset, frame->bytes) == ZN_STREAM_CONFLICT) {
            refuse(s, ZN_STAT_SUPPRESSED_CONFLICT);
            return;
        }
    }
    see_hello(s, zn_stream_start(streams, f->stream));
}

static void see_frames(const zn_packet_context *s, zn_span plain)
{
    zn_quic_crypto_frames *frames = &s->names->crypto_frames;
    if (zn_quic_read_frames(plain, frames) != ZN_DONE) {
        refuse(s, ZN_STAT_SUPPRESSED_INVALID);
        return;
    }
    if (frames->n == 0)
        return;
    if (s->f->stream == 0 && frames->n == 1 && frames->frame[0].offset == 0)
        see_hello(s, frames->frame[0].bytes);
    if (!state_of(s)->done)
        collect(s, frames);
}

static void see_initial(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_state *q = state_of(s);
    zn_span plain;
    bool here = is_addressed_here(q, packet);
    if (q->done && here)
        return;
    if (q->initials >= INITIALS_MAX || (!here && q->connections >= CONNECTIONS_MAX)) {
        s->f->names_dropped |= !here; /* it may hold another name */
        return;
    }
    q->initials++;
    if (!open_initial(s, packet, &plain)) {
        s->names->stats->n[ZN_STAT_QUIC_NOT_AUTHENTIC]++;
    } else {
        s->names->stats->n[ZN_STAT_QUIC_INITIALS]++;
        if (!q->done)
            see_frames(s, plain);
    }
    if (q->initials >= INITIALS_MAX && !q->done)
        refuse(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

/* ---- packets --------------------------------------------------------------------------------- */

static void see_client_packet(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_state *q = state_of(s);
    zn_names_quic_sent(s, packet);
    if (packet->type == ZN_QUIC_FOREIGN) {
        q->foreign = true;
        s->names->stats->n[ZN_STAT_QUIC_VERSION_UNKNOWN]++;
        return;
    }
    if (packet->type == ZN_QUIC_NEGOTIATION || packet->type == ZN_QUIC_RETRY)
        return; /* servers send these */
    zn_names_quic_addressed(q, packet);
    if (packet->type == ZN_QUIC_INITIAL)
        see_initial(s, packet);
}

static void see_server_packet(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_state *q = state_of(s);
    bool read = packet->type != ZN_QUIC_FOREIGN && packet->type != ZN_QUIC_NEGOTIATION;
    if (packet->type == ZN_QUIC_FOREIGN && packet->version == q->facts.version[0])
        s->f->protocol = ZN_PROTOCOL_QUIC_BOTH_WAYS;
    if (!read || !q->opened || !zn_quic_is_id(&q->client, packet->dcid))
        return;
    if (packet->type == ZN_QUIC_RETRY) { /* the keys that it gives try themselves */
        q->retry = zn_quic_id_from(packet->scid);
        q->retried = true;
    }
    zn_names_quic_answered(s, packet);
    if (packet->version == q->version)
        s->f->protocol = ZN_PROTOCOL_QUIC_BOTH_WAYS;
}

void zn_names_quic(const zn_packet_context *s)
{
    const zn_packet *p = s->p;
    bool from_client = p->sender == s->f->client;
    zn_cursor c = zn_cursor_over_span(p->payload, zn_packet_payload_whole(p));
    zn_quic_packet packet;
    zn_quic_state *q;
    if (s->f->datagram == 0)
        return;
    q = state_of(s);
    while (zn_quic_next_packet(&c, &packet) == ZN_DONE) {
        zn_names_quic_note(q, &packet, from_client);
        if (from_client)
            see_client_packet(s, &packet);
        else
            see_server_packet(s, &packet);
    }
    if (from_client && q->server_known && zn_quic_is_short(c, zn_quic_id_span(&q->server)))
        q->addressed = true;
    zn_names_quic_conclude(s);
}

/* Whether a flow's first datagram has the form of a client's first: it is long, and so are its
 * IDs. */
static bool is_first_flight(const zn_packet_context *s)
{
    const zn_packet *p = s->p;
    zn_cursor c = zn_cursor_over_span(p->payload, zn_packet_payload_whole(p));
    zn_quic_packet packet;
    return s->f->side[0].packets + s->f->side[1].packets == 1 &&
           p->payload_len >= FIRST_DATAGRAM_MIN && zn_quic_next_packet(&c, &packet) == ZN_DONE &&
           (packet.type == ZN_QUIC_INITIAL || packet.type == ZN_QUIC_FOREIGN) &&
           packet.dcid.n >= FIRST_DCID_MIN && packet.dcid.n <= ZN_QUIC_ID_MAX &&
           packet.scid.n <= ZN_QUIC_ID_MAX;
}

/* A long header of a version that is read tells at any time. What other protocols may look like,
 * another version or a fixed bit that is not set, tells only in a first flight. */
static bool looks_like_quic(const zn_packet_context *s)
{
    zn_cursor c = zn_cursor_over_span(s->p->payload, true);
    uint8_t first = zn_cursor_u8(&c);
    uint32_t version = zn_cursor_be32(&c);
    if (!zn_cursor_ok(&c) || (first & ZN_QUIC_LONG_FORM) == 0)
        return false;
    if (zn_quic_reads(version))
        return (first & FIXED_BIT) != 0 || is_first_flight(s);
    return (first & FIXED_BIT) != 0 && is_first_flight(s);
}

bool zn_names_quic_may_answer(const zn_packet_context *s)
{
    zn_cursor c = zn_cursor_over_span(s->p->payload, zn_packet_payload_whole(s->p));
    zn_quic_packet packet;
    return zn_quic_next_packet(&c, &packet) == ZN_DONE && zn_quic_reads(packet.version);
}

bool zn_names_quic_begins(const zn_packet_context *s)
{
    if (!looks_like_quic(s))
        return false;
    if (zn_names_open_datagram(s, ZN_PROTOCOL_QUIC, ZN_SOURCE_QUIC))
        zn_names_quic(s);
    return true;
}

void zn_names_quic_closed(zn_names *names, zn_flow *f)
{
    const zn_quic_state *q = &zn_names_datagram(names, f)->quic;
    zn_secondary_closed(names, ZN_VOTE_AGENT, q->facts.agent);
    if (!q->done)
        zn_names_rejected(names, f, ZN_SOURCE_QUIC,
                          q->foreign && !q->opened ? ZN_STAT_SUPPRESSED_QUIC_VERSION
                                                   : ZN_STAT_SUPPRESSED_INCOMPLETE);
}
