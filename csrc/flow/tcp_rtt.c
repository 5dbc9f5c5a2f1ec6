/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/tcp_rtt.h"

#include <math.h>
#include <string.h>

#define RTO_MIN_NS (100 * ZN_NS_PER_MS)
#define RTO_INITIAL_NS (500 * ZN_NS_PER_MS) /* while one direction has no sample */
#define RTT_MIN_NS (1 * ZN_NS_PER_MS)
#define RTT_INITIAL_NS (5 * ZN_NS_PER_MS)
/* after more acknowledgements than this the sender retransmits without a timeout */
#define FAST_RETRANSMIT_ACKS 3

enum {
    OPTION_END = 0,
    OPTION_NOTHING = 1,
    OPTION_MSS = 2,
    OPTION_SCALE = 3,
    OPTION_SACK_PERMITTED = 4,
    OPTION_SACK = 5,
    OPTION_TIMESTAMPS = 8
};

/* A segment that was sent, or several neighbours that were acknowledged. */
typedef struct sent {
    uint32_t next; /* the slab's link while free */
    uint32_t from, to;
    uint32_t acks; /* acknowledgements that cover it */
    int64_t t_ns;  /* when it was sent last */
    uint16_t ip_id;
    bool again;      /* it was sent more than once */
    uint8_t anomaly; /* zn_anomaly */
} sent;

/* A segment while it is counted. */
typedef struct work {
    zn_slab *slab;
    zn_stats *stats;
    zn_path_side *side, *other;
    const zn_path_segment *segment;
    int64_t now_ns;
    uint16_t ip_id;
} work;

size_t zn_tcp_path_entry_bytes(void)
{
    return sizeof(sent);
}

static sent *at(const zn_slab *slab, uint32_t entry)
{
    return entry == 0 ? NULL : zn_slab_at(slab, entry);
}

/* ---- round-trip times ---- */

int64_t zn_path_rtt_mean(const zn_path_side *side)
{
    return side->rtt_count == 0 ? 0 : (int64_t)(side->rtt_sum_ns / side->rtt_count);
}

/* Returns the standard deviation of n values; 0 for fewer than three, as Tstat has it. */
static double deviation(double sum, double squares, double n)
{
    double spread = n < 3 ? 0 : (squares - sum * sum / n) / (n - 1);
    return spread > 0 ? sqrt(spread) : 0;
}

int64_t zn_path_rtt_deviation(const zn_path_side *side)
{
    return (int64_t)deviation((double)side->rtt_sum_ns, side->rtt_squares, side->rtt_count);
}

static void sample(zn_path_side *side, int64_t rtt_ns)
{
    double rtt;
    if (rtt_ns < 0) /* the capture's clock went back */
        rtt_ns = 0;
    rtt = (double)rtt_ns;
    if (side->rtt_count == 0 || rtt_ns < side->rtt_min_ns)
        side->rtt_min_ns = rtt_ns;
    if (rtt_ns > side->rtt_max_ns)
        side->rtt_max_ns = rtt_ns;
    side->rtt_sum_ns += (uint64_t)rtt_ns;
    side->rtt_squares += rtt * rtt;
    side->rtt_count++;
}

/* Merges acknowledged neighbours, from the first on. */
static void merge_acknowledged(zn_slab *slab, zn_path_side *side)
{
    uint32_t entry = side->first;
    while (entry != 0 && at(slab, entry)->acks != 0) {
        sent *s = at(slab, entry), *next = at(slab, s->next);
        uint32_t gone = s->next;
        if (next == NULL)
            return;
        if (next->acks == 0 || next->from != s->to) {
            entry = gone;
            continue;
        }
        s->to = next->to;
        s->acks = next->acks;
        if (next->t_ns > s->t_ns) {
            s->t_ns = next->t_ns;
            s->ip_id = next->ip_id;
            s->anomaly = next->anomaly;
        }
        s->next = next->next;
        if (side->last == gone)
            side->last = entry;
        zn_slab_give(slab, gone);
        side->segments--;
    }
}

