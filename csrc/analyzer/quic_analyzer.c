/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in QUIC Initials. quic_evidence.h says why a name counts.
 *
 * A flow's connection begins with the first client Initial that authenticates under keys from its
 * own Destination Connection ID. Those keys open the client's later Initials whatever ID they are
 * addressed to, until a Retry gives new ones. An Initial with yet another ID that authenticates
 * under itself begins another connection on the same ports: its name needs evidence of its own. The
 * connection before it is paused, and continues with the next packet to one of its IDs, because
 * packets of several connections may alternate. Anything that does not authenticate is counted and
 * left alone.
 */
#include "analyzer/attributes.h"
#include "analyzer/message_sink.h"
#include "analyzer/quic_evidence.h"
#include "analyzer/secondary.h"

/* Client Initials tried in one connection: enough for the longest hello in datagrams of
 * FIRST_DATAGRAM_MIN, each sent twice. */
#define INITIALS_MAX 32
#define CONNECTIONS_MAX 8       /* connections of one flow that are looked at */
#define FIRST_DATAGRAM_MIN 1200 /* RFC 9000 14.1: a client's first datagram has at least this */
#define FIRST_DCID_MIN 8        /* RFC 9000 7.2 */
#define FIXED_BIT 0x40u
#define AMPLIFICATION 3 /* RFC 9000 8.1 */

#define PAUSED_MAX 16384u /* paused connections of all flows */

static void close_tools(void *state)
{
    zn_quic_tools *tools = state;
    zn_quic_close(tools->crypto);
    zn_block_free(tools->early, ZN_QUIC_EARLY_SLOTS * sizeof *tools->early);
    zn_slab_fini(&tools->paused);
    zn_heap_free(tools);
}

