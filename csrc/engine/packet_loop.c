/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch of frames goes through in groups of GROUP. The steps of different packets alternate, so
 * that their waits for memory overlap: decode a packet and prefetch its flow's bucket; prefetch the
 * flow; PROBE_AHEAD packets later update it and look for names. After the batch votes are decided
 * and the records of closed flows written.
 */
#include "engine/packet_loop.h"

#include "analyzer/watch.h"
#include "engine/decider.h"
#include "engine/flush.h"
#include "engine/rebase.h"
#include "engine/records.h"
#include "flow/flow_fast.h"

#define GROUP ZN_DECODER_GROUP
#define GROUP_VOTES                                                                                \
    (GROUP * (2 * ZN_NAMES_PER_FLOW + 10)) /* most votes that the packets of a group can cast */
#define PROBE_AHEAD 8 /* packets between the prefetch of a flow and its update */
#define EVICT_PART 64 /* 1 / EVICT_PART of a full flow table is closed at a time */

_Static_assert(ZN_ENGINE_BATCH % GROUP == 0, "a batch ends with a group");
_Static_assert(ZN_FLOW_SPARE >= GROUP, "a group's flows always find room");
_Static_assert(ZN_ENGINE_BATCH_VOTES - ZN_REMOTE_VOTES_MAX > GROUP_VOTES,
               "a group's votes always find room");

/* Ends the period. All records so far belong to it. */
static int begin_period(zn_engine *e, int64_t period, zn_error *err)
{
    int rc = 0;
    if (e->boundaries.period >= 0)
        rc = zn_engine_flush_votes(e, true, err);
    if (rc == 0)
        zn_engine_emit(e, e->clock.now_ns, true);
    e->boundaries.period = period;
    return rc != 0 ? rc : e->decider->begin_period(e, period * e->boundaries.split_ns, err);
}

/* Ends the minute in which calm_from_ns lies, and writes its queues. A flow whose idle time ended
 * in the minute belongs to it, however late the flow is noticed. */
static int end_minute(zn_engine *e, int64_t minute, zn_error *err)
{
    int rc;
    zn_flow_expire(e->flows, (e->boundaries.calm_from_ns / ZN_MINUTE_NS + 1) * ZN_MINUTE_NS);
    rc = zn_engine_flush_votes(e, true, err);
    return rc == 0 ? e->decider->end_minutes(e, minute, err) : rc;
}

/* Ends the minute and the period that ended before t_ns, the packet clock. */
static int see_boundary(zn_engine *e, int64_t t_ns, zn_error *err)
{
    int64_t minute = t_ns / ZN_MINUTE_NS, from_ns = INT64_MIN, until_ns = INT64_MAX;
    int rc = 0;
    if (e->queues.order != ZN_ORDER_CLOSING) {
        if (e->boundaries.calm_until_ns != 0 && minute > e->boundaries.calm_from_ns / ZN_MINUTE_NS)
            rc = end_minute(e, minute, err);
        from_ns = minute * ZN_MINUTE_NS;
        until_ns = from_ns + ZN_MINUTE_NS;
    }
    if (rc == 0 && e->boundaries.split_ns != 0) {
        int64_t period = t_ns / e->boundaries.split_ns,
                ends_ns = (period + 1) * e->boundaries.split_ns;
        if (period != e->boundaries.period)
            rc = begin_period(e, period, err);
        from_ns =
            from_ns > ends_ns - e->boundaries.split_ns ? from_ns : ends_ns - e->boundaries.split_ns;
        until_ns = until_ns < ends_ns ? until_ns : ends_ns;
    }
    e->boundaries.calm_from_ns = from_ns;
    e->boundaries.calm_until_ns = until_ns;
    return rc;
}

/* Sets client and user of the flow that p opened, and queues its addresses for their pseudonyms
 * while the key of its epoch exists. */
static int place_flow(zn_engine *e, uint32_t flow, const zn_packet *p, zn_error *err)
{
    zn_flow *f = zn_flow_at(e->flows, flow);
    bool either = f->midstream || zn_analyzers_may_be_answer(p);
    unsigned ends = 3; /* either may turn out to be the client */
    zn_addr known_as[2];
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_CRYPTO);
    if (f->midstream || p->tuple.proto == ZN_PROTO_UDP)
        zn_roles_guess_client(&e->roles, f, p);
    zn_roles_place(&e->roles, e->flows, f, p, known_as);
    e->stats.n[ZN_STAT_FLOWS_INTERNAL_BOTH] += f->internal[0] && f->internal[1];
    if (!either)
        ends = 1u << f->client | (unsigned)f->internal[1] << 1 | f->internal[0];
    return zn_engine_map_later(e, flow, ends, known_as, err);
}