/* Takes an acknowledgement of what `side` sent. */
static void acknowledge(zn_slab *slab, zn_path_side *side, uint32_t ack, int64_t now_ns)
{
    int64_t newest = 0;
    bool changed = false;
    for (sent *s = at(slab, side->first); s != NULL && zn_seq_ahead(ack, s->from) > 0;
         s = at(slab, s->next)) {
        if (s->t_ns > newest)
            newest = s->t_ns;
        if (s->acks++ != 0)
            continue;
        changed = true;
        if (ack == s->to && newest == s->t_ns && !s->again)
            sample(side, now_ns - s->t_ns);
    }
    if (changed)
        merge_acknowledged(slab, side);
}

/* ---- what came again or out of order ---- */

/* The segments around the one in question, as far as the rules need them. */
typedef struct surroundings {
    const sent *known; /* the segment itself if it was seen before, else the one after it */
    const sent *before;
    int64_t recovery_ns; /* since the loss, if there was one; -1: not known */
    uint32_t length;
    bool seen;
} surroundings;

static zn_anomaly by_rules(const work *w, const surroundings *s)
{
    const zn_path_side *a = w->side, *b = w->other;
    bool sampled = a->rtt_count != 0 && b->rtt_count != 0;
    int64_t mean = zn_path_rtt_mean(a) + zn_path_rtt_mean(b), recovery = s->recovery_ns;
    int64_t rtt = RTT_INITIAL_NS, rto = RTO_INITIAL_NS;
    bool late, fast;
    if (sampled) {
        rtt = a->rtt_min_ns + b->rtt_min_ns;
        rto = mean + (int64_t)(4 * deviation((double)a->rtt_sum_ns + (double)b->rtt_sum_ns,
                                             a->rtt_squares + b->rtt_squares,
                                             (double)a->rtt_count + b->rtt_count));
        rtt = rtt < RTT_MIN_NS ? RTT_MIN_NS : rtt;
        rto = rto < RTO_MIN_NS ? RTO_MIN_NS : rto;
    } else if (recovery == -1) {
        recovery = w->now_ns - s->known->t_ns;
    }
    late = recovery > rto;
    fast = s->before != NULL && s->before->acks > FAST_RETRANSMIT_ACKS && recovery < rto;
    if (s->length == 1 && b->window == 0 && w->segment->both_syn)
        return ZN_FLOW_CONTROL;
    if (recovery < mean && s->before != NULL && s->before->anomaly != ZN_IN_SEQUENCE)
        return (zn_anomaly)s->before->anomaly; /* one loss, several segments */
    if ((s->seen || s->known->acks != 0) && w->ip_id != 0 && s->known->ip_id == w->ip_id)
        return ZN_DUPLICATED;
    if (fast)
        return s->known->acks != 0 ? ZN_UNNEEDED_FAST : ZN_RETRANSMITTED_FAST;
    if (late)
        return s->known->acks != 0 ? ZN_UNNEEDED_RTO : ZN_RETRANSMITTED_RTO;
    if (!s->seen && s->known->acks == 0 && w->now_ns - s->known->t_ns < rtt)
        return ZN_REORDERED;
    return ZN_ANOMALY_UNKNOWN;
}

static uint8_t classify(const work *w, const surroundings *s)
{
    zn_anomaly anomaly = by_rules(w, s);
    w->side->anomalies[anomaly]++;
    return (uint8_t)anomaly;
}

/* Inserts an entry after `before` (0: as the first) and returns it; 0 when the slab is full. */
static uint32_t insert(const work *w, uint32_t before, uint32_t from, uint32_t to)
{
    uint32_t entry = zn_slab_take(w->slab);
    sent *s = at(w->slab, entry), *previous = at(w->slab, before);
    if (entry == 0) {
        w->stats->n[ZN_STAT_SEGMENTS_FULL]++;
        return 0;
    }
    s->from = from;
    s->to = to;
    s->t_ns = w->now_ns;
    s->ip_id = w->ip_id;
    s->next = previous == NULL ? w->side->first : previous->next;
    if (previous == NULL)
        w->side->first = entry;
    else
        previous->next = entry;
    if (s->next == 0)
        w->side->last = entry;
    w->side->segments++;
    return entry;
}

