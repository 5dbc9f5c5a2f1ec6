/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in QUIC Initials, and the evidence that their clients are real.
 *
 * A flow's connection begins with the first client Initial that authenticates under keys from its
 * own Destination Connection ID. Those keys open the client's later Initials whatever ID they are
 * addressed to, until a Retry gives new ones. An Initial with yet another ID that authenticates
 * under itself begins another connection on the same ports: its name needs evidence of its own. The
 * connection before it is paused, and continues with the next packet to one of its IDs, because
 * packets of several connections may alternate. Anything that does not authenticate is counted and
 * left alone.
 *
 * Evidence: the client addresses a packet to the ID that the server chose, which it can only know
 * from the server's packets. Taps may reorder the directions: an answer counts if it was captured
 * at most ZN_EARLY_ANSWER_NS before the client's first Initial, or so long after such a packet.
 *
 * Only a packet that authenticates shows that ID: other protocols repeat in their answers what they
 * were sent, up to 16 bytes of their start, which is all that a long header takes. A server that
 * echoes whole datagrams sends back what does authenticate, so no ID that the client ever sent, as
 * its own or another's, proves anything.
 *
 * Some servers make their ID out of the client's, by changing a byte, or choose one of few bytes or
 * none: a sender with a forged address can guess those. There the evidence is how much the server
 * sends: before it has proof of the client's address it must not send more than three times what it
 * received (RFC 9000 8.1).
 */
#include "analyzer/quic_analyzer.h"

#include "analyzer/analyzers.h"
#include "analyzer/message_sink.h"
#include "analyzer/secondary.h"
#include "proto/quic_crypto.h"

/* Client Initials tried in one connection: enough for the longest hello in datagrams of
 * FIRST_DATAGRAM_MIN, each sent twice. */
#define INITIALS_MAX 32
#define CONNECTIONS_MAX 8       /* connections of one flow that are looked at */
#define FIRST_DATAGRAM_MIN 1200 /* RFC 9000 14.1: a client's first datagram has at least this */
#define FIRST_DCID_MIN 8        /* RFC 9000 7.2 */
#define FIXED_BIT 0x40u
#define ANSWERS_MAX 32      /* packets with a new ID of the server that are opened */
#define UNKNOWN_BYTES_MIN 4 /* of the server's ID: as hard to guess as a TCP sequence number */
#define AMPLIFICATION 3     /* RFC 9000 8.1 */

#define PAUSED_MAX 16384u /* paused connections of all flows */
#define EARLY_SLOTS 1024u /* early answers that are kept at a time, one a flow */
#define EARLY_BYTES 1472u /* of an early answer: what an Ethernet frame holds */

/* A connection ID, copied. */
typedef struct quic_id {
    uint8_t n;
    uint8_t byte[ZN_QUIC_ID_MAX];
} quic_id;

static zn_span id_span(const quic_id *id)
{
    return (zn_span){id->byte, id->n};
}

static bool is_id(const quic_id *id, zn_span bytes)
{
    return zn_span_equal(id_span(id), bytes);
}

/* bytes.n is at most ZN_QUIC_ID_MAX: the parser takes no longer ID. */
static quic_id copy_id(zn_span bytes)
{
    quic_id id = {(uint8_t)bytes.n, {0}};
    if (bytes.n != 0)
        memcpy(id.byte, bytes.p, bytes.n);
    return id;
}

#define OWN_IDS 8
/* The part of a flow's state that its connections share. */
typedef struct quic_shared {
    quic_id own[OWN_IDS]; /* IDs of the client's making */
    uint8_t owns;         /* how many; OWN_IDS + 1: too many */
    uint8_t connections;  /* how many began in this flow */
    uint32_t paused;      /* first paused connection, 0: none; in a paused connection the next */
    zn_quic_facts facts;
} quic_shared;

/* The state of a flow and of its current connection, or of a paused connection. */
typedef struct quic_flow {
    uint32_t link;                /* the slab's, while free */
    uint32_t version;             /* of the client's packets */
    uint32_t name;                /* the name entry of this connection, 0: none */
    uint64_t answered_before;     /* bytes that the server sent before it began */
    zn_quic_keys keys;            /* the client's */
    zn_quic_secret server_secret; /* makes the server's keys */
    quic_id first;                /* the ID that makes both */
    quic_id client;               /* the client's own */
    quic_id server;               /* the ID the server chose */
    quic_id retry;                /* the ID of the server's Retry */
    quic_id early_id;    /* the last ID that the client addressed before the server chose one */
    quic_id early_start; /* the same behind a short header, and the bytes that follow it */
    int64_t early_id_ns, early_start_ns; /* the times of these packets */
    quic_shared shared;
    uint32_t stream;       /* paused: the connection's zn_flow_state.stream */
    uint8_t initials;      /* how many were tried since the connection began */
    uint8_t answers;       /* server's packets tried for its ID */
    bool proven : 1;       /* paused: the connection's zn_flow.client_acked */
    bool opened : 1;       /* an Initial authenticated */
    bool done : 1;         /* the hello was read or abandoned */
    bool foreign : 1;      /* packets of a version that is not read */
    bool server_known : 1; /* `server` is set */
    bool retried : 1;      /* `retry` is set, and no Initial used it yet */
    bool guessable : 1;    /* `server` may be known without the server's packets */
    bool addressed : 1;    /* the client sent a packet to `server` */
    bool agent_waits : 1;  /* facts.agent is this connection's */
} quic_flow;

