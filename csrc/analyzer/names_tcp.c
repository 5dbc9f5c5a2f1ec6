/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's TCP bytes in their order.
 *
 * zn_flow.parse_seq is where the next thing of interest starts: the stream's first byte, the head
 * in progress, or the request expected after the last one. A segment that starts there is read in
 * place. When a thing does not end in it, or bytes before it are missing, pieces are put in order
 * by flow/reassembly; a thing may take at most PIECES_MAX of them, so that a sender of single bytes
 * does not have it parsed without end. Missing bytes are given up when the stream has no room left
 * in front of them, or the flow ends; what was stored behind them is then read by itself.
 */
#include "analyzer/names_internal.h"
#include "proto/ascii.h"
#include "proto/http.h"
#include "proto/proxy_starttls_prefix.h"

#define STORED_SEGMENTS_MAX 256
_Static_assert(ZN_NAMES_TRIES == 15, "zn_flow.head_tries counts them, from 1, in four bits");
/* Bytes from where a thing may start to what is passed over, and how far a segment may lie beyond:
 * one that strayed must not hide what comes. */
#define FOLLOWED_MAX (1 << 30)
#define BEYOND_MAX (1 << 26)
/* How far what a client acknowledges may lie from what its server was seen to send: a capture may
 * have lost as much of it. */
#define ACK_BEYOND_MAX (1 << 20)
#define REQUEST_START_MIN 9 /* bytes that tell a request by itself */

static void reject_open_message(const zn_packet_context *s, zn_stat why)
{
    zn_names_give_up(s, why);
    zn_names_drop_stream(s->names, s->f);
}

static void drop_front(zn_segment *in, uint32_t n)
{
    if (n > in->bytes.n)
        n = (uint32_t)in->bytes.n;
    in->bytes.p += n;
    in->bytes.n -= n;
    in->seq += n;
}

/* A request was read, and what follows may be the rest of its body. */
static bool is_after_request(const zn_flow *f)
{
    return f->head == ZN_PARSE_HTTP_BETWEEN || f->head == ZN_PARSE_HTTP_CHUNK;
}

/* Where the piece, with what the snapshot length cut off, ends. */
static uint32_t end_of(const zn_segment *in)
{
    return in->seq + (uint32_t)in->bytes.n + in->missing;
}

/* The next thing of interest starts at `seq`: no more where the SYN says that the stream does. */
static void move_to(zn_flow *f, uint32_t seq)
{
    f->parse_seq = seq;
    if (f->parse_tries == 0)
        f->parse_tries = 1;
}

/* Bytes that nobody knows at the start of a thing. */
static void pass_unknown(zn_flow *f)
{
    if (f->protocol == ZN_PROTOCOL_HTTP) {
        f->head = ZN_PARSE_HTTP_BETWEEN;
    } else if (f->parse_tries == ZN_NAMES_TRIES) {
        f->head = ZN_PARSE_OFF;
    } else {
        f->parse_tries++;
        f->head = ZN_PARSE_SEARCH;
    }
}

/* Reads thing after thing and moves parse_seq. What is left in *rest is not whole: ZN_NEED_MORE. */
static zn_parse read_all(const zn_packet_context *s, zn_segment *rest)
{
    zn_flow *f = s->f;
    zn_parse result = ZN_DONE;
    while (f->head != ZN_PARSE_OFF && rest->bytes.n != 0 && result == ZN_DONE) {
        uint32_t used;
        result = zn_names_read(s, rest, &used);
        if (result == ZN_OTHER && rest->after_hole) {
            used = (uint32_t)zn_http_next_request(rest->bytes);
            result = used != 0 ? ZN_DONE : ZN_OTHER;
        }
        if (result == ZN_DONE) {
            move_to(f, rest->seq + used);
            drop_front(rest, used);
        }
    }
    if (result == ZN_OTHER) {
        pass_unknown(f);
        move_to(f, end_of(rest));
    }
    if (f->head == ZN_PARSE_OFF)
        return ZN_DONE;
    if (result == ZN_NEED_MORE && rest->missing == 0 && rest->end == ZN_SEGMENT_OPEN)
        return ZN_NEED_MORE;
    if (result == ZN_NEED_MORE ||
        (rest->missing != 0 && zn_seq_ahead(end_of(rest), f->parse_seq) > 0)) {
        zn_names_lost(s, rest->end);
        move_to(f, end_of(rest));
    }
    return ZN_DONE;
}

/* Reads what the stream has from its start on, and forgets it. `behind`: what it leaves open. */
static void read_stream(const zn_packet_context *s, zn_segment behind)
{
    zn_flow *f = s->f;
    zn_stream_pool *pool = &s->names->streams;
    uint32_t from = f->parse_seq;
    zn_segment head = behind;
    head.bytes = zn_stream_start(pool, f->stream);
    head.seq = from;
    if (head.bytes.n != 0)
        (void)read_all(s, &head);
    if (f->parse_seq != from)
        zn_stream_consume(pool, f->stream, f->parse_seq - from);
    if (f->head == ZN_PARSE_OFF || zn_stream_first(pool, f->stream) == ZN_STREAM_MAX)
        zn_names_drop_stream(s->names, f);
}

