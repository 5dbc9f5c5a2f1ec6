/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in the CHLO of Google's QUIC (proto/gquic.h).
 *
 * The client chooses the connection ID, and servers use the ID too, so no packet to an ID proves
 * that the client is real. The evidence is the source-address token: a server that does not know a
 * client answers the CHLO with a REJ, and the client repeats the token of the REJ in its next CHLO.
 * A client that has a token from an earlier connection gets no REJ, and its name stays unconfirmed.
 * The token proves nothing if the client sent it before, or if the client's side sent datagrams
 * that an echo could make the server's.
 *
 * A flow has one connection. A packet of another connection may hold another name, so the flow's
 * record is then coarse.
 */
#include "analyzer/analyzer.h"
#include "analyzer/parse_state.h"
#include "proto/gquic.h"

#define CLIENT_PACKETS_MAX 32   /* of a handshake that are opened */
#define SERVER_PACKETS_MAX 32   /* that are looked through for a REJ */
#define TOKEN_BYTES_MIN 16      /* of a token that cannot be guessed */
#define FIRST_DATAGRAM_MIN 1000 /* a client's first datagram has at least this; Chromium: 1024 */

/* State of a flow. */
typedef struct gquic_flow {
    uint32_t link;    /* the slab's, while free */
    uint32_t version; /* of the connection */
    uint32_t name;    /* name entry of the connection, 0: none */
    uint32_t base;    /* offset in the client's stream where the next message starts */
    zn_id token;      /* identity of the server's token */
    zn_id sent;       /* identity of the token in the client's last CHLO */
    uint8_t id[ZN_GQUIC_ID_BYTES];
    uint8_t client_packets, server_packets; /* that were opened, or tried */
    bool done : 1;                          /* a CHLO was read, or reading was abandoned */
    bool token_known : 1;
} gquic_flow;

/* State for all flows. */
typedef struct tools {
    zn_quic *crypto;
    zn_hash_key key;              /* of identities of tokens */
    zn_quic_crypto_frames frames; /* of the packet at hand */
} tools;

