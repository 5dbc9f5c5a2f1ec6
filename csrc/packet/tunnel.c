/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Headers between Ethernet and IP, and between IP and IP: MPLS, GRE and its payloads, NSH. */
#include "packet/layers.h"

#define LABELS_MAX 16 /* MPLS; networks use up to about ten */

enum {
    PROTOCOL_IPIP = 4,
    PROTOCOL_TCP = 6,
    PROTOCOL_UDP = 17,
    PROTOCOL_IPV6 = 41,
    PROTOCOL_GRE = 47,
    PROTOCOL_ESP = 50,
    PROTOCOL_MINIMAL = 55,
    PROTOCOL_ETHERIP = 97,
    PROTOCOL_L2TP = 115,
    PROTOCOL_MPLS = 137,
    PROTOCOL_ETHERNET = 143
};

enum { GRE_CHECKSUM = 0x8000, GRE_ROUTING = 0x4000, GRE_KEY = 0x2000, GRE_SEQUENCE = 0x1000 };
enum { GRE_ACKNOWLEDGES = 0x0080, GRE_VERSION = 0x0007 };

zn_stat zn_layers_protocol(zn_layers *l, uint8_t protocol)
{
    switch (protocol) {
    case PROTOCOL_TCP:
        return zn_layers_go(l, ZN_HEADER_TRANSPORT);
    case PROTOCOL_UDP:
        return zn_layers_go(l, ZN_HEADER_UDP);
    case PROTOCOL_IPIP:
    case PROTOCOL_IPV6:
        zn_layers_saw(l, ZN_STAT_IN_IP_IN_IP);
        return zn_layers_go(l, ZN_HEADER_IP);
    case PROTOCOL_GRE:
        return zn_layers_go(l, ZN_HEADER_GRE);
    case PROTOCOL_MINIMAL:
        return zn_layers_go(l, ZN_HEADER_MINIMAL);
    case PROTOCOL_ETHERIP:
        return zn_layers_go(l, ZN_HEADER_ETHERIP);
    case PROTOCOL_MPLS:
        return zn_layers_go(l, ZN_HEADER_MPLS);
    case PROTOCOL_ETHERNET: /* RFC 8986 */
        zn_layers_saw(l, ZN_STAT_IN_ETHERIP);
        return zn_layers_go(l, ZN_HEADER_ETHERNET);
    case PROTOCOL_L2TP: /* version 3: nothing in it says how long its header is */
        return ZN_STAT_DROP_IP_ENCAPSULATED;
    case PROTOCOL_ESP:
        return ZN_STAT_DROP_ENCRYPTED;
    default:
        return ZN_STAT_DROP_NOT_TCP_UDP;
    }
}

/* Whether an Ethernet frame lies `skip` bytes behind the cursor, by its bytes 12 and 13. */
typedef enum likeness { NO_FRAME, FRAME_BY_LENGTH, FRAME_BY_TYPE } likeness;

static likeness ethernet_likeness(zn_cursor c, size_t skip)
{
    uint16_t type;
    zn_cursor_skip(&c, skip + 12);
    type = zn_cursor_be16(&c);
    if (!zn_cursor_ok(&c))
        return NO_FRAME;
    if (type <= 1500)
        return type != 0 && type <= zn_cursor_left(&c) ? FRAME_BY_LENGTH : NO_FRAME;
    if (type == 0x0800 || type == 0x86dd || type == 0x0806 || type == 0x8100 || type == 0x88a8 ||
        (type >= 0x8847 && type <= 0x8864) || type == 0x88cc || type == 0x9000)
        return FRAME_BY_TYPE;
    return NO_FRAME;
}

/*
 * Nothing behind the last label says what it carries. IP shows by its version and lengths; else it
 * is a pseudowire's Ethernet (RFC 4448), with a control word (RFC 4385) or without. Two bytes of a
 * MAC address are often a possible length, as in 52:54:00:12:34:56, and hardly ever a known type.
 */