static int open_tools(void **state, uint32_t max_flows, zn_error *err)
{
    zn_quic_tools *tools = *state = zn_heap_alloc(sizeof *tools);
    uint32_t paused = max_flows < PAUSED_MAX ? max_flows : PAUSED_MAX;
    int rc;
    if (tools == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for opening QUIC packets");
    tools->early = zn_block_alloc(ZN_QUIC_EARLY_SLOTS * sizeof *tools->early);
    if (tools->early == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for answers of QUIC");
    rc = zn_slab_init(&tools->paused, sizeof(zn_quic_flow), paused, err);
    return rc == 0 ? zn_quic_open(&tools->crypto, err) : rc;
}

static size_t memory_of_tools(const void *state)
{
    const zn_quic_tools *tools = state;
    return zn_slab_bytes(&tools->paused);
}

/* Gives up on the connection's name, which counts as suppressed. */
static void reject(const zn_packet_context *s, zn_stat why)
{
    zn_names_rejected(s, why);
    zn_names_drop_stream(s->names, s->f);
    zn_quic_flow_of(s)->done = true;
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
    const zn_quic_flow *q = zn_quic_flow_of(s);
    if (q->agent_waits)
        (void)zn_secondary_vote(s->names, ZN_VOTE_AGENT, s->p->t_ns, s->flow,
                                q->shared.facts.agent);
}

static void see_agent(const zn_packet_context *s, const zn_tls_hello *hello)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
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

/* Reads the attributes of a hello. The attributes of a flow are its first connection's. */
static void see_attributes(const zn_packet_context *s, const zn_tls_hello *hello)
{
    if (zn_attributes_first(s->names, s->flow) != 0)
        return;
    zn_attributes_see(s, ZN_EXPOSES_CLIENT_HELLO, hello->body);
    zn_quic_flow_of(s)->attributes = zn_attributes_first(s->names, s->flow) != 0;
}

static void note_facts(zn_quic_flow *q, const zn_quic_packet *packet, bool from_client)
{
    if (packet->type == ZN_QUIC_NEGOTIATION)
        return;
    q->shared.facts.version[from_client ? 0 : 1] = packet->version;
    if (packet->type == ZN_QUIC_ZERO_RTT && from_client && q->shared.facts.zero_rtt < UINT16_MAX)
        q->shared.facts.zero_rtt++;
}

/* ---- several connections --------------------------------------------------------------------- */

/* Returns the next connection in the list of paused connections, which begins in the state of the
 * flow. Returns NULL at the end of the list. */
static zn_quic_flow *next_paused(const zn_packet_context *s, const zn_quic_flow *q)
{
    uint32_t next = q->shared.paused;
    return next == 0 ? NULL : zn_slab_at(&zn_quic_tools_of(s)->paused, next);
}

/* Copies the state of a connection that stops being the current one. */
static void leave(const zn_packet_context *s, const zn_quic_flow *connection, zn_quic_flow *out)
{
    *out = *connection;
    out->stream = ZN_STATE(s->f)->stream;
    out->proven = s->f->client_acked;
}

/* Pauses the connection whose state is *before. Returns false if there is no room for it. */
static bool pause_connection(const zn_packet_context *s, const zn_quic_flow *before)
{
    uint32_t at = zn_slab_take(&zn_quic_tools_of(s)->paused);
    if (at == 0) {
        s->names->stats->n[ZN_STAT_DATAGRAMS_FULL]++;
        return false;
    }
    leave(s, before, zn_slab_at(&zn_quic_tools_of(s)->paused, at));
    ZN_STATE(s->f)->stream = 0;
    zn_quic_flow_of(s)->shared.paused = at;
    return true;
}

/* Ends a connection that cannot be paused. */
static void abandon_connection(const zn_packet_context *s)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    if (!q->done)
        reject(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    if (q->early_id.n != 0)
        zn_quic_note_own(s, zn_quic_id_span(&q->early_id));
}

/* Pauses the current connection, and continues the paused connection *p. *p is the current
 * connection afterwards, so a second call undoes the first. */
static void turn_to(const zn_packet_context *s, zn_quic_flow *p)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    zn_quic_flow left;
    leave(s, q, &left);
    left.shared.paused = p->shared.paused;
    p->shared = q->shared;
    *q = *p;
    *p = left;
    ZN_STATE(s->f)->stream = q->stream;
    s->f->client_acked = q->proven;
}

/* Returns true if the ID receives packets of the client in this connection. */
static bool is_receiver(const zn_quic_flow *q, zn_span id)
{
    return zn_quic_is_id(&q->first, id) || (q->server_known && zn_quic_is_id(&q->server, id)) ||
           (q->retried && zn_quic_is_id(&q->retry, id));
}

/* Turns to the connection that a client's packet is addressed to. */
static void turn_to_receiver(const zn_packet_context *s, zn_span id)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    if (q->shared.paused == 0 || is_receiver(q, id))
        return;
    for (zn_quic_flow *p = next_paused(s, q); p != NULL; p = next_paused(s, p)) {
        if (is_receiver(p, id)) {
            turn_to(s, p);
            return;
        }
    }
}

/* Returns true if the client addresses a packet with a short header to the server's ID. */
static bool is_short_here(const zn_quic_flow *q, zn_cursor c)
{
    return q->server_known && zn_quic_is_short(c, zn_quic_id_span(&q->server));
}

/* Returns true if a packet to the server's ID would prove the client of a paused connection. */
static bool waits_for_proof(const zn_quic_flow *p)
{
    return !p->proven && p->name != 0 && p->server_known && !p->guessable;
}

/* Turns to the connection whose client a packet with a short header proves. If no paused connection
 * waits for such a packet, nothing changes, because zn_watch_skip may pass the packet over. */
static void turn_to_short(const zn_packet_context *s, zn_cursor c)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    if (q->shared.paused == 0 || is_short_here(q, c))
        return;
    for (zn_quic_flow *p = next_paused(s, q); p != NULL; p = next_paused(s, p)) {
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
    zn_quic_flow *q = zn_quic_flow_of(s);
    if (q->shared.paused == 0 || !s->f->client_acked)
        return;
    for (zn_quic_flow *p = next_paused(s, q); p != NULL; p = next_paused(s, p)) {
        if (waits_for_proof(p)) {
            turn_to(s, p);
            return;
        }
    }
}

