/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch of frames goes through in groups of GROUP, each in two passes, so that the memory reads
 * of different packets overlap: decode and prefetch the flow's bucket; prefetch the flow, and
 * PROBE_AHEAD packets later update it and look for names. After the batch the votes are decided and
 * closed flows written.
 */
#include "engine/packet_loop.h"

#include "analyzer/watch.h"
#include "engine/flush.h"
#include "flow/flow_fast.h"

#define GROUP ZN_DECODER_GROUP
#define GROUP_VOTES                                                                                \
    (GROUP * (ZN_NAMES_PER_FLOW + 4)) /* most that the packets of a group can cast */
#define PROBE_AHEAD 8                 /* packets from the look at a bucket to the flow's turn */
#define EVICT_PART 64                 /* of a full flow table that is emptied at a time */

_Static_assert(ZN_ENGINE_BATCH % GROUP == 0, "a batch ends with a group");
_Static_assert(ZN_FLOW_SPARE >= GROUP, "a group's flows always find room");
_Static_assert(ZN_ENGINE_BATCH_VOTES > GROUP_VOTES, "a group's votes always find room");

/* A packet at t_ns begins another period: what came before belongs to the last one. */
static int see_period(zn_engine *e, int64_t t_ns, zn_error *err)
{
    int64_t period = t_ns / e->split_ns;
    int rc = 0;
    if (period == e->period)
        return 0;
    if (e->period >= 0)
        rc = zn_engine_flush_votes(e, true, err);
    if (e->writes_async)
        zn_async_writer_wait(e->writer);
    e->period = period;
    return rc != 0 ? rc : zn_outputs_mark(&e->outputs, period * e->split_ns, err);
}

/* Sets client and user of the flow that p opened, and its pseudonyms while its epoch's key is
 * there. */
static int place_flow(zn_engine *e, uint32_t flow, const zn_packet *p, zn_error *err)
{
    zn_flow *f = zn_flow_at(e->flows, flow);
    bool either = f->midstream || zn_analyzers_may_be_answer(p);
    zn_addr known_as[2], pseudonym;
    int64_t epoch;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_CRYPTO);
    if (f->midstream)
        zn_roles_guess_client(&e->roles, f, p);
    zn_roles_place(&e->roles, e->flows, f, p, known_as);
    e->stats.n[ZN_STAT_FLOWS_INTERNAL_BOTH] += f->internal[0] && f->internal[1];
    for (unsigned i = 0; i < 2; i++) {
        if (i != f->client && !f->internal[i] && !either)
            continue;
        if (zn_keys_pseudonym(e->keys, f->first_ns, &known_as[i], &pseudonym, &epoch) != 0)
            return zn_fail(err, ZN_ERR_CRYPTO, 0,
                           "the crypto library could not encrypt an address");
        if (!zn_addr_is_special(&known_as[i])) /* whoever turns out to be the client */
            zn_flow_set_pseudonym(e->flows, f, i, &pseudonym);
        zn_flow_set_epoch(e->flows, f, epoch, e->roles.rotate_ns);
    }
    if (!zn_votes_cast(&e->votes, ZN_VOTE_CLIENT, f->first_ns, flow, 0))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "a batch held more votes than there is room for");
    return 0;
}

/* Moves packet time; after a rebase nothing of before may meet what comes. */
static int see_time(zn_engine *e, int64_t t_ns, zn_error *err)
{
    int rc;
    switch (zn_clock_see(&e->clock, t_ns)) {
    case ZN_CLOCK_ON_TIME:
        break;
    case ZN_CLOCK_LATE:
        e->stats.n[ZN_STAT_CLOCK_LATE]++;
        break;
    case ZN_CLOCK_REJECTED:
        e->stats.n[ZN_STAT_CLOCK_REJECTED]++;
        break;
    case ZN_CLOCK_REBASED:
        e->stats.n[ZN_STAT_CLOCK_REBASED]++;
        zn_flow_rebase(e->flows, t_ns);
        zn_defrag_clear(e->decoder.defrag);
        rc = zn_engine_flush_votes(e, true, err);
        if (rc == 0)
            rc = zn_keys_rebase(e->keys, t_ns, err);
        zn_gate_rebase(&e->gate, zn_keys_epoch(e->keys, t_ns));
        zn_dn_hunter_clear(&e->dn_hunter);
        return rc;
    }
    return 0;
}

/* The analyzers' turn at a packet. */
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
    if (ZN_UNLIKELY(f->client != client)) { /* who looked up whom is another question now */
        zn_dn_hunter_forget(&e->dn_hunter, f);
        zn_dn_hunter_opened(&e->dn_hunter, f);
    }
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_FLOWS);
}

