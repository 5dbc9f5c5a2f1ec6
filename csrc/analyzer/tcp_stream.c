/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zn_flow.watch_seq is the start of the next message of interest: the stream's first byte, the
 * message in progress, or the message expected after the last one. A segment that starts there is
 * read in place. If a message does not end in the segment, or bytes before it are missing,
 * flow/reassembly puts segments in order. A message may take at most STORED_SEGMENTS_MAX segments,
 * so that a sender of single bytes cannot cause endless parsing. Missing bytes are awaited until a
 * segment lies ZN_STREAM_MAX bytes ahead, the stream has no room for more segments or holes, or the
 * flow ends. The missing bytes may have named a host, so the flow's record is then coarse. The
 * bytes stored behind them are then read. Requests among them are read only if the first stored
 * bytes begin a request, because otherwise the start of the next request is unknown.
 *
 * A message at the start of a stream, or after a message of a protocol with several messages, is
 * recognised by its first bytes, on any port. Only DNS, which has no characteristic first bytes, is
 * searched for on one port.
 */
#include "analyzer/tcp_stream.h"

#include "analyzer/attributes.h"
#include "analyzer/parse_state.h"
#include "analyzer/unread.h"
#include "proto/ascii.h"
#include "proto/proxy_starttls_prefix.h"
#include "proto/resemblance.h"
#include "proto/stun.h"

#define STORED_SEGMENTS_MAX 256
_Static_assert(ZN_SEARCH_TRIES == 15,
               "zn_flow_state.parse_tries counts them, from 1, in four bits");
/* Most bytes between what a client acknowledges and what its server was seen to send: a capture may
 * have lost as many. */
#define ACK_LOST_MAX (1 << 20)

/* ---- the table ------------------------------------------------------------------------------- */

/* The next row of the table for TCP; NULL at its end. */
static const zn_analyzer *next_over_tcp(const zn_packet_context *s, const zn_analyzer *a)
{
    const zn_analyzer *end = s->names->analyzers + s->names->analyzer_count;
    for (a = a == NULL ? s->names->analyzers : a + 1; a != end; a++)
        if ((a->transports & ZN_OVER_TCP) != 0)
            return a;
    return NULL;
}

/* Has the first analyzer that recognises the segment's start read it; else passes over a prefix. */
static zn_parse recognise(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    zn_packet_context with = *s;
    size_t prefix;
    for (const zn_analyzer *a = next_over_tcp(s, NULL); a != NULL; a = next_over_tcp(s, a)) {
        zn_parse result;
        with.analyzer = a;
        if ((a->port != 0 && !zn_analyzer_has_port(a, &s->f->tuple)) ||
            (a->functions->starts != NULL && !a->functions->starts(&with, in->bytes)))
            continue;
        result = a->functions->segment(&with, in, used);
        if (result != ZN_OTHER)
            return result;
    }
    if (ZN_STATE(s->f)->protocol != 0 ||
        zn_proxy_or_starttls_prefix_skip(in->bytes, &prefix) != ZN_DONE)
        return ZN_OTHER;
    *used = (uint32_t)prefix;
    zn_unread_begin_again(s->f);
    return ZN_DONE;
}

/* Reads the message at the segment's start, as the parse state expects it. */
static zn_parse read_message(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    zn_packet_context with = *s;
    *used = 0;
    if (zn_parse_state_of(s->f) < ZN_PARSE_NEXT)
        return recognise(s, in, used);
    with.analyzer = zn_parse_analyzer(s->names, s->f);
    return with.analyzer->functions->segment(&with, in, used);
}

/* Abandons the message in progress, because the next bytes were not captured, and sets the parse
 * state to the next message that can be read. */
