/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.x: the host of each request.
 *
 * A request begins only where the body of the previous request ends, because a body may contain
 * bytes that look like a request. If that place is unknown, the connection's later requests are not
 * read. They may name hosts, so the flow's record is coarse.
 */
#include "analyzer/attributes.h"
#include "analyzer/doh.h"
#include "analyzer/message_sink.h"
#include "analyzer/parse_state.h"
#include "analyzer/tcp_stream.h"
#include "analyzer/unread.h"
#include "proto/ascii.h"
#include "proto/doh.h"
#include "proto/http.h"
#include "proto/http2.h"

#define REQUEST_START_MIN 9          /* bytes by which a request is recognised */
#define BODY_MAX (UINT32_C(1) << 30) /* the end of a longer body is not followed */
#define DNS_WAIT_MAX 4096u           /* bytes of chunks that are kept for a DNS message in them */

enum {
    PARSE_CHUNK = ZN_PARSE_OWN, /* a request was read; a chunk of its body follows */
    PARSE_FIELDS,               /* the host was read; another field of a long head follows */
    PARSE_FIELD                 /* the same in the middle of a field */
};

/* Returns whether a request can begin with the first byte: one of a token, or the end of an empty
 * line. */
static bool starts(const zn_packet_context *s, zn_span bytes)
{
    uint8_t first = zn_ascii_first(bytes);
    (void)s;
    return zn_http_is_token_byte(first) || first == '\r' || first == '\n';
}

/* Returns whether the bytes are one word, and the client never sent more: no request. */
static bool is_last_word(const zn_packet_context *s, const zn_tcp_segment *in)
{
    uint32_t end = in->seq + (uint32_t)in->bytes.n;
    return in->end == ZN_SEGMENT_CUT && zn_span_find(in->bytes, ' ') == in->bytes.n &&
           !zn_tcp_stream_sent_from(s->f, end);
}

/* Returns the words that are methods at a segment's start. At the connection's first byte, and
 * where the request before it ended by its length, no word can be the rest of a lost request. Bytes
 * that end at a hole are no whole request, and the hole is counted already. */
static zn_http_methods methods_at(const zn_packet_context *s, const zn_tcp_segment *in)
{
    const zn_flow *f = s->f;
    bool first = !f->midstream && in->seq == f->side[f->client].isn + 1;
    bool follows = ZN_STATE(f)->protocol == s->analyzer->id && !ZN_FACTS(f)->missed &&
                   (!ZN_FACTS(f)->switches || ZN_STATE(f)->parse_tries == 1);
    if ((!first && !follows) || in->end == ZN_SEGMENT_HOLE || is_last_word(s, in))
        return ZN_HTTP_REGISTERED;
    return ZN_HTTP_ANY;
}

/* ZN_OTHER for HTTP/2's preface, which looks like a request; ZN_NEED_MORE for a beginning of it. */
static zn_parse exclude_preface(zn_span bytes)
{
    size_t used;
    zn_parse preface = zn_ascii_first(bytes) == 'P' ? zn_http2_preface(bytes, &used) : ZN_OTHER;
    if (preface == ZN_NEED_MORE)
        return ZN_NEED_MORE;
    return preface == ZN_DONE ? ZN_OTHER : ZN_DONE;
}

/* Ends reading, as the start of the next request is not known. */
static void lose_place(const zn_packet_context *s)
{
    s->names->stats->n[ZN_STAT_BODIES_LOST]++;
    zn_names_missed(s);
    zn_parse_end(s->names, s->f);
}

/* Passes over a request and its body. */
static void pass_request(const zn_packet_context *s, const zn_http_request *request,
                         zn_segment_end end, uint32_t *used)
{
    bool found = !request->body_unknown && request->body_bytes <= BODY_MAX;
    *used = (uint32_t)(request->head_bytes + (found ? request->body_bytes : 0));
    ZN_FACTS(s->f)->switches = request->switches;
    if (request->switches)
        ZN_STATE(s->f)->parse_tries = 1;
    if (found && request->goes_on && request->no_content && !request->switches)
        zn_parse_expect(s, PARSE_FIELDS);
    else if ((found && !request->goes_on) || end == ZN_SEGMENT_CUT)
        /* behind the flow's end nothing is missed */
        zn_parse_expect(s, request->chunked ? PARSE_CHUNK : ZN_PARSE_BETWEEN);
    else
        lose_place(s);
}