/* Moves packet time. */
static int see_time(zn_engine *e, int64_t t_ns, zn_error *err)
{
    bool started = e->clock.started;
    int64_t before_ns = e->clock.now_ns;
    switch (zn_clock_see(&e->clock, t_ns)) {
    case ZN_CLOCK_ON_TIME:
        if (ZN_UNLIKELY(started && t_ns - before_ns > e->clock.window_ns))
            e->decider->time_jumped(e, before_ns, t_ns);
        break;
    case ZN_CLOCK_LATE:
        e->stats.n[ZN_STAT_CLOCK_LATE]++;
        break;
    case ZN_CLOCK_REJECTED:
        e->stats.n[ZN_STAT_CLOCK_REJECTED]++;
        break;
    case ZN_CLOCK_REBASED:
        e->stats.n[ZN_STAT_CLOCK_REBASED]++;
        return zn_engine_rebase(e, t_ns, err);
    }
    return 0;
}

/* Shows a packet to the analyzers. */
static void look(zn_engine *e, uint32_t flow, zn_flow *f, const zn_packet *p)
{
    unsigned client = f->client;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_NAMES);
    zn_service_wait(f);
    if (zn_analyzers_packet(&e->names, flow, f, p)) {
        zn_service_packet(f, p);
        if (p->tuple.proto == ZN_PROTO_TCP)
            zn_layer7_packet(&e->names, flow, f, p);
        else
            zn_dn_hunter_packet(&e->dn_hunter, flow, f, p);
    }
    /* the client decides which DNS response named the server */
    if (ZN_UNLIKELY(f->client != client)) {
        zn_dn_hunter_forget(&e->dn_hunter, f);
        zn_dn_hunter_opened(&e->dn_hunter, f);
        if (e->rewriter != NULL)
            zn_rewriter_client_changed(e->rewriter, flow, p->t_ns);
    }
    if (ZN_UNLIKELY(e->rewriter != NULL))
        zn_rewriter_names_read(e->rewriter, flow, f);
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_FLOWS);
}

#ifdef ZN_DEBUG
/* Shows an unwanted packet to the analyzers, and asserts that this changes no more
 * than zn_watch_skip does. */
static void skip(zn_engine *e, uint32_t flow, zn_flow *f, zn_flow_layer7 *l, const zn_packet *p)
{
    const zn_flow before = *f;
    const zn_flow_layer7 before7 = l != NULL ? *l : (zn_flow_layer7){0};
    const zn_stats stats = e->stats;
    size_t votes = e->votes.n;
    const zn_message_sink *sink = e->names.sink;
    zn_flow looked;
    zn_flow_layer7 looked7;
    e->names.sink = NULL; /* the messages are not passed on either */
    look(e, flow, f, p);
    e->names.sink = sink;
    looked = *f;
    looked7 = l != NULL ? *l : (zn_flow_layer7){0};
    *f = before;
    if (l != NULL)
        *l = before7;
    zn_watch_skip(f, l, p);
    memcpy(looked.watch, f->watch, sizeof looked.watch);
    looked.watch_left = f->watch_left;
    ZN_ASSERT(memcmp(&looked, f, sizeof looked) == 0);
    ZN_ASSERT(l == NULL || memcmp(&looked7, l, sizeof looked7) == 0);
    ZN_ASSERT(memcmp(&stats, &e->stats, sizeof stats) == 0 && votes == e->votes.n);
}
#else
static inline void skip(zn_engine *e, uint32_t flow, zn_flow *f, zn_flow_layer7 *l,
                        const zn_packet *p)
{
    (void)e;
    (void)flow;
    zn_watch_skip(f, l, p);
}
#endif

/* Takes a packet. guess: result of zn_flow_probe. Not inline, because this leaves more
 * registers to the loop in take_packets, which counts most packets without a call. */
