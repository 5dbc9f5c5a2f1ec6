/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/packet_decoder.h"

#include "flow/flow_table.h"

/* The longest frame of links with jumbo frames: an MTU of 9,216, an Ethernet header with two tags,
 * and a check sequence. */
#define LONGEST_FRAME 9242u
enum { LINK_ETHERNET = 1, LINK_RAW = 101, LINK_SLL = 113, LINK_SLL2 = 276 };
#define NESTED_MAX 4 /* levels of fragments inside reassembled datagrams */

int zn_packet_decoder_init(zn_packet_decoder *decoder, zn_error *err)
{
    int rc;
    decoder->first_ns = decoder->last_ns = -1;
    for (size_t i = 0; i < ZN_DECODER_GROUP; i++)
        decoder->packets[i].outer = &decoder->outer[i];
    rc = zn_bucket_key_random(&decoder->flow_key, err);
    if (rc == 0)
        rc = zn_hash_key_random(&decoder->datagram_key, err);
    return rc == 0 ? zn_defrag_open(&decoder->defrag, decoder->stats, err) : rc;
}

void zn_packet_decoder_want_packets(zn_packet_decoder *decoder, bool layers)
{
    decoder->others = true;
    decoder->layers = layers;
    for (size_t i = 0; i < ZN_DECODER_GROUP; i++)
        decoder->outer[i].wants_layers = layers;
}

bool zn_packet_decoder_add_port(zn_packet_decoder *decoder, uint16_t port, unsigned kind)
{
    for (size_t i = 0; i < ZN_DECODER_GROUP; i++)
        decoder->outer[i].ports = &decoder->ports;
    return zn_tunnel_ports_add(&decoder->ports, port, kind);
}

void zn_packet_decoder_fini(zn_packet_decoder *decoder)
{
    zn_defrag_close(decoder->defrag);
    decoder->defrag = NULL;
}

/*
 * Returns the identity of a fragment's datagram: addresses, identification, the protocol of IPv4,
 * and the tunnels of the fragment. A host outside a tunnel therefore cannot complete a datagram
 * inside the tunnel.
 */
static zn_id datagram_id(const zn_packet_decoder *decoder, const zn_fragment *f, const zn_packet *p)
{
    struct {
        zn_tunnel tunnels[ZN_TUNNELS_MAX];
        zn_addr src, dst;
        uint32_t id;
        uint32_t protocol;
    } key;
    memset(&key, 0, sizeof key);
    memcpy(key.tunnels, p->outer->tunnels, p->tunnel_count * sizeof key.tunnels[0]);
    key.src = f->src;
    key.dst = f->dst;
    key.id = f->id;
    key.protocol = f->v6 ? 0 : f->protocol;
    return zn_hash128(&decoder->datagram_key, p->tunnel_count, &key, sizeof key);
}

/* Adds fragment *f, decoded with *p, to its datagram. Returns ZN_STAT_COUNT when that makes *p,
 * ZN_STAT_FRAGMENTS when the fragment waits for others, or the counter that says why there is no
 * packet. *own: what the frame's own fragment makes of its datagram. */
static zn_stat join_fragment(zn_packet_decoder *decoder, int64_t t_ns, zn_fragment *f, zn_packet *p,
                             zn_datagram *own)
{
    uint32_t seen = p->encapsulations;
    zn_stat why = ZN_STAT_FRAGMENTS;
    for (unsigned n = 0; n < NESTED_MAX && why == ZN_STAT_FRAGMENTS; n++) {
        zn_datagram_fragment fragment = {
            datagram_id(decoder, f, p), t_ns, f->offset, f->bytes, f->protocol, !f->more, f->v6};
        zn_datagram whole;
        bool is_whole = zn_defrag_add(decoder->defrag, &fragment, &whole);
        if (n == 0)
            *own = whole;
        if (!is_whole) {
            own->fragments = 0;
            return ZN_STAT_FRAGMENTS;
        }
        if (n != 0 || whole.kind != ZN_PROTO_UDP)
            own->fragments = 0;
        f->bytes = whole.bytes;
        f->protocol = (uint8_t)whole.kind;
        why = zn_packet_decode_datagram(f, &decoder->flow_key, p, f);
        seen |= p->encapsulations;
    }
    p->encapsulations = seen;
    return why == ZN_STAT_FRAGMENTS ? ZN_STAT_DROP_ENCAPSULATION_DEPTH : why;
}

