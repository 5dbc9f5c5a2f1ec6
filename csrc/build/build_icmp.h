/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ICMP messages (RFC 792, RFC 4443), from what proto/icmp read:
 *
 *   echo    Type, code, sequence number; the identifier that the caller gives. Data is zeros.
 *   error   Type, code, MTU or pointer; a redirect's gateway that the caller gives. The quoted
 *           packet is plain IP with the addresses, TTL, DSCP, ECN and IPv4 identification that the
 *           caller gives, and lengths, protocol, DF and MF as they were; after it, 8 bytes of its
 *           transport: the ports and the sequence number that the caller gives. All further bytes
 *           are zeros but TCP's header length, where it is quoted. Extension objects (RFC 4884) and
 *           their length are zeros.
 *   other   Type and code.
 *
 * Checksums are those of what is built, in a quote as if the bytes that it lacks were zeros.
 */
#ifndef ZN_BUILD_BUILD_ICMP_H
#define ZN_BUILD_BUILD_ICMP_H

#include "build/build.h"
#include "proto/icmp.h"

/* What stands for a quoted packet's fields; each that is left out is zero. */
typedef struct zn_build_icmp_quote {
    zn_addr src, dst;  /* of the message's IP version: else the quote stays zeros */
    uint8_t hops;      /* TTL or hop limit */
    uint8_t service;   /* DSCP and ECN */
    uint16_t id;       /* IPv4: identification */
    uint16_t port[2];  /* TCP, UDP */
    uint32_t sequence; /* TCP */
    uint16_t echo_id;  /* echo; its sequence number stays */
} zn_build_icmp_quote;

typedef struct zn_build_icmp_choice {
    zn_addr src, dst; /* of the IP packet that the message leaves in, for ICMPv6's checksum */
    uint32_t wire;    /* bytes of the message there, for the same; those after the n that are built
                         are zeros */
    uint16_t echo_id; /* echo */
    zn_addr gateway;  /* redirect; zeros where it is not of IPv4 */
    const zn_build_icmp_quote *quote; /* NULL: the quote stays zeros */
} zn_build_icmp_choice;

/* Builds the message that zn_icmp_parse read out of n bytes into out[n], which is all zeros. */
void zn_build_icmp(const zn_icmp *message, size_t n, const zn_build_icmp_choice *choice,
                   uint8_t *out);

#endif
