/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/quic_evidence.h"

#define ANSWERS_MAX 32      /* packets with a new ID of the server that are opened */
#define UNKNOWN_BYTES_MIN 4 /* of the server's ID: as hard to guess as a TCP sequence number */

/* ---- the client's packets -------------------------------------------------------------------- */

void zn_quic_note_own(const zn_packet_context *s, zn_span id)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    for (unsigned i = 0; i < q->shared.owns && i < ZN_QUIC_OWN_IDS; i++)
        if (zn_quic_is_id(&q->shared.own[i], id))
            return;
    if (q->shared.owns < ZN_QUIC_OWN_IDS && id.n <= ZN_QUIC_ID_MAX) {
        q->shared.own[q->shared.owns++] = zn_quic_copy_id(id);
        return;
    }
    s->names->stats->n[ZN_STAT_QUIC_IDS_LIMIT] += q->shared.owns <= ZN_QUIC_OWN_IDS;
    q->shared.owns = ZN_QUIC_OWN_IDS + 1;
}

/* Returns whether too few bytes of the server's ID differ from an ID that the client sent. */
static bool is_guessable(const zn_packet_context *s, const zn_quic_id *server)
{
    const zn_quic_flow *q = zn_quic_flow_of(s);
    if (zn_flow_client_plays_server(s->f) || q->shared.owns > ZN_QUIC_OWN_IDS ||
        server->n < UNKNOWN_BYTES_MIN)
        return true;
    for (unsigned k = 0; k < q->shared.owns; k++) {
        unsigned unknown = 0;
        for (unsigned i = 0; i < server->n; i++)
            unknown += i >= q->shared.own[k].n || server->byte[i] != q->shared.own[k].byte[i];
        if (unknown < UNKNOWN_BYTES_MIN)
            return true;
    }
    return false;
}

/* Returns whether a client's packet may be addressed to an ID of the server's that the capture
 * shows later. An ID that opens a connection is the client's: begin_connection notes it as such. */
static bool may_be_early(const zn_quic_flow *q, const zn_quic_packet *packet)
{
    bool established = packet->type == ZN_QUIC_INITIAL || packet->type == ZN_QUIC_HANDSHAKE;
    if (!q->opened || q->server_known || !established || packet->dcid.n < UNKNOWN_BYTES_MIN)
        return false;
    for (unsigned i = 0; i < q->shared.owns && i < ZN_QUIC_OWN_IDS; i++)
        if (zn_quic_is_id(&q->shared.own[i], packet->dcid))
            return false;
    return true;
}

/* Keeps the ID for the answer that may choose it. The last ID replaces earlier IDs, so a sender who
 * guesses has one guess for each answer. */
static void note_early_id(const zn_packet_context *s, zn_span id)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    if (q->early_id.n != 0 && zn_quic_is_id(&q->early_id, id))
        return;
    if (q->early_id.n != 0)
        zn_quic_note_own(s, zn_quic_id_span(&q->early_id));
    q->early_id = zn_quic_copy_id(id);
    q->early_id_ns = s->p->t_ns;
}

void zn_quic_note_early_start(const zn_packet_context *s, zn_cursor c)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    uint8_t first = zn_cursor_u8(&c);
    size_t n = zn_cursor_left(&c) < ZN_QUIC_ID_MAX ? zn_cursor_left(&c) : ZN_QUIC_ID_MAX;
    if (!zn_cursor_ok(&c) || (first & ZN_QUIC_LONG_FORM) != 0)
        return;
    q->early_start = zn_quic_copy_id(zn_cursor_take(&c, n));
    q->early_start_ns = s->p->t_ns;
}

/* Returns true if the client addressed the ID at most ZN_EARLY_ANSWER_NS before this packet. */
static bool was_addressed(const zn_packet_context *s, zn_span id)
{
    const zn_quic_flow *q = zn_quic_flow_of(s);
    if (id.n < UNKNOWN_BYTES_MIN)
        return false;
    if (zn_quic_is_id(&q->early_id, id) && s->p->t_ns - q->early_id_ns <= ZN_EARLY_ANSWER_NS)
        return true;
    return id.n <= q->early_start.n && memcmp(q->early_start.byte, id.p, id.n) == 0 &&
           s->p->t_ns - q->early_start_ns <= ZN_EARLY_ANSWER_NS;
}

