/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks memory for the heads of a capture's records before the walk over them comes there, and not
 * for the rest of them, which is most of a long record and rarely read.
 *
 * A record is known only from the one before it, and each is waited for. So several walks go at
 * once, each from where a record seems to begin. Nobody relies on their result: a place where
 * none begins costs time.
 */
#ifndef ZN_CAPTURE_PCAP_PREFETCH_H
#define ZN_CAPTURE_PCAP_PREFETCH_H

#include "util/cursor.h"

/* A pcap's record header: seconds, fraction, captured and original length. */
#define ZN_PCAP_RECORD_BYTES 16u
/* pcapng: what is before the bytes of an enhanced packet block's frame: type, length, interface,
 * time (upper half first), captured and original length. */
#define ZN_PCAPNG_ENHANCED 6u
#define ZN_PCAPNG_FRAME_AT 28u
#define ZN_PCAPNG_BLOCK_BYTES (ZN_PCAPNG_FRAME_AT + 4u) /* and its length again after them */
/* what is prefetched, little-endian. */
typedef enum zn_prefetch_kind { ZN_PREFETCH_PCAP, ZN_PREFETCH_PCAPNG } zn_prefetch_kind;
#define ZN_PCAP_PLACES 8 /* from which walks go at once */
/* The mean lengths of records for which it pays: shorter ones share cache lines, or are read to
 * their end; among longer ones the places take too long to find. */
#define ZN_PCAP_PREFETCH_LEAST 512u
#define ZN_PCAP_PREFETCH_MOST 12288u

/* On this processor it is faster than to ask for every cache line (bench/tried.md has what
 * was measured). */
bool zn_pcap_prefetch_pays(void);
/* Places where records seem to begin, in order: the first of `records` at its start, the first at
 * or after the start of each further eighth; returns how many, 0 where `records` is too
 * short. For zn_pcap_prefetch, and for tests. */
unsigned zn_pcap_places(zn_span records, zn_prefetch_kind kind, size_t place[ZN_PCAP_PLACES]);
/* Asks for the heads of the records (with headers of ZN_PCAP_RECORD_BYTES) or blocks in `records`,
 * of which one begins at the start; returns how many it came to, which is fewer than there are
 * where they are shorter than 128 bytes on average. */
size_t zn_pcap_prefetch(zn_span records, zn_prefetch_kind kind);

#endif
