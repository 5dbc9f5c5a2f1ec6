/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reassembles datagrams from their fragments, in a bounded table of incomplete datagrams.
 *
 * Fragments come in any order and may repeat. Fragments that contradict each other spoil their
 * datagram, because it is unknown which copy a receiver would use. Overlaps spoil a datagram of
 * IPv6 (RFC 5722). Later fragments of a spoilt datagram are dropped. Every fragment ends in a whole
 * datagram, or in a counter.
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

/* A fragment, as the table sees it. zn_defrag_add copies `bytes`. */
typedef struct zn_datagram_fragment {
    zn_id datagram; /* keyed hash that identifies the datagram and chooses its bucket */
    int64_t t_ns;
    uint32_t offset; /* of the bytes in the datagram */
    zn_span bytes;
    uint32_t kind;        /* a number of the caller's, taken over from the fragment at offset 0 */
    bool last;            /* the datagram ends with it */
    bool may_not_overlap; /* partial overlaps spoil it; a repetition is a duplicate */
} zn_datagram_fragment;

/* Result of adding a fragment to its datagram. */
typedef struct zn_datagram {
    /* Its place in the table, 1 .. ZN_DEFRAG_DATAGRAMS, which no other datagram has from its first
     * fragment to its last; 0: there was no room for the fragment. */
    uint32_t entry;
    uint32_t fragments; /* that came of it so far, with this one */
    /* Once it is whole: */
    zn_span bytes; /* borrowed until zn_defrag_release */
    uint32_t kind;
} zn_datagram;

typedef struct zn_defrag zn_defrag;

/* Opens a table that counts into *stats, which must outlive it. Returns 0, or a negative zn_err
 * with *err filled. */
int zn_defrag_open(zn_defrag **out, zn_stats *stats, zn_error *err);
/* Frees the table. NULL is fine. */
void zn_defrag_close(zn_defrag *d);

/* Takes a fragment. Returns true when it completes its datagram, which *out describes. */
bool zn_defrag_add(zn_defrag *d, const zn_datagram_fragment *fragment, zn_datagram *out);
/* Frees the datagrams that zn_defrag_add returned so far. */
void zn_defrag_release(zn_defrag *d);
/* Drops the datagrams whose first fragment came more than ZN_DEFRAG_TIMEOUT_NS before now_ns. */
void zn_defrag_expire(zn_defrag *d, int64_t now_ns);
/* Drops all incomplete datagrams. */
void zn_defrag_clear(zn_defrag *d);

/* Returns the bytes of memory that the table has touched. */
size_t zn_defrag_memory(const zn_defrag *d);
/* Checks every invariant. Returns NULL, or a text that names the broken invariant. Slow; for
 * tests. */
const char *zn_defrag_check(const zn_defrag *d);

#endif