/* A datagram that came before all of the other side: an answer that no key opens yet. */
typedef struct early_answer {
    int64_t t_ns;
    int64_t opened_ns; /* zn_flow.first_ns: other flows may have had the number */
    uint32_t flow;     /* 0: the slot is free */
    uint16_t n;
    uint8_t sender; /* tuple index */
    uint8_t bytes[EARLY_BYTES];
} early_answer;

/* The state for all flows. */
typedef struct quic_tools {
    zn_quic *crypto;
    early_answer *early;          /* EARLY_SLOTS of them, by the flow's number */
    zn_slab paused;               /* of quic_flow */
    zn_quic_crypto_frames frames; /* of the Initial at hand */
} quic_tools;

static void close_tools(void *state)
{
    quic_tools *tools = state;
    zn_quic_close(tools->crypto);
    zn_block_free(tools->early, EARLY_SLOTS * sizeof *tools->early);
    zn_slab_fini(&tools->paused);
    zn_heap_free(tools);
}

static int open_tools(void **state, uint32_t max_flows, zn_error *err)
{
    quic_tools *tools = *state = zn_heap_alloc(sizeof *tools);
    uint32_t paused = max_flows < PAUSED_MAX ? max_flows : PAUSED_MAX;
    int rc;
    if (tools == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for opening QUIC packets");
    tools->early = zn_block_alloc(EARLY_SLOTS * sizeof *tools->early);
    if (tools->early == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for answers of QUIC");
    rc = zn_slab_init(&tools->paused, sizeof(quic_flow), paused, err);
    return rc == 0 ? zn_quic_open(&tools->crypto, err) : rc;
}

static size_t memory_of_tools(const void *state)
{
    const quic_tools *tools = state;
    return zn_slab_bytes(&tools->paused);
}

static quic_tools *tools_of(const zn_packet_context *s)
{
    return zn_analyzer_state(s);
}

static zn_quic *crypto_of(const zn_packet_context *s)
{
    return tools_of(s)->crypto;
}

static quic_flow *state_of(const zn_packet_context *s)
{
    return zn_names_datagram(s->names, s->f);
}

/* Gives up on the connection's name, which counts as suppressed. */
static void reject(const zn_packet_context *s, zn_stat why)
{
    zn_names_rejected(s, why);
    zn_names_drop_stream(s->names, s->f);
    state_of(s)->done = true;
}

/* ---- the user agent -------------------------------------------------------------------------- */

static bool is_unreserved(uint8_t byte)
{
    bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    return letter || (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' ||
           byte == '~';
}

/* Percent-encodes printable ASCII (RFC 3986 2.1), as Tstat does, so that blanks and quotes need no
 * escape in a line. Returns false for other bytes, and if the result is longer than a name may
 * be. */
static bool encode(zn_span raw, zn_hostname *out)
{
    static const char digits[] = "0123456789ABCDEF";
    zn_cursor c = zn_cursor_over_span(raw, true);
    out->n = 0;
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < 0x20 || byte > 0x7e || out->n + (is_unreserved(byte) ? 1 : 3) > ZN_HOSTNAME_MAX)
            return false;
        if (is_unreserved(byte)) {
            out->text[out->n++] = byte;
        } else {
            out->text[out->n++] = '%';
            out->text[out->n++] = (uint8_t)digits[byte >> 4];
            out->text[out->n++] = (uint8_t)digits[byte & 15];
        }
    }
    return true;
}

static void vote_agent(const zn_packet_context *s)
{
    const quic_flow *q = state_of(s);
    if (q->agent_waits)
        (void)zn_secondary_vote(s->names, ZN_VOTE_AGENT, s->p->t_ns, s->flow,
                                q->shared.facts.agent);
}

static void see_agent(const zn_packet_context *s, const zn_tls_hello *hello)
{
    quic_flow *q = state_of(s);
    zn_span raw = zn_quic_user_agent(hello->transport_parameters);
    zn_hostname text;
    bool may_be_disclosed;
    q->shared.facts.ech_bytes = hello->ech_bytes;
    if (raw.n == 0 || q->shared.facts.agent != 0)
        return;
    may_be_disclosed = encode(raw, &text) && zn_roles_may_vote(s->names->roles, s->f);
    q->shared.facts.agent = zn_secondary_observed(s->names, ZN_VOTE_AGENT, &text, may_be_disclosed);
    q->agent_waits = q->shared.facts.agent != 0;
    vote_agent(s);
}

static void note_facts(quic_flow *q, const zn_quic_packet *packet, bool from_client)
{
    if (packet->type == ZN_QUIC_NEGOTIATION)
        return;
    q->shared.facts.version[from_client ? 0 : 1] = packet->version;
    if (packet->type == ZN_QUIC_ZERO_RTT && from_client && q->shared.facts.zero_rtt < UINT16_MAX)
        q->shared.facts.zero_rtt++;
}

/* ---- the client's packets -------------------------------------------------------------------- */

static void note_own(const zn_packet_context *s, zn_span id)
{
    quic_flow *q = state_of(s);
    for (unsigned i = 0; i < q->shared.owns && i < OWN_IDS; i++)
        if (is_id(&q->shared.own[i], id))
            return;
    if (q->shared.owns < OWN_IDS && id.n <= ZN_QUIC_ID_MAX) {
        q->shared.own[q->shared.owns++] = copy_id(id);
        return;
    }
    s->names->stats->n[ZN_STAT_QUIC_IDS_LIMIT] += q->shared.owns <= OWN_IDS;
    q->shared.owns = OWN_IDS + 1;
}

/* Returns whether too few bytes of the server's ID differ from an ID that the client sent. */
static bool is_guessable(const zn_packet_context *s, const quic_id *server)
{
    const quic_flow *q = state_of(s);
    if (zn_flow_client_plays_server(s->f) || q->shared.owns > OWN_IDS ||
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
static bool may_be_early(const quic_flow *q, const zn_quic_packet *packet)
{
    bool established = packet->type == ZN_QUIC_INITIAL || packet->type == ZN_QUIC_HANDSHAKE;
    if (!q->opened || q->server_known || !established || packet->dcid.n < UNKNOWN_BYTES_MIN)
        return false;
    for (unsigned i = 0; i < q->shared.owns && i < OWN_IDS; i++)
        if (is_id(&q->shared.own[i], packet->dcid))
            return false;
    return true;
}

/* Keeps the ID for the answer that may choose it. The last ID replaces earlier IDs, so a sender who
 * guesses has one guess for each answer. */
static void note_early_id(const zn_packet_context *s, zn_span id)
{
    quic_flow *q = state_of(s);
    if (q->early_id.n != 0 && is_id(&q->early_id, id))
        return;
    if (q->early_id.n != 0)
        note_own(s, id_span(&q->early_id));
    q->early_id = copy_id(id);
    q->early_id_ns = s->p->t_ns;
}

/* Keeps the start of a packet with a short header, which does not say how long the ID is. */
static void note_early_start(const zn_packet_context *s, zn_cursor c)
{
    quic_flow *q = state_of(s);
    uint8_t first = zn_cursor_u8(&c);
    size_t n = zn_cursor_left(&c) < ZN_QUIC_ID_MAX ? zn_cursor_left(&c) : ZN_QUIC_ID_MAX;
    if (!zn_cursor_ok(&c) || (first & ZN_QUIC_LONG_FORM) != 0)
        return;
    q->early_start = copy_id(zn_cursor_take(&c, n));
    q->early_start_ns = s->p->t_ns;
}

/* Returns true if the client addressed the ID at most ZN_EARLY_ANSWER_NS before this packet. */
static bool was_addressed(const zn_packet_context *s, zn_span id)
{
    const quic_flow *q = state_of(s);
    if (id.n < UNKNOWN_BYTES_MIN)
        return false;
    if (is_id(&q->early_id, id) && s->p->t_ns - q->early_id_ns <= ZN_EARLY_ANSWER_NS)
        return true;
    return id.n <= q->early_start.n && memcmp(q->early_start.byte, id.p, id.n) == 0 &&
           s->p->t_ns - q->early_start_ns <= ZN_EARLY_ANSWER_NS;
}

/* Notes the IDs in a packet of the client's, or, if not `counts`, of anybody in its name. */
static void note_sent(const zn_packet_context *s, const zn_quic_packet *packet, bool counts)
{
    quic_flow *q = state_of(s);
    bool to_server = (q->server_known && is_id(&q->server, packet->dcid)) ||
                     (q->retried && is_id(&q->retry, packet->dcid));
    if (!to_server && counts && may_be_early(q, packet))
        note_early_id(s, packet->dcid);
    else if (!to_server)
        note_own(s, packet->dcid);
    if (packet->scid.n == 0)
        return;
    note_own(s, packet->scid);
    if (q->server_known && is_id(&q->server, packet->scid))
        q->guessable = true; /* its echo was captured before it */
}

static void note_addressed(quic_flow *q, const zn_quic_packet *packet)
{
    if (q->server_known && is_id(&q->server, packet->dcid) && packet->type != ZN_QUIC_ZERO_RTT)
        q->addressed |= q->server.n != 0 || packet->type == ZN_QUIC_HANDSHAKE;
}

/* ---- several connections --------------------------------------------------------------------- */

/* Returns the next connection in the list of paused connections, which begins in the state of the
 * flow. Returns NULL at the end of the list. */
static quic_flow *next_paused(const zn_packet_context *s, const quic_flow *q)
{
    uint32_t next = q->shared.paused;
    return next == 0 ? NULL : zn_slab_at(&tools_of(s)->paused, next);
}

/* Copies the state of a connection that stops being the current one. */
static void leave(const zn_packet_context *s, const quic_flow *connection, quic_flow *out)
{
    *out = *connection;
    out->stream = ZN_STATE(s->f)->stream;
    out->proven = s->f->client_acked;
}

/* Pauses the connection whose state is *before. Returns false if there is no room for it. */
static bool pause_connection(const zn_packet_context *s, const quic_flow *before)
{
    uint32_t at = zn_slab_take(&tools_of(s)->paused);
    if (at == 0) {
        s->names->stats->n[ZN_STAT_DATAGRAMS_FULL]++;
        return false;
    }
    leave(s, before, zn_slab_at(&tools_of(s)->paused, at));
    ZN_STATE(s->f)->stream = 0;
    state_of(s)->shared.paused = at;
    return true;
}

/* Ends a connection that cannot be paused. */
static void abandon_connection(const zn_packet_context *s)
{
    quic_flow *q = state_of(s);
    if (!q->done)
        reject(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    if (q->early_id.n != 0)
        note_own(s, id_span(&q->early_id));
}

/* Pauses the current connection, and continues the paused connection *p. *p is the current
 * connection afterwards, so a second call undoes the first. */
static void turn_to(const zn_packet_context *s, quic_flow *p)
{
    quic_flow *q = state_of(s);
    quic_flow left;
    leave(s, q, &left);
    left.shared.paused = p->shared.paused;
    p->shared = q->shared;
    *q = *p;
    *p = left;
    ZN_STATE(s->f)->stream = q->stream;
    s->f->client_acked = q->proven;
}

/* Returns true if the ID receives packets of the client in this connection. */
static bool is_receiver(const quic_flow *q, zn_span id)
{
    return is_id(&q->first, id) || (q->server_known && is_id(&q->server, id)) ||
           (q->retried && is_id(&q->retry, id));
}

/* Turns to the connection that a client's packet is addressed to. */
static void turn_to_receiver(const zn_packet_context *s, zn_span id)
{
    quic_flow *q = state_of(s);
    if (q->shared.paused == 0 || is_receiver(q, id))
        return;
    for (quic_flow *p = next_paused(s, q); p != NULL; p = next_paused(s, p)) {
        if (is_receiver(p, id)) {
            turn_to(s, p);
            return;
        }
    }
}

/* Returns true if the client addresses a packet with a short header to the server's ID. */
static bool is_short_here(const quic_flow *q, zn_cursor c)
{
    return q->server_known && zn_quic_is_short(c, id_span(&q->server));
}

/* Returns true if a packet to the server's ID would prove the client of a paused connection. */
static bool waits_for_proof(const quic_flow *p)
{
    return !p->proven && p->name != 0 && p->server_known && !p->guessable;
}

/* Turns to the connection whose client a packet with a short header proves. If no paused connection
 * waits for such a packet, nothing changes, because zn_watch_skip may pass the packet over. */
static void turn_to_short(const zn_packet_context *s, zn_cursor c)
{
    quic_flow *q = state_of(s);
    if (q->shared.paused == 0 || is_short_here(q, c))
        return;
    for (quic_flow *p = next_paused(s, q); p != NULL; p = next_paused(s, p)) {
        if (waits_for_proof(p) && is_short_here(p, c)) {
            turn_to(s, p);
            return;
        }
    }
}

/* Turns from a connection whose client is proven to a connection whose name waits for a client's
 * packet to the server's ID. If the client of the current connection is proven, packets with a
 * short header are not looked at. */
static void turn_to_unproven(const zn_packet_context *s)
{
    quic_flow *q = state_of(s);
    if (q->shared.paused == 0 || !s->f->client_acked)
        return;
    for (quic_flow *p = next_paused(s, q); p != NULL; p = next_paused(s, p)) {
        if (waits_for_proof(p)) {
            turn_to(s, p);
            return;
        }
    }
}

/* Frees the paused connections of a flow that closed. */
static void free_paused(const zn_packet_context *s)
{
    quic_flow *q = state_of(s);
    while (q->shared.paused != 0) {
        uint32_t at = q->shared.paused;
        const quic_flow *p = zn_slab_at(&tools_of(s)->paused, at);
        q->shared.paused = p->shared.paused;
        if (!p->done)
            zn_names_rejected(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        if (p->stream != 0)
            zn_stream_give(&s->names->streams, p->stream);
        zn_slab_give(&tools_of(s)->paused, at);
    }
}

/* ---- the server's packets -------------------------------------------------------------------- */

/* Returns whether an Initial opens under the server's keys from `secret`. */
static bool answer_opens(const zn_packet_context *s, const zn_quic_packet *packet,
                         const zn_quic_secret *secret)
{
    zn_quic_keys keys;
    zn_span plain;
    return zn_quic_expand(packet->version, secret, &keys) &&
           zn_quic_unseal(crypto_of(s), &keys, packet, &plain) == ZN_DONE;
}

/* Returns whether it opens under the server's keys from an ID that the client addressed packets
 * to. */
static bool answer_opens_under(const zn_packet_context *s, const zn_quic_packet *packet,
                               const quic_id *id)
{
    zn_quic_secret sides[2];
    return zn_quic_derive(crypto_of(s), packet->version, id_span(id), sides) &&
           answer_opens(s, packet, &sides[ZN_QUIC_SERVER]);
}

/* Returns whether it opens as an answer in the connection, in the client's version or another. */
static bool answer_opens_here(const zn_packet_context *s, const zn_quic_packet *packet)
{
    const quic_flow *q = state_of(s);
    return packet->version == q->version ? answer_opens(s, packet, &q->server_secret)
                                         : answer_opens_under(s, packet, &q->first);
}

/* Returns whether only a QUIC server, or an echo, sends this packet; tries the first few. */
static bool is_authentic(const zn_packet_context *s, const zn_quic_packet *packet)
{
    quic_flow *q = state_of(s);
    if (packet->type != ZN_QUIC_INITIAL && packet->type != ZN_QUIC_RETRY)
        return false;
    if (q->answers >= ANSWERS_MAX) {
        s->names->stats->n[ZN_STAT_QUIC_ANSWERS_LIMIT]++;
        return false;
    }
    q->answers++;
    if (packet->type == ZN_QUIC_RETRY)
        return zn_quic_retry_is_whole(packet, id_span(&q->first));
    return answer_opens_here(s, packet) || (q->retried && answer_opens_under(s, packet, &q->retry));
}

/* Returns true if the server of the connection sent the packet. Takes its ID from the packet. */
static bool note_answered(const zn_packet_context *s, const zn_quic_packet *packet)
{
    quic_flow *q = state_of(s);
    if (q->server_known && is_id(&q->server, packet->scid))
        return true;
    if (!is_authentic(s, packet))
        return false;
    q->server = copy_id(packet->scid);
    q->server_known = true;
    q->addressed = was_addressed(s, packet->scid);
    if (q->early_id.n != 0 && !(q->addressed && is_id(&q->early_id, packet->scid)))
        note_own(s, id_span(&q->early_id));
    q->early_id.n = q->early_start.n = 0;
    q->guessable = is_guessable(s, &q->server);
    return true;
}

/* ---- the evidence ---------------------------------------------------------------------------- */

static void conclude(const zn_packet_context *s)
{
    const quic_flow *q = state_of(s);
    const zn_flow *f = s->f;
    uint64_t sent = f->side[f->client].bytes; /* also bytes whose echo is still to come */
    uint64_t answered = f->side[1 - f->client].bytes - q->answered_before;
    bool validated = q->shared.connections == 1 && answered > AMPLIFICATION * sent;
    if (!f->client_acked && q->addressed && (!q->guessable || validated))
        zn_names_client_proven(s, q->name);
    vote_agent(s);
}

static void disregard(const zn_packet_context *s)
{
    zn_cursor c = zn_cursor_over_span(s->p->payload, zn_packet_payload_whole(s->p));
    zn_quic_packet packet;
    if (s->p->sender != s->f->client)
        state_of(s)->answered_before += s->p->payload_len;
    else
        while (zn_quic_next_packet(&c, &packet) == ZN_DONE)
            note_sent(s, &packet, false);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Opens the packet under keys from `dcid`, which are the connection's if it authenticates. Returns
 * whether it does. */
static bool opens_under(const zn_packet_context *s, const zn_quic_packet *packet, zn_span dcid,
                        zn_span *plain)
{
    quic_flow *q = state_of(s);
    zn_quic *quic = crypto_of(s);
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

/* Pauses the connection whose state is *before, or abandons it, and clears the state except for the
 * keys of the next connection. */
static void end_connection(const zn_packet_context *s, const quic_flow *before)
{
    quic_flow *q = state_of(s);
    quic_flow fresh = {.version = q->version, .keys = q->keys, .server_secret = q->server_secret};
    if (!pause_connection(s, before))
        abandon_connection(s);
    fresh.shared = q->shared;
    *q = fresh;
}

/* Begins a connection, for which no earlier evidence counts. */
static void begin_connection(const zn_packet_context *s, const zn_quic_packet *packet)
{
    quic_flow *q = state_of(s);
    q->opened = true;
    q->first = copy_id(packet->dcid);
    q->client = copy_id(packet->scid);
    q->shared.connections++;
    q->answered_before = s->f->side[1 - s->f->client].bytes;
    q->initials = 1;
    note_own(s, packet->dcid);
    s->f->client_acked = false;
}

/* Returns whether the packet goes to an ID of this connection. */
static bool is_addressed_here(const quic_flow *q, const zn_quic_packet *packet)
{
    return q->opened &&
           (is_id(&q->first, packet->dcid) || (q->server_known && is_id(&q->server, packet->dcid)));
}

/* Returns true if an Initial of the connection can be opened: with the connection's keys, with keys
 * of another version from the same ID, or with keys from a Retry's ID, with which the client starts
 * its hello again. */
static bool opens_here(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    quic_flow *q = state_of(s);
    bool opens = q->version == packet->version
                     ? zn_quic_unseal(crypto_of(s), &q->keys, packet, plain) == ZN_DONE
                     : opens_under(s, packet, id_span(&q->first), plain);
    if (opens || !q->retried || !opens_under(s, packet, id_span(&q->retry), plain))
        return opens;
    zn_names_drop_stream(s->names, s->f);
    q->first = q->retry;
    q->retried = false;
    return true;
}

/* Returns true if a paused connection can open an Initial. Turns to that connection. */
static bool opens_paused(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    for (quic_flow *p = next_paused(s, state_of(s)); p != NULL; p = next_paused(s, p)) {
        turn_to(s, p);
        if (opens_here(s, packet, plain))
            return true;
        turn_to(s, p);
    }
    return false;
}

/* Opens an Initial under its own ID. Ends the connection before it. Returns whether it
 * authenticates. */
static bool opens_next(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    quic_flow before = *state_of(s);
    if (!opens_under(s, packet, packet->dcid, plain))
        return false;
    end_connection(s, &before);
    return true;
}

/* Opens a client's Initial under the keys of its connection, or as the first one of a new
 * connection. Returns whether it authenticates. */
static bool open_initial(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    const quic_flow *q = state_of(s);
    bool opens;
    if (q->opened && opens_here(s, packet, plain))
        return true;
    if (is_addressed_here(q, packet))
        return false;
    if (opens_paused(s, packet, plain))
        return true;
    opens = q->opened ? opens_next(s, packet, plain) : opens_under(s, packet, packet->dcid, plain);
    if (opens)
        begin_connection(s, packet);
    return opens;
}

/* ---- the hello ------------------------------------------------------------------------------- */

/* Reads the hello, as far as it is there. */
static void see_hello(const zn_packet_context *s, zn_span bytes)
{
    quic_flow *q = state_of(s);
    zn_tls_hello hello;
    switch (zn_tls_bare_hello(bytes, &hello)) {
    case ZN_DONE:
        ZN_FACTS(s->f)->ech_offered |= hello.ech_offered;
        s->names->stats->n[ZN_STAT_HELLOS_ECH] += hello.ech_offered;
        q->name = zn_names_observed(s, hello.name);
        zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_QUIC_HELLO, .bytes = bytes});
        see_agent(s, &hello);
        zn_names_drop_stream(s->names, s->f);
        q->done = true;
        break;
    case ZN_NEED_MORE:
        break;
    case ZN_MALFORMED:
    case ZN_OTHER:
        reject(s, ZN_STAT_SUPPRESSED_INVALID);
        break;
    }
}

/* Inserts the frames of an Initial between the frames of earlier Initials. */
static void collect(const zn_packet_context *s, const zn_quic_crypto_frames *frames)
{
    zn_stream_pool *streams = &s->names->streams;
    zn_flow *f = s->f;
    if (!zn_names_has_stream(s)) {
        reject(s, ZN_STAT_SUPPRESSED_CAPACITY);
        return;
    }
    for (size_t i = 0; i < frames->n; i++) {
        const zn_quic_crypto_frame *frame = &frames->frame[i];
        uint32_t offset = frame->offset < ZN_STREAM_MAX ? (uint32_t)frame->offset : ZN_STREAM_MAX;
        if (zn_stream_add(streams, ZN_STATE(f)->stream, offset, frame->bytes) ==
            ZN_STREAM_CONFLICT) {
            reject(s, ZN_STAT_SUPPRESSED_CONFLICT);
            return;
        }
    }
    see_hello(s, zn_stream_start(streams, ZN_STATE(f)->stream));
}

static void see_frames(const zn_packet_context *s, zn_span plain)
{
    zn_quic_crypto_frames *frames = &tools_of(s)->frames;
    if (zn_quic_read_frames(plain, frames) != ZN_DONE) {
        reject(s, ZN_STAT_SUPPRESSED_INVALID);
        return;
    }
    if (frames->n == 0)
        return;
    if (ZN_STATE(s->f)->stream == 0 && frames->n == 1 && frames->frame[0].offset == 0)
        see_hello(s, frames->frame[0].bytes);
    if (!state_of(s)->done)
        collect(s, frames);
}

static void see_initial(const zn_packet_context *s, const zn_quic_packet *packet)
{
    quic_flow *q = state_of(s);
    zn_span plain;
    bool here = is_addressed_here(q, packet);
    if (q->done && here)
        return;
    if (q->initials >= INITIALS_MAX || (!here && q->shared.connections >= CONNECTIONS_MAX)) {
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
        reject(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

/* ---- packets --------------------------------------------------------------------------------- */

static void see_client_packet(const zn_packet_context *s, const zn_quic_packet *packet)
{
    quic_flow *q = state_of(s);
    turn_to_receiver(s, packet->dcid);
    note_sent(s, packet, true);
    if (packet->type == ZN_QUIC_FOREIGN) {
        q->foreign = true;
        s->names->stats->n[ZN_STAT_QUIC_VERSION_UNKNOWN]++;
        return;
    }
    if (packet->type == ZN_QUIC_NEGOTIATION || packet->type == ZN_QUIC_RETRY)
        return; /* servers send these */
    note_addressed(q, packet);
    if (q->server_known && packet->version == q->shared.facts.version[1])
        q->shared.facts.both_ways = true; /* the server chose the version (RFC 9368 2.3) */
    if (packet->type == ZN_QUIC_INITIAL)
        see_initial(s, packet);
}

/* Returns true if a server's packet belongs to the current connection. Without paused connections a
 * Retry needs no tag, which early drafts do not have. */
static bool takes_answer(const zn_packet_context *s, const zn_quic_packet *packet)
{
    quic_flow *q = state_of(s);
    bool answered;
    if (!q->opened || !is_id(&q->client, packet->dcid))
        return false;
    if (packet->type == ZN_QUIC_RETRY &&
        (q->shared.paused == 0 || zn_quic_retry_is_whole(packet, id_span(&q->first)))) {
        q->retry = copy_id(packet->scid); /* opens_here tries the keys from its ID */
        q->retried = true;
    }
    answered = note_answered(s, packet);
    if (packet->version == q->version)
        q->shared.facts.both_ways = true;
    return answered;
}

static void see_server_packet(const zn_packet_context *s, const zn_quic_packet *packet)
{
    quic_flow *q = state_of(s);
    bool read = packet->type != ZN_QUIC_FOREIGN && packet->type != ZN_QUIC_NEGOTIATION;
    if (packet->type == ZN_QUIC_FOREIGN && packet->version == q->shared.facts.version[0])
        q->shared.facts.both_ways = true;
    if (!read || takes_answer(s, packet))
        return;
    for (quic_flow *p = next_paused(s, q); p != NULL; p = next_paused(s, p)) {
        turn_to(s, p);
        if (takes_answer(s, packet))
            return;
        turn_to(s, p);
    }
}

/* ---- answers before the question ------------------------------------------------------------- */

static early_answer *early_slot(const zn_packet_context *s)
{
    return &tools_of(s)->early[s->flow % EARLY_SLOTS];
}

/* Returns true if the slot holds an answer to the packet's sender that is at most
 * ZN_EARLY_ANSWER_NS old. */
static bool is_early(const zn_packet_context *s, const early_answer *early)
{
    return early->flow == s->flow && early->opened_ns == s->f->first_ns &&
           early->sender != s->p->sender && s->p->t_ns - early->t_ns <= ZN_EARLY_ANSWER_NS;
}

/* Keeps a datagram of a flow whose other side sent none so far. */
static void keep_early(const zn_packet_context *s)
{
    const zn_packet *p = s->p;
    early_answer *early = early_slot(s);
    if (s->f->side[1 - p->sender].packets != 0 || s->f->side[p->sender].packets != 1 ||
        p->payload.n > EARLY_BYTES || !zn_packet_payload_whole(p))
        return;
    early->t_ns = p->t_ns;
    early->opened_ns = s->f->first_ns;
    early->flow = s->flow;
    early->n = (uint16_t)p->payload.n;
    early->sender = p->sender;
    memcpy(early->bytes, p->payload.p, p->payload.n);
}

/* Reads the early answer to a connection that this packet began. */
static void take_early(const zn_packet_context *s)
{
    early_answer *early = early_slot(s);
    zn_cursor c = zn_cursor_over_span((zn_span){early->bytes, early->n}, true);
    zn_quic_packet packet;
    if (!is_early(s, early))
        return;
    early->flow = 0;
    while (zn_quic_next_packet(&c, &packet) == ZN_DONE) {
        note_facts(state_of(s), &packet, false);
        see_server_packet(s, &packet);
    }
}

/* Makes the sender of a client's first Initial the client, if the other side was taken for the
 * client, and forgets the IDs of that side's packets. */
static void see_late_opening(const zn_packet_context *s)
{
    zn_cursor c = zn_cursor_over_span(s->p->payload, zn_packet_payload_whole(s->p));
    quic_flow *q = state_of(s);
    zn_quic_packet packet;
    zn_span plain;
    if (s->p->sender != s->f->client && !q->opened && zn_quic_next_packet(&c, &packet) == ZN_DONE &&
        packet.type == ZN_QUIC_INITIAL && opens_under(s, &packet, packet.dcid, &plain) &&
        zn_names_opens_late(s))
        *q = (quic_flow){0};
}

static bool datagram(const zn_packet_context *s)
{
    const zn_packet *p = s->p;
    zn_cursor c = zn_cursor_over_span(p->payload, zn_packet_payload_whole(p));
    zn_quic_packet packet;
    quic_flow *q = state_of(s);
    bool opened = q->opened, from_client;
    see_late_opening(s);
    from_client = p->sender == s->f->client;
    while (zn_quic_next_packet(&c, &packet) == ZN_DONE) {
        note_facts(q, &packet, from_client);
        if (from_client)
            see_client_packet(s, &packet);
        else
            see_server_packet(s, &packet);
    }
    if (!q->opened)
        keep_early(s);
    else if (!opened)
        take_early(s);
    if (from_client)
        turn_to_short(s, c);
    if (from_client && is_short_here(q, c))
        q->addressed = true;
    else if (from_client && q->opened && !q->server_known)
        note_early_start(s, c);
    conclude(s);
    zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_QUIC,
                                    .bytes = p->payload,
                                    .key_id = q->opened ? id_span(&q->first) : (zn_span){NULL, 0}});
    turn_to_unproven(s);
    return true;
}

/* Returns whether a flow's first datagram has the form of a client's first: it is long, and so is
 * its destination ID. */
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

/* Recognises a long header of a version that is read in any datagram. A header that other protocols
 * may have, with another version or a fixed bit that is not set, is QUIC only in a first flight. */
static bool starts(const zn_packet_context *s, zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t first = zn_cursor_u8(&c);
    uint32_t version = zn_cursor_be32(&c);
    if (!zn_cursor_ok(&c) || (first & ZN_QUIC_LONG_FORM) == 0)
        return false;
    if (zn_quic_reads(version))
        return (first & FIXED_BIT) != 0 || is_first_flight(s);
    return (first & FIXED_BIT) != 0 && is_first_flight(s);
}

static bool may_answer(const zn_packet_context *s)
{
    zn_cursor c = zn_cursor_over_span(s->p->payload, zn_packet_payload_whole(s->p));
    zn_quic_packet packet;
    return zn_quic_next_packet(&c, &packet) == ZN_DONE && zn_quic_reads(packet.version);
}

static void closed(const zn_packet_context *s)
{
    const quic_flow *q = state_of(s);
    zn_secondary_closed(s->names, ZN_VOTE_AGENT, q->shared.facts.agent);
    if (!q->done)
        zn_names_rejected(s, q->foreign && !q->opened ? ZN_STAT_SUPPRESSED_QUIC_VERSION
                                                      : ZN_STAT_SUPPRESSED_INCOMPLETE);
    free_paused(s);
}

static void forget(zn_names *names, zn_flow *f)
{
    const quic_flow *q = zn_names_datagram(names, f);
    zn_name_store_forget_secondary(names->name_store, q->shared.facts.agent);
}

const zn_quic_facts *zn_quic_facts_of(const zn_names *names, const zn_flow *f)
{
    const quic_flow *q;
    if (f->tuple.proto != ZN_PROTO_UDP || f->datagram == 0 ||
        ZN_STATE(f)->protocol != ZN_ANALYZER_QUIC)
        return NULL;
    q = zn_names_datagram(names, f);
    return &q->shared.facts;
}

const zn_analyzer_functions zn_quic_functions = {
    .starts = starts,
    .datagram = datagram,
    .state_bytes = sizeof(quic_flow),
    .may_answer = may_answer,
    .disregard = disregard,
    .closed = closed,
    .forget = forget,
    .open = open_tools,
    .close = close_tools,
    .memory = memory_of_tools,
};
