/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in a client's TCP bytes.
 *
 * zn_flow.head_seq is where the next thing of interest starts: the stream's first byte, the head in
 * progress, or the request expected after the last one. A segment that starts there is parsed in
 * place. When a head does not end in it, or bytes before it are missing, pieces are put in order by
 * state/stream; a head may take at most HEAD_PIECES of them, so that a sender of single bytes does
 * not have it parsed without end.
 */
#include "anon/names_internal.h"
#include "proto/http.h"

#define HEAD_PIECES 64
#define SEARCH_TRIES 8 /* segments of an unrecognised flow whose start is looked at */

/* zn_flow.head */
enum {
    HEAD_SEARCH,       /* nothing recognised yet */
    HEAD_TLS,          /* in the middle of a ClientHello */
    HEAD_HTTP,         /* in the middle of a request head */
    HEAD_HTTP_BETWEEN, /* a request was read; another may follow */
    HEAD_OFF           /* nothing more to find */
};

/* Bytes of the client at a known place of its stream. */
typedef struct piece {
    zn_span bytes;
    uint32_t seq;
    bool cut; /* the capture lacks what followed them in their segment */
} piece;

static void drop_stream(zn_names *names, zn_flow *f)
{
    zn_names_drop_stream(names, f);
    f->head_tries = 0;
}

/* Gives up on the head in progress, which counts as suppressed. */
static void refuse_head(const zn_sighting *s, zn_stat why)
{
    zn_name_source source = s->f->head == HEAD_HTTP ? ZN_SOURCE_HTTP : ZN_SOURCE_TLS;
    zn_names_refused(s->names, s->f, source, why);
    drop_stream(s->names, s->f);
    s->f->head = HEAD_OFF;
}

static zn_parse see_tls(const zn_sighting *s, const piece *head)
{
    zn_tls_hello hello;
    zn_parse result = zn_tls_client_hello(head->bytes, head->cut, &s->names->tls, &hello);
    if (result == ZN_DONE) {
        s->f->protocol = ZN_PROTOCOL_TLS;
        s->f->ech_offered |= hello.ech_offered;
        s->names->stats->n[ZN_STAT_HELLOS_ECH] += hello.ech_offered;
        if (hello.name.n == 0)
            s->names->stats->n[ZN_STAT_HELLOS_WITHOUT_NAME]++;
        else
            (void)zn_names_found(s, ZN_SOURCE_TLS, hello.name);
        s->f->head = HEAD_OFF;
    } else if (result == ZN_NEED_MORE) {
        s->f->head = HEAD_TLS;
    } else if (result == ZN_MALFORMED) {
        s->f->head = HEAD_TLS;
        refuse_head(s, ZN_STAT_SUPPRESSED_INVALID);
    }
    return result;
}

/* Parses one request; on ZN_DONE *used is where the next one can start in head->bytes. */
static zn_parse see_request(const zn_sighting *s, const piece *head, size_t *used)
{
    zn_http_request request;
    zn_parse result = ZN_OTHER;
    if (zn_http_looks_like_request(head->bytes))
        result = zn_http_request_head(head->bytes, &request);
    if (result == ZN_DONE) {
        uint64_t body = request.body_unknown ? 0 : request.body_bytes;
        s->f->protocol = ZN_PROTOCOL_HTTP;
        if (s->f->http_method == 0)
            s->f->http_method = (uint8_t)request.method;
        if (request.host.n == 0)
            s->names->stats->n[ZN_STAT_HELLOS_WITHOUT_NAME]++;
        else
            (void)zn_names_found(s, ZN_SOURCE_HTTP, request.host);
        *used = body > head->bytes.n - request.head_bytes ? head->bytes.n
                                                          : request.head_bytes + (size_t)body;
        s->f->head = HEAD_HTTP_BETWEEN;
        s->f->head_seq = head->seq + (uint32_t)(request.head_bytes + body);
    } else if (result == ZN_NEED_MORE) {
        s->f->head = HEAD_HTTP;
        s->f->head_seq = head->seq;
    } else if (result == ZN_MALFORMED) {
        s->f->head = HEAD_HTTP;
        refuse_head(s, ZN_STAT_SUPPRESSED_INVALID);
    }
    return result;
}

/* One request after the other, as many as the bytes hold. */
static zn_parse see_http(const zn_sighting *s, const piece *head)
{
    piece rest = *head;
    zn_parse first = ZN_OTHER, result;
    size_t used = 0;
    do {
        result = see_request(s, &rest, &used);
        if (rest.bytes.p == head->bytes.p)
            first = result;
        if (result == ZN_DONE) {
            rest.bytes.p += used;
            rest.bytes.n -= used;
            rest.seq += (uint32_t)used;
        }
    } while (result == ZN_DONE && rest.bytes.n != 0 && s->f->head == HEAD_HTTP_BETWEEN);
    return result == ZN_NEED_MORE ? ZN_NEED_MORE : first;
}

static zn_parse recognise(const zn_sighting *s, const piece *head)
{
    zn_parse result = ZN_OTHER;
    if (s->f->head != HEAD_HTTP)
        result = see_tls(s, head);
    if (result == ZN_OTHER)
        result = see_http(s, head);
    return result;
}

