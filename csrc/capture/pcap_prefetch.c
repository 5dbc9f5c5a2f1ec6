/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises the start of a record as cheaply as possible: by one byte of its time, then by the
 * rest of its header. The walks follow the lengths in headers, one step of each in turn, so that
 * they overlap their waits for memory. The bytes that they read may be anything: walks stay in
 * `records`, and their number of steps is limited. `kind` is a constant in each inlined copy.
 */
#include "capture/pcap_prefetch.h"

#include "zanon/zanon.h"

#define HEADERS_MAX 96u             /* up to the first bytes of TCP's payload over IPv6 */
#define LATER_S 3600u               /* seconds by which a record may be later than the first */
#define LATER_HALVES 1u             /* the same, in the upper half of a pcapng's time */
#define OPTIONS_MOST 512u           /* bytes of options in a block */
#define SEARCHED ((size_t)16 << 10) /* bytes after a place in which a record must begin */
#define TRIES 96 /* tries at bytes that equal that byte of the time: 1 of 256 in noise does */
/* The shortest mean length of records that is walked over, as a payload could consist of headers
 * alone. */
#define SHORTEST 128u

bool zn_pcap_prefetch_pays(void)
{
#ifdef ZN_DEBUG
    return true; /* so that tests cover it on every processor */
#elif defined __x86_64__
    /* Measured on Sapphire Rapids, and assumed of Intel's others; on AMD's Zen 4 an earlier form
     * was slower. */
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}

static inline uint32_t header_bytes(zn_prefetch_kind kind)
{
    return kind == ZN_PREFETCH_PCAP ? ZN_PCAP_RECORD_BYTES : ZN_PCAPNG_FRAME_AT;
}

/* Returns the length of a head, which spans up to three cache lines. */
static inline uint32_t head_bytes(zn_prefetch_kind kind)
{
    return header_bytes(kind) + HEADERS_MAX;
}

static inline void fetch_headers(zn_span records, zn_prefetch_kind kind, size_t at)
{
    zn_span head = zn_span_part(records, at, at + head_bytes(kind));
    ZN_PREFETCH(head.p);
    ZN_PREFETCH(head.p + ZN_CACHE_LINE);
    ZN_PREFETCH(head.p + head.n - 1);
}

/* Returns how many bytes of `records` a record can start in with all its head inside. */
static inline size_t starts_fit(zn_span records, zn_prefetch_kind kind)
{
    return records.n < head_bytes(kind) ? 0 : records.n - head_bytes(kind);
}

/* Returns the part of a time that neighbouring records share, or nearly. */
static inline uint32_t time_in(zn_span header, zn_prefetch_kind kind)
{
    return zn_header_le32(header, kind == ZN_PREFETCH_PCAP ? 0 : 12);
}

/* Return the byte of that part by which records are found, and its place in a header. */
static inline uint8_t signature_of(uint32_t time, zn_prefetch_kind kind)
{
    return (uint8_t)(kind == ZN_PREFETCH_PCAP ? time >> 16 : time);
}

static inline size_t signature_at(zn_prefetch_kind kind)
{
    return kind == ZN_PREFETCH_PCAP ? 2 : 12;
}

static inline bool may_begin_record(zn_span header, uint32_t seconds)
{
    return zn_header_le32(header, 0) - seconds <= LATER_S &&
           zn_header_le32(header, 4) < ZN_NS_PER_S;
}

static inline bool may_begin_block(zn_span header, uint32_t time, uint32_t captured)
{
    uint32_t length = zn_header_le32(header, 4);
    return zn_header_le32(header, 0) == ZN_PCAPNG_ENHANCED && length % 4 == 0 &&
           time_in(header, ZN_PREFETCH_PCAPNG) - time <= LATER_HALVES &&
           length - captured - ZN_PCAPNG_BLOCK_BYTES <= OPTIONS_MOST;
}

