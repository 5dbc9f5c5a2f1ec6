/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 in clear, with prior knowledge: the authority of each request. */
#include "analyzer/attributes.h"
#include "analyzer/doh.h"
#include "analyzer/parse_state.h"
#include "proto/ascii.h"
#include "proto/http2.h"

#define MAX_HEADER_TABLES 8192 /* connections */
#define PREFACE_START_MIN 9    /* bytes that no other protocol begins with */

enum {
    PARSE_FRAMES = ZN_PARSE_OWN, /* the next frame may be of any type */
    PARSE_BLOCK                  /* in the middle of a header block, or of a DNS message */
};

typedef struct http2_connection {
    zn_hpack table;
    uint32_t dns_stream; /* the stream whose next DATA frame has a DNS message, 0: none */
} http2_connection;

typedef struct http2_state {
    zn_slab tables; /* http2_connection of each connection: zn_flow_facts.header_table */
    zn_http2_scratch scratch;
} http2_state;

static int open_state(void **state, uint32_t max_flows, zn_error *err)
{
    http2_state *h = zn_block_alloc(sizeof *h);
    uint32_t tables = max_flows < MAX_HEADER_TABLES ? max_flows : MAX_HEADER_TABLES;
    *state = h;
    if (h == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for HTTP/2 connections");
    return zn_slab_init(&h->tables, sizeof(http2_connection), tables, err);
}

static void close_state(void *state)
{
    http2_state *h = state;
    zn_slab_fini(&h->tables);
    zn_block_free(h, sizeof *h);
}

static size_t memory(const void *state)
{
    return zn_slab_bytes(&((const http2_state *)state)->tables);
}

static bool starts(const zn_packet_context *s, zn_span bytes)
{
    (void)s;
    return zn_ascii_first(bytes) == 'P';
}

/* The client's preface, which opens a connection. */
static zn_parse read_preface(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    http2_state *h = zn_analyzer_state(s);
    zn_flow *f = s->f;
    size_t bytes;
    if (zn_http2_preface(in->bytes, &bytes) != ZN_DONE)
        return ZN_OTHER;
    *used = (uint32_t)bytes;
    zn_parse_expect(s, PARSE_FRAMES);
    ZN_STATE(f)->protocol = s->analyzer->id & 0x1fu;
    ZN_FACTS(f)->header_table = (uint16_t)zn_slab_take(&h->tables);
    if (ZN_FACTS(f)->header_table == 0) {
        s->names->stats->n[ZN_STAT_HEADER_TABLES_FULL]++;
        zn_parse_give_up(s, ZN_STAT_SUPPRESSED_CAPACITY);
    } else {
        http2_connection *connection = zn_slab_at(&h->tables, ZN_FACTS(f)->header_table);
        connection->dns_stream = 0;
        zn_hpack_start(&connection->table);
    }
    return ZN_DONE;
}

/* Reads the DNS message in a DATA frame of the stream that has one. */
static zn_parse read_dns(const zn_packet_context *s, const zn_tcp_segment *in,
                         http2_connection *connection)
{
    zn_span message = {in->bytes.p, 0};
    bool whole;
    zn_parse result = zn_http2_data(in->bytes, ZN_DOH_MESSAGE_MAX, &message, &whole);
    if (result == ZN_NEED_MORE)
        return ZN_NEED_MORE;
    if (result == ZN_DONE && message.n == 0)
        return ZN_DONE;
    connection->dns_stream = 0;
    if (result == ZN_DONE)
        zn_doh_body(s, message, whole);
    else
        zn_doh_lost(s);
    return ZN_DONE;
}

/* Takes the names of a request: its host, and the question of DNS in it. */
static void take_request(const zn_packet_context *s, http2_connection *connection,
                         const zn_http2_unit *unit)
{
    if (ZN_FACTS(s->f)->http_method == 0)
        ZN_FACTS(s->f)->http_method = unit->method & 0x3fu;
    (void)zn_names_observed(s, unit->host);
    zn_attributes_see(s, ZN_EXPOSES_USER_AGENT, unit->agent);
    if (unit->get)
        zn_doh_target(s, unit->path);
    if (unit->get || !unit->dns_body)
        return;
    if (connection->dns_stream != 0) /* its body did not come before this request */
        zn_doh_lost(s);
    connection->dns_stream = unit->stream;
}

static zn_parse read_frame(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    http2_state *h = zn_analyzer_state(s);
    zn_flow *f = s->f;
    http2_connection *connection = zn_slab_at(&h->tables, ZN_FACTS(f)->header_table);
    zn_http2_unit unit;
    zn_parse result = zn_http2_next(in->bytes, &connection->table, &h->scratch, &unit);
    bool is_dns = result == ZN_DONE && unit.is_data && connection->dns_stream != 0 &&
                  unit.stream == connection->dns_stream;
    if (is_dns)
        result = read_dns(s, in, connection);
    if (result == ZN_MALFORMED)
        return zn_parse_malformed(s);
    zn_parse_expect(s, result == ZN_NEED_MORE && (unit.headers || is_dns) ? PARSE_BLOCK
                                                                          : PARSE_FRAMES);
    if (result == ZN_NEED_MORE)
        return ZN_NEED_MORE;
    *used = (uint32_t)unit.used;
    if (result == ZN_OTHER) {
        zn_names_rejected(s, ZN_STAT_SUPPRESSED_INVALID);
        return ZN_DONE;
    }
    if (unit.request)
        take_request(s, connection, &unit);
    return ZN_DONE;
}

static zn_parse segment(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    return zn_parse_state_of(s->f) >= PARSE_FRAMES ? read_frame(s, in, used)
                                                   : read_preface(s, in, used);
}

/* Ends reading: the missing bytes may have added fields to the table. */
static void lost(const zn_packet_context *s, zn_segment_end end)
{
    if (zn_parse_state_of(s->f) == PARSE_FRAMES && end == ZN_SEGMENT_CUT)
        zn_parse_end(s->names, s->f);
    else
        zn_parse_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

static bool is_client(const zn_packet_context *s, zn_span bytes)
{
    size_t used;
    (void)s;
    return bytes.n >= PREFACE_START_MIN && zn_http2_preface(bytes, &used) != ZN_OTHER;
}

static void end_connection(void *state, zn_flow *f)
{
    if (ZN_FACTS(f)->header_table != 0)
        zn_slab_give(&((http2_state *)state)->tables, ZN_FACTS(f)->header_table);
    ZN_FACTS(f)->header_table = 0;
}

const zn_analyzer_functions zn_http2_functions = {
    .starts = starts,
    .segment = segment,
    .lost = lost,
    .is_client = is_client,
    .end = end_connection,
    .open = open_state,
    .close = close_state,
    .memory = memory,
};
