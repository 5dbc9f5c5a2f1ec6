/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts datagrams together from their fragments, in a bounded table of those that are not whole yet.
 *
 * Fragments come in any order and may repeat. Fragments that contradict each other spoil their
 * datagram, and so do overlaps in a datagram that allows none (RFC 5722): which of the two a
 * receiver would believe cannot be told. A spoilt datagram swallows what else comes of it. Every
 * fragment ends in a datagram that is whole, or in a counter.
 *
 * Bounds: ZN_DEFRAG_DATAGRAMS at a time, of ZN_DEFRAG_BYTES each, in ZN_DEFRAG_RANGES separate
 * ranges, for ZN_DEFRAG_TIMEOUT_NS of packet time. A full table evicts the oldest.
 */
#ifndef ZN_PACKET_DEFRAG_H
#define ZN_PACKET_DEFRAG_H

#include "util/cursor.h"
#include "util/hash.h"
#include "util/stats.h"

#define ZN_DEFRAG_DATAGRAMS 1024u
#define ZN_DEFRAG_BYTES 65536u
#define ZN_DEFRAG_RANGES 16u
#define ZN_DEFRAG_TIMEOUT_NS (30 * ZN_NS_PER_S)

/* A part of a datagram; `bytes` is copied. */
typedef struct zn_datagram_fragment {
    zn_id datagram; /* keyed identity of the datagram: it chooses a bucket */
    int64_t t_ns;
    uint32_t offset; /* of the bytes in the datagram */
    zn_span bytes;
    uint32_t kind;        /* the caller's, kept of the fragment at offset 0 */
    bool last;            /* the datagram ends with it */
    bool may_not_overlap; /* in part: a fragment that repeats known bytes is a duplicate */
} zn_datagram_fragment;

/* A whole datagram. `bytes` borrows until zn_defrag_release. */
typedef struct zn_datagram {
    zn_span bytes;
    uint32_t kind;
} zn_datagram;

typedef struct zn_defrag zn_defrag;

/* Counts into *stats, which must outlive the table. 0, or a negative zn_err with *err filled. */
int zn_defrag_open(zn_defrag **out, zn_stats *stats, zn_error *err);
void zn_defrag_close(zn_defrag *d);

/* Takes a fragment; true when it makes its datagram whole, which is then in *out. */
bool zn_defrag_add(zn_defrag *d, const zn_datagram_fragment *fragment, zn_datagram *out);
/* The datagrams handed out are no longer looked at: their memory is used again. */
void zn_defrag_release(zn_defrag *d);
/* Gives up on what is older than the timeout at now_ns. */
void zn_defrag_expire(zn_defrag *d, int64_t now_ns);
/* Gives up on everything. */
void zn_defrag_clear(zn_defrag *d);

/* Bytes of memory touched. */
size_t zn_defrag_memory(const zn_defrag *d);
/* Checks every invariant; NULL, or what is broken. Slow: for tests. */
const char *zn_defrag_check(const zn_defrag *d);

#endif