/* Adds a fragment to its datagram as join_fragment does. Lists the frame of the fragment if no
 * packet has the frame's own headers: the datagram is incomplete, or it is the packet. */
static zn_stat take_fragment(zn_packet_decoder *decoder, int64_t t_ns, size_t before,
                             zn_fragment *f, zn_packet *p)
{
    zn_fragment_frame frame = {.t_ns = t_ns,
                               .ip = {f->bytes.p - f->headers, f->headers},
                               .id = f->id,
                               .bytes = (uint32_t)f->bytes.n,
                               .before = (uint32_t)before,
                               .offset = f->offset,
                               .ttl = f->ttl,
                               .v6 = f->v6,
                               .more = f->more,
                               .has_layers = decoder->layers && p->outer->layers.n != 0};
    zn_datagram own;
    zn_stat why = join_fragment(decoder, t_ns, f, p, &own);
    bool makes_packet = why == ZN_STAT_COUNT || why == ZN_STAT_DROP_NOT_TCP_UDP;
    frame.datagram = own.entry;
    frame.fragments = own.fragments;
    if (decoder->others && (why == ZN_STAT_FRAGMENTS || (makes_packet && p->ip_bytes == 0)))
        decoder->fragments[decoder->fragment_count++] = frame;
    return why;
}

static void count_encapsulations(zn_stats *stats, uint32_t seen)
{
    for (; seen != 0; seen &= seen - 1)
        stats->n[ZN_STAT_IN_FIRST + __builtin_ctz(seen)]++;
}

/* Takes a frame of time t_ns that was decoded into *p, or into *fragment, after `before` packets of
 * its group. Returns true if the frame makes *p. */
static inline bool take_decoded(zn_packet_decoder *decoder, int64_t t_ns, size_t before,
                                zn_stat why, zn_fragment *fragment, zn_packet *p)
{
    if (ZN_UNLIKELY(why == ZN_STAT_FRAGMENTS)) {
        why = take_fragment(decoder, t_ns, before, fragment, p);
        if (why == ZN_STAT_FRAGMENTS) {
            count_encapsulations(decoder->stats, p->encapsulations);
            return false;
        }
    }
    if (ZN_UNLIKELY(p->encapsulations != 0))
        count_encapsulations(decoder->stats, p->encapsulations);
    if (why == ZN_STAT_DROP_NOT_TCP_UDP && decoder->others) {
        decoder->stats->n[ZN_STAT_PACKETS_OTHER]++;
        return true;
    }
    if (why != ZN_STAT_COUNT) {
        decoder->stats->n[why]++;
        return false;
    }
    return true;
}

static inline zn_packet_input input_of(const zn_frame *frame)
{
    return (zn_packet_input){{frame->data, frame->captured}, frame->wire, frame->link_type};
}

/* Returns true if a frame was decoded without peeling. */
static inline bool decode_fast(const zn_packet_decoder *decoder, const zn_packet_input *input,
                               zn_packet *p)
{
    return zn_packet_decode_fast(input, &decoder->flow_key, decoder->layers, p);
}

static inline zn_stat decode(const zn_packet_decoder *decoder, const zn_frame *frame, zn_packet *p,
                             zn_fragment *fragment)
{
    zn_packet_input input = input_of(frame);
    p->t_ns = frame->t_ns;
    if (ZN_LIKELY(decode_fast(decoder, &input, p)))
        return ZN_STAT_COUNT;
    return zn_packet_peel(&input, &decoder->flow_key, p, fragment);
}

