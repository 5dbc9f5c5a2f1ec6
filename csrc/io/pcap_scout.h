/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks memory for the heads of a pcap's records before the walk over them comes there, and not for the rest
 * of them, which is most of a long record and rarely read.
 *
 * A record is found only behind the one before it, and each is waited for. So several walks go at once, each
 * from where a record seems to begin. Nobody relies on what they find: a place where none begins costs time.
 */
#ifndef ZN_IO_PCAP_SCOUT_H
#define ZN_IO_PCAP_SCOUT_H

#include "base/cursor.h"

#define ZN_PCAP_RECORD_BYTES                                                                       \
    16u /* a record's header: seconds, fraction, captured and original length */
/* How much is scouted at a time: few places need to be looked for, and the heads stay in the second-level cache. */
#define ZN_PCAP_SCOUTED ((size_t)520 << 10)
#define ZN_PCAP_PLACES 8 /* from which walks go at once */
/* The mean length of records from which it pays: shorter ones share cache lines, or are read to their end. */
#define ZN_PCAP_SCOUT_MEAN 512u

/* On this processor it is faster than to ask for every cache line (docs/performance.md has what was measured). */
bool zn_pcap_scout_pays(void);
/* Where records seem to begin, in order: the first of `records` at its start, and one behind each further part;
 * returns how many places were found, 0 where `records` is too short to be worth it. */
unsigned zn_pcap_places(zn_span records, size_t place[ZN_PCAP_PLACES]);
/* Asks for the heads of the little-endian records with headers of ZN_PCAP_RECORD_BYTES in `records`, of which one
 * begins at the start; returns how many it came to. */
size_t zn_pcap_scout(zn_span records);

#endif
