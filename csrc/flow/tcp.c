/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts TCP segments (RFC 9293) for a flow's record.
 *
 * Each direction has the highest sequence number sent and the holes below it. A segment that starts
 * above opens a hole; a segment that fills a hole came out of order; sequence space seen before is
 * a retransmission. Comparisons are modulo 2^32 (RFC 9293 3.4). flow/flow_fast.h counts most
 * segments in the same way, and faster.
 */
#include "flow/tcp.h"

#include "flow/flow_fast.h"

#define SEGMENTS_PER_FLOW 8 /* in flight, on average over all flows */

/* Number of bytes of its side that may come before a late SYN: a window without scaling. */
#define BEFORE_SYN_MAX 65536u

/* Largest window (RFC 7323 2.3): the distance between the byte that a side waits for and the last
 * byte that the other side sent. */
#define WINDOW_MAX (UINT32_C(1) << 30)
/* Distance beyond that window at which a RST is accepted, because a capture may have lost bytes. */
#define RESET_FAR_MAX (UINT32_C(1) << 26)

/* Returns the flow's zn_flow_retransmission_pair, and makes it if needed. */
static zn_flow_retransmission_pair *pair_of(zn_tcp *t, zn_flow *f)
{
    if (f->retransmissions == 0)
        f->retransmissions = zn_slab_take(&t->retransmissions);
    return zn_slab_at(&t->retransmissions, f->retransmissions);
}

static void open_gap(zn_tcp *t, zn_flow_retransmissions *retransmissions, uint32_t from,
                     uint32_t to)
{
    zn_seq_gaps *g;
    if (retransmissions->gaps == 0) {
        retransmissions->gaps = zn_slab_take(&t->gaps);
        if (retransmissions->gaps == 0) {
            t->stats->n[ZN_STAT_GAPS_FULL]++;
            return;
        }
    }
    g = zn_slab_at(&t->gaps, retransmissions->gaps);
    if (g->n == ZN_SEQ_GAPS) { /* the oldest hole will not be filled any more */
        memmove(g->from, g->from + 1, (ZN_SEQ_GAPS - 1) * sizeof g->from[0]);
        memmove(g->to, g->to + 1, (ZN_SEQ_GAPS - 1) * sizeof g->to[0]);
        g->n--;
    }
    g->from[g->n] = from;
    g->to[g->n++] = to;
}

static void drop_gap(zn_seq_gaps *g, uint32_t i)
{
    g->n--;
    memmove(g->from + i, g->from + i + 1, (g->n - i) * sizeof g->from[0]);
    memmove(g->to + i, g->to + i + 1, (g->n - i) * sizeof g->to[0]);
}

/* Takes [from, to) out of the holes; returns how much of it was a hole. */
static uint32_t fill_gaps(zn_tcp *t, zn_flow_retransmissions *retransmissions, uint32_t from,
                          uint32_t to)
{
    zn_seq_gaps *g;
    uint32_t filled = 0;
    if (retransmissions->gaps == 0)
        return 0;
    g = zn_slab_at(&t->gaps, retransmissions->gaps);
    for (uint32_t i = 0; i < g->n;) {
        uint32_t a = zn_seq_ahead(from, g->from[i]) > 0 ? from : g->from[i];
        uint32_t b = zn_seq_ahead(to, g->to[i]) < 0 ? to : g->to[i];
        uint32_t gap_to = g->to[i];
        if (zn_seq_ahead(b, a) <= 0) {
            i++;
            continue;
        }
        filled += b - a;
        if (a == g->from[i] && b == gap_to) {
            drop_gap(g, i);
            continue;
        }
        if (a == g->from[i]) {
            g->from[i] = b;
        } else {
            g->to[i] = a;
            if (b != gap_to && g->n < ZN_SEQ_GAPS) { /* filled in its middle: two holes remain */
                g->from[g->n] = b;
                g->to[g->n++] = gap_to;
            }
        }
        i++;
    }
    if (g->n == 0) {
        zn_slab_give(&t->gaps, retransmissions->gaps);
        retransmissions->gaps = 0;
    }
    return filled;
}