__attribute__((noinline)) static int take_packet(zn_engine *e, const zn_packet *p, uint32_t guess,
                                                 zn_error *err)
{
    bool opened = false;
    uint32_t flow = guess;
    zn_flow *f = NULL;
    zn_flow_layer7 *l = NULL;
    int rc = see_time(e, p->t_ns, err);
    e->taken = 0;
    if (rc == 0 && (e->clock.now_ns < e->boundaries.calm_from_ns ||
                    e->clock.now_ns >= e->boundaries.calm_until_ns))
        rc = see_boundary(e, e->clock.now_ns, err);
    if (rc != 0)
        return rc;
    e->stats.n[p->tuple.proto == ZN_PROTO_TCP ? ZN_STAT_PACKETS_TCP : ZN_STAT_PACKETS_UDP]++;
    if (ZN_UNLIKELY(zn_flow_expire_due(e->flows, e->clock.now_ns)))
        zn_flow_expire(e->flows, e->clock.now_ns);
    if (ZN_LIKELY(guess != 0)) {
        f = zn_flow_entry(e->flows, guess);
        l = zn_flow_layer7_at(e->flows, guess);
    }
    if (ZN_UNLIKELY(guess == 0 || zn_flow_comes_late(e->flows, p->t_ns) ||
                    !zn_flow_count_fast(e->flows, f, l, p))) {
        flow = zn_flow_update(e->flows, p, &opened);
        if (flow == 0)
            return 0;
        f = zn_flow_entry(e->flows, flow);
        l = zn_flow_layer7_at(e->flows, flow);
    }
    if (ZN_UNLIKELY(opened)) {
        rc = place_flow(e, flow, p, err);
        if (rc != 0)
            return rc;
        zn_dn_hunter_opened(&e->dn_hunter, f);
        zn_service_open(f);
        if (ZN_UNLIKELY(e->rewriter != NULL))
            zn_rewriter_flow_opened(e->rewriter, flow);
    }
    e->taken = flow;
    zn_watch_count(f);
    if (ZN_LIKELY(!zn_watch_wants(f, p))) {
        skip(e, flow, f, l, p);
        zn_flow_try_count_shortly(e->flows, f, p->sender);
        return 0;
    }
    look(e, flow, f, p);
    zn_watch_ask(&e->names, f);
    return 0;
}

/* Lets the flow table grow, or brings it below its cap, by a little more than needed, so that this
 * is rare. Records of closed flows are written first: those flows then only linger, and are freed
 * before an open one is closed. */
static int evict_flows(zn_engine *e, zn_error *err)
{
    uint32_t more = e->max_flows / EVICT_PART;
    int rc;
    zn_flow_grow(e->flows);
    if (ZN_LIKELY(zn_flow_live(e->flows) <= e->max_flows))
        return 0;
    if (more > ZN_FLOW_EVICT_MAX - ZN_FLOW_SPARE)
        more = ZN_FLOW_EVICT_MAX - ZN_FLOW_SPARE;
    rc = zn_engine_flush_votes(e, true, err);
    if (rc == 0)
        rc = e->decider->make_space(e, err);
    if (rc != 0)
        return rc;
    if (zn_flow_live(e->flows) > e->max_flows)
        zn_flow_evict(e->flows, zn_flow_live(e->flows) - e->max_flows + more, e->clock.now_ns);
    return zn_engine_flush_votes(e, true, err);
}

/* Returns true if the times of a group only move the clock: its packets are in order, and neither a
 * second of the flow table nor a period ends before the last packet. */
static bool time_only_passes(const zn_engine *e, zn_packet *const *packet, size_t n)
{
    int64_t last_ns = packet[n - 1]->t_ns;
    return e->decoder.in_order && zn_clock_expects(&e->clock, packet[0]->t_ns) &&
           !zn_flow_comes_late(e->flows, packet[0]->t_ns) &&
           !zn_flow_expire_due(e->flows, last_ns) &&
           (e->boundaries.split_ns == 0 ||
            last_ns / e->boundaries.split_ns == e->boundaries.period);
}

/* Takes an unwanted packet of a flow in which an analyzer still waits for packets. Not inline, like
 * take_packet. */
__attribute__((noinline)) static bool take_watched(zn_engine *e, uint32_t flow, zn_flow *f,
                                                   zn_flow_layer7 *l, const zn_packet *p)
{
    if ((f->watch[p->sender] & ZN_FLOW_COUNT_SLOWLY) != 0 || f->watch_left == 1 ||
        zn_watch_wants(f, p) || !zn_flow_count_shortly(f, l, p))
        return false;
    zn_watch_count(f);
    skip(e, flow, f, l, p);
    return true;
}

/* Counts a packet that no analyzer wants, of a side whose ZN_FLOW_COUNT_SLOWLY is clear, in a group
 * where time_only_passes. Returns false, and does nothing, for any other packet. */