static int open_tools(void **state, uint32_t max_flows, zn_error *err)
{
    tools *t = *state = zn_heap_alloc(sizeof *t);
    int rc;
    (void)max_flows;
    if (t == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for reading Google's QUIC");
    rc = zn_hash_key_random(&t->key, err);
    return rc == 0 ? zn_quic_open(&t->crypto, err) : rc;
}

static void close_tools(void *state)
{
    zn_quic_close(((tools *)state)->crypto);
    zn_heap_free(state);
}

static tools *tools_of(const zn_packet_context *s)
{
    return zn_analyzer_state(s);
}

static gquic_flow *state_of(const zn_packet_context *s)
{
    return zn_names_datagram(s->names, s->f);
}

static zn_span id_of(const gquic_flow *g)
{
    return (zn_span){g->id, sizeof g->id};
}

static zn_id token_id(const zn_packet_context *s, zn_span token)
{
    return zn_hash128(&tools_of(s)->key, 0, token.p, token.n);
}

static void reject(const zn_packet_context *s, zn_stat why)
{
    zn_names_rejected(s, why);
    zn_names_drop_stream(s->names, s->f);
    state_of(s)->done = true;
    state_of(s)->client_packets = CLIENT_PACKETS_MAX;
}

/* ---- the client's messages ------------------------------------------------------------------- */

/* Returns true if a CHLO repeats the token of the server's REJ. */
static bool repeats_token(const zn_packet_context *s, zn_span token)
{
    const gquic_flow *g = state_of(s);
    return g->token_known && !zn_flow_client_plays_server(s->f) &&
           zn_id_equal(g->token, token_id(s, token));
}

/* Takes a CHLO. The later CHLOs of a connection name the same host as its first. */
static void see_hello(const zn_packet_context *s, const zn_gquic_message *hello)
{
    gquic_flow *g = state_of(s);
    bool proves = repeats_token(s, hello->token);
    g->sent = token_id(s, hello->token);
    if (g->done)
        zn_names_observed_again(s, hello->name);
    else
        g->name = zn_names_observed(s, hello->name);
    g->done = true;
    ZN_STATE(s->f)->parse = ZN_PARSE_OFF; /* all names so far are read */
    if (proves && !s->f->client_acked)
        zn_names_client_proven(s, g->name);
}

/* Reads the CHLOs at the start of the bytes, which stand at g->base. Returns the bytes of these
 * messages. */
static uint32_t read_hellos(const zn_packet_context *s, zn_span bytes)
{
    gquic_flow *g = state_of(s);
    size_t used = 0;
    zn_gquic_message hello;
    zn_parse result = zn_gquic_hello_read(bytes, &hello);
    while (result == ZN_DONE) {
        see_hello(s, &hello);
        used += hello.bytes;
        result = zn_gquic_hello_read(zn_span_after(bytes, used), &hello);
    }
    if (result != ZN_NEED_MORE)
        reject(s, ZN_STAT_SUPPRESSED_INVALID);
    g->base += (uint32_t)used;
    return (uint32_t)used;
}

/* Inserts the parts of a packet between the parts of earlier packets. */
static void collect(const zn_packet_context *s, const zn_quic_crypto_frames *frames)
{
    zn_stream_pool *streams = &s->names->streams;
    const gquic_flow *g = state_of(s);
    uint32_t stream, used;
    if (!zn_names_has_stream(s)) {
        reject(s, ZN_STAT_SUPPRESSED_CAPACITY);
        return;
    }
    stream = ZN_STATE(s->f)->stream;
    for (size_t i = 0; i < frames->n; i++) {
        uint64_t offset = frames->frame[i].offset;
        zn_span bytes = frames->frame[i].bytes;
        if (offset < g->base && g->base - offset >= bytes.n)
            continue; /* repeats what was read */
        if (offset < g->base) {
            bytes = zn_span_after(bytes, (size_t)(g->base - offset));
            offset = g->base;
        }
        offset -= g->base;
        if (zn_stream_add(streams, stream,
                          offset < ZN_STREAM_MAX ? (uint32_t)offset : ZN_STREAM_MAX,
                          bytes) == ZN_STREAM_CONFLICT) {
            reject(s, ZN_STAT_SUPPRESSED_CONFLICT);
            return;
        }
    }
    used = read_hellos(s, zn_stream_start(streams, stream));
    if (used != 0 && ZN_STATE(s->f)->stream != 0)
        zn_stream_consume(streams, stream, used);
    if (ZN_STATE(s->f)->stream != 0 && zn_stream_first(streams, stream) == ZN_STREAM_MAX)
        zn_names_drop_stream(s->names, s->f);
}

/* ---- the client's packets -------------------------------------------------------------------- */

/* Opens a packet, whose side is `from`, and reads its frames. Returns false if the packet does not
 * authenticate; otherwise *result is the result of reading the frames. */
static bool open_packet(const zn_packet_context *s, const zn_gquic_packet *packet,
                        zn_quic_side from, zn_parse *result)
{
    tools *t = tools_of(s);
    zn_span frames;
    if (zn_gquic_open(t->crypto, packet, from, id_of(state_of(s)), &frames) != ZN_DONE)
        return false;
    *result = zn_gquic_frames_read(packet, frames, &t->frames);
    return true;
}

/* Returns true if the datagram opens as a server's. */
static bool is_of_server(const zn_packet_context *s)
{
    zn_gquic_packet packet;
    zn_parse result;
    return zn_gquic_packet_read(s->p->payload, true, state_of(s)->version, &packet) == ZN_DONE &&
           open_packet(s, &packet, ZN_QUIC_SERVER, &result);
}

/* Opens a packet of the connection, and reads it. Packets of another level of encryption do not
 * open. */
static void see_handshake(const zn_packet_context *s, const zn_gquic_packet *packet)
{
    zn_parse result;
    if (!open_packet(s, packet, ZN_QUIC_CLIENT, &result)) {
        s->names->stats->n[ZN_STAT_QUIC_NOT_AUTHENTIC]++;
        if (is_of_server(s))
            zn_flow_note_server(s->f, s->f->client);
        return;
    }
    s->names->stats->n[ZN_STAT_QUIC_INITIALS]++;
    if (result != ZN_DONE)
        reject(s, ZN_STAT_SUPPRESSED_INVALID);
    else if (tools_of(s)->frames.n != 0)
        collect(s, &tools_of(s)->frames);
}

/* Begins the connection with the first packet that names a version. */
static void begin(const zn_packet_context *s, const zn_gquic_packet *packet)
{
    gquic_flow *g = state_of(s);
    g->version = packet->version;
    memcpy(g->id, packet->id.p, sizeof g->id);
    if (s->f->side[s->f->client].packets > 1) /* an echo of the earlier packets may be anything */
        zn_flow_note_server(s->f, s->f->client);
}

static void see_client(const zn_packet_context *s)
{
    gquic_flow *g = state_of(s);
    bool whole = zn_packet_payload_whole(s->p);
    zn_gquic_packet packet;
    zn_parse result = zn_gquic_packet_read(s->p->payload, whole, 0, &packet);
    if (result == ZN_DONE && g->version == 0)
        begin(s, &packet);
    if (result == ZN_DONE &&
        (packet.version != g->version || !zn_span_equal(packet.id, id_of(g)))) {
        s->f->names_dropped = true; /* it may hold another name */
        zn_flow_note_server(s->f, s->f->client);
        return;
    }
    if (g->client_packets == CLIENT_PACKETS_MAX) { /* what follows is not read */
        s->f->names_dropped |= result == ZN_DONE && !s->f->client_acked;
        zn_flow_note_server(s->f, s->f->client);
        return;
    }
    if (s->f->client_acked && g->done && result != ZN_DONE)
        return; /* encrypted */
    g->client_packets++;
    if (result == ZN_DONE && whole)
        see_handshake(s, &packet);
    else if (result == ZN_DONE && !g->done)
        reject(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    else if (!whole || is_of_server(s))
        zn_flow_note_server(s->f, s->f->client);
    if (g->client_packets == CLIENT_PACKETS_MAX && !g->done)
        reject(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

/* ---- the server's packets -------------------------------------------------------------------- */

/* Takes the token of a REJ, unless it is the client's own. */
static void see_rejection(const zn_packet_context *s, zn_span bytes)
{
    gquic_flow *g = state_of(s);
    zn_span token;
    zn_id id;
    if (zn_gquic_rejection_read(bytes, &token) != ZN_DONE || token.n < TOKEN_BYTES_MIN)
        return;
    id = token_id(s, token);
    if (zn_id_equal(id, g->sent))
        return;
    g->token = id;
    g->token_known = true;
}

static void see_server(const zn_packet_context *s)
{
    gquic_flow *g = state_of(s);
    const zn_quic_crypto_frames *frames = &tools_of(s)->frames;
    zn_gquic_packet packet;
    zn_parse result;
    if (!g->done || s->f->client_acked || g->server_packets == SERVER_PACKETS_MAX ||
        !zn_packet_payload_whole(s->p))
        return;
    g->server_packets++;
    if (zn_gquic_packet_read(s->p->payload, true, g->version, &packet) != ZN_DONE ||
        (packet.id.n != 0 && !zn_span_equal(packet.id, id_of(g))) ||
        !open_packet(s, &packet, ZN_QUIC_SERVER, &result) || result != ZN_DONE)
        return;
    for (size_t i = 0; i < frames->n; i++)
        see_rejection(s, frames->frame[i].bytes);
}

/* ---- the analyzer ---------------------------------------------------------------------------- */

static bool datagram(const zn_packet_context *s)
{
    if (s->p->sender == s->f->client)
        see_client(s);
    else
        see_server(s);
    return true;
}

/* Recognises a long datagram of a client that begins with one of the versions. */
static bool starts(const zn_packet_context *s, zn_span bytes)
{
    zn_gquic_packet packet;
    return s->p->payload_len >= FIRST_DATAGRAM_MIN && s->p->sender == s->f->client &&
           zn_gquic_packet_read(bytes, zn_packet_payload_whole(s->p), 0, &packet) == ZN_DONE;
}

/* Notes a client's datagram that anybody may have sent. */
static void disregard(const zn_packet_context *s)
{
    if (s->p->sender == s->f->client)
        zn_flow_note_server(s->f, s->f->client);
}

static void closed(const zn_packet_context *s)
{
    if (!state_of(s)->done)
        zn_names_rejected(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

const zn_analyzer_functions zn_gquic_functions = {
    .starts = starts,
    .datagram = datagram,
    .state_bytes = sizeof(gquic_flow),
    .disregard = disregard,
    .closed = closed,
    .open = open_tools,
    .close = close_tools,
};