/* A direction of a flow. */
typedef struct direction {
    zn_tcp *t;
    zn_flow *f;
    zn_flow_side *side;
} direction;

/* Returns the counts of what this direction sent again or out of order. */
static zn_flow_retransmissions *retransmissions_of(const direction *d)
{
    return &pair_of(d->t, d->f)->side[d->side - d->f->side];
}

/* Returns the number of bytes of [from, from + n) that were sent before; adds the bytes that filled
 * holes to *missing. */
static uint32_t sent_before(const direction *d, uint32_t from, uint32_t n, uint32_t *missing)
{
    int32_t known = zn_seq_ahead(d->side->next_seq, from);
    uint32_t filled;
    if (known <= 0)
        return 0;
    if (n > (uint32_t)known)
        n = (uint32_t)known;
    filled = fill_gaps(d->t, retransmissions_of(d), from, from + n);
    *missing += filled;
    return n - filled;
}

/* Relation of a segment to the bytes that its sender sent before. */
typedef struct place {
    bool again, out_of_order;
} place;

/*
 * Counts a segment that starts below the highest sequence number. It is a retransmission if any of
 * its sequence space was sent before; it came out of order if it brings missing bytes and ends
 * below the highest number. SYN and FIN take a sequence number each, which is no byte of payload.
 */
static place count_again(const direction *d, const zn_packet *p, uint32_t end)
{
    place where;
    uint32_t syn = (p->tcp_flags & ZN_TCP_SYN) != 0, fin = (p->tcp_flags & ZN_TCP_FIN) != 0;
    uint32_t missing = 0, flags, bytes;
    zn_flow_retransmissions *retransmissions;
    flags = sent_before(d, p->seq, syn, &missing);
    bytes = sent_before(d, p->seq + syn, p->payload_len, &missing);
    flags += sent_before(d, end - fin, fin, &missing);
    where.again = flags + bytes != 0;
    where.out_of_order = missing != 0 && zn_seq_ahead(end, d->side->next_seq) < 0;
    retransmissions = retransmissions_of(d);
    retransmissions->bytes += bytes;
    retransmissions->packets += where.again;
    retransmissions->packets_out_of_order += where.out_of_order;
    return where;
}

/* Sorts the segment's sequence space into new, filling a hole, and sent before. */
static place count_sequence(const direction *d, const zn_packet *p)
{
    zn_flow_side *side = d->side;
    uint32_t length =
        p->payload_len + ((p->tcp_flags & ZN_TCP_SYN) != 0) + ((p->tcp_flags & ZN_TCP_FIN) != 0);
    uint32_t end = p->seq + length;
    int32_t offset = zn_seq_ahead(p->seq, side->next_seq);
    place where = {false, false};
    if (!side->seq_known) {
        side->seq_known = true;
        side->next_seq = end;
        return where;
    }
    if (length == 0)
        return where;
    if (offset > 0)
        open_gap(d->t, retransmissions_of(d), side->next_seq, p->seq);
    else if (offset < 0)
        where = count_again(d, p, end);
    if (zn_seq_ahead(end, side->next_seq) > 0)
        side->next_seq = end;
    return where;
}

static void count_path(zn_tcp *t, const zn_flow *f, const zn_packet *p, place where)
{
    const zn_flow_side *side = &f->side[p->sender], *other = &f->side[1 - p->sender];
    bool side_syn = f->flag_counts[p->sender].syn != 0,
         other_syn = f->flag_counts[1 - p->sender].syn != 0;
    bool syn = (p->tcp_flags & ZN_TCP_SYN) != 0, fin = (p->tcp_flags & ZN_TCP_FIN) != 0;
    zn_path_segment segment = {p, where.again, where.out_of_order, false, false, other->isn};
    segment.moved = (syn && side_syn && side->isn != p->seq) ||
                    (fin && side->fin != 0 && side->fin_end != p->seq + p->payload_len + 1);
    segment.both_syn = (syn || side_syn) && other_syn;
    zn_tcp_path_count(&t->segments, t->stats, zn_tcp_path_of(t, f), &segment);
}