/* Rejects a request that begins with another word than a method, such as the rest of a request
 * whose first bytes are missing, and ends reading: its fields need not mean what they seem to. */
static zn_parse reject_other(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    if (!zn_http_has_other_method(in->bytes))
        return ZN_OTHER;
    zn_names_rejected(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    zn_parse_end(s->names, s->f);
    *used = (uint32_t)in->bytes.n;
    return ZN_DONE;
}

/* Finds the DNS message in the body of a request, or its first ZN_DOH_MESSAGE_MAX bytes; `room` has
 * room for these. Returns ZN_DONE with *message, ZN_NEED_MORE, or ZN_OTHER if the body has no
 * DNS message. */
static zn_parse find_dns(const zn_http_request *request, zn_span bytes, uint8_t *room,
                         zn_span *message, bool *whole)
{
    size_t n =
        request->body_bytes < ZN_DOH_MESSAGE_MAX ? (size_t)request->body_bytes : ZN_DOH_MESSAGE_MAX;
    zn_span body = {NULL, 0};
    if (!request->dns_body || request->body_unknown || request->goes_on || request->no_content)
        return ZN_OTHER;
    if (bytes.n >= request->head_bytes)
        body = zn_span_after(bytes, request->head_bytes);
    if (request->chunked)
        return zn_http_join_chunks(body, room, ZN_DOH_MESSAGE_MAX, message, whole);
    *whole = request->body_bytes == n;
    *message = zn_span_first(body, n);
    return n == 0 ? ZN_OTHER : body.n < n ? ZN_NEED_MORE : ZN_DONE;
}

/* Returns true if the bytes end before the end of a DNS message in the body. */
static bool awaits_dns(const zn_http_request *request, const zn_tcp_segment *in, bool cut)
{
    uint8_t room[ZN_DOH_MESSAGE_MAX];
    zn_span message;
    bool whole;
    return request->dns_body && !cut && in->end == ZN_SEGMENT_OPEN &&
           in->bytes.n < request->head_bytes + DNS_WAIT_MAX &&
           find_dns(request, in->bytes, room, &message, &whole) == ZN_NEED_MORE;
}

/* Reads the question of DNS in a request, in its target or in its body (RFC 8484 4.1). */
static void read_dns(const zn_packet_context *s, const zn_http_request *request,
                     const zn_tcp_segment *in)
{
    uint8_t room[ZN_DOH_MESSAGE_MAX];
    zn_span message;
    bool whole;
    if (request->no_content)
        zn_doh_target(s, request->target);
    if (!request->dns_body || request->no_content)
        return;
    if (find_dns(request, in->bytes, room, &message, &whole) == ZN_DONE)
        zn_doh_body(s, message, whole);
    else
        zn_doh_lost(s);
}

/* Reads the attributes of a request whose host was observed. */
static void see_attributes(const zn_packet_context *s, const zn_http_request *request,
                           const zn_tcp_segment *in)
{
    zn_span agent;
    if (zn_attributes_want(s, ZN_EXPOSES_USER_AGENT) && !request->goes_on &&
        zn_http_user_agent(zn_ascii_part(in->bytes, 0, request->head_bytes), &agent) == ZN_DONE)
        zn_attributes_see(s, ZN_EXPOSES_USER_AGENT, agent);
}

/* Reads one request; the next one can start after its body. */
static zn_parse read_request(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    bool cut = in->missing != 0 || in->end == ZN_SEGMENT_CUT;
    zn_http_request request;
    zn_parse result = exclude_preface(in->bytes);
    if (result == ZN_DONE)
        result = zn_http_request_head(in->bytes, cut, methods_at(s, in), &request);
    if (result == ZN_OTHER)
        result = reject_other(s, in, used);
    if (ZN_STATE(f)->parse == ZN_PARSE_OFF)
        return result;
    if (result == ZN_MALFORMED && request.too_long) {
        zn_names_rejected(s, ZN_STAT_SUPPRESSED_CAPACITY);
        zn_parse_end(s->names, f);
        return result;
    }
    if (result == ZN_MALFORMED)
        return zn_parse_malformed(s);
    if (result == ZN_NEED_MORE)
        zn_parse_expect(s, ZN_PARSE_BEGUN);
    if (result == ZN_DONE && awaits_dns(&request, in, cut)) {
        zn_parse_expect(s, ZN_PARSE_BEGUN);
        return ZN_NEED_MORE;
    }
    if (result != ZN_DONE)
        return result;
    pass_request(s, &request, in->end, used);
    ZN_STATE(f)->protocol = s->analyzer->id & 0x1fu;
    if (ZN_FACTS(f)->http_method == 0)
        ZN_FACTS(f)->http_method = request.method & 0x3fu;
    (void)zn_names_observed(s, request.host);
    see_attributes(s, &request, in);
    read_dns(s, &request, in);
    if (request.switches)
        zn_unread_begin_again(f);
    if (!request.goes_on)
        zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_HTTP_REQUEST,
                                        .bytes = zn_ascii_part(in->bytes, 0, request.head_bytes),
                                        .seq = in->seq});
    return ZN_DONE;
}