/* Inserts [from, to), which lies in a hole between `before` and `after`. Returns the entry, or 0
 * when the slab is full. */
static uint32_t fill_hole(const work *w, uint32_t before, const sent *after, uint32_t from,
                          uint32_t to)
{
    uint32_t entry = insert(w, before, from, to);
    surroundings s = {after, at(w->slab, before), -1, to - from, false};
    if (entry == 0)
        return 0;
    if (s.before != NULL)
        s.recovery_ns = w->now_ns - s.before->t_ns;
    at(w->slab, entry)->anomaly = classify(w, &s);
    return entry;
}

/* Takes `length` bytes of a segment that was sent before. first_part: they are the first of the new
 * segment that are. */
static void repeat(const work *w, uint32_t before, sent *known, uint32_t length, bool first_part)
{
    surroundings s = {known, at(w->slab, before), w->now_ns - known->t_ns, length, true};
    known->again = true;
    if (first_part)
        known->t_ns = w->now_ns;
    known->anomaly = classify(w, &s);
}

/* Merges the oldest segment into its neighbour. */
static void forget_oldest(const work *w)
{
    uint32_t entry = w->side->first;
    sent *oldest = at(w->slab, entry);
    at(w->slab, oldest->next)->from = oldest->from;
    w->side->first = oldest->next;
    zn_slab_give(w->slab, entry);
    w->side->segments--;
}

/* Puts [from, to) among the segments that the side sent, part by part. */
static void put(const work *w, uint32_t from, uint32_t to)
{
    uint32_t before = 0, entry = w->side->first;
    const sent *last = at(w->slab, w->side->last);
    bool first_part = true;
    if (last != NULL && zn_seq_ahead(from, last->to) >= 0) {
        before = w->side->last;
        entry = 0;
    }
    while (entry != 0 && zn_seq_ahead(to, from) > 0) {
        sent *known = at(w->slab, entry);
        if (zn_seq_ahead(from, known->from) < 0) {
            uint32_t end = zn_seq_ahead(to, known->from) < 0 ? to : known->from;
            before = fill_hole(w, before, known, from, end);
            if (before == 0)
                return;
            from = end;
            if (from == to)
                return;
        }
        if (zn_seq_ahead(from, known->to) < 0) {
            uint32_t end = zn_seq_ahead(to, known->to) < 0 ? to : known->to;
            repeat(w, before, known, end - from, first_part);
            first_part = false;
            from = end;
        }
        before = entry;
        entry = known->next;
    }
    if (zn_seq_ahead(to, from) > 0)
        (void)insert(w, before, from, to);
}

/* ---- options and windows ---- */

/* Notes the options of a segment that `side` sent (RFC 9293 3.2, RFC 7323, RFC 2018). */
static void read_options(zn_path_side *side, zn_span options)
{
    zn_cursor c = zn_cursor_over_span(options, true);
    bool sacks = false;
    while (zn_cursor_left(&c) > 0) {
        uint8_t kind = zn_cursor_u8(&c), length;
        zn_cursor value;
        if (kind == OPTION_END)
            break;
        if (kind == OPTION_NOTHING)
            continue;
        length = zn_cursor_u8(&c);
        if (length < 2)
            break;
        value = zn_cursor_sub(&c, length - 2u);
        if (!zn_cursor_ok(&c))
            break;
        if (kind == OPTION_MSS) {
            side->mss = zn_cursor_be16(&value);
        } else if (kind == OPTION_SCALE) {
            side->scale = zn_cursor_u8(&value);
            side->scale_seen = true;
        } else if (kind == OPTION_SACK_PERMITTED) {
            side->sack_permitted = true;
        } else if (kind == OPTION_SACK) {
            sacks |= zn_cursor_left(&value) != 0;
        } else if (kind == OPTION_TIMESTAMPS) {
            side->timestamps = true;
        }
    }
    side->sacks += sacks;
}