/* Frees the paused connections of a flow that closed. */
static void free_paused(const zn_packet_context *s)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    while (q->shared.paused != 0) {
        uint32_t at = q->shared.paused;
        const zn_quic_flow *p = zn_slab_at(&zn_quic_tools_of(s)->paused, at);
        q->shared.paused = p->shared.paused;
        if (!p->done)
            zn_names_rejected(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        if (p->stream != 0)
            zn_stream_give(&s->names->streams, p->stream);
        zn_slab_give(&zn_quic_tools_of(s)->paused, at);
    }
}

/* ---- the evidence ---------------------------------------------------------------------------- */

static void conclude(const zn_packet_context *s)
{
    const zn_quic_flow *q = zn_quic_flow_of(s);
    const zn_flow *f = s->f;
    uint64_t sent = f->side[f->client].bytes; /* also bytes whose echo is still to come */
    uint64_t answered = f->side[1 - f->client].bytes - q->answered_before;
    bool validated = q->shared.connections == 1 && answered > AMPLIFICATION * sent;
    if (!f->client_acked && q->addressed && (!q->guessable || validated))
        zn_names_client_proven(s, q->name);
    vote_agent(s);
    if (q->attributes)
        zn_attributes_confirm(s);
}

static void disregard(const zn_packet_context *s)
{
    zn_cursor c = zn_cursor_over_span(s->p->payload, zn_packet_payload_whole(s->p));
    zn_quic_packet packet;
    if (s->p->sender != s->f->client)
        zn_quic_flow_of(s)->answered_before += s->p->payload_len;
    else
        while (zn_quic_next_packet(&c, &packet) == ZN_DONE)
            zn_quic_note_sent(s, &packet, false);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Opens the packet under keys from `dcid`, which are the connection's if it authenticates. Returns
 * whether it does. */
static bool opens_under(const zn_packet_context *s, const zn_quic_packet *packet, zn_span dcid,
                        zn_span *plain)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    zn_quic *quic = zn_quic_crypto_of(s);
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
static void end_connection(const zn_packet_context *s, const zn_quic_flow *before)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    zn_quic_flow fresh = {
        .version = q->version, .keys = q->keys, .server_secret = q->server_secret};
    if (!pause_connection(s, before))
        abandon_connection(s);
    fresh.shared = q->shared;
    *q = fresh;
}

/* Begins a connection, for which no earlier evidence counts. */
static void begin_connection(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    q->opened = true;
    q->first = zn_quic_copy_id(packet->dcid);
    q->client = zn_quic_copy_id(packet->scid);
    q->shared.connections++;
    q->answered_before = s->f->side[1 - s->f->client].bytes;
    q->initials = 1;
    zn_quic_note_own(s, packet->dcid);
    s->f->client_acked = false;
}

/* Returns whether the packet goes to an ID of this connection. */
static bool is_addressed_here(const zn_quic_flow *q, const zn_quic_packet *packet)
{
    return q->opened && (zn_quic_is_id(&q->first, packet->dcid) ||
                         (q->server_known && zn_quic_is_id(&q->server, packet->dcid)));
}

/* Returns true if an Initial of the connection can be opened: with the connection's keys, with keys
 * of another version from the same ID, or with keys from a Retry's ID, with which the client starts
 * its hello again. */
static bool opens_here(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    bool opens = q->version == packet->version
                     ? zn_quic_unseal(zn_quic_crypto_of(s), &q->keys, packet, plain) == ZN_DONE
                     : opens_under(s, packet, zn_quic_id_span(&q->first), plain);
    if (opens || !q->retried || !opens_under(s, packet, zn_quic_id_span(&q->retry), plain))
        return opens;
    zn_names_drop_stream(s->names, s->f);
    q->first = q->retry;
    q->retried = false;
    return true;
}

