/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's stream is read thing by thing: a prefix, a ClientHello, a request head, a frame, a
 * DNS message. What begins a stream, or follows a request, is recognised by its own first bytes,
 * whatever the port; only DNS, which has none that are its own, is looked for on port 53 alone.
 */
#include "analyzer/layer7.h"
#include "analyzer/names_internal.h"
#include "proto/ascii.h"
#include "proto/http.h"
#include "proto/proxy_starttls_prefix.h"

#define DNS_LENGTH_BYTES 2u
#define DNS_MESSAGE_MIN 17u          /* a header and the question for the root */
#define BODY_MAX (UINT32_C(1) << 30) /* where a longer body ends is not followed */

static bool is_cut(const zn_segment *in)
{
    return in->missing != 0 || in->end == ZN_SEGMENT_CUT;
}

static zn_name_source source_of(uint8_t head)
{
    switch ((zn_parse_state)head) {
    case ZN_PARSE_HTTP:
    case ZN_PARSE_HTTP_BETWEEN:
    case ZN_PARSE_HTTP_CHUNK:
    case ZN_PARSE_H2:
    case ZN_PARSE_H2_BLOCK:
        return ZN_SOURCE_HTTP;
    case ZN_PARSE_DNS:
    case ZN_PARSE_DNS_MESSAGE:
        return ZN_SOURCE_DNS;
    default:
        return ZN_SOURCE_TLS;
    }
}

void zn_names_read_end(zn_names *names, zn_flow *f)
{
    if (f->header_table != 0)
        zn_slab_give(&names->header_tables, f->header_table);
    f->header_table = 0;
    f->head = ZN_PARSE_OFF;
}

void zn_names_give_up(const zn_packet_context *s, zn_stat why)
{
    zn_names_rejected(s->names, s->f, source_of(s->f->head), why);
    zn_names_read_end(s->names, s->f);
}

void zn_names_lost(const zn_packet_context *s, zn_segment_end end)
{
    zn_flow *f = s->f;
    switch ((zn_parse_state)f->head) {
    case ZN_PARSE_HTTP: /* the next request may be whole again */
        zn_names_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        f->head = ZN_PARSE_HTTP_BETWEEN;
        break;
    case ZN_PARSE_DNS_MESSAGE: /* and so may be the next message */
        zn_names_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        f->head = ZN_PARSE_SEARCH;
        break;
    case ZN_PARSE_DNS:
        f->head = ZN_PARSE_SEARCH;
        break;
    case ZN_PARSE_H2: /* fields may have been added to the table */
        if (end == ZN_SEGMENT_CUT) {
            zn_names_read_end(s->names, f);
            break;
        }
        zn_names_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        break;
    case ZN_PARSE_TLS:
    case ZN_PARSE_H2_BLOCK:
        zn_names_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        break;
    case ZN_PARSE_TLS_AGAIN:
        f->head = ZN_PARSE_OFF;
        break;
    case ZN_PARSE_HTTP_CHUNK:
        f->head = ZN_PARSE_HTTP_BETWEEN;
        break;
    case ZN_PARSE_SEARCH:
    case ZN_PARSE_HTTP_BETWEEN:
    case ZN_PARSE_OFF:
        break;
    }
}

static zn_parse malformed(const zn_packet_context *s, zn_parse_state head)
{
    s->f->head = (uint8_t)head;
    zn_names_give_up(s, ZN_STAT_SUPPRESSED_INVALID);
    return ZN_MALFORMED;
}

static zn_parse read_hello(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    zn_tls_hello hello;
    bool again = f->head == ZN_PARSE_TLS_AGAIN;
    zn_parse result = zn_tls_client_hello(in->bytes, in->missing != 0, &s->names->tls, &hello);
    if (result == ZN_MALFORMED)
        return malformed(s, ZN_PARSE_TLS);
    if (result == ZN_NEED_MORE && !again)
        f->head = ZN_PARSE_TLS;
    if (result != ZN_DONE)
        return result;
    *used = (uint32_t)hello.consumed;
    f->protocol = ZN_PROTOCOL_TLS;
    f->head = again || in->missing != 0 ? ZN_PARSE_OFF : ZN_PARSE_TLS_AGAIN;
    s->names->stats->n[ZN_STAT_HELLOS_ECH] += hello.ech_offered && !f->ech_offered;
    f->ech_offered |= hello.ech_offered;
    if (again) {
        zn_names_named_again(s, ZN_SOURCE_TLS, hello.name);
        return ZN_DONE;
    }
    (void)zn_names_observed(s, ZN_SOURCE_TLS, hello.name);
    zn_layer7_client_hello(s->names, f, in->bytes, &hello.details);
    return ZN_DONE;
}

