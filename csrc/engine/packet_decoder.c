/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/packet_decoder.h"

#include "flow/flow_table.h"

#define NESTED_MAX 4 /* fragments inside a datagram that was put together, and so on */

int zn_packet_decoder_init(zn_packet_decoder *in, zn_error *err)
{
    int rc;
    in->first_ns = in->last_ns = -1;
    for (size_t i = 0; i < ZN_DECODER_GROUP; i++)
        in->packets[i].tunnels = in->tunnels[i];
    rc = zn_bucket_key_random(&in->flow_key, err);
    if (rc == 0)
        rc = zn_hash_key_random(&in->datagram_key, err);
    return rc == 0 ? zn_defrag_open(&in->defrag, in->stats, err) : rc;
}

void zn_packet_decoder_fini(zn_packet_decoder *in)
{
    zn_defrag_close(in->defrag);
    in->defrag = NULL;
}

/*
 * What makes fragments one datagram: addresses and identification, of IPv4 the protocol too, and
 * the tunnels they came in, so that nobody completes a datagram from outside of its tunnel.
 */
static zn_id datagram_id(const zn_packet_decoder *in, const zn_fragment *f, const zn_packet *p)
{
    struct {
        zn_tunnel tunnels[ZN_TUNNELS_MAX];
        zn_addr src, dst;
        uint32_t id;
        uint32_t protocol;
    } key;
    memset(&key, 0, sizeof key);
    memcpy(key.tunnels, p->tunnels, p->tunnel_count * sizeof p->tunnels[0]);
    key.src = f->src;
    key.dst = f->dst;
    key.id = f->id;
    key.protocol = f->v6 ? 0 : f->protocol;
    return zn_hash128(&in->datagram_key, p->tunnel_count, &key, sizeof key);
}

/* A fragment to be put together, *p and *f as the decoder left them: why there is no packet, or
 * ZN_STAT_COUNT with *p. ZN_STAT_FRAGMENTS: the fragment waits. */
static zn_stat take_fragment(zn_packet_decoder *in, int64_t t_ns, zn_fragment *f, zn_packet *p)
{
    uint32_t seen = p->encapsulations;
    zn_stat why = ZN_STAT_FRAGMENTS;
    for (unsigned n = 0; n < NESTED_MAX && why == ZN_STAT_FRAGMENTS; n++) {
        zn_datagram_fragment fragment = {datagram_id(in, f, p), t_ns,     f->offset, f->bytes,
                                         f->protocol,           !f->more, f->v6};
        zn_datagram whole;
        if (!zn_defrag_add(in->defrag, &fragment, &whole))
            return ZN_STAT_FRAGMENTS;
        f->bytes = whole.bytes;
        f->protocol = (uint8_t)whole.kind;
        why = zn_packet_decode_datagram(f, &in->flow_key, p, f);
        seen |= p->encapsulations;
    }
    p->encapsulations = seen;
    return why == ZN_STAT_FRAGMENTS ? ZN_STAT_DROP_ENCAPSULATION_DEPTH : why;
}

static void count_encapsulations(zn_stats *stats, uint32_t seen)
{
    for (; seen != 0; seen &= seen - 1)
        stats->n[ZN_STAT_IN_FIRST + __builtin_ctz(seen)]++;
}

/* A frame of t_ns that was decoded as *p, or *fragment: true when it makes *p. */
static inline bool take_decoded(zn_packet_decoder *in, int64_t t_ns, zn_stat why,
                                zn_fragment *fragment, zn_packet *p)
{
    if (ZN_UNLIKELY(why == ZN_STAT_FRAGMENTS)) {
        why = take_fragment(in, t_ns, fragment, p);
        if (why == ZN_STAT_FRAGMENTS) {
            count_encapsulations(in->stats, p->encapsulations);
            return false;
        }
    }
    if (ZN_UNLIKELY(p->encapsulations != 0))
        count_encapsulations(in->stats, p->encapsulations);
    if (why != ZN_STAT_COUNT) {
        in->stats->n[why]++;
        return false;
    }
    return true;
}

static inline zn_packet_input input_of(const zn_frame *frame)
{
    return (zn_packet_input){{frame->data, frame->captured}, frame->wire, frame->link_type};
}

static inline zn_stat decode(const zn_packet_decoder *in, const zn_frame *frame, zn_packet *p,
                             zn_fragment *fragment)
{
    zn_packet_input input = input_of(frame);
    p->t_ns = frame->t_ns;
    return zn_packet_decode(&input, &in->flow_key, p, fragment);
}

/* Counts n frames, whatever they are like, and remembers the times of those that have one. */
static void count_frames(zn_packet_decoder *in, const zn_frame *frames, size_t n)
{
    uint64_t captured = 0, wire = 0, cut = 0, timeless = 0;
    uint64_t first_ns =
        (uint64_t)in->first_ns; /* as unsigned numbers, no time is the last of all */
    int64_t last_ns = in->last_ns;
    for (size_t i = 0; i < n; i++) {
        int64_t t_ns = frames[i].t_ns;
        captured += frames[i].captured;
        wire += frames[i].wire;
        if (ZN_UNLIKELY(frames[i].captured < frames[i].wire))
            cut++;
        if (ZN_LIKELY(t_ns >= last_ns && last_ns >= 0)) { /* in order: not the first */
            last_ns = t_ns;
            continue;
        }
        timeless += (uint64_t)t_ns >> 63;
        first_ns = (uint64_t)t_ns < first_ns ? (uint64_t)t_ns : first_ns;
        last_ns = t_ns > last_ns ? t_ns : last_ns;
    }
    in->stats->n[ZN_STAT_FRAMES] += n;
    in->stats->n[ZN_STAT_BYTES_CAPTURED] += captured;
    in->stats->n[ZN_STAT_BYTES_WIRE] += wire;
    in->stats->n[ZN_STAT_FRAMES_CUT] += cut;
    in->stats->n[ZN_STAT_DROP_TIMESTAMP] += timeless;
    in->first_ns = first_ns <= INT64_MAX ? (int64_t)first_ns : -1;
    in->last_ns = last_ns;
}