zn_stat zn_peel_mpls(zn_layers *l)
{
    unsigned labels = 1;
    likeness plain, worded;
    zn_cursor control;
    zn_layers_saw(l, ZN_STAT_IN_MPLS);
    while ((zn_cursor_be32(&l->c) & 0x100) == 0 && zn_cursor_ok(&l->c))
        if (++labels > LABELS_MAX)
            return ZN_STAT_DROP_ENCAPSULATION_DEPTH;
    if (zn_layers_looks_like_ip(l))
        return zn_layers_go(l, ZN_HEADER_IP);
    plain = ethernet_likeness(l->c, 0);
    control = l->c;
    worded = zn_cursor_u8(&control) >> 4 == 0 ? ethernet_likeness(l->c, 4) : NO_FRAME;
    if (plain == NO_FRAME && worded == NO_FRAME)
        return ZN_STAT_DROP_NOT_IP;
    if (worded > plain)
        zn_cursor_skip(&l->c, 4);
    zn_layers_saw(l, ZN_STAT_IN_PSEUDOWIRE);
    return zn_layers_go(l, ZN_HEADER_ETHERNET);
}

/* RFC 1701's source routes: records until one of length 0. */
static void skip_routes(zn_cursor *c)
{
    uint8_t length;
    do { /* at least four bytes a turn */
        zn_cursor_skip(c, 3);
        length = zn_cursor_u8(c);
        zn_cursor_skip(c, length);
    } while (length != 0 && zn_cursor_ok(c));
}

/* What GRE's protocol type announces beyond the EtherTypes. */
static zn_stat gre_payload(zn_layers *l, uint16_t type, uint16_t flags)
{
    switch (type) {
    case 0x88be: /* ERSPAN: type I has no header of its own */
        zn_layers_saw(l, ZN_STAT_IN_ERSPAN);
        return zn_layers_go(l,
                            (flags & GRE_SEQUENCE) != 0 ? ZN_HEADER_ERSPAN2 : ZN_HEADER_ETHERNET);
    case 0x22eb:
        zn_layers_saw(l, ZN_STAT_IN_ERSPAN);
        return zn_layers_go(l, ZN_HEADER_ERSPAN3);
    case 0x883e: /* WCCP: version 2 puts four bytes before the packet */
        if (!zn_layers_looks_like_ip(l))
            zn_cursor_skip(&l->c, 4);
        return zn_layers_go(l, ZN_HEADER_IP);
    case 0x6559:
        return zn_layers_go(l, ZN_HEADER_FRAME_RELAY);
    default:
        if (type >= 0x8200 && type <= 0x8370) /* Aruba's access points */
            return zn_layers_go(l, ZN_HEADER_WIFI);
        return type <= 1500 ? ZN_STAT_DROP_NOT_IP : zn_layers_ethertype(l, type);
    }
}

/* RFC 2784 and 2890 with RFC 1701's routes; version 1 is PPTP's (RFC 2637), or MikroTik's EoIP. */
zn_stat zn_peel_gre(zn_layers *l)
{
    uint16_t flags = zn_cursor_be16(&l->c);
    uint16_t type = zn_cursor_be16(&l->c);
    unsigned version = flags & GRE_VERSION;
    zn_layers_saw(l, ZN_STAT_IN_GRE);
    if (version > 1)
        return ZN_STAT_DROP_ENCAPSULATION_MALFORMED;
    if (version == 0 && (flags & (GRE_CHECKSUM | GRE_ROUTING)) != 0)
        zn_cursor_skip(&l->c, 4);
    if ((flags & GRE_KEY) != 0)
        zn_cursor_skip(&l->c, 4);
    if ((flags & GRE_SEQUENCE) != 0)
        zn_cursor_skip(&l->c, 4);
    if (version == 1 && (flags & GRE_ACKNOWLEDGES) != 0)
        zn_cursor_skip(&l->c, 4);
    if (version == 0 && (flags & GRE_ROUTING) != 0)
        skip_routes(&l->c);
    if (version == 0)
        return gre_payload(l, type, flags);
    if (type == 0x880b)
        return zn_layers_wire(l) == 0 ? ZN_STAT_DROP_NOT_IP : zn_layers_go(l, ZN_HEADER_PPP);
    return type == 0x6400 ? zn_layers_go(l, ZN_HEADER_ETHERNET) : ZN_STAT_DROP_NOT_IP;
}