static inline bool may_begin(zn_span records, zn_prefetch_kind kind, size_t at, uint32_t time)
{
    zn_span header = zn_span_part(records, at, at + header_bytes(kind));
    uint32_t captured = zn_header_le32(header, header.n - 8);
    uint32_t wire = zn_header_le32(header, header.n - 4);
    if (captured == 0 || captured > wire || wire > ZN_FRAME_MAX)
        return false;
    return kind == ZN_PREFETCH_PCAP ? may_begin_record(header, time)
                                    : may_begin_block(header, time, captured);
}

/* Returns the first place in [from, to) where a record of about that time seems to begin, or
 * `to`. */
static inline size_t find(zn_span records, zn_prefetch_kind kind, size_t from, size_t to,
                          uint32_t time)
{
    size_t signature = signature_at(kind);
    for (unsigned tries = 0; from < to && tries < TRIES; tries++) {
        zn_span searched = zn_span_part(records, from + signature, to + signature);
        from += zn_span_find(searched, signature_of(time, kind));
        if (from < to && may_begin(records, kind, from, time))
            return from;
        from++;
    }
    return to;
}

static inline unsigned find_places(zn_span records, zn_prefetch_kind kind,
                                   size_t place[ZN_PCAP_PLACES])
{
    size_t part = starts_fit(records, kind) / ZN_PCAP_PLACES;
    size_t searched = part < SEARCHED ? part : SEARCHED;
    uint32_t time;
    unsigned n = 1;
    if (part == 0)
        return 0;
    time = time_in(zn_span_first(records, header_bytes(kind)), kind);
    place[0] = 0;
    for (size_t i = 1; i < ZN_PCAP_PLACES; i++) {
        size_t at = find(records, kind, i * part, i * part + searched, time);
        if (at != i * part + searched)
            place[n++] = at;
    }
    return n;
}

unsigned zn_pcap_places(zn_span records, zn_prefetch_kind kind, size_t place[ZN_PCAP_PLACES])
{
    return kind == ZN_PREFETCH_PCAP ? find_places(records, ZN_PREFETCH_PCAP, place)
                                    : find_places(records, ZN_PREFETCH_PCAPNG, place);
}

/* Returns the length that the record at `at` has by its header; 0: there cannot be one. */
static inline uint32_t length_at(zn_span records, zn_prefetch_kind kind, size_t at)
{
    zn_span header = zn_span_part(records, at, at + header_bytes(kind));
    if (kind == ZN_PREFETCH_PCAP) {
        uint32_t captured = zn_header_le32(header, 8);
        return captured <= ZN_FRAME_MAX ? ZN_PCAP_RECORD_BYTES + captured : 0;
    } else {
        uint32_t length = zn_header_le32(header, 4);
        return length <= ZN_FRAME_MAX + ZN_PCAPNG_BLOCK_BYTES + OPTIONS_MOST ? length & ~3u : 0;
    }
}

/* Takes one step of a walk, from *at. Returns true when it came to another record before `to`. A
 * walk ends where no record can be. */
static inline bool step(zn_span records, zn_prefetch_kind kind, size_t *at, size_t to)
{
    uint32_t length;
    if (*at >= to)
        return false;
    length = length_at(records, kind, *at);
    *at = length != 0 ? *at + length : to;
    if (*at >= to)
        return false;
    fetch_headers(records, kind, *at);
    return true;
}

static inline size_t walk(zn_span records, zn_prefetch_kind kind)
{
    size_t at[ZN_PCAP_PLACES], to[ZN_PCAP_PLACES];
    unsigned places = find_places(records, kind, at), walking = places;
    size_t seen = 0, most = records.n / SHORTEST + ZN_PCAP_PLACES;
    for (unsigned i = 0; i < places; i++) {
        fetch_headers(records, kind, at[i]);
        to[i] = i + 1 < places ? at[i + 1] : starts_fit(records, kind);
    }
    while (walking != 0 && seen < most) {
        seen += walking;
        walking = 0;
        for (unsigned i = 0; i < places; i++)
            walking += step(records, kind, &at[i], to[i]);
    }
    return seen;
}

size_t zn_pcap_prefetch(zn_span records, zn_prefetch_kind kind)
{
    return kind == ZN_PREFETCH_PCAP ? walk(records, ZN_PREFETCH_PCAP)
                                    : walk(records, ZN_PREFETCH_PCAPNG);
}
