/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.x: the host of each request. */
#include "analyzer/parse_state.h"
#include "proto/ascii.h"
#include "proto/http.h"
#include "proto/http2.h"

#define REQUEST_START_MIN 9          /* bytes by which a request is recognised */
#define BODY_MAX (UINT32_C(1) << 30) /* the end of a longer body is not followed */

#define PARSE_CHUNK ZN_PARSE_OWN /* a request was read; a chunk of its body follows */

/* Returns whether a request can begin with the first byte: a letter, or the end of an empty
 * line. */
static bool starts(const zn_packet_context *s, zn_span bytes)
{
    uint8_t first = zn_ascii_first(bytes), lower = zn_ascii_lower(first);
    (void)s;
    return (lower >= 'a' && lower <= 'z') || first == '\r' || first == '\n';
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

/* Passes over a request and its body. */
static void pass_request(const zn_packet_context *s, const zn_http_request *request, uint32_t *used)
{
    uint64_t body = request->body_unknown ? 0 : request->body_bytes;
    if (body > BODY_MAX) {
        s->names->stats->n[ZN_STAT_BODIES_LOST]++;
        body = 0;
    }
    *used = (uint32_t)(request->head_bytes + body);
    zn_parse_expect(s, request->chunked ? PARSE_CHUNK : ZN_PARSE_BETWEEN);
}

/* Reads one request; the next one can start after its body. */
static zn_parse read_request(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    bool cut = in->missing != 0 || in->end == ZN_SEGMENT_CUT;
    zn_http_request request;
    zn_parse result = exclude_preface(in->bytes);
    if (result == ZN_DONE)
        result = zn_http_looks_like_request(in->bytes)
                     ? zn_http_request_head(in->bytes, cut, &request)
                     : ZN_OTHER;
    if (result == ZN_MALFORMED)
        return zn_parse_malformed(s);
    if (result == ZN_NEED_MORE)
        zn_parse_expect(s, ZN_PARSE_BEGUN);
    if (result != ZN_DONE)
        return result;
    pass_request(s, &request, used);
    ZN_STATE(f)->protocol = s->analyzer->id & 0x3fu;
    if (ZN_FACTS(f)->http_method == 0)
        ZN_FACTS(f)->http_method = (uint8_t)request.method;
    (void)zn_names_observed(s, request.host);
    return ZN_DONE;
}

/* Passes over a chunk. Bytes that are none leave the body's end unknown. */
static zn_parse read_chunk(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    bool last = true;
    zn_parse result = zn_http_chunk(in->bytes, used, &last);
    if (result == ZN_OTHER) {
        s->names->stats->n[ZN_STAT_BODIES_LOST]++;
        *used = 0;
    }
    if (result == ZN_NEED_MORE)
        return ZN_NEED_MORE;
    zn_parse_expect(s, last ? ZN_PARSE_BETWEEN : PARSE_CHUNK);
    return ZN_DONE;
}

static zn_parse segment(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    return zn_parse_state_of(s->f) == PARSE_CHUNK ? read_chunk(s, in, used)
                                                  : read_request(s, in, used);
}

/* Gives up a request in progress, and waits for the start of another. */
static void lost(const zn_packet_context *s, zn_segment_end end)
{
    (void)end;
    if (zn_parse_state_of(s->f) == ZN_PARSE_BEGUN)
        zn_parse_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    zn_parse_expect(s, ZN_PARSE_BETWEEN);
}

static bool resumes(zn_span bytes)
{
    return bytes.n >= REQUEST_START_MIN && zn_http_looks_like_request(bytes);
}

static bool is_client(const zn_packet_context *s, zn_span bytes)
{
    (void)s;
    return resumes(bytes);
}

const zn_analyzer_functions zn_http_functions = {
    .starts = starts,
    .segment = segment,
    .lost = lost,
    .is_client = is_client,
    .resumes = resumes,
    .find_start = zn_http_next_request,
};