/* Adds 1, but does not wrap to 0, which means none. */
static uint16_t one_more(uint16_t n)
{
    return n == UINT16_MAX ? n : (uint16_t)(n + 1);
}

/* Takes an acknowledgement that came after a FIN of either side, maybe before the FIN that it
 * acknowledges. */
static void acknowledge_fin(zn_flow_side *side, uint32_t ack)
{
    if (side->fin != 0) {
        side->fin_acked |= zn_seq_ahead(ack, side->fin_end) >= 0;
    } else if (!side->fin_claimed || zn_seq_ahead(ack, side->fin_end) > 0) {
        side->fin_claimed = true;
        side->fin_end = ack;
    }
}

static void count_fin(zn_flow *f, zn_flow_side *side, const zn_packet *p)
{
    uint32_t end = p->seq + p->payload_len + 1;
    side->fin_acked |= side->fin_claimed && zn_seq_ahead(side->fin_end, end) >= 0;
    side->fin_claimed = false;
    side->fin = one_more(side->fin);
    side->fin_end = end;
    f->fin_seen = true;
}

static void count_ack(zn_flow *f, zn_flow_side *side, const zn_packet *p)
{
    zn_flow_side *other = &f->side[1 - p->sender];
    side->acks++;
    side->acks_pure +=
        p->payload_len == 0 && (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_FIN | ZN_TCP_RST)) == 0;
    if (side->first_ack_ns == 0 && (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_RST)) == 0) {
        side->first_ack_ns = p->t_ns;
        zn_tcp_note_first_ack(f, p);
    }
    if (f->fin_seen)
        acknowledge_fin(other, p->ack);
    /* A RST is no proof: a firewall's RST has this number too if another host opened the connection
     * with the client's address. */
    if (!f->client_acked && f->syn_acked && p->sender == f->client && p->ack == other->isn + 1 &&
        (p->tcp_flags & ZN_TCP_RST) == 0)
        f->client_acked = true;
}

/* Returns true if a SYN-ACK acknowledges the client's SYN, maybe with bytes that the SYN carried
 * (RFC 7413 4.2.2). It has not been counted yet. */
static bool answers_syn(const zn_flow *f, const zn_packet *p)
{
    const zn_flow_side *client = &f->side[f->client], *server = &f->side[1 - f->client];
    uint32_t carried = server->seq_known ? 0 : server->next_seq - (client->isn + 1);
    return (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK)) == (ZN_TCP_SYN | ZN_TCP_ACK) &&
           p->sender != f->client && !f->midstream && f->flag_counts[f->client].syn != 0 &&
           p->ack - (client->isn + 1) <= carried;
}

/* Returns true if the other side's SYN-ACK, captured before this SYN, acknowledges this SYN. Its
 * sender has sent nothing else. */
static bool was_answered(const zn_flow_side *side, const zn_packet *p)
{
    return side->isn_claimed && side->isn - p->seq <= p->payload_len;
}

/* Notes the end of the bytes that a SYN carries, for its answer. */
static void note_carried(const zn_flow_side *side, zn_flow_side *other, const zn_packet *p,
                         bool first)
{
    uint32_t end = p->seq + 1 + p->payload_len;
    if (!other->seq_known &&
        (first || p->seq != side->isn || zn_seq_ahead(end, other->next_seq) > 0))
        other->next_seq = end;
}

/* Counts a SYN without ACK. If it opens the connection of which the server's answer was captured
 * before it, and nothing else of the client, the flow is whole. */
static void count_opening(zn_flow *f, zn_flow_side *side, const zn_packet *p)
{
    bool first = f->flag_counts[p->sender].syn == 0;
    bool joins =
        f->midstream && p->sender == f->client && side->packets == 1 && was_answered(side, p);
    note_carried(side, &f->side[1 - p->sender], p, first);
    if (!f->syn_acked)
        side->isn = p->seq;
    if (joins) {
        f->midstream = false;
        f->syn_acked = !zn_flow_client_plays_server(f);
    }
}

