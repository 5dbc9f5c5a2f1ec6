/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetches the heads of a capture's records before the reader comes to them: each record's header
 * and the frame's first bytes. The rest, most of a long record, is rarely read.
 *
 * A record is found only by the length of the one before it, and each of these reads waits for
 * memory. So several walks go at once, each from a place where a record seems to begin. Nothing
 * relies on their result: a place where none begins costs time only.
 */
#ifndef ZN_CAPTURE_PCAP_PREFETCH_H
#define ZN_CAPTURE_PCAP_PREFETCH_H

#include "util/cursor.h"

/* A pcap's record header: seconds, fraction, captured and original length. */
#define ZN_PCAP_RECORD_BYTES 16u
/* pcapng: type of an enhanced packet block, and number of bytes before its frame, which are type,
 * length, interface, time (upper half first), captured and original length. */
#define ZN_PCAPNG_ENHANCED 6u
#define ZN_PCAPNG_FRAME_AT 28u
#define ZN_PCAPNG_BLOCK_BYTES (ZN_PCAPNG_FRAME_AT + 4u) /* with the length again at the end */
/* The records that are prefetched, in little-endian captures only. */
typedef enum zn_prefetch_kind { ZN_PREFETCH_PCAP, ZN_PREFETCH_PCAPNG } zn_prefetch_kind;
#define ZN_PCAP_PLACES 8 /* places from which walks go at once */
/* The mean lengths of records for which this pays: shorter ones share cache lines, or are read to
 * their end; among longer ones the places take too long to find. */
#define ZN_PCAP_PREFETCH_LEAST 512u
#define ZN_PCAP_PREFETCH_MOST 12288u

/* Returns whether this is faster, on this processor, than to prefetch every cache line
 * (bench/tried.md has the measurements). */
bool zn_pcap_prefetch_pays(void);
/* Finds places where records seem to begin, in order: the start of `records`, where one does, and
 * the first place at or after each further eighth of it. Returns how many, 0 where `records` is too
 * short. For zn_pcap_prefetch, and for tests. */
unsigned zn_pcap_places(zn_span records, zn_prefetch_kind kind, size_t place[ZN_PCAP_PLACES]);
/* Prefetches the heads of the records (with headers of ZN_PCAP_RECORD_BYTES) or blocks in
 * `records`, of which one begins at the start. Returns the number of heads. Some records are left
 * out if they are shorter than 128 bytes on average. */
size_t zn_pcap_prefetch(zn_span records, zn_prefetch_kind kind);

#endif
