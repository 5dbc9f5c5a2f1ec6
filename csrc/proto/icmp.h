/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ICMP (RFC 792, RFC 4443): echoes, and errors with the start of the packet that caused them.
 *
 * A quoted packet is read when it is plain: IPv4 without options (RFC 791), IPv6 without extension
 * headers (RFC 8200), no fragment but the first of IPv4, no ICMP but an echo, and at least the 8
 * bytes of its transport that every error quotes. Extension objects (RFC 4884) after it are not
 * read.
 */
#ifndef ZN_PROTO_ICMP_H
#define ZN_PROTO_ICMP_H

#include "util/addr.h"
#include "util/cursor.h"

/* IP's numbers of them. */
#define ZN_ICMP_V4_PROTOCOL 1
#define ZN_ICMP_V6_PROTOCOL 58

#define ZN_ICMP_HEADER_BYTES 8 /* of echoes and errors; their data or quote follows */
#define ZN_ICMP_QUOTED_BYTES 8 /* of a quoted packet's transport: what is read */
#define ZN_ICMP_V4_HEADER 20   /* of a quoted packet that is plain */
#define ZN_ICMP_V6_HEADER 40

typedef enum zn_icmp_kind {
    ZN_ICMP_OTHER, /* only its type and code are known */
    ZN_ICMP_ECHO,  /* a request or a reply */
    ZN_ICMP_ERROR  /* unreachable, packet too big, redirect (IPv4), time exceeded, parameter
                      problem */
} zn_icmp_kind;

/* Kind of packet that an error quotes. */
typedef enum zn_icmp_quoted {
    ZN_ICMP_QUOTED_NOTHING, /* nothing that is read */
    ZN_ICMP_QUOTED_IP,      /* a packet of another protocol */
    ZN_ICMP_QUOTED_TCP,
    ZN_ICMP_QUOTED_UDP,
    ZN_ICMP_QUOTED_ECHO /* of the same ICMP */
} zn_icmp_quoted;

/* The quoted packet, of the IP version of the message's own. */
typedef struct zn_icmp_quote {
    zn_icmp_quoted kind;
    zn_addr src, dst;
    size_t bytes;        /* of the quoted packet, in the message */
    uint16_t length;     /* of the whole packet after its IP header, as that says; at least 8 */
    uint8_t protocol;    /* IANA's number */
    uint8_t hops;        /* TTL or hop limit */
    uint8_t service;     /* DSCP and ECN */
    uint16_t id;         /* IPv4: identification */
    bool dont_fragment;  /* IPv4 */
    bool more_fragments; /* IPv4: the first fragment was quoted */
    uint16_t port[2];    /* TCP, UDP: source and destination */
    uint32_t sequence;   /* TCP: sequence number; echo: 16 bits of sequence number */
    uint8_t echo_type;   /* echo: request or reply */
    uint16_t echo_id;    /* echo: identifier */
} zn_icmp_quote;

typedef struct zn_icmp {
    zn_icmp_kind kind;
    bool v6;
    uint8_t type, code;
    uint16_t id, sequence; /* echo */
    zn_addr gateway;       /* redirect; else unset */
    uint32_t mtu;          /* packet too big; IPv4: fragmentation needed; else 0 */
    uint32_t pointer;      /* parameter problem; else 0 */
    zn_icmp_quote quote;   /* error; all zeros when nothing is quoted that is read */
} zn_icmp;

/* Reads a message, or the captured part of it. Returns ZN_DONE, or ZN_NEED_MORE for fewer than four
 * bytes; *out is then all zeros. Echoes and errors without a whole header are ZN_ICMP_OTHER. */
zn_parse zn_icmp_parse(zn_span message, bool v6, zn_icmp *out);

#endif
