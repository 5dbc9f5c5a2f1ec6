/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IP layer: IPv4 with options (RFC 791), IPv6 with extension headers (RFC 8200), AH in both
 * (RFC 4302), up to the header of whatever the IP packet carries, or up to a fragment's data.
 */
#ifndef ZN_PACKET_IP_H
#define ZN_PACKET_IP_H

#include "util/addr.h"
#include "util/cursor.h"
#include "util/stats.h"

/* One IP packet. `payload` borrows the frame. */
typedef struct zn_ip {
    zn_addr src, dst;
    zn_cursor payload;     /* captured bytes after the IP headers, without trailing padding */
    uint32_t payload_wire; /* its bytes on the wire, by the length in the IP header */
    uint32_t id;           /* IPv4 identification; IPv6: of the fragment's datagram, else 0 */
    uint16_t offset;       /* fragments: offset of the payload in the datagram's, bytes */
    uint16_t headers;      /* bytes of the headers before the payload; 0: they are gone */
    uint8_t protocol;      /* IANA number of the protocol with which the payload starts */
    uint8_t ttl;           /* IPv4 TTL or IPv6 hop limit */
    bool v6;
    bool fragment;      /* the payload is a part of a datagram's, at `offset` */
    bool more;          /* fragments: not the last */
    bool authenticated; /* there was an AH */
} zn_ip;

/*
 * Decodes the IP packet that starts at the cursor into *out; its version field says which IP it is.
 * `wire`: bytes from here to the end of the frame on the wire. A packet whose length field is 0
 * (left for the network card to fill in) ends there. Returns ZN_STAT_COUNT, or the
 * ZN_STAT_DROP_IP_* counter that says why *out is not valid.
 */
zn_stat zn_ip_decode(zn_cursor *frame, uint32_t wire, zn_ip *out);

/* Moves *ip past the extension headers at the start of a first fragment, which zn_ip_decode leaves
 * in place, or of a reassembled datagram. Returns a counter as zn_ip_decode does. */
zn_stat zn_ip_skip_extensions(zn_ip *ip);

#endif