static inline bool take_unwanted(zn_engine *e, const zn_flow_places *places, const zn_packet *p,
                                 uint32_t guess)
{
    zn_flow *f = &places->flows[guess - 1];
    zn_flow_layer7 *l = places->layer7 == NULL ? NULL : &places->layer7[guess - 1];
    if (ZN_UNLIKELY(!zn_watch_is_quiet(f, p)))
        return take_watched(e, guess, f, l, p);
    if (zn_watch_is_text(f, p) || !zn_flow_count_shortly(f, l, p))
        return false;
    skip(e, guess, f, l, p);
    return true;
}

/* Finds and prefetches the probable flow of a packet. */
static inline uint32_t probe(const zn_engine *e, const zn_flow_places *places, const zn_packet *p)
{
    uint32_t guess = zn_flow_probe(places, p);
    if (ZN_UNLIKELY(guess == 0))
        zn_dn_hunter_prefetch(&e->dn_hunter, p);
    return guess;
}

/* Takes packets in order. The flow of a packet is prefetched PROBE_AHEAD packets before its turn.
 * Memory drops prefetches if too many are outstanding. In groups with time_only_passes, packets
 * that no analyzer wants take the short way, and the clock is set once. */
static int take_packets(zn_engine *e, zn_packet *const *packet, size_t n, zn_error *err)
{
    const zn_flow_places places = zn_flow_places_of(e->flows);
    bool quiet = time_only_passes(e, packet, n);
    uint32_t guess[GROUP];
    uint64_t skipped = 0;
    int rc = 0;
    for (size_t i = 0; i < n && i < PROBE_AHEAD; i++)
        guess[i] = probe(e, &places, packet[i]);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (ZN_LIKELY(i + PROBE_AHEAD < n))
            guess[i + PROBE_AHEAD] = probe(e, &places, packet[i + PROBE_AHEAD]);
        if (ZN_LIKELY(quiet && guess[i] != 0 && take_unwanted(e, &places, packet[i], guess[i])))
            skipped++;
        else
            rc = take_packet(e, packet[i], guess[i], err);
    }
    e->stats.n[ZN_STAT_PACKETS_TCP] += skipped;
    if (quiet && rc == 0)
        (void)zn_clock_see(&e->clock, packet[n - 1]->t_ns);
    return rc;
}

/* Puts the fragments from `next` on that came before packet i into the delay line. Returns the
 * number of the next fragment. */
static size_t delay_fragments(zn_engine *e, size_t next, size_t i)
{
    const zn_packet_decoder *decoder = &e->decoder;
    while (ZN_UNLIKELY(next < decoder->fragment_count) && decoder->fragments[next].before <= i)
        zn_rewriter_take_fragment(e->rewriter, &decoder->fragments[next++]);
    return next;
}

/* Takes packets in order for packet output. Each packet goes to its flow, and then into the delay
 * line. */
static int take_and_delay(zn_engine *e, zn_packet *const *packet, size_t n, zn_error *err)
{
    const zn_flow_places places = zn_flow_places_of(e->flows);
    uint32_t guess[GROUP];
    size_t probed = 0;
    size_t fragments = 0;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        fragments = delay_fragments(e, fragments, i);
        for (; probed < n && probed < i + PROBE_AHEAD; probed++) {
            guess[probed] = probe(e, &places, packet[probed]);
            zn_rewriter_fetch(e->rewriter, packet[probed], guess[probed]);
        }
        if (ZN_LIKELY(zn_packet_is_of_flow(packet[i]))) {
            zn_rewriter_time_moves(e->rewriter, packet[i]->t_ns);
            rc = take_packet(e, packet[i], guess[i], err);
        }
        if (rc == 0)
            zn_rewriter_take_packet(e->rewriter, packet[i], e->taken);
    }
    if (rc == 0)
        (void)delay_fragments(e, fragments, n);
    return rc;
}

/* Makes room in the delay line. */
static int reserve_hold(zn_engine *e, zn_error *err)
{
    int rc = 0;
    while (rc == 0 && !zn_rewriter_reserve(e->rewriter, GROUP)) {
        rc = zn_engine_flush_votes(e, true, err);
        zn_rewriter_emit_early(e->rewriter);
    }
    return rc;
}

