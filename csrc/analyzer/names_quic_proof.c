/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is behind the names in QUIC Initials.
 *
 * Evidence: the client addresses a packet to the ID that the server chose, which it can only know
 * from the server's packets. Only a packet that authenticates tells that ID: other protocols repeat
 * in their answers what they were sent, up to 16 bytes of their start, which is all that a long
 * header takes. A server that echoes whole datagrams sends back what does authenticate, so no ID
 * that the client ever sent, as its own or another's, is one that it had to be told.
 *
 * Servers exist that make their ID out of the client's, by changing a byte, or choose one of few
 * bytes or none: whoever forges a source address can guess those. There the server has to show it:
 * before it has proof of the client's address it must not send more than three times what it
 * received (RFC 9000 8.1).
 */
#include "analyzer/names_internal.h"

#define ANSWERS_MAX 32      /* packets with a new ID of the server that are opened */
#define UNKNOWN_BYTES_MIN 4 /* of the server's ID: as hard to guess as a TCP sequence number */
#define AMPLIFICATION 3     /* RFC 9000 8.1 */

static zn_quic_state *state_of(const zn_packet_context *s)
{
    return &zn_names_datagram(s->names, s->f)->quic;
}

/* ---- what the client says -------------------------------------------------------------------- */

static void note_own(const zn_packet_context *s, zn_span id)
{
    zn_quic_state *q = state_of(s);
    for (unsigned i = 0; i < q->owns && i < ZN_QUIC_OWN_IDS; i++)
        if (zn_quic_is_id(&q->own[i], id))
            return;
    if (q->owns < ZN_QUIC_OWN_IDS && id.n <= ZN_QUIC_ID_MAX) {
        q->own[q->owns++] = zn_quic_id_from(id);
        return;
    }
    s->names->stats->n[ZN_STAT_QUIC_IDS_LIMIT] += q->owns <= ZN_QUIC_OWN_IDS;
    q->owns = ZN_QUIC_OWN_IDS + 1;
}

/* Too few bytes of the server's ID are unlike every ID that the client sent. */
static bool is_guessable(const zn_packet_context *s, const zn_quic_id *server)
{
    const zn_quic_state *q = state_of(s);
    if (zn_flow_client_plays_server(s->f) || q->owns > ZN_QUIC_OWN_IDS ||
        server->n < UNKNOWN_BYTES_MIN)
        return true;
    for (unsigned k = 0; k < q->owns; k++) {
        unsigned unknown = 0;
        for (unsigned i = 0; i < server->n; i++)
            unknown += i >= q->own[k].n || server->byte[i] != q->own[k].byte[i];
        if (unknown < UNKNOWN_BYTES_MIN)
            return true;
    }
    return false;
}

void zn_names_quic_sent(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_state *q = state_of(s);
    bool to_server = (q->server_known && zn_quic_is_id(&q->server, packet->dcid)) ||
                     (q->retried && zn_quic_is_id(&q->retry, packet->dcid));
    if (!to_server)
        note_own(s, packet->dcid);
    if (packet->scid.n == 0)
        return;
    note_own(s, packet->scid);
    if (q->server_known && zn_quic_is_id(&q->server, packet->scid))
        q->guessable = true; /* its echo was captured before it */
}

void zn_names_quic_addressed(zn_quic_state *q, const zn_quic_packet *packet)
{
    if (q->server_known && zn_quic_is_id(&q->server, packet->dcid) &&
        packet->type != ZN_QUIC_ZERO_RTT)
        q->addressed |= q->server.n != 0 || packet->type == ZN_QUIC_HANDSHAKE;
}

/* ---- what the server says -------------------------------------------------------------------- */

/* Whether an Initial opens under the server's keys from `secret`. */
static bool opens(const zn_packet_context *s, const zn_quic_packet *packet,
                  const zn_quic_secret *secret)
{
    zn_quic_keys keys;
    zn_span plain;
    return zn_quic_expand(packet->version, secret, &keys) &&
           zn_quic_unseal(s->names->quic, &keys, packet, &plain) == ZN_DONE;
}

/* The same, from an ID that the client addressed packets to. */
static bool opens_under(const zn_packet_context *s, const zn_quic_packet *packet,
                        const zn_quic_id *id)
{
    zn_quic_secret sides[2];
    return zn_quic_derive(s->names->quic, packet->version, zn_quic_id_span(id), sides) &&
           opens(s, packet, &sides[ZN_QUIC_SERVER]);
}

/* Whether it opens as an answer in the connection, in the client's version or another. */
static bool opens_here(const zn_packet_context *s, const zn_quic_packet *packet)
{
    const zn_quic_state *q = state_of(s);
    return packet->version == q->version ? opens(s, packet, &q->server_secret)
                                         : opens_under(s, packet, &q->first);
}

/* Nothing but a QUIC server, or an echo, sends this packet, and it is one of the first that may
 * be. */
static bool is_authentic(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_state *q = state_of(s);
    if (packet->type != ZN_QUIC_INITIAL && packet->type != ZN_QUIC_RETRY)
        return false;
    if (q->answers >= ANSWERS_MAX) {
        s->names->stats->n[ZN_STAT_QUIC_ANSWERS_LIMIT]++;
        return false;
    }
    q->answers++;
    if (packet->type == ZN_QUIC_RETRY)
        return zn_quic_retry_is_whole(packet, zn_quic_id_span(&q->first));
    return opens_here(s, packet) || (q->retried && opens_under(s, packet, &q->retry));
}

void zn_names_quic_answered(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_state *q = state_of(s);
    if (q->server_known && zn_quic_is_id(&q->server, packet->scid))
        return;
    if (!is_authentic(s, packet))
        return;
    q->server = zn_quic_id_from(packet->scid);
    q->server_known = true;
    q->guessable = is_guessable(s, &q->server);
    q->addressed = false;
}

/* ---- what follows ---------------------------------------------------------------------------- */

void zn_names_quic_conclude(const zn_packet_context *s)
{
    const zn_quic_state *q = state_of(s);
    const zn_flow *f = s->f;
    uint64_t sent = f->side[f->client].bytes; /* also what is still on its way to an echo */
    uint64_t answered = f->side[1 - f->client].bytes - q->answered_before;
    bool validated = q->connections == 1 && answered > AMPLIFICATION * sent;
    if (!f->client_acked && q->addressed && (!q->guessable || validated))
        zn_names_client_proven(s, q->name);
    zn_names_quic_agent(s);
}

void zn_names_quic_disregard(const zn_packet_context *s)
{
    zn_cursor c = zn_cursor_over_span(s->p->payload, zn_packet_payload_whole(s->p));
    zn_quic_packet packet;
    if (s->f->datagram == 0)
        return;
    if (s->p->sender != s->f->client)
        state_of(s)->answered_before += s->p->payload_len;
    else
        while (zn_quic_next_packet(&c, &packet) == ZN_DONE)
            zn_names_quic_sent(s, &packet);
}