/* Counts n frames of any kind, and notes the earliest and latest of their times. */
static void count_frames(zn_packet_decoder *decoder, const zn_frame *frames, size_t n)
{
    uint64_t captured = 0, wire = 0, cut = 0, timeless = 0;
    uint64_t first_ns = (uint64_t)decoder->first_ns; /* unsigned: -1 (no time) is the latest time */
    int64_t last_ns = decoder->last_ns;
    for (size_t i = 0; i < n; i++) {
        int64_t t_ns = frames[i].t_ns;
        captured += frames[i].captured;
        wire += frames[i].wire;
        if (ZN_UNLIKELY(frames[i].captured < frames[i].wire))
            cut++;
        if (ZN_LIKELY(t_ns >= last_ns && last_ns >= 0)) { /* in order, and not the first frame */
            last_ns = t_ns;
            continue;
        }
        timeless += (uint64_t)t_ns >> 63;
        first_ns = (uint64_t)t_ns < first_ns ? (uint64_t)t_ns : first_ns;
        last_ns = t_ns > last_ns ? t_ns : last_ns;
    }
    decoder->stats->n[ZN_STAT_FRAMES] += n;
    decoder->stats->n[ZN_STAT_BYTES_CAPTURED] += captured;
    decoder->stats->n[ZN_STAT_BYTES_WIRE] += wire;
    decoder->stats->n[ZN_STAT_FRAMES_CUT] += cut;
    decoder->stats->n[ZN_STAT_DROP_TIMESTAMP] += timeless;
    decoder->first_ns = first_ns <= INT64_MAX ? (int64_t)first_ns : -1;
    decoder->last_ns = last_ns;
}

/* Sums of a group of frames. They suffice if each frame is whole and in order, as nearly all frames
 * are. end_tally counts other groups frame by frame. */
typedef struct tally {
    uint64_t captured;
    uint32_t sizes; /* bitwise or of all lengths on the wire */
    uint32_t cut;   /* not 0 if a frame was cut */
    int64_t last_ns;
    bool in_order; /* true if the frames of the group are in order of time */
} tally;

static tally begin_tally(void)
{
    return (tally){0, 0, 0, 0, true};
}

/* Adds a frame. Returns false if the frame has no time. */
static inline bool tally_frame(tally *t, const zn_frame *frame)
{
    t->captured += frame->captured;
    t->sizes |= frame->wire;
    t->cut |= frame->captured ^ frame->wire;
    if (ZN_UNLIKELY(frame->t_ns < t->last_ns)) {
        t->in_order = false;
        return frame->t_ns >= 0;
    }
    t->last_ns = frame->t_ns;
    return true;
}

/* Counts frames of a capture that no link carries. The MTU of the link is not known. */
static void count_merged(zn_packet_decoder *decoder, const zn_frame *frames, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t link = frames[i].link_type;
        bool can_merge =
            link == LINK_ETHERNET || link == LINK_RAW || link == LINK_SLL || link == LINK_SLL2;
        decoder->stats->n[ZN_STAT_FRAMES_MERGED] += can_merge && frames[i].wire > LONGEST_FRAME;
    }
}

static void end_tally(zn_packet_decoder *decoder, tally t, const zn_frame *frames, size_t n)
{
    decoder->in_order = t.in_order;
    if (ZN_UNLIKELY(t.sizes > LONGEST_FRAME / 2) && !decoder->live)
        count_merged(decoder, frames, n);
    if (!t.in_order || t.cut != 0 || n == 0 || decoder->last_ns < 0 ||
        frames->t_ns < decoder->last_ns) {
        count_frames(decoder, frames, n);
        return;
    }
    decoder->stats->n[ZN_STAT_FRAMES] += n;
    decoder->stats->n[ZN_STAT_BYTES_CAPTURED] += t.captured;
    decoder->stats->n[ZN_STAT_BYTES_WIRE] += t.captured;
    decoder->last_ns = t.last_ns;
}