/* Counts a SYN-ACK. `answers`: what answers_syn returned. A client that plays the server is not
 * proven, because a server that echoes segments may return the client's own. */
static void count_answer(zn_flow *f, zn_flow_side *side, const zn_packet *p, bool answers)
{
    zn_flow_side *other = &f->side[1 - p->sender];
    bool acks = answers && !zn_flow_client_plays_server(f);
    zn_flow_note_server(f, p->sender);
    f->client_acked |= acks && side->isn_claimed && side->isn == p->seq;
    if (!f->syn_acked || (acks && !f->client_acked))
        side->isn = p->seq;
    f->syn_acked |= acks;
    if (f->midstream && other->packets == 0) {
        other->isn = p->ack - 1;
        other->isn_claimed = true;
    }
    /* the echo was captured before the client's segment */
    if (zn_flow_client_plays_server(f) && !f->client_acked)
        f->syn_acked = false;
}

/* Counts a SYN, and sets where its side's stream starts. A SYN sent into a connection whose numbers
 * are known does not move that: the client's are known once the server acknowledged its SYN, the
 * server's once the client did. */
static void count_syn(zn_flow *f, zn_flow_side *side, const zn_packet *p, bool answers)
{
    if ((p->tcp_flags & ZN_TCP_ACK) != 0)
        count_answer(f, side, p, answers);
    else
        count_opening(f, side, p);
    side->isn_claimed = false;
    f->flag_counts[p->sender].syn = one_more(f->flag_counts[p->sender].syn);
}

static void count_flags(zn_flow *f, zn_flow_side *side, const zn_packet *p, bool answers)
{
    zn_flow_flag_counts *flag_counts = &f->flag_counts[p->sender];
    if ((p->tcp_flags & ZN_TCP_SYN) != 0)
        count_syn(f, side, p, answers);
    if ((p->tcp_flags & ZN_TCP_RST) != 0)
        flag_counts->rst = one_more(flag_counts->rst);
    if ((p->tcp_flags & ZN_TCP_FIN) != 0)
        count_fin(f, side, p);
    if ((p->tcp_flags & ZN_TCP_ACK) != 0)
        count_ack(f, side, p);
}

static void count_data(zn_flow_side *side, const zn_packet *p)
{
    if (side->first_data_ns == 0)
        side->first_data_ns = p->t_ns;
    side->last_data_ns = p->t_ns;
}

/* Sequence numbers at which a side's last message ended, and its last segment that was no
 * repetition. */
typedef struct ends {
    uint32_t message, sent;
} ends;

/* Returns them as they are before a segment; before the first one they mean nothing. */
static ends ends_of(const zn_flow_layer7 *l, const zn_flow_side *side, unsigned i)
{
    ends e = {side->next_seq, side->next_seq};
    if (!side->message_is_next && side->packets != 0)
        e.message = l->message_seq[i];
    if (!side->sent_is_next && side->packets != 0)
        e.sent = l->sent_seq[i];
    return e;
}

/* Counts the message that a segment may end: messages end with PSH or FIN, where something was sent
 * since the last one. `again`: the segment repeats what was sent before. */
static void count_message(zn_flow_layer7 *l, zn_flow_side *side, const zn_packet *p, bool again,
                          ends before)
{
    unsigned i = p->sender;
    ends e = before;
    if ((p->tcp_flags & ZN_TCP_SYN) != 0)
        e.message = e.sent = p->seq + 1;
    else if (side->packets == 1)
        e.message = p->seq;
    if (!again)
        e.sent = p->seq + ((p->tcp_flags & ZN_TCP_SYN) != 0) + p->payload_len;
    if ((p->tcp_flags & ZN_TCP_ACK) != 0 && (p->tcp_flags & (ZN_TCP_PSH | ZN_TCP_FIN)) != 0 &&
        zn_seq_ahead(e.sent, e.message) > 0) {
        zn_tcp_add_message(l, side, i);
        e.message = e.sent;
    }
    side->message_is_next = e.message == side->next_seq;
    side->sent_is_next = e.sent == side->next_seq;
    if (!side->message_is_next)
        l->message_seq[i] = e.message;
    if (!side->sent_is_next)
        l->sent_seq[i] = e.sent;
}