#ifdef ZN_DEBUG
/* Looks into a packet that is not wanted, which must change nothing but what zn_watch_skip does. */
static void skip(zn_engine *e, uint32_t flow, zn_flow *f, zn_flow_layer7 *l, const zn_packet *p)
{
    const zn_flow before = *f;
    const zn_flow_layer7 before7 = l != NULL ? *l : (zn_flow_layer7){0};
    const zn_stats stats = e->stats;
    size_t votes = e->votes.n;
    zn_flow looked;
    zn_flow_layer7 looked7;
    look(e, flow, f, p);
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

/* `guess`: what zn_flow_probe gave for the packet. Not in line: the loop of those that take the
 * short way (take_packets) has more registers without it. */
__attribute__((noinline)) static int take_packet(zn_engine *e, const zn_packet *p, uint32_t guess,
                                                 zn_error *err)
{
    bool opened = false;
    uint32_t flow = guess;
    zn_flow *f = NULL;
    zn_flow_layer7 *l = NULL;
    int rc = see_time(e, p->t_ns, err);
    if (rc == 0 && e->split_ns != 0)
        rc = see_period(e, e->clock.now_ns, err);
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
    }
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

/* Has the flow table grow, or brings it back below its cap, and a little more, so that it is not
 * done each time. The records of what is closed come first: it then only lingers, and goes before
 * what is open. */
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
    if (rc != 0)
        return rc;
    if (zn_flow_live(e->flows) > e->max_flows)
        zn_flow_evict(e->flows, zn_flow_live(e->flows) - e->max_flows + more);
    return zn_engine_flush_votes(e, true, err);
}

/* The packets' times change nothing but the clock: none is older than the one before it, and no
 * second of the flow table's nor a period ends before the last. */
static bool time_only_passes(const zn_engine *e, zn_packet *const *packet, size_t n)
{
    int64_t last_ns = packet[n - 1]->t_ns;
    return e->decoder.in_order && zn_clock_expects(&e->clock, packet[0]->t_ns) &&
           !zn_flow_comes_late(e->flows, packet[0]->t_ns) &&
           !zn_flow_expire_due(e->flows, last_ns) &&
           (e->split_ns == 0 || last_ns / e->split_ns == e->period);
}

/* take_unwanted of a flow in which something is still waited for. Not in line, as take_packet. */
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

/* A packet that is not wanted, of a side that is counted the shortest way, where nothing but time
 * passes: false, and nothing is done, of others. */
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

/* The look at a packet's flow. */
static inline uint32_t probe(const zn_engine *e, const zn_flow_places *places, const zn_packet *p)
{
    uint32_t guess = zn_flow_probe(places, p);
    if (ZN_UNLIKELY(guess == 0))
        zn_dn_hunter_prefetch(&e->dn_hunter, p);
    return guess;
}

/* The flow of each packet arrives while others before it have their turn. Not all are asked for at
 * once: of more lines than memory has under way at a time, many are not fetched at all. Where only
 * time passes, packets that nobody asked for take the short way, and the clock is set once. */
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
    if (rc == 0 && e->batched % GROUP == 0)
        rc = evict_flows(e, err);
    if (rc == 0 && packets != 0)
        rc = take_packets(e, packet, packets, err);
    e->batched += (uint32_t)n;
    return rc;
}

int zn_engine_flush_batch(zn_engine *e, bool all, zn_error *err)
{
    e->batched = 0;
    zn_defrag_expire(e->decoder.defrag, e->clock.now_ns);
    return zn_engine_flush_votes(e, all, err);
}

int zn_engine_take_frames(zn_engine *e, const zn_frame *frames, zn_decoded *d, size_t at, size_t n,
                          zn_error *err)
{
    int rc = 0;
    e->ended = e->ended && n == 0; /* what comes behind an end is to be ended, too */
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
    const zn_frame *frames = e->pending;
    size_t n = zn_engine_until_window(e, frames, e->pending_count);
    int rc;
    e->pending += n;
    e->pending_count -= n;
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
    if (e->clock.started && quiet_ns > 0 && quiet_ns <= INT64_MAX - e->clock.now_ns) {
        zn_defrag_expire(e->decoder.defrag, e->clock.now_ns + quiet_ns);
        zn_flow_expire(e->flows, e->clock.now_ns + quiet_ns);
    }
    return zn_engine_flush(e, err);
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
    rc = zn_engine_flush(e, err);
    if (rc == 0)
        zn_popularity_finish(&e->popularity);
    return rc;
}
