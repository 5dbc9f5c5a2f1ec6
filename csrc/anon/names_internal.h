/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by names.c (entries, votes, evidence), names_tcp.c and names_udp.c. */
#ifndef ZN_ANON_NAMES_INTERNAL_H
#define ZN_ANON_NAMES_INTERNAL_H

#include "anon/names.h"
#include "proto/dns.h"

/* The flow a packet belongs to, and what is known of it. */
typedef struct zn_sighting {
    zn_names *names;
    uint32_t flow;
    zn_flow *f;
    const zn_packet *p;
} zn_sighting;

/* A parser found `raw` (as sent): normalises it and votes, or waits for evidence. Returns the
 * entry, or 0 when nothing is to be kept (repeated, no name, no room). */
uint32_t zn_names_found(const zn_sighting *s, zn_name_source source, zn_span raw);
/* A name of this source was there, but must not be used: counted as `why`. */
void zn_names_refused(zn_names *names, zn_flow *f, zn_name_source source, zn_stat why);
/* The evidence for one waiting name is complete with this packet. */
void zn_names_confirmed(const zn_sighting *s, uint32_t entry);
/* The flow's user is proven real by this packet: votes for the server's address. */
void zn_names_addr(const zn_sighting *s);

void zn_names_tcp(const zn_sighting *s);
/* The flow closed: a hello or request head that never became whole. */
void zn_names_tcp_closed(zn_names *names, zn_flow *f);
void zn_names_udp(const zn_sighting *s);

#endif