static zn_flow_end end_of(const zn_flow *f)
{
    return f->fin_seen && f->side[0].fin_acked && f->side[1].fin_acked ? ZN_FLOW_FIN : ZN_FLOW_OPEN;
}

/* A SYN of the same connection has its first SYN's number (or another one, before anything
 * answers), or comes late, right below what its side has sent. Before it, the other side can only
 * have sent a SYN. */
bool zn_tcp_begins_another(const zn_flow *f, const zn_packet *p)
{
    const zn_flow_side *side = &f->side[p->sender];
    if (f->flag_counts[p->sender].syn != 0)
        return p->seq != side->isn && (f->syn_acked || side->packets_data != 0 || side->fin != 0);
    if (!f->midstream) /* the other side opened the flow; this SYN opens it from both sides */
        return false;
    if (side->seq_known)
        return side->next_seq - (p->seq + 1) >= BEFORE_SYN_MAX;
    return side->isn_claimed ? !was_answered(side, p) : f->flag_counts[1 - p->sender].syn == 0;
}

bool zn_tcp_answers_another(const zn_flow *f, const zn_packet *p)
{
    const zn_flow_side *other = &f->side[1 - p->sender];
    unsigned flags = p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_ACK | ZN_TCP_RST);
    return flags == (ZN_TCP_SYN | ZN_TCP_ACK) && f->flag_counts[1 - p->sender].syn != 0 &&
           p->ack - (other->isn + 1) > other->next_seq - (other->isn + 1);
}

bool zn_flow_complete(const zn_flow *f)
{
    bool client_syn = f->flag_counts[f->client].syn != 0,
         server_syn = f->flag_counts[1 - f->client].syn != 0;
    if (f->end == ZN_FLOW_FIN) /* one direction alone is no connection */
        return server_syn || f->side[f->client].packets_data == 0;
    return (f->end == ZN_FLOW_RST || f->end == ZN_FLOW_IDLE) && client_syn && server_syn;
}

bool zn_tcp_refuse_reset(zn_flow *f, const zn_packet *p)
{
    zn_flow_side *side = &f->side[p->sender];
    uint32_t sent = side->next_seq - side->isn;
    uint32_t span = (sent < WINDOW_MAX ? sent : WINDOW_MAX) + RESET_FAR_MAX;
    if ((p->tcp_flags & ZN_TCP_RST) == 0 || !f->client_acked)
        return false; /* without a handshake the numbers are not known: any RST ends the flow */
    if (p->seq - (side->next_seq - span) <= span + RESET_FAR_MAX)
        return false;
    side->packets++;
    side->bytes += p->payload_len;
    side->packets_data += p->payload_len != 0;
    side->acks += (p->tcp_flags & ZN_TCP_ACK) != 0;
    f->flag_counts[p->sender].rst = one_more(f->flag_counts[p->sender].rst);
    return true;
}

zn_flow_end zn_tcp_count(zn_tcp *t, zn_flow *f, const zn_packet *p)
{
    zn_flow_side *side = &f->side[p->sender];
    zn_flow_layer7 *l = zn_tcp_layer7_of(t, f);
    direction d = {t, f, side};
    place where;
    ends before = {0, 0};
    bool answers = answers_syn(f, p);
    if (l != NULL)
        before = ends_of(l, side, p->sender);
    side->packets++;
    side->bytes += p->payload_len;
    where = count_sequence(&d, p);
    if (t->paths != NULL)
        count_path(t, f, p, where);
    count_flags(f, side, p, answers);
    side->packets_data += p->payload_len != 0;
    if ((p->tcp_flags & ZN_TCP_RST) != 0)
        return ZN_FLOW_RST; /* its payload says why, and is no part of the stream */
    if (l != NULL)
        count_message(l, side, p, where.again, before);
    if (p->payload_len != 0)
        count_data(side, p);
    return end_of(f);
}