/* What a group of frames adds up to, as long as each is whole and they are in order: nearly all
 * are. */
typedef struct tally {
    uint64_t captured;
    uint32_t cut; /* not 0: some frame was */
    int64_t last_ns;
    bool in_order; /* no frame of the group is older than the one before it */
} tally;

static tally begin_tally(void)
{
    return (tally){0, 0, 0, true};
}

/* False: the frame has no time. */
static inline bool tally_frame(tally *t, const zn_frame *frame)
{
    t->captured += frame->captured;
    t->cut |= frame->captured ^ frame->wire;
    if (ZN_UNLIKELY(frame->t_ns < t->last_ns)) {
        t->in_order = false;
        return frame->t_ns >= 0;
    }
    t->last_ns = frame->t_ns;
    return true;
}

static void end_tally(zn_packet_decoder *in, tally t, const zn_frame *frames, size_t n)
{
    in->in_order = t.in_order;
    if (!t.in_order || t.cut != 0 || n == 0 || in->last_ns < 0 || frames->t_ns < in->last_ns) {
        count_frames(in, frames, n);
        return;
    }
    in->stats->n[ZN_STAT_FRAMES] += n;
    in->stats->n[ZN_STAT_BYTES_CAPTURED] += t.captured;
    in->stats->n[ZN_STAT_BYTES_WIRE] += t.captured;
    in->last_ns = t.last_ns;
}

/* A frame that is not usual: true when it makes *p. */
__attribute__((noinline)) static bool take_unusual(zn_packet_decoder *in, const zn_frame *frame,
                                                   zn_packet *p)
{
    zn_packet_input input = input_of(frame);
    zn_fragment fragment;
    zn_stat why = zn_packet_peel(&input, &in->flow_key, p, &fragment);
    return take_decoded(in, frame->t_ns, why, &fragment, p);
}

size_t zn_packet_decoder_take(zn_packet_decoder *in, const zn_frame *frames, size_t n,
                              zn_packet **out)
{
    zn_packet *p = in->packets;
    size_t packets = 0;
    tally t = begin_tally();
    zn_defrag_release(in->defrag);
    for (const zn_frame *frame = frames; frame != frames + n; frame++) {
        zn_packet_input input = input_of(frame);
        if (ZN_UNLIKELY(!tally_frame(&t, frame)))
            continue;
        p->t_ns = frame->t_ns;
        if (ZN_LIKELY(zn_packet_decode_fast(&input, &in->flow_key, p))) {
            if (ZN_UNLIKELY(p->encapsulations != 0))
                count_encapsulations(in->stats, p->encapsulations);
        } else if (!take_unusual(in, frame, p)) {
            continue;
        }
        zn_flow_prefetch(in->flows, p->hash);
        out[packets++] = p++;
    }
    end_tally(in, t, frames, n);
    return packets;
}

void zn_packet_decoder_decode(const zn_packet_decoder *in, const zn_frame *frames, size_t n,
                              zn_decoded *out)
{
    size_t fragments = 0;
    ZN_ASSERT(n <= ZN_DECODER_AHEAD);
    for (size_t i = 0; i < n; i++) {
        if (ZN_UNLIKELY(frames[i].t_ns < 0))
            continue;
        out->packets[i].tunnels = out->tunnels[i];
        out->why[i] =
            (uint16_t)decode(in, &frames[i], &out->packets[i], &out->fragments[fragments]);
        if (out->why[i] == ZN_STAT_COUNT)
            zn_packet_copy_start(&out->packets[i]);
        fragments += out->why[i] == ZN_STAT_FRAGMENTS;
    }
    out->n = n;
    out->fragments_taken = 0;
}

/* What the packets behind the i-th will be asked for lies in another processor's cache. */
static inline void fetch_ahead(const zn_packet_decoder *in, const zn_decoded *d, size_t i)
{
    const zn_packet *next = &d->packets[i] + ZN_DECODER_GROUP, *later = next + ZN_DECODER_GROUP;
    if (i + 2 * ZN_DECODER_GROUP < d->n) {
        ZN_PREFETCH(later);
        ZN_PREFETCH((const uint8_t *)later + ZN_CACHE_LINE);
    }
    if (i + ZN_DECODER_GROUP < d->n)
        zn_flow_prefetch(in->flows, next->hash);
}

size_t zn_packet_decoder_join(zn_packet_decoder *in, const zn_frame *frames, zn_decoded *d,
                              size_t at, size_t n, zn_packet **out)
{
    size_t packets = 0;
    tally t = begin_tally();
    zn_defrag_release(in->defrag);
    for (size_t i = at; i < at + n; i++) {
        zn_packet *p = &d->packets[i];
        zn_fragment *fragment = &d->fragments[d->fragments_taken];
        if (ZN_UNLIKELY(!tally_frame(&t, &frames[i])))
            continue;
        fetch_ahead(in, d, i);
        d->fragments_taken += d->why[i] == ZN_STAT_FRAGMENTS;
        if (take_decoded(in, frames[i].t_ns, (zn_stat)d->why[i], fragment, p)) {
            zn_flow_prefetch(in->flows, p->hash);
            out[packets++] = p;
        }
    }
    end_tally(in, t, frames + at, n);
    return packets;
}