/* Returns true if a paused connection can open an Initial. Turns to that connection. */
static bool opens_paused(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    for (zn_quic_flow *p = next_paused(s, zn_quic_flow_of(s)); p != NULL; p = next_paused(s, p)) {
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
    zn_quic_flow before = *zn_quic_flow_of(s);
    if (!opens_under(s, packet, packet->dcid, plain))
        return false;
    end_connection(s, &before);
    return true;
}

/* Opens a client's Initial under the keys of its connection, or as the first one of a new
 * connection. Returns whether it authenticates. */
static bool open_initial(const zn_packet_context *s, const zn_quic_packet *packet, zn_span *plain)
{
    const zn_quic_flow *q = zn_quic_flow_of(s);
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
    zn_quic_flow *q = zn_quic_flow_of(s);
    zn_tls_hello hello;
    switch (zn_tls_bare_hello(bytes, &hello)) {
    case ZN_DONE:
        ZN_FACTS(s->f)->ech_offered |= hello.ech_offered;
        s->names->stats->n[ZN_STAT_HELLOS_ECH] += hello.ech_offered;
        q->name = zn_names_observed(s, hello.name);
        zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_QUIC_HELLO, .bytes = bytes});
        see_agent(s, &hello);
        see_attributes(s, &hello);
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
    zn_quic_crypto_frames *frames = &zn_quic_tools_of(s)->frames;
    if (zn_quic_read_frames(plain, frames) != ZN_DONE) {
        reject(s, ZN_STAT_SUPPRESSED_INVALID);
        return;
    }
    if (frames->n == 0)
        return;
    if (ZN_STATE(s->f)->stream == 0 && frames->n == 1 && frames->frame[0].offset == 0)
        see_hello(s, frames->frame[0].bytes);
    if (!zn_quic_flow_of(s)->done)
        collect(s, frames);
}

static void see_initial(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
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
    zn_quic_flow *q = zn_quic_flow_of(s);
    turn_to_receiver(s, packet->dcid);
    zn_quic_note_sent(s, packet, true);
    if (packet->type == ZN_QUIC_FOREIGN) {
        q->foreign = true;
        s->names->stats->n[ZN_STAT_QUIC_VERSION_UNKNOWN]++;
        return;
    }
    if (packet->type == ZN_QUIC_NEGOTIATION || packet->type == ZN_QUIC_RETRY)
        return; /* servers send these */
    zn_quic_note_addressed(q, packet);
    if (q->server_known && packet->version == q->shared.facts.version[1])
        q->shared.facts.both_ways = true; /* the server chose the version (RFC 9368 2.3) */
    if (packet->type == ZN_QUIC_INITIAL)
        see_initial(s, packet);
}

/* Returns true if a server's packet belongs to the current connection. Without paused connections a
 * Retry needs no tag, which early drafts do not have. */
static bool takes_answer(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    bool answered;
    if (!q->opened || !zn_quic_is_id(&q->client, packet->dcid))
        return false;
    if (packet->type == ZN_QUIC_RETRY &&
        (q->shared.paused == 0 || zn_quic_retry_is_whole(packet, zn_quic_id_span(&q->first)))) {
        q->retry = zn_quic_copy_id(packet->scid); /* opens_here tries the keys from its ID */
        q->retried = true;
    }
    answered = zn_quic_note_answered(s, packet);
    if (packet->version == q->version)
        q->shared.facts.both_ways = true;
    return answered;
}

static void see_server_packet(const zn_packet_context *s, const zn_quic_packet *packet)
{
    zn_quic_flow *q = zn_quic_flow_of(s);
    bool read = packet->type != ZN_QUIC_FOREIGN && packet->type != ZN_QUIC_NEGOTIATION;
    if (packet->type == ZN_QUIC_FOREIGN && packet->version == q->shared.facts.version[0])
        q->shared.facts.both_ways = true;
    if (!read || takes_answer(s, packet))
        return;
    for (zn_quic_flow *p = next_paused(s, q); p != NULL; p = next_paused(s, p)) {
        turn_to(s, p);
        if (takes_answer(s, packet))
            return;
        turn_to(s, p);
    }
}