static void see_window(const work *w, uint32_t window)
{
    zn_path_side *side = w->side;
    const zn_packet *p = w->segment->packet;
    if ((p->tcp_flags & (ZN_TCP_ACK | ZN_TCP_SYN)) == 0)
        return;
    side->window = window;
    if (window > side->window_max)
        side->window_max = window;
    if (window != 0 && (side->window_min == 0 || window < side->window_min))
        side->window_min = window;
    side->window_zero += window == 0 && (p->tcp_flags & ZN_TCP_ACK) != 0;
}

static void see_flight(const work *w)
{
    const zn_packet *p = w->segment->packet;
    zn_path_side *side = w->side;
    bool syn = (p->tcp_flags & ZN_TCP_SYN) != 0;
    int32_t flight = zn_seq_ahead(p->seq + p->payload_len, w->other->ack);
    if ((p->tcp_flags & ZN_TCP_ACK) != 0 && w->segment->other_isn + 1 != p->ack)
        w->other->data_acked = true;
    if (p->payload_len != 0 && !side->data_acked && !w->segment->again)
        side->flight_first += p->payload_len;
    if (syn || w->segment->again || w->segment->out_of_order || flight <= 0)
        return;
    if ((uint32_t)flight > side->flight_max)
        side->flight_max = (uint32_t)flight;
    if (side->flight_min == 0 || (uint32_t)flight < side->flight_min)
        side->flight_min = (uint32_t)flight;
}

static void see_size(zn_path_side *side, const zn_packet *p)
{
    if (side->ttl_min == 0 || p->ttl < side->ttl_min)
        side->ttl_min = p->ttl;
    if (p->ttl > side->ttl_max)
        side->ttl_max = p->ttl;
    if (p->payload_len > side->segment_max)
        side->segment_max = p->payload_len;
    if (p->payload_len != 0 && (side->segment_min == 0 || p->payload_len < side->segment_min))
        side->segment_min = p->payload_len;
}

void zn_tcp_path_count(zn_slab *slab, zn_stats *stats, zn_tcp_path *path,
                       const zn_path_segment *segment)
{
    const zn_packet *p = segment->packet;
    zn_path_side *side = &path->side[p->sender], *other = &path->side[1 - p->sender];
    work w = {slab, stats, side, other, segment, p->t_ns, p->ip_id};
    bool syn = (p->tcp_flags & ZN_TCP_SYN) != 0, ack = (p->tcp_flags & ZN_TCP_ACK) != 0;
    uint32_t length = p->payload_len + syn + ((p->tcp_flags & ZN_TCP_FIN) != 0);
    uint32_t window = p->window;
    if (side->scale_seen && other->scale_seen)
        window <<= side->scale & 15; /* RFC 7323 2.3: at most 14 */
    if (syn)
        other->ack = p->seq;
    side->flags_moved |= segment->moved;
    read_options(side, zn_packet_tcp_options(p));
    if (!syn && !(side->scale_seen && other->scale_seen))
        side->scale = other->scale = 0;
    see_size(side, p);
    if (length != 0)
        put(&w, p->seq, p->seq + length);
    while (side->segments > ZN_PATH_SEGMENTS) /* also after inserts into holes */
        forget_oldest(&w);
    if (ack)
        acknowledge(slab, other, p->ack, p->t_ns);
    if ((p->tcp_flags & ZN_TCP_RST) != 0)
        return;
    see_window(&w, window);
    if (ack)
        side->ack = p->ack;
    see_flight(&w);
}

void zn_tcp_path_close(zn_slab *slab, zn_tcp_path *path)
{
    for (unsigned i = 0; i < 2; i++) {
        while (path->side[i].first != 0) {
            uint32_t entry = path->side[i].first;
            path->side[i].first = at(slab, entry)->next;
            zn_slab_give(slab, entry);
        }
        path->side[i].last = 0;
        path->side[i].segments = 0;
    }
}