/* Behind a hello: another one, which answers a HelloRetryRequest, or the rest of the handshake. */
static zn_parse read_hello_again(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    static const uint8_t change_cipher[] = {ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1};
    zn_cursor c = zn_cursor_over_span(in->bytes, false);
    size_t n = in->bytes.n < sizeof change_cipher ? in->bytes.n : sizeof change_cipher;
    zn_parse result;
    if (memcmp(zn_cursor_take(&c, n).p, change_cipher, n) == 0) {
        *used = (uint32_t)n;
        return n == sizeof change_cipher ? ZN_DONE : ZN_NEED_MORE;
    }
    result = read_hello(s, in, used);
    if (result == ZN_OTHER) {
        s->f->head = ZN_PARSE_OFF;
        *used = (uint32_t)in->bytes.n;
        return ZN_DONE;
    }
    return result;
}

/* Reads one request; the next one can start behind its body. */
static zn_parse read_request(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    zn_http_request request;
    zn_parse result;
    uint64_t body;
    if (!zn_http_looks_like_request(in->bytes))
        return ZN_OTHER;
    result = zn_http_request_head(in->bytes, is_cut(in), &request);
    if (result == ZN_MALFORMED)
        return malformed(s, ZN_PARSE_HTTP);
    if (result == ZN_NEED_MORE)
        f->head = ZN_PARSE_HTTP;
    if (result != ZN_DONE)
        return result;
    body = request.body_unknown ? 0 : request.body_bytes;
    if (body > BODY_MAX) {
        s->names->stats->n[ZN_STAT_BODIES_LOST]++;
        body = 0;
    }
    *used = (uint32_t)(request.head_bytes + body);
    f->protocol = ZN_PROTOCOL_HTTP;
    f->head = request.chunked ? ZN_PARSE_HTTP_CHUNK : ZN_PARSE_HTTP_BETWEEN;
    if (f->http_method == 0)
        f->http_method = (uint8_t)request.method;
    (void)zn_names_observed(s, ZN_SOURCE_HTTP, request.host);
    return ZN_DONE;
}

/* Passes over a chunk. Where there is none, the body's end is unknown. */
static zn_parse read_chunk(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    bool last = true;
    zn_parse result = zn_http_chunk(in->bytes, used, &last);
    if (result == ZN_OTHER) {
        s->names->stats->n[ZN_STAT_BODIES_LOST]++;
        *used = 0;
    }
    if (result == ZN_NEED_MORE)
        return ZN_NEED_MORE;
    s->f->head = last ? ZN_PARSE_HTTP_BETWEEN : ZN_PARSE_HTTP_CHUNK;
    return ZN_DONE;
}

/* The client's preface, which opens HTTP/2. */
static zn_parse read_preface(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    size_t bytes;
    zn_parse result = zn_http2_preface(in->bytes, &bytes);
    if (result == ZN_NEED_MORE)
        f->head = ZN_PARSE_HTTP;
    if (result != ZN_DONE)
        return result;
    *used = (uint32_t)bytes;
    f->head = ZN_PARSE_H2;
    f->protocol = ZN_PROTOCOL_HTTP;
    f->header_table = (uint16_t)zn_slab_take(&s->names->header_tables);
    if (f->header_table == 0) {
        s->names->stats->n[ZN_STAT_HEADER_TABLES_FULL]++;
        zn_names_give_up(s, ZN_STAT_SUPPRESSED_CAPACITY);
    } else {
        zn_hpack_start(zn_slab_at(&s->names->header_tables, f->header_table));
    }
    return ZN_DONE;
}