/* ---- answers before the question ------------------------------------------------------------- */

/* Reads the early answer to a connection that this packet began. */
static void take_early(const zn_packet_context *s)
{
    zn_quic_early *early = zn_quic_early_slot(s);
    zn_cursor c = zn_cursor_over_span((zn_span){early->bytes, early->n}, true);
    zn_quic_packet packet;
    if (!zn_quic_is_early(s, early))
        return;
    early->flow = 0;
    while (zn_quic_next_packet(&c, &packet) == ZN_DONE) {
        note_facts(zn_quic_flow_of(s), &packet, false);
        see_server_packet(s, &packet);
    }
}

/* Makes the sender of a client's first Initial the client, if the other side was taken for the
 * client, and forgets the IDs of that side's packets. */
static void see_late_opening(const zn_packet_context *s)
{
    zn_cursor c = zn_cursor_over_span(s->p->payload, zn_packet_payload_whole(s->p));
    zn_quic_flow *q = zn_quic_flow_of(s);
    zn_quic_packet packet;
    zn_span plain;
    if (s->p->sender != s->f->client && !q->opened && zn_quic_next_packet(&c, &packet) == ZN_DONE &&
        packet.type == ZN_QUIC_INITIAL && opens_under(s, &packet, packet.dcid, &plain) &&
        zn_names_opens_late(s))
        *q = (zn_quic_flow){0};
}

static bool datagram(const zn_packet_context *s)
{
    const zn_packet *p = s->p;
    zn_cursor c = zn_cursor_over_span(p->payload, zn_packet_payload_whole(p));
    zn_quic_packet packet;
    zn_quic_flow *q = zn_quic_flow_of(s);
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
        zn_quic_keep_early(s);
    else if (!opened)
        take_early(s);
    if (from_client)
        turn_to_short(s, c);
    if (from_client && is_short_here(q, c))
        q->addressed = true;
    else if (from_client && q->opened && !q->server_known)
        zn_quic_note_early_start(s, c);
    conclude(s);
    zn_message_put(
        s, &(zn_message){.kind = ZN_MESSAGE_QUIC,
                         .bytes = p->payload,
                         .key_id = q->opened ? zn_quic_id_span(&q->first) : (zn_span){NULL, 0}});
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
    const zn_quic_flow *q = zn_quic_flow_of(s);
    zn_secondary_closed(s->names, ZN_VOTE_AGENT, q->shared.facts.agent);
    if (!q->done)
        zn_names_rejected(s, q->foreign && !q->opened ? ZN_STAT_SUPPRESSED_QUIC_VERSION
                                                      : ZN_STAT_SUPPRESSED_INCOMPLETE);
    free_paused(s);
}

static void forget(zn_names *names, zn_flow *f)
{
    const zn_quic_flow *q = zn_names_datagram(names, f);
    zn_name_store_forget_secondary(names->name_store, q->shared.facts.agent);
}

const zn_quic_facts *zn_quic_facts_of(const zn_names *names, const zn_flow *f)
{
    const zn_quic_flow *q;
    if (f->tuple.proto != ZN_PROTO_UDP || f->datagram == 0 ||
        ZN_STATE(f)->protocol != ZN_ANALYZER_QUIC)
        return NULL;
    q = zn_names_datagram(names, f);
    return &q->shared.facts;
}

const zn_analyzer_functions zn_quic_functions = {
    .starts = starts,
    .datagram = datagram,
    .state_bytes = sizeof(zn_quic_flow),
    .may_answer = may_answer,
    .disregard = disregard,
    .closed = closed,
    .forget = forget,
    .open = open_tools,
    .close = close_tools,
    .memory = memory_of_tools,
};