void zn_quic_note_sent(const zn_packet_context *s, const zn_quic_packet *packet, bool counts)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    bool to_server = (q->server_known && zn_quic_is_id(&q->server, packet->dcid)) ||
                     (q->retried && zn_quic_is_id(&q->retry, packet->dcid));
    if (!to_server && counts && may_be_early(q, packet))
        note_early_id(s, packet->dcid);
    else if (!to_server)
        zn_quic_note_own(s, packet->dcid);
    if (packet->scid.n == 0)
        return;
    zn_quic_note_own(s, packet->scid);
    if (q->server_known && zn_quic_is_id(&q->server, packet->scid))
        q->guessable = true; /* its echo was captured before it */
}

void zn_quic_note_addressed(zn_quic_flow *q, const zn_quic_packet *packet)
{
    if (q->server_known && zn_quic_is_id(&q->server, packet->dcid) &&
        packet->type != ZN_QUIC_ZERO_RTT)
        q->addressed |= q->server.n != 0 || packet->type == ZN_QUIC_HANDSHAKE;
}

/* ---- the server's packets -------------------------------------------------------------------- */

/* Returns whether an Initial opens under the server's keys from `secret`. */
static bool answer_opens(const zn_packet_context *s, const zn_quic_packet *packet,
                         const zn_quic_secret *secret)
{
    zn_quic_keys keys;
    zn_span plain;
    return zn_quic_expand(packet->version, secret, &keys) &&
           zn_quic_unseal(zn_quic_crypto_of(s), &keys, packet, &plain) == ZN_DONE;
}

/* Returns whether it opens under the server's keys from an ID that the client addressed packets
 * to. */
static bool answer_opens_under(const zn_packet_context *s, const zn_quic_packet *packet,
                               const zn_quic_id *id)
{
    zn_quic_secret sides[2];
    return zn_quic_derive(zn_quic_crypto_of(s), packet->version, zn_quic_id_span(id), sides) &&
           answer_opens(s, packet, &sides[ZN_QUIC_SERVER]);
}

/* Returns whether it opens as an answer in the connection, in the client's version or another. */
static bool answer_opens_here(const zn_packet_context *s, const zn_quic_packet *packet)
{
    const zn_quic_flow *q = zn_quic_flow_of(s);
    return packet->version == q->version ? answer_opens(s, packet, &q->server_secret)
                                         : answer_opens_under(s, packet, &q->first);
}

/* Returns whether only a QUIC server, or an echo, sends this packet; tries the first few. */
static bool is_authentic(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    if (packet->type != ZN_QUIC_INITIAL && packet->type != ZN_QUIC_RETRY)
        return false;
    if (q->answers >= ANSWERS_MAX) {
        s->names->stats->n[ZN_STAT_QUIC_ANSWERS_LIMIT]++;
        return false;
    }
    q->answers++;
    if (packet->type == ZN_QUIC_RETRY)
        return zn_quic_retry_is_whole(packet, zn_quic_id_span(&q->first));
    return answer_opens_here(s, packet) || (q->retried && answer_opens_under(s, packet, &q->retry));
}

bool zn_quic_note_answered(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    if (q->server_known && zn_quic_is_id(&q->server, packet->scid))
        return true;
    if (!is_authentic(s, packet))
        return false;
    q->server = zn_quic_copy_id(packet->scid);
    q->server_known = true;
    q->addressed = was_addressed(s, packet->scid);
    if (q->early_id.n != 0 && !(q->addressed && zn_quic_is_id(&q->early_id, packet->scid)))
        zn_quic_note_own(s, zn_quic_id_span(&q->early_id));
    q->early_id.n = q->early_start.n = 0;
    q->guessable = is_guessable(s, &q->server);
    return true;
}

/* ---- answers before the question ------------------------------------------------------------- */

zn_quic_early *zn_quic_early_slot(const zn_packet_context *s)
{
    return &zn_quic_tools_of(s)->early[s->flow % ZN_QUIC_EARLY_SLOTS];
}

bool zn_quic_is_early(const zn_packet_context *s, const zn_quic_early *early)
{
    return early->flow == s->flow && early->opened_ns == s->f->first_ns &&
           early->sender != s->p->sender && s->p->t_ns - early->t_ns <= ZN_EARLY_ANSWER_NS;
}

void zn_quic_keep_early(const zn_packet_context *s)
{
    const zn_packet *p = s->p;
    zn_quic_early *early = zn_quic_early_slot(s);
    if (s->f->side[1 - p->sender].packets != 0 || s->f->side[p->sender].packets != 1 ||
        p->payload.n > ZN_QUIC_EARLY_BYTES || !zn_packet_payload_whole(p))
        return;
    early->t_ns = p->t_ns;
    early->opened_ns = s->f->first_ns;
    early->flow = s->flow;
    early->n = (uint16_t)p->payload.n;
    early->sender = p->sender;
    memcpy(early->bytes, p->payload.p, p->payload.n);
}