/* What is missing in the stream will not come: reads what is stored, each part by itself, up to the
 * last one, behind which comes `last`. In what followed no request that was begun, none is looked
 * for but at the start of a part: it may be a body. */
static void pass_holes(const zn_packet_context *s, zn_segment_end last)
{
    zn_flow *f = s->f;
    zn_stream_pool *pool = &s->names->streams;
    bool begun = !is_after_request(f);
    bool hole = true;
    while (f->stream != 0 && hole) {
        uint32_t first = zn_stream_first(pool, f->stream);
        if (first != 0) {
            zn_names_lost(s, ZN_SEGMENT_HOLE);
            move_to(f, f->parse_seq + first);
            zn_stream_consume(pool, f->stream, first);
        }
        hole = zn_stream_has_hole(pool, f->stream);
        read_stream(s, (zn_segment){.end = hole ? ZN_SEGMENT_HOLE : last,
                                    .after_hole = begun && first != 0});
    }
}

/* Puts what there is room for into the stream; false when there is no stream any more. */
static bool store(const zn_packet_context *s, zn_segment *in)
{
    zn_flow *f = s->f;
    zn_stream_pool *pool = &s->names->streams;
    uint32_t offset = in->seq - f->parse_seq;
    zn_span part = in->bytes;
    zn_stream_result result;
    if (!zn_names_has_stream(s)) {
        reject_open_message(s, ZN_STAT_SUPPRESSED_CAPACITY);
        return false;
    }
    if (part.n > ZN_STREAM_MAX - offset)
        part.n = ZN_STREAM_MAX - offset;
    result = zn_stream_add(pool, f->stream, offset, part);
    if (result == ZN_STREAM_CONFLICT) {
        reject_open_message(s, ZN_STAT_SUPPRESSED_CONFLICT);
    } else if (result == ZN_STREAM_OUTSIDE) { /* too many holes */
        pass_holes(s, ZN_SEGMENT_OPEN);
        return false;
    } else {
        drop_front(in, (uint32_t)part.n);
        if (zn_stream_segments(pool, f->stream) <= STORED_SEGMENTS_MAX)
            return true;
        if (zn_stream_has_hole(pool, f->stream))
            pass_holes(s, ZN_SEGMENT_OPEN);
        else
            reject_open_message(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    }
    return f->stream != 0;
}

/* Stores a piece and reads what is whole now. */
static void collect(const zn_packet_context *s, zn_segment *in)
{
    const zn_stream_pool *pool = &s->names->streams;
    bool at_end;
    if (!store(s, in))
        return;
    at_end = zn_stream_start(pool, s->f->stream).n == in->seq - s->f->parse_seq;
    read_stream(s, (zn_segment){.missing = at_end && in->bytes.n == 0 ? in->missing : 0});
}

static void see_in_place(const zn_packet_context *s, zn_segment *in)
{
    move_to(s->f, in->seq);
    if (read_all(s, in) == ZN_NEED_MORE)
        (void)store(s, in);
    else
        in->bytes.n = 0;
}

/* Bytes too far ahead of those that are expected: these will not come. */
static void give_up_to(const zn_packet_context *s, const zn_segment *in)
{
    zn_flow *f = s->f;
    pass_holes(s, ZN_SEGMENT_OPEN);
    if (f->head == ZN_PARSE_OFF || zn_seq_ahead(in->seq, f->parse_seq) < ZN_STREAM_MAX)
        return;
    zn_names_lost(s, ZN_SEGMENT_HOLE);
    zn_names_drop_stream(s->names, f);
    move_to(f, in->seq);
}

/* Bytes behind where a request may start, which may have come before its start: they are kept where
 * they leave streams enough for what is known to be a head, and counted where they do not. */
static bool may_be_early(const zn_packet_context *s, int32_t ahead)
{
    const zn_slab *streams = &s->names->streams.streams;
    if (ahead >= ZN_STREAM_MAX)
        return false;
    if (s->f->stream != 0 || streams->live < streams->cap / 2)
        return true;
    s->names->stats->n[ZN_STAT_STREAMS_HALF_FULL]++;
    return false;
}

/* Bytes far from where the stream goes on prove their client only with the number that acknowledges
 * what its server sent: who forges its address knows neither, and half of all numbers are ahead of
 * the stream. What was sent is counted in bytes, as any segment moves the highest number. */
static bool acknowledges_server(const zn_packet_context *s)
{
    const zn_flow *f = s->f;
    const zn_flow_side *server = &f->side[1 - f->client];
    const zn_flow_retransmissions *again =
        zn_flow_retransmissions_of(s->names->flows, f, 1u - f->client);
    uint64_t sent = server->bytes - (again != NULL ? again->bytes : 0);
    uint32_t beyond = s->p->ack - (server->isn + 1 + (uint32_t)sent) + ACK_BEYOND_MAX;
    if (!s->names->roles->established || f->midstream)
        return true;
    return (s->p->tcp_flags & ZN_TCP_ACK) != 0 && beyond <= 2u * ACK_BEYOND_MAX;
}

/* Such bytes are to be read. */
static bool may_be_clients(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    if (acknowledges_server(s))
        return true;
    s->names->stats->n[ZN_STAT_SUPPRESSED_UNCONFIRMED] += !f->names_dropped;
    f->names_dropped = true; /* they may hold a name */
    return false;
}

/* Behind a request come bytes that are not read: a body, or bytes behind lost ones. Numbers are
 * compared within 2^31, so what is expected follows them; who could lead it on by any bytes would
 * know where a request is expected. */
static void pass_over(const zn_packet_context *s, const zn_segment *in)
{
    int32_t ahead = zn_seq_ahead(in->seq, s->f->parse_seq);
    if (ahead > FOLLOWED_MAX && ahead - FOLLOWED_MAX <= BEYOND_MAX && acknowledges_server(s))
        s->f->parse_seq = in->seq - FOLLOWED_MAX;
}

/* Bytes of the client, which may be old, expected, or ahead of others. */
static void take(const zn_packet_context *s, zn_segment in)
{
    zn_flow *f = s->f;
    while (in.bytes.n != 0 && f->head != ZN_PARSE_OFF) {
        int32_t ahead = zn_seq_ahead(in.seq, f->parse_seq);
        bool between = is_after_request(f) && ahead > 0;
        if (ahead < 0) { /* repeats what was read, or belongs to a body */
            drop_front(&in, 0u - (uint32_t)ahead);
        } else if (between && in.bytes.n >= REQUEST_START_MIN &&
                   zn_http_looks_like_request(in.bytes)) {
            if (!may_be_clients(s))
                return;
            zn_names_drop_stream(s->names, f);
            see_in_place(s, &in);
        } else if (f->stream == 0 && ahead == 0) {
            see_in_place(s, &in);
        } else if ((between && !may_be_early(s, ahead)) ||
                   (f->stream == 0 && f->head == ZN_PARSE_TLS_AGAIN)) {
            zn_names_drop_stream(s->names, f);
            if (between)
                pass_over(s, &in);
            return;
        } else if (ahead < ZN_STREAM_MAX) {
            collect(s, &in);
        } else if (may_be_clients(s)) {
            give_up_to(s, &in);
        } else {
            return;
        }
    }
}

/* A flow joined in its middle: the side that sends a hello or a request is the client. */
static bool speaks_as_client(const zn_packet_context *s)
{
    zn_tls_hello hello;
    zn_span bytes = s->p->payload;
    zn_parse tls;
    size_t used;
    bool request;
    if (!s->f->midstream || s->f->head != ZN_PARSE_SEARCH || s->f->stream != 0)
        return false;
    if (zn_ascii_first(bytes) == ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC &&
        zn_proxy_or_starttls_prefix_skip(bytes, &used) == ZN_DONE)
        bytes = zn_ascii_part(bytes, used, bytes.n);
    tls = zn_tls_client_hello(bytes, true, &s->names->tls, &hello);
    request = bytes.n >= REQUEST_START_MIN &&
              (zn_http_looks_like_request(bytes) || zn_http2_preface(bytes, &used) != ZN_OTHER);
    if (tls == ZN_OTHER && !request)
        return false;
    if (tls == ZN_NEED_MORE && bytes.n < 6)
        return false; /* too short to tell */
    return zn_names_swap_client(s);
}

void zn_names_tcp(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    const zn_packet *p = s->p;
    zn_segment in = {p->payload, p->seq + ((p->tcp_flags & ZN_TCP_SYN) != 0),
                     p->payload_len - (uint32_t)p->payload.n, ZN_SEGMENT_OPEN, false};
    if (f->head == ZN_PARSE_OFF || p->payload.n == 0)
        return;
    if (p->sender != f->client && !speaks_as_client(s))
        return;
    if (f->head == ZN_PARSE_SEARCH && f->stream == 0) {
        if (f->midstream && (f->parse_tries != 0 || f->flag_counts[f->client].syn == 0))
            f->parse_seq = in.seq;
        else if (f->parse_tries == 0)
            f->parse_seq = f->side[f->client].isn + 1;
    }
    take(s, in);
}

void zn_names_tcp_closed(const zn_packet_context *s)
{
    if (s->f->head != ZN_PARSE_OFF)
        pass_holes(s, ZN_SEGMENT_CUT);
    zn_names_drop_stream(s->names, s->f);
    zn_names_read_end(s->names, s->f);
}
