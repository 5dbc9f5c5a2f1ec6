/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be the start of a record is told as cheaply as possible: by one byte of its time, then
 * by the rest of its header. The walks go by the lengths that headers say, a step of each in turn,
 * so that none is waited for. What they read may be anything: they stay in `records`, and there is
 * a most of steps.
 */
#include "io/pcap_scout.h"

#include "io/frame.h"

#define HEAD_BYTES 112u             /* up to the first bytes of what TCP over IPv6 carries */
#define LATER_S 3600u               /* than the first record another may be */
#define SEARCHED ((size_t)16 << 10) /* bytes behind a place in which a record must begin */
#define TRIES 96 /* of what looks like the third byte of a time; noise has one in 256 */
/* Mean length of the shortest records walked over: a payload could be nothing but headers. */
#define SHORTEST 128u

bool zn_pcap_scout_pays(void)
{
#ifdef ZN_DEBUG
    return true; /* tests see it on every processor */
#elif defined __x86_64__
    /* Measured on Sapphire Rapids, and assumed of Intel's others; on AMD's Zen 4 an earlier form
     * was slower. */
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}

/* A head has up to three cache lines. */
static inline void fetch_head(zn_span records, size_t at)
{
    zn_span head = zn_span_part(records, at, at + HEAD_BYTES);
    ZN_PREFETCH(head.p);
    ZN_PREFETCH(head.p + ZN_CACHE_LINE);
    ZN_PREFETCH(head.p + HEAD_BYTES - 1);
}

/* How much of `records` can hold the start of one with all its head. */
static size_t room_for_starts(zn_span records)
{
    return records.n < HEAD_BYTES ? 0 : records.n - HEAD_BYTES;
}

static bool may_begin(zn_span records, size_t at, uint32_t seconds)
{
    zn_span header = zn_span_part(records, at, at + ZN_PCAP_RECORD_BYTES);
    uint32_t captured = zn_header_le32(header, 8), wire = zn_header_le32(header, 12);
    return zn_header_le32(header, 0) - seconds <= LATER_S &&
           zn_header_le32(header, 4) < ZN_NS_PER_S && captured != 0 && captured <= wire &&
           wire <= ZN_FRAME_MAX;
}

/* Where a record seems to begin in [from, to), in whose time the third byte is as in `seconds`; or
 * `to`. */
static size_t find(zn_span records, size_t from, size_t to, uint32_t seconds)
{
    for (unsigned tries = 0; from < to && tries < TRIES; tries++) {
        from += zn_span_find(zn_span_part(records, from + 2, to + 2), (uint8_t)(seconds >> 16));
        if (from < to && may_begin(records, from, seconds))
            return from;
        from++;
    }
    return to;
}

unsigned zn_pcap_places(zn_span records, size_t place[ZN_PCAP_PLACES])
{
    size_t part = room_for_starts(records) / ZN_PCAP_PLACES;
    size_t searched = part < SEARCHED ? part : SEARCHED;
    uint32_t seconds;
    unsigned n = 1;
    if (part == 0)
        return 0;
    seconds = zn_header_le32(zn_span_first(records, ZN_PCAP_RECORD_BYTES), 0);
    place[0] = 0;
    for (size_t i = 1; i < ZN_PCAP_PLACES; i++) {
        size_t at = find(records, i * part, i * part + searched, seconds);
        if (at != i * part + searched)
            place[n++] = at;
    }
    return n;
}

/* One step of the walk at *at: true when it came to another record before `to`. It ends where no
 * record can be. */
static inline bool step(zn_span records, size_t *at, size_t to)
{
    uint32_t captured;
    if (*at >= to)
        return false;
    captured = zn_header_le32(zn_span_part(records, *at, *at + ZN_PCAP_RECORD_BYTES), 8);
    *at = captured <= ZN_FRAME_MAX ? *at + ZN_PCAP_RECORD_BYTES + captured : to;
    if (*at >= to)
        return false;
    fetch_head(records, *at);
    return true;
}

size_t zn_pcap_scout(zn_span records)
{
    size_t at[ZN_PCAP_PLACES], to[ZN_PCAP_PLACES];
    unsigned places = zn_pcap_places(records, at), walking = places;
    size_t found = 0, most = records.n / SHORTEST + ZN_PCAP_PLACES;
    for (unsigned i = 0; i < places; i++) {
        fetch_head(records, at[i]);
        to[i] = i + 1 < places ? at[i + 1] : room_for_starts(records);
    }
    while (walking != 0 && found < most) {
        found += walking;
        walking = 0;
        for (unsigned i = 0; i < places; i++)
            walking += step(records, &at[i], to[i]);
    }
    return found;
}
