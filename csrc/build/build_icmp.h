/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ICMP messages (RFC 792, RFC 4443) from the fields that proto/icmp read:
 *
 *   echo    Type, code, sequence number; the identifier that the caller gives. Data is zeros.
 *   error   Type, code, MTU or pointer; the gateway of a redirect that the caller gives. The quoted
 *           packet is plain IP with the addresses, TTL, DSCP, ECN and IPv4 identification that the
 *           caller gives, and with its lengths, protocol, DF and MF. After it come 8 bytes of its
 *           transport: the ports and the sequence number that the caller gives. All further bytes
 *           are zeros except for TCP's header length, if it is quoted. Extension objects (RFC 4884)
 *           and their length are zeros.
 *   other   Type and code.
 *
 * Checksums are computed over the built bytes. The checksums in a quote are computed as if its
 * missing bytes were zeros.
 */
#ifndef ZN_BUILD_BUILD_ICMP_H
#define ZN_BUILD_BUILD_ICMP_H

#include "build/build.h"
#include "proto/icmp.h"

/* Replacements of the fields of a quoted packet. A field that is left out is zero. */
typedef struct zn_build_icmp_quote {
    zn_addr src, dst;  /* of the message's IP version, or the quote stays zeros */
    uint8_t hops;      /* TTL or hop limit */
    uint8_t service;   /* DSCP and ECN */
    uint16_t id;       /* IPv4: identification */
    uint16_t port[2];  /* TCP, UDP */
    uint32_t sequence; /* TCP */
    uint16_t echo_id;  /* identifier of an echo, whose sequence number stays */
} zn_build_icmp_quote;

typedef struct zn_build_icmp_choice {
    zn_addr src, dst; /* addresses of the message's IP packet, for the checksum of ICMPv6 */
    uint32_t wire;    /* bytes of the message in that packet; zeros behind the n built bytes */
    uint16_t echo_id; /* echo */
    zn_addr gateway;  /* gateway of a redirect; zeros if it is not of IPv4 */
    const zn_build_icmp_quote *quote; /* NULL: the quote stays zeros */
} zn_build_icmp_choice;

/* Builds the message that zn_icmp_parse read from n bytes into out[n], which is all zeros. */
void zn_build_icmp(const zn_icmp *message, size_t n, const zn_build_icmp_choice *choice,
                   uint8_t *out);

#endif