zn_stat zn_peel_erspan2(zn_layers *l)
{
    zn_cursor_skip(&l->c, 8);
    return zn_layers_go(l, ZN_HEADER_ETHERNET);
}

zn_stat zn_peel_erspan3(zn_layers *l)
{
    uint8_t last;
    zn_cursor_skip(&l->c, 11);
    last = zn_cursor_u8(&l->c);
    if ((last & 1) != 0) /* a header of the platform follows */
        zn_cursor_skip(&l->c, 8);
    return zn_layers_go(l, ZN_HEADER_ETHERNET);
}

zn_stat zn_layers_nsh_next(zn_layers *l, uint32_t protocol, zn_stat unknown)
{
    switch (protocol) {
    case 1:
    case 2:
        return zn_layers_go(l, ZN_HEADER_IP);
    case 3:
        return zn_layers_go(l, ZN_HEADER_ETHERNET);
    case 4:
        return zn_layers_go(l, ZN_HEADER_NSH);
    case 5:
        return zn_layers_go(l, ZN_HEADER_MPLS);
    default:
        return unknown;
    }
}

/* RFC 8300. */
zn_stat zn_peel_nsh(zn_layers *l)
{
    uint16_t first = zn_cursor_be16(&l->c);
    uint32_t words = first & 0x3f;
    uint8_t next;
    zn_layers_saw(l, ZN_STAT_IN_NSH);
    zn_cursor_skip(&l->c, 1); /* type of the metadata */
    next = zn_cursor_u8(&l->c);
    if (words < 2 || first >> 14 != 0)
        return ZN_STAT_DROP_ENCAPSULATION_MALFORMED;
    zn_cursor_skip(&l->c, 4u * words - 4u);
    return zn_layers_nsh_next(l, next, ZN_STAT_DROP_NOT_IP);
}

/* RFC 3378. */
zn_stat zn_peel_etherip(zn_layers *l)
{
    uint16_t version = zn_cursor_be16(&l->c);
    zn_layers_saw(l, ZN_STAT_IN_ETHERIP);
    if (version >> 12 != 3)
        return ZN_STAT_DROP_ENCAPSULATION_MALFORMED;
    return zn_layers_go(l, ZN_HEADER_ETHERNET);
}

/*
 * RFC 2004: no second IP header, only the fields of the first that were changed. What the first one
 * says now are the tunnel's ends.
 */
zn_stat zn_peel_minimal(zn_layers *l)
{
    uint8_t protocol = zn_cursor_u8(&l->c);
    bool has_source = (zn_cursor_u8(&l->c) & 0x80) != 0;
    zn_span source, destination;
    zn_cursor_skip(&l->c, 2);
    destination = zn_cursor_take(&l->c, 4);
    source = zn_cursor_take(&l->c, has_source ? 4 : 0);
    if (!zn_cursor_ok(&l->c) || l->ip.v6)
        return ZN_STAT_DROP_ENCAPSULATION_MALFORMED;
    if (!zn_layers_nest(l))
        return ZN_STAT_DROP_ENCAPSULATION_DEPTH;
    zn_layers_saw(l, ZN_STAT_IN_IP_IN_IP);
    l->ip.dst = zn_addr_from_v4(destination.p);
    if (has_source)
        l->ip.src = zn_addr_from_v4(source.p);
    l->ip.protocol = protocol;
    l->ip.payload_wire = zn_layers_wire(l);
    l->ip.payload = l->c;
    return zn_layers_protocol(l, protocol);
}