static void lose(const zn_packet_context *s, zn_segment_end end)
{
    zn_packet_context with = *s;
    uint8_t state = zn_parse_state_of(s->f);
    if (state == ZN_PARSE_SEARCH || state == ZN_PARSE_OFF || state == ZN_PARSE_BETWEEN)
        return;
    with.analyzer = zn_parse_analyzer(s->names, s->f);
    if (with.analyzer->functions->lost != NULL)
        with.analyzer->functions->lost(&with, end);
    else
        zn_parse_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

/* Returns whether a message was read, and the place of the next one, or of the next part of its
 * body, follows from it. */
static bool is_after_message(const zn_packet_context *s)
{
    uint8_t state = zn_parse_state_of(s->f);
    return (state == ZN_PARSE_BETWEEN || state >= ZN_PARSE_OWN) &&
           zn_parse_analyzer(s->names, s->f)->functions->resumes != NULL;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static void reject_open_message(const zn_packet_context *s, zn_stat why)
{
    zn_parse_give_up(s, why);
    zn_names_drop_stream(s->names, s->f);
}

static void drop_front(zn_tcp_segment *in, uint32_t n)
{
    if (n > in->bytes.n)
        n = (uint32_t)in->bytes.n;
    in->bytes.p += n;
    in->bytes.n -= n;
    in->seq += n;
}

/* Returns the sequence number behind the segment, including the bytes that the snapshot length cut
 * off. */
static uint32_t end_of(const zn_tcp_segment *in)
{
    return in->seq + (uint32_t)in->bytes.n + in->missing;
}

/* Sets where the next message starts: at `seq`, and no longer where the SYN says that the stream
 * starts. */
static void move_to(zn_flow *f, uint32_t seq)
{
    f->watch_seq = seq;
    if (ZN_STATE(f)->parse_tries == 0)
        ZN_STATE(f)->parse_tries = 1;
}

/* Notes that reading continues, or ends, behind bytes that were not read. */
static void note_gap(const zn_packet_context *s)
{
    s->names->stats->n[ZN_STAT_NAMES_AFTER_GAPS]++;
    zn_names_missed(s);
}

/* Gives up the bytes before `seq` and goes on there, or ends reading where the bytes there do not
 * show that a message starts. */
static void jump(const zn_packet_context *s, uint32_t seq, zn_span bytes)
{
    const zn_analyzer *a;
    lose(s, ZN_SEGMENT_HOLE);
    move_to(s->f, seq);
    if (ZN_STATE(s->f)->parse == ZN_PARSE_OFF)
        return;
    note_gap(s);
    a = zn_parse_analyzer(s->names, s->f);
    if (a->functions->resumes != NULL && !a->functions->resumes(bytes))
        zn_parse_end(s->names, s->f);
}

/* Sets the parse state after a segment that no analyzer recognised, where a message may start. */
static void pass_unknown_segment(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    zn_packet_context with = *s;
    with.analyzer = &s->names->analyzers[ZN_STATE(f)->protocol];
    if (with.analyzer->functions->unrecognised != NULL) {
        with.analyzer->functions->unrecognised(&with);
    } else if (ZN_STATE(f)->parse_tries == ZN_SEARCH_TRIES) {
        ZN_STATE(f)->parse = ZN_PARSE_OFF;
    } else {
        ZN_STATE(f)->parse_tries = (ZN_STATE(f)->parse_tries + 1u) & 0xfu;
        ZN_STATE(f)->parse = ZN_PARSE_SEARCH;
    }
}

/* Passes over bytes that no analyzer recognised. They were stored, as they might have begun a
 * message with the segment that starts at `last`: that segment may begin another one. Returns
 * ZN_DONE if it is still to be read. */
static zn_parse pass_unknown(const zn_packet_context *s, zn_tcp_segment *rest, uint32_t last)
{
    int32_t before = zn_seq_ahead(last, rest->seq);
    zn_unread_segment(s, rest->bytes, rest->missing != 0);
    zn_attributes_see(s, ZN_EXPOSES_CLIENT_TEXT, rest->bytes);
    zn_attributes_see(s, ZN_EXPOSES_STUN_REQUEST, zn_stun_first(rest->bytes));
    if (!s->f->midstream && ZN_STATE(s->f)->protocol == 0 &&
        zn_resembles_other_request(rest->bytes)) {
        ZN_STATE(s->f)->parse = ZN_PARSE_OFF; /* a body may look like a request of HTTP */
        zn_names_drop_stream(s->names, s->f);
        return ZN_OTHER;
    }
    if (before <= 0 || (uint32_t)before >= rest->bytes.n || ZN_STATE(s->f)->stream == 0) {
        pass_unknown_segment(s);
        move_to(s->f, end_of(rest));
        return ZN_OTHER;
    }
    for (uint32_t n = zn_stream_segments(&s->names->streams, ZN_STATE(s->f)->stream);
         n > 1 && ZN_STATE(s->f)->parse != ZN_PARSE_OFF; n--)
        pass_unknown_segment(s);
    move_to(s->f, last);
    drop_front(rest, (uint32_t)before);
    return ZN_DONE;
}

/* Reads message after message and moves watch_seq. ZN_NEED_MORE: *rest is no whole message. `last`:
 * where the last segment of *rest starts. */
static zn_parse read_all(const zn_packet_context *s, zn_tcp_segment *rest, uint32_t last)
{
    zn_flow *f = s->f;
    zn_parse result = ZN_DONE;
    while (ZN_STATE(f)->parse != ZN_PARSE_OFF && rest->bytes.n != 0 && result == ZN_DONE) {
        uint32_t used;
        result = read_message(s, rest, &used);
        if (result == ZN_DONE) {
            move_to(f, rest->seq + used);
            drop_front(rest, used);
        } else if (result == ZN_OTHER) {
            result = pass_unknown(s, rest, last);
        }
    }
    if (ZN_STATE(f)->parse == ZN_PARSE_OFF)
        return ZN_DONE;
    if (result == ZN_NEED_MORE && rest->missing == 0 && rest->end == ZN_SEGMENT_OPEN)
        return ZN_NEED_MORE;
    if (result == ZN_NEED_MORE ||
        (rest->missing != 0 && zn_seq_ahead(end_of(rest), f->watch_seq) > 0)) {
        lose(s, rest->end);
        if (rest->missing != 0 && ZN_STATE(f)->parse != ZN_PARSE_OFF)
            note_gap(s);
        move_to(f, end_of(rest));
    }
    return ZN_DONE;
}

/* Reads the stream's bytes from its start up to the first hole, and drops the bytes that it read.
 * after: a segment without bytes that describes the bytes behind the hole. last: start of the last
 * segment with bytes before the hole. */
static void read_stream(const zn_packet_context *s, zn_tcp_segment after, uint32_t last)
{
    zn_flow *f = s->f;
    zn_stream_pool *pool = &s->names->streams;
    uint32_t from = f->watch_seq;
    zn_tcp_segment start = after;
    start.bytes = zn_stream_start(pool, ZN_STATE(f)->stream);
    start.seq = from;
    if (start.bytes.n != 0)
        (void)read_all(s, &start, last);
    if (f->watch_seq != from)
        zn_stream_consume(pool, ZN_STATE(f)->stream, f->watch_seq - from);
    if (ZN_STATE(f)->parse == ZN_PARSE_OFF ||
        zn_stream_first(pool, ZN_STATE(f)->stream) == ZN_STREAM_MAX)
        zn_names_drop_stream(s->names, f);
}

/* Abandons the missing bytes of the stream and reads the stored bytes, each part separately; `last`
 * follows the last part. */
static void pass_holes(const zn_packet_context *s, zn_segment_end last)
{
    zn_flow *f = s->f;
    zn_stream_pool *pool = &s->names->streams;
    bool hole = true;
    while (ZN_STATE(f)->stream != 0 && hole) {
        uint32_t first = zn_stream_first(pool, ZN_STATE(f)->stream);
        if (first != 0) {
            zn_stream_consume(pool, ZN_STATE(f)->stream, first);
            jump(s, f->watch_seq + first, zn_stream_start(pool, ZN_STATE(f)->stream));
        }
        hole = zn_stream_has_hole(pool, ZN_STATE(f)->stream);
        read_stream(s, (zn_tcp_segment){.end = hole ? ZN_SEGMENT_HOLE : last}, f->watch_seq);
    }
}

/* Puts as many bytes of the segment into the stream as it has room for; false when the flow has no
 * stream any more. */
static bool store(const zn_packet_context *s, zn_tcp_segment *in)
{
    zn_flow *f = s->f;
    zn_stream_pool *pool = &s->names->streams;
    uint32_t offset = in->seq - f->watch_seq;
    zn_span part = in->bytes;
    zn_stream_result result;
    if (!zn_names_has_stream(s)) {
        reject_open_message(s, ZN_STAT_SUPPRESSED_CAPACITY);
        return false;
    }
    if (part.n > ZN_STREAM_MAX - offset)
        part.n = ZN_STREAM_MAX - offset;
    result = zn_stream_add(pool, ZN_STATE(f)->stream, offset, part);
    if (result == ZN_STREAM_CONFLICT) {
        reject_open_message(s, ZN_STAT_SUPPRESSED_CONFLICT);
    } else if (result == ZN_STREAM_OUTSIDE) { /* too many holes */
        pass_holes(s, ZN_SEGMENT_OPEN);
        return false;
    } else {
        drop_front(in, (uint32_t)part.n);
        if (zn_stream_segments(pool, ZN_STATE(f)->stream) <= STORED_SEGMENTS_MAX)
            return true;
        if (zn_stream_has_hole(pool, ZN_STATE(f)->stream))
            pass_holes(s, ZN_SEGMENT_OPEN);
        else
            reject_open_message(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    }
    return ZN_STATE(f)->stream != 0;
}

/* Stores a segment and reads the messages that are whole now. */
static void collect(const zn_packet_context *s, zn_tcp_segment *in)
{
    const zn_stream_pool *pool = &s->names->streams;
    uint32_t start = in->seq;
    bool at_end;
    if (!store(s, in))
        return;
    at_end = zn_stream_start(pool, ZN_STATE(s->f)->stream).n == in->seq - s->f->watch_seq;
    read_stream(s, (zn_tcp_segment){.missing = at_end && in->bytes.n == 0 ? in->missing : 0},
                at_end ? start : s->f->watch_seq);
}

static void see_in_place(const zn_packet_context *s, zn_tcp_segment *in)
{
    move_to(s->f, in->seq);
    if (read_all(s, in, in->seq) == ZN_NEED_MORE)
        (void)store(s, in);
    else
        in->bytes.n = 0;
}

/* Gives up the expected bytes, as a segment is too far ahead of them: they will not come. */
static void give_up_to(const zn_packet_context *s, const zn_tcp_segment *in)
{
    zn_flow *f = s->f;
    pass_holes(s, ZN_SEGMENT_OPEN);
    if (ZN_STATE(f)->parse == ZN_PARSE_OFF || zn_seq_ahead(in->seq, f->watch_seq) < ZN_STREAM_MAX)
        return;
    zn_names_drop_stream(s->names, f);
    jump(s, in->seq, in->bytes);
}

/* Returns whether to wait for the message that bytes ahead of its start have overtaken: only if
 * that leaves streams enough for messages in progress. Else it counts them. */
static bool may_wait(const zn_packet_context *s)
{
    const zn_slab *streams = &s->names->streams.streams;
    if (ZN_STATE(s->f)->stream != 0 || streams->live < streams->cap / 2)
        return true;
    s->names->stats->n[ZN_STAT_STREAMS_HALF_FULL]++;
    return false;
}

/* Returns whether a segment acknowledges what its server sent. Only then are bytes ahead of the
 * next message, or far from the expected place, the client's: a sender with a forged address knows
 * neither number, and half of all sequence numbers are ahead of the stream. The server's bytes are
 * counted, as any segment moves the highest number. */
static bool acknowledges_server(const zn_packet_context *s)
{
    const zn_flow *f = s->f;
    const zn_flow_side *server = &f->side[1 - f->client];
    const zn_flow_retransmissions *again =
        zn_flow_retransmissions_of(s->names->flows, f, 1u - f->client);
    uint64_t sent = server->bytes - (again != NULL ? again->bytes : 0);
    uint32_t unseen = s->p->ack - (server->isn + 1 + (uint32_t)sent) + ACK_LOST_MAX;
    if (!s->names->roles->established || f->midstream)
        return true;
    return f->syn_acked && (s->p->tcp_flags & ZN_TCP_ACK) != 0 && unseen <= 2u * ACK_LOST_MAX;
}

/* Returns true if bytes of this sender may be read; notes bytes that may not. */
static bool may_be_clients(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    if (acknowledges_server(s))
        return true;
    s->names->stats->n[ZN_STAT_SUPPRESSED_UNCONFIRMED] += !f->names_dropped;
    f->names_dropped = true; /* they may hold a name */
    return false;
}

/* Takes bytes of the client: old ones, expected ones, or ones ahead of those. */
static void take(const zn_packet_context *s, zn_tcp_segment in)
{
    zn_flow *f = s->f;
    while (in.bytes.n != 0 && ZN_STATE(f)->parse != ZN_PARSE_OFF) {
        int32_t offset = zn_seq_ahead(in.seq, f->watch_seq);
        bool between = offset > 0 && is_after_message(s);
        if (offset < 0) { /* repeats what was read, or belongs to a body */
            drop_front(&in, 0u - (uint32_t)offset);
        } else if (ZN_STATE(f)->stream == 0 && offset == 0) {
            see_in_place(s, &in);
        } else if (ZN_STATE(f)->stream == 0 && zn_parse_state_of(f) == ZN_PARSE_NEXT) {
            return;
        } else if ((between || offset >= ZN_STREAM_MAX) && !may_be_clients(s)) {
            return;
        } else if (offset >= ZN_STREAM_MAX) {
            give_up_to(s, &in);
        } else if (between && !may_wait(s)) {
            jump(s, in.seq, in.bytes);
        } else {
            collect(s, &in);
        }
    }
}

/* Makes the segment's sender the client if the segment, of a flow joined in its middle, shows that
 * it is; returns whether it did. */
static bool speaks_as_client(const zn_packet_context *s)
{
    zn_packet_context with = *s;
    zn_span bytes = s->p->payload;
    size_t used;
    if (!s->f->midstream || ZN_STATE(s->f)->parse != ZN_PARSE_SEARCH || ZN_STATE(s->f)->stream != 0)
        return false;
    if (zn_ascii_first(bytes) == ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC &&
        zn_proxy_or_starttls_prefix_skip(bytes, &used) == ZN_DONE)
        bytes = zn_ascii_part(bytes, used, bytes.n);
    for (const zn_analyzer *a = next_over_tcp(s, NULL); a != NULL; a = next_over_tcp(s, a)) {
        with.analyzer = a;
        if (a->functions->is_client != NULL && a->functions->is_client(&with, bytes))
            return zn_names_swap_client(s);
    }
    return false;
}

void zn_tcp_stream_segment(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    const zn_packet *p = s->p;
    zn_tcp_segment in = {p->payload, p->seq + ((p->tcp_flags & ZN_TCP_SYN) != 0),
                         p->payload_len - (uint32_t)p->payload.n, ZN_SEGMENT_OPEN};
    if (ZN_STATE(f)->parse == ZN_PARSE_OFF || p->payload.n == 0)
        return;
    if (p->sender != f->client && !speaks_as_client(s))
        return;
    if (ZN_STATE(f)->parse == ZN_PARSE_SEARCH && ZN_STATE(f)->stream == 0) {
        if (f->midstream && (ZN_STATE(f)->parse_tries != 0 || f->flag_counts[f->client].syn == 0))
            f->watch_seq = in.seq;
        else if (ZN_STATE(f)->parse_tries == 0)
            f->watch_seq = f->side[f->client].isn + 1;
    }
    take(s, in);
}

bool zn_tcp_stream_sent_from(const zn_flow *f, uint32_t seq)
{
    const zn_flow_side *side = &f->side[f->client];
    bool fin = side->fin != 0 && side->next_seq == side->fin_end;
    return zn_seq_ahead(side->next_seq - fin, seq) > 0;
}

void zn_tcp_stream_closed(const zn_packet_context *s)
{
    if (ZN_STATE(s->f)->parse != ZN_PARSE_OFF)
        pass_holes(s, ZN_SEGMENT_CUT);
    if (is_after_message(s) && !s->f->names_dropped &&
        zn_tcp_stream_sent_from(s->f, s->f->watch_seq))
        note_gap(s);
}