/* Decodes a frame that zn_packet_decode_fast leaves. Returns true if the frame makes *p. */
__attribute__((noinline)) static bool peel_frame(zn_packet_decoder *decoder, const zn_frame *frame,
                                                 size_t before, zn_packet *p)
{
    zn_packet_input input = input_of(frame);
    zn_fragment fragment;
    zn_stat why = zn_packet_peel(&input, &decoder->flow_key, p, &fragment);
    return take_decoded(decoder, frame->t_ns, before, why, &fragment, p);
}

size_t zn_packet_decoder_take(zn_packet_decoder *decoder, const zn_frame *frames, size_t n,
                              zn_packet **out)
{
    zn_packet *p = decoder->packets;
    size_t packets = 0;
    tally t = begin_tally();
    decoder->fragment_count = 0;
    zn_defrag_release(decoder->defrag);
    for (const zn_frame *frame = frames; frame != frames + n; frame++) {
        zn_packet_input input = input_of(frame);
        if (ZN_UNLIKELY(!tally_frame(&t, frame)))
            continue;
        p->t_ns = frame->t_ns;
        if (ZN_LIKELY(decode_fast(decoder, &input, p))) {
            if (ZN_UNLIKELY(p->encapsulations != 0))
                count_encapsulations(decoder->stats, p->encapsulations);
        } else if (!peel_frame(decoder, frame, packets, p)) {
            continue;
        }
        zn_flow_prefetch(decoder->flows, p->hash);
        out[packets++] = p++;
    }
    end_tally(decoder, t, frames, n);
    return packets;
}

void zn_packet_decoder_decode(const zn_packet_decoder *decoder, const zn_frame *frames, size_t n,
                              zn_decoded *out)
{
    size_t fragments = 0;
    ZN_ASSERT(n <= ZN_DECODER_AHEAD);
    for (size_t i = 0; i < n; i++) {
        if (ZN_UNLIKELY(frames[i].t_ns < 0))
            continue;
        out->packets[i].outer = &out->outer[i];
        out->outer[i].wants_layers = decoder->layers;
        out->outer[i].ports = decoder->ports.n == 0 ? NULL : &decoder->ports;
        out->why[i] =
            (uint16_t)decode(decoder, &frames[i], &out->packets[i], &out->fragments[fragments]);
        if (out->why[i] == ZN_STAT_COUNT)
            zn_packet_copy_start(&out->packets[i]);
        fragments += out->why[i] == ZN_STAT_FRAGMENTS;
    }
    out->n = n;
    out->fragments_taken = 0;
}

/* Prefetches the packets after packet i, which lie in the cache of another processor. */
static inline void fetch_ahead(const zn_packet_decoder *decoder, const zn_decoded *d, size_t i)
{
    const zn_packet *next = &d->packets[i] + ZN_DECODER_GROUP, *later = next + ZN_DECODER_GROUP;
    if (i + 2 * ZN_DECODER_GROUP < d->n) {
        ZN_PREFETCH(later);
        ZN_PREFETCH((const uint8_t *)later + ZN_CACHE_LINE);
    }
    if (i + ZN_DECODER_GROUP < d->n)
        zn_flow_prefetch(decoder->flows, next->hash);
}

size_t zn_packet_decoder_join(zn_packet_decoder *decoder, const zn_frame *frames, zn_decoded *d,
                              size_t at, size_t n, zn_packet **out)
{
    size_t packets = 0;
    tally t = begin_tally();
    decoder->fragment_count = 0;
    zn_defrag_release(decoder->defrag);
    for (size_t i = at; i < at + n; i++) {
        zn_packet *p = &d->packets[i];
        zn_fragment *fragment = &d->fragments[d->fragments_taken];
        if (ZN_UNLIKELY(!tally_frame(&t, &frames[i])))
            continue;
        fetch_ahead(decoder, d, i);
        d->fragments_taken += d->why[i] == ZN_STAT_FRAGMENTS;
        if (take_decoded(decoder, frames[i].t_ns, packets, (zn_stat)d->why[i], fragment, p)) {
            zn_flow_prefetch(decoder->flows, p->hash);
            out[packets++] = p;
        }
    }
    end_tally(decoder, t, frames + at, n);
    return packets;
}