static zn_parse read_frame(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    zn_hpack *table = zn_slab_at(&s->names->header_tables, f->header_table);
    zn_http2_unit unit;
    zn_parse result = zn_http2_next(in->bytes, table, &s->names->h2, &unit);
    if (result == ZN_MALFORMED)
        return malformed(s, ZN_PARSE_H2);
    f->head = result == ZN_NEED_MORE && unit.headers ? ZN_PARSE_H2_BLOCK : ZN_PARSE_H2;
    if (result == ZN_NEED_MORE)
        return ZN_NEED_MORE;
    *used = (uint32_t)unit.used;
    if (result == ZN_OTHER) {
        zn_names_rejected(s->names, f, ZN_SOURCE_HTTP, ZN_STAT_SUPPRESSED_INVALID);
        return ZN_DONE;
    }
    if (!unit.request)
        return ZN_DONE;
    if (f->http_method == 0)
        f->http_method = (uint8_t)unit.method;
    (void)zn_names_observed(s, ZN_SOURCE_HTTP, unit.host);
    return ZN_DONE;
}

static void found_message(const zn_packet_context *s, zn_parse state, const zn_dns_question *q)
{
    s->f->protocol = ZN_PROTOCOL_DNS;
    if (state == ZN_DONE && q->opcode == 0 && !q->response)
        zn_names_question(s, q);
    else if (state == ZN_MALFORMED)
        zn_names_rejected(s->names, s->f, ZN_SOURCE_DNS, ZN_STAT_SUPPRESSED_INVALID);
}

/* A message behind its length (RFC 1035 4.2.2), of which the question is enough. */
static zn_parse read_message(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    bool known = f->protocol == ZN_PROTOCOL_DNS && f->head != ZN_PARSE_SEARCH;
    zn_cursor c = zn_cursor_over_span(in->bytes, false);
    size_t length = zn_cursor_be16(&c), left = zn_cursor_left(&c);
    zn_dns_question question;
    zn_parse result = ZN_NEED_MORE;
    if (zn_cursor_ok(&c) && length < DNS_MESSAGE_MIN)
        result = ZN_OTHER;
    else if (zn_cursor_ok(&c))
        result = zn_dns_question_parse(zn_cursor_take(&c, left < length ? left : length),
                                       left >= length, &question);
    if (result == ZN_NEED_MORE) {
        f->head = ZN_PARSE_DNS_MESSAGE;
        return ZN_NEED_MORE;
    }
    if (!known && result == ZN_OTHER)
        return ZN_OTHER;
    *used =
        (uint32_t)(DNS_LENGTH_BYTES + length); /* one of a kind that is not read is passed over */
    f->head = ZN_PARSE_DNS;
    found_message(s, result, &question);
    return ZN_DONE;
}

/* A request can begin with it: a letter, or the end of an empty line. */
static bool begins_request(uint8_t first)
{
    uint8_t lower = zn_ascii_lower(first);
    return (lower >= 'a' && lower <= 'z') || first == '\r' || first == '\n';
}

/* Nothing is known of what comes next. The first byte is asked before any parser: of most flows
 * that are none of these it is another. */
static zn_parse recognise(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    const zn_tuple *tuple = &s->f->tuple;
    uint8_t first = zn_ascii_first(in->bytes);
    size_t bytes;
    zn_parse result = zn_tls_may_begin(in->bytes) ? read_hello(s, in, used) : ZN_OTHER;
    if (result == ZN_OTHER && first == 'P')
        result = read_preface(s, in, used);
    if (result == ZN_OTHER && begins_request(first))
        result = read_request(s, in, used);
    if (result == ZN_OTHER && (tuple->port[0] == ZN_DNS_PORT || tuple->port[1] == ZN_DNS_PORT))
        result = read_message(s, in, used);
    if (result == ZN_OTHER && s->f->protocol == ZN_PROTOCOL_UNKNOWN &&
        zn_proxy_or_starttls_prefix_skip(in->bytes, &bytes) == ZN_DONE) {
        *used = (uint32_t)bytes;
        result = ZN_DONE;
    }
    return result;
}

zn_parse zn_names_read(const zn_packet_context *s, const zn_segment *in, uint32_t *used)
{
    *used = 0;
    switch ((zn_parse_state)s->f->head) {
    case ZN_PARSE_TLS_AGAIN:
        return read_hello_again(s, in, used);
    case ZN_PARSE_HTTP_CHUNK:
        return read_chunk(s, in, used);
    case ZN_PARSE_H2:
    case ZN_PARSE_H2_BLOCK:
        return read_frame(s, in, used);
    case ZN_PARSE_DNS:
        return read_message(s, in, used);
    case ZN_PARSE_DNS_MESSAGE:
        if (s->f->protocol == ZN_PROTOCOL_DNS)
            return read_message(s, in, used);
        return recognise(s, in, used);
    default:
        return recognise(s, in, used);
    }
}