static int feed_group(zn_engine *e, const zn_frame *frames, zn_decoded *d, size_t at, size_t n,
                      zn_error *err)
{
    zn_packet *packet[GROUP];
    size_t packets;
    int rc;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_DECODE);
    packets = d == NULL ? zn_packet_decoder_take(&e->decoder, frames + at, n, packet)
                        : zn_packet_decoder_join(&e->decoder, frames, d, at, n, packet);
    rc = e->votes.n + GROUP_VOTES > e->votes.cap ? zn_engine_flush_votes(e, false, err) : 0;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_FLOWS);
    /* once per group, however small its portions are */
    if (rc == 0 && e->batched % GROUP == 0) {
        rc = evict_flows(e, err);
        if (rc == 0 && ZN_UNLIKELY(e->rewriter != NULL))
            rc = reserve_hold(e, err);
    }
    if (rc == 0 && ZN_UNLIKELY(e->rewriter != NULL))
        rc = take_and_delay(e, packet, packets, err);
    else if (rc == 0 && packets != 0)
        rc = take_packets(e, packet, packets, err);
    e->batched += (uint32_t)n;
    return rc;
}

int zn_engine_flush_batch(zn_engine *e, bool all, zn_error *err)
{
    int rc;
    e->batched = 0;
    zn_defrag_expire(e->decoder.defrag, e->clock.now_ns);
    rc = zn_engine_flush_votes(e, all, err);
    /* packet output has to know the closed flows first */
    if (rc == 0 && !e->waiting)
        zn_engine_emit(e, e->clock.now_ns, false);
    return rc;
}

int zn_engine_take_frames(zn_engine *e, const zn_frame *frames, zn_decoded *d, size_t at, size_t n,
                          zn_error *err)
{
    int rc = 0;
    e->ended = e->ended && n == 0; /* frames after the end of input need another end */
    for (size_t end = at + n; at < end && rc == 0;) {
        size_t group = GROUP - e->batched % GROUP;
        if (group > end - at)
            group = end - at;
        rc = feed_group(e, frames, d, at, group, err);
        if (rc == 0 && e->batched == ZN_ENGINE_BATCH)
            rc = zn_engine_flush_batch(e, false, err);
        at += group;
    }
    return rc;
}

size_t zn_engine_until_window(zn_engine *e, const zn_frame *frames, size_t n)
{
    size_t before = 0;
    if (n > ZN_ENGINE_BATCH - e->batched)
        n = ZN_ENGINE_BATCH - e->batched;
    if (e->popularity.table == NULL)
        return n;
    while (before < n && !zn_popularity_reach(&e->popularity, frames[before].t_ns))
        before++;
    return before;
}

int zn_engine_take_pending(zn_engine *e, zn_error *err)
{
    const zn_frame *frames = e->pending.frames;
    size_t n = zn_engine_until_window(e, frames, e->pending.count);
    int rc;
    e->pending.frames += n;
    e->pending.count -= n;
    rc = zn_engine_take_frames(e, frames, NULL, 0, n, err);
    return rc == 0 && e->popularity.due ? zn_engine_flush_batch(e, true, err) : rc;
}

int zn_engine_end_batch(zn_engine *e, zn_error *err)
{
    return e->batched != 0 ? zn_engine_flush_batch(e, false, err) : 0;
}

int zn_engine_feed(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err)
{
    int rc = zn_engine_take_frames(e, frames, NULL, 0, n, err);
    return rc == 0 ? zn_engine_end_batch(e, err) : rc;
}

int zn_engine_idle(zn_engine *e, int64_t quiet_ns, zn_error *err)
{
    int64_t now_ns = e->clock.now_ns;
    if (!e->clock.started || quiet_ns <= 0 || quiet_ns > INT64_MAX - now_ns)
        return zn_engine_flush(e, err);
    now_ns += quiet_ns;
    e->decider->time_passed(e, now_ns);
    zn_defrag_expire(e->decoder.defrag, now_ns);
    zn_flow_expire(e->flows, now_ns);
    return zn_engine_flush_until(e, now_ns, now_ns / ZN_MINUTE_NS, err);
}

int zn_engine_finish(zn_engine *e, zn_error *err)
{
    int rc;
    if (!e->ended) {
        zn_popularity_next(&e->popularity);
        zn_defrag_clear(e->decoder.defrag);
        zn_flow_end_input(e->flows, e->clock.now_ns);
    }
    e->ended = true;
    rc = zn_engine_flush_until(e, INT64_MAX, INT64_MAX, err);
    if (rc >= 0)
        rc = e->decider->end(e, rc, err);
    if (rc == 0)
        zn_popularity_finish(&e->popularity);
    return rc;
}