/* Keeps the part of `in` from head_seq on until the rest has come. */
static void collect(const zn_sighting *s, const piece *in)
{
    zn_flow *f = s->f;
    zn_span rest = in->bytes;
    uint32_t skip = f->head_seq - in->seq; /* bytes of requests that end in this piece */
    uint32_t offset = in->seq - f->head_seq;
    if (f->stream == 0)
        f->stream = zn_stream_take(&s->names->streams);
    if (f->stream == 0) {
        s->names->stats->n[ZN_STAT_STREAMS_FULL]++;
        refuse_head(s, ZN_STAT_SUPPRESSED_CAPACITY);
        return;
    }
    if (skip <= rest.n) {
        rest.p += skip;
        rest.n -= skip;
        offset = 0;
    }
    if (zn_stream_add(&s->names->streams, f->stream, offset, rest) == ZN_STREAM_CONFLICT)
        refuse_head(s, ZN_STAT_SUPPRESSED_CONFLICT);
    else if (++f->head_tries > HEAD_PIECES)
        refuse_head(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

/* A head in one piece, at head_seq. */
static void see_in_place(const zn_sighting *s, const piece *in)
{
    zn_flow *f = s->f;
    switch (recognise(s, in)) {
    case ZN_NEED_MORE:
        if (in->cut) {
            uint8_t was = f->head;
            refuse_head(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
            if (was == HEAD_HTTP) /* the next request may be whole again */
                f->head = HEAD_HTTP_BETWEEN;
        } else {
            collect(s, in);
        }
        break;
    case ZN_OTHER:
        if (f->head == HEAD_SEARCH && ++f->head_tries == SEARCH_TRIES)
            f->head = HEAD_OFF;
        f->head_seq = in->seq + (uint32_t)in->bytes.n;
        break;
    case ZN_DONE:
    case ZN_MALFORMED:
        break;
    }
}

/* A piece of a head that is being put together. */
static void see_collected(const zn_sighting *s, const piece *in)
{
    zn_flow *f = s->f;
    uint32_t stream = f->stream;
    piece head = {{NULL, 0}, f->head_seq, in->cut};
    zn_parse result;
    collect(s, in);
    if (f->stream == 0)
        return;
    head.bytes = zn_stream_head(&s->names->streams, stream);
    if (head.bytes.n == 0)
        return;
    result = recognise(s, &head);
    if (f->stream == 0)
        return; /* refused */
    if (result == ZN_NEED_MORE && f->head_seq != head.seq) {
        /* Requests were read from it and another has begun: its bytes start a stream anew. */
        f->stream = 0;
        collect(s, &head);
        zn_stream_give(&s->names->streams, stream);
    } else if (result == ZN_NEED_MORE && head.bytes.n == ZN_STREAM_MAX) {
        refuse_head(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    } else if (result != ZN_NEED_MORE) {
        drop_stream(s->names, f);
        if (result == ZN_OTHER) {
            f->head = f->head == HEAD_HTTP_BETWEEN ? HEAD_HTTP_BETWEEN : HEAD_OFF;
            f->head_seq = head.seq + (uint32_t)head.bytes.n;
        }
    }
}

/* A flow joined in its middle: the side that sends a hello or a request is the client. */
static bool is_client_after_all(const zn_sighting *s)
{
    zn_tls_hello hello;
    zn_span bytes = s->p->payload;
    zn_parse tls;
    zn_addr known_as[2];
    if (!s->f->midstream || s->f->head != HEAD_SEARCH || s->f->stream != 0)
        return false;
    tls = zn_tls_client_hello(bytes, true, &s->names->tls, &hello);
    if (tls == ZN_OTHER && !(bytes.n > 8 && zn_http_looks_like_request(bytes)))
        return false;
    if (tls == ZN_NEED_MORE && bytes.n < 6)
        return false; /* too short to tell */
    zn_flow_swap_client(s->f);
    zn_policy_place(s->names->policy, s->names->gate->flows, s->f, s->p, known_as);
    (void)zn_gate_vote(s->names->gate, ZN_VOTE_CLIENT, s->p->t_ns, s->flow, 0);
    return s->f->user < 2;
}

void zn_names_tcp(const zn_sighting *s)
{
    zn_flow *f = s->f;
    const zn_packet *p = s->p;
    piece in = {p->payload, p->seq + ((p->tcp_flags & ZN_TCP_SYN) != 0),
                p->payload.n < p->payload_len};
    int32_t ahead;
    if (f->head == HEAD_OFF || p->payload.n == 0)
        return;
    if (p->sender != f->client && !is_client_after_all(s))
        return;
    if (f->head == HEAD_SEARCH && f->stream == 0) {
        if (f->midstream)
            f->head_seq = in.seq;
        else if (f->head_tries == 0)
            f->head_seq = f->side[f->client].isn + 1;
    }
    ahead = (int32_t)(in.seq - f->head_seq);
    if (ahead < 0) { /* repeats what was read: only what is behind head_seq is new */
        uint32_t old = 0u - (uint32_t)ahead;
        if (old >= in.bytes.n)
            return;
        in.bytes.p += old;
        in.bytes.n -= old;
        in.seq += old;
        ahead = 0;
    }
    if (f->stream != 0) {
        see_collected(s, &in);
    } else if (ahead == 0) {
        see_in_place(s, &in);
    } else if (f->head == HEAD_HTTP_BETWEEN) { /* a body, or bytes that were lost */
        if (zn_http_looks_like_request(in.bytes) && in.bytes.n > 8)
            see_in_place(s, &in);
    } else if ((uint32_t)ahead < ZN_STREAM_MAX) {
        collect(s, &in);
    }
}

void zn_names_tcp_closed(zn_names *names, zn_flow *f)
{
    if (f->head == HEAD_TLS || f->head == HEAD_HTTP)
        zn_names_refused(names, f, f->head == HEAD_HTTP ? ZN_SOURCE_HTTP : ZN_SOURCE_TLS,
                         ZN_STAT_SUPPRESSED_INCOMPLETE);
    drop_stream(names, f);
    f->head = HEAD_OFF;
}