/* Reads on in a head whose host was read: another host contradicts it, and other fields may change
 * where the request ends. */
static zn_parse read_field(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    bool inside = zn_parse_state_of(s->f) == PARSE_FIELD;
    zn_http_rest kind;
    zn_span host = {in->bytes.p, 0};
    size_t bytes;
    zn_parse result = zn_http_next_field(in->bytes, inside, &bytes, &kind, &host);
    if (result != ZN_DONE)
        return result;
    *used = (uint32_t)bytes;
    if (kind == ZN_HTTP_REST_HOST)
        zn_names_observed_again(s, host);
    if (kind == ZN_HTTP_REST_BODY)
        lose_place(s);
    else if (kind == ZN_HTTP_REST_END)
        zn_parse_expect(s, ZN_PARSE_BETWEEN);
    else
        zn_parse_expect(s, kind == ZN_HTTP_REST_LINE ? PARSE_FIELD : PARSE_FIELDS);
    return ZN_DONE;
}

/* Skips a chunk. If the chunk length is malformed, the end of the body is unknown and the rest is
 * skipped. */
static zn_parse read_chunk(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    bool last = true;
    zn_parse result = zn_http_chunk(in->bytes, used, &last);
    if (result == ZN_NEED_MORE)
        return ZN_NEED_MORE;
    if (result == ZN_OTHER) {
        *used = 0;
        lose_place(s);
    } else {
        zn_parse_expect(s, last ? ZN_PARSE_BETWEEN : PARSE_CHUNK);
    }
    return ZN_DONE;
}

static zn_parse segment(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    switch (zn_parse_state_of(s->f)) {
    case PARSE_CHUNK:
        return read_chunk(s, in, used);
    case PARSE_FIELDS:
    case PARSE_FIELD:
        return read_field(s, in, used);
    default:
        return read_request(s, in, used);
    }
}

/* Gives up a request, a field or a chunk in progress, and with it the place of the next request. */
static void lost(const zn_packet_context *s, zn_segment_end end)
{
    uint8_t state = zn_parse_state_of(s->f);
    if (state == ZN_PARSE_BEGUN)
        zn_parse_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    else if (state >= PARSE_CHUNK && end != ZN_SEGMENT_CUT)
        lose_place(s);
}

/* Ends reading behind a request whose body is longer than it says, or that no request follows. A
 * tunnel or another protocol is searched for names like the start of any stream. */
static void unrecognised(const zn_packet_context *s)
{
    zn_flow_state *state = ZN_STATE(s->f);
    if (!ZN_FACTS(s->f)->switches) {
        lose_place(s);
    } else if (state->parse_tries == ZN_SEARCH_TRIES) {
        zn_parse_end(s->names, s->f);
    } else {
        state->parse_tries = (state->parse_tries + 1u) & 0xfu;
        zn_parse_expect(s, ZN_PARSE_BETWEEN);
    }
}

static bool is_client(const zn_packet_context *s, zn_span bytes)
{
    (void)s;
    return bytes.n >= REQUEST_START_MIN && zn_http_looks_like_request(bytes);
}

const zn_analyzer_functions zn_http_functions = {
    .starts = starts,
    .segment = segment,
    .lost = lost,
    .is_client = is_client,
    .resumes = zn_http_has_request_line,
    .unrecognised = unrecognised,
};