void zn_tcp_open(zn_tcp *t, zn_flow *f)
{
    if (t->paths != NULL)
        memset(zn_tcp_path_of(t, f), 0, sizeof *t->paths);
    if (t->layer7 != NULL)
        memset(zn_tcp_layer7_of(t, f), 0, sizeof *t->layer7);
}

void zn_tcp_close(zn_tcp *t, zn_flow *f)
{
    if (f->retransmissions != 0) { /* holes are not filled any more */
        zn_flow_retransmission_pair *pair = pair_of(t, f);
        for (unsigned i = 0; i < 2; i++) {
            if (pair->side[i].gaps != 0)
                zn_slab_give(&t->gaps, pair->side[i].gaps);
            pair->side[i].gaps = 0;
        }
    }
    if (t->paths != NULL && f->tuple.proto == ZN_PROTO_TCP)
        zn_tcp_path_close(&t->segments, zn_tcp_path_of(t, f));
}

void zn_tcp_free(zn_tcp *t, zn_flow *f)
{
    if (f->retransmissions != 0)
        zn_slab_give(&t->retransmissions, f->retransmissions);
    f->retransmissions = 0;
}

/* Reserves the data beside the entries that the column sets need. */
static int init_sets(zn_tcp *t, unsigned sets, zn_error *err)
{
    uint32_t segments = zn_slab_cap((uint64_t)t->max_flows * SEGMENTS_PER_FLOW + ZN_PATH_SEGMENTS);
    if ((sets & ZN_SET_LAYER7) != 0) {
        t->layer7 = zn_block_alloc(t->max_flows * sizeof *t->layer7);
        if (t->layer7 == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %u flows", t->max_flows);
    }
    if ((sets & (ZN_SET_E2E | ZN_SET_OPTIONS)) == 0)
        return 0;
    t->paths = zn_block_alloc(t->max_flows * sizeof *t->paths);
    if (t->paths == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %u flows", t->max_flows);
    return zn_slab_init(&t->segments, zn_tcp_path_entry_bytes(), segments, err);
}

int zn_tcp_init(zn_tcp *t, zn_flow *entries, uint32_t max_flows, unsigned sets, zn_stats *stats,
                zn_error *err)
{
    int rc = zn_slab_init(&t->retransmissions, sizeof(zn_flow_retransmission_pair), max_flows, err);
    t->entries = entries;
    t->max_flows = max_flows;
    t->stats = stats;
    if (rc == 0)
        rc = zn_slab_init(&t->gaps, sizeof(zn_seq_gaps), max_flows, err);
    return rc == 0 ? init_sets(t, sets, err) : rc;
}

void zn_tcp_fini(zn_tcp *t)
{
    zn_slab_fini(&t->segments);
    zn_block_free(t->paths, t->max_flows * sizeof *t->paths);
    zn_block_free(t->layer7, t->max_flows * sizeof *t->layer7);
    zn_slab_fini(&t->gaps);
    zn_slab_fini(&t->retransmissions);
}

/* Returns the bytes beside each flow's entry. */
static size_t set_bytes(const zn_tcp *t)
{
    return (t->paths == NULL ? 0 : sizeof *t->paths) + (t->layer7 == NULL ? 0 : sizeof *t->layer7);
}

size_t zn_tcp_memory(const zn_tcp *t, uint32_t flows)
{
    return flows * set_bytes(t) + zn_slab_bytes(&t->retransmissions) + zn_slab_bytes(&t->gaps) +
           zn_slab_bytes(&t->segments);
}

size_t zn_tcp_memory_max(const zn_tcp *t)
{
    return t->max_flows * set_bytes(t) +
           (size_t)t->retransmissions.cap * t->retransmissions.object_bytes +
           (size_t)t->gaps.cap * t->gaps.object_bytes +
           (size_t)t->segments.cap * t->segments.object_bytes;
}
