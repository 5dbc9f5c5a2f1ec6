/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peelers of the headers between a link and IP: Ethernet, LLC, tags, captures of Linux, Junos and
 * BSD's loopback, rings and ARCNET, serial lines (PPP, Cisco HDLC, Frame Relay, PPPoE), and the
 * headers with which firewalls and macOS log packets. 802.11 is in wifi.c.
 */
#include "packet/layers.h"

#define SLL_LLC 4 /* Linux ETH_P_802_2 in a cooked capture's protocol field */
#define ARPHRD_NETLINK 824
#define ARPHRD_IEEE80211 801
#define ARPHRD_IEEE80211_RADIOTAP 803

enum {
    PPP_IPV4 = 0x0021,
    PPP_IPV6 = 0x0057,
    PPP_MULTILINK = 0x003d,
    PPP_ENCRYPTED = 0x0053,
    PPP_COMPRESSED = 0x00fd,
    PPP_MPLS = 0x0281,
    PPP_MPLS_MULTICAST = 0x0283
};

enum { NLPID_SNAP = 0x80, NLPID_IPV6 = 0x8e, NLPID_IPV4 = 0xcc, NLPID_PPP = 0xcf };

#define HDLC_UNNUMBERED 0x03 /* the control field of an unnumbered frame */
#define NFLOG_PAYLOAD 9      /* Linux NFULA_PAYLOAD */
#define NFLOG_TYPE_MAX 255   /* a larger one shows that the byte order is the other one */

zn_stat zn_peel_ethernet(zn_layers *l)
{
    zn_cursor_skip(&l->c, 12);
    return zn_layers_go(l, ZN_HEADER_ETHERTYPE);
}

zn_stat zn_peel_ethertype(zn_layers *l)
{
    return zn_layers_ethertype(l, zn_cursor_be16(&l->c));
}

zn_stat zn_peel_llc(zn_layers *l)
{
    uint32_t sap_and_control = zn_cursor_be24(&l->c);
    uint32_t organization;
    zn_layers_saw(l, ZN_STAT_IN_LLC);
    if (sap_and_control == 0x060603) /* IP by its own SAP (RFC 948) */
        return zn_layers_go(l, ZN_HEADER_IP);
    if (sap_and_control == 0xfefe03) /* by its NLPID (RFC 2684) */
        return zn_cursor_u8(&l->c) == 0xcc ? zn_layers_go(l, ZN_HEADER_IP) : ZN_STAT_DROP_NOT_IP;
    if (sap_and_control != 0xaaaa03)
        return ZN_STAT_DROP_NOT_IP;
    organization = zn_cursor_be24(&l->c); /* SNAP (RFC 1042), or 802.1H's tunnelled Ethernet */
    if (organization != 0 && organization != 0x0000f8)
        return ZN_STAT_DROP_NOT_IP;
    return zn_layers_go(l, ZN_HEADER_ETHERTYPE);
}

/* An address family in the byte order of the machine that wrote the capture. */
zn_stat zn_peel_family(zn_layers *l)
{
    uint32_t family = zn_cursor_be32(&l->c);
    switch (family > UINT16_MAX ? __builtin_bswap32(family) : family) {
    case 2:  /* AF_INET everywhere */
    case 10: /* AF_INET6 of Linux, */
    case 24: /* of NetBSD and OpenBSD, */
    case 28: /* of FreeBSD, */
    case 30: /* of macOS */
        return zn_layers_go(l, ZN_HEADER_IP);
    default:
        return ZN_STAT_DROP_NOT_IP;
    }
}

/* Goes on after a cooked capture's header: the hardware type decides what its protocol field
 * means. */
static zn_stat cooked(zn_layers *l, uint16_t hardware, uint16_t protocol)
{
    switch (hardware) {
    case ARPHRD_NETLINK:
        return ZN_STAT_DROP_NOT_IP;
    case ARPHRD_IEEE80211:
        return zn_layers_go(l, ZN_HEADER_WIFI);
    case ARPHRD_IEEE80211_RADIOTAP:
        return zn_layers_go(l, ZN_HEADER_RADIOTAP);
    default:
        if (protocol > ZN_ETHERTYPE_LENGTH_MAX)
            return zn_layers_ethertype(l, protocol);
        return protocol == SLL_LLC ? zn_layers_go(l, ZN_HEADER_LLC) : ZN_STAT_DROP_NOT_IP;
    }
}

zn_stat zn_peel_sll(zn_layers *l)
{
    uint16_t hardware;
    zn_cursor_skip(&l->c, 2); /* sent or received */
    hardware = zn_cursor_be16(&l->c);
    zn_cursor_skip(&l->c, 10); /* length of the address, address */
    return cooked(l, hardware, zn_cursor_be16(&l->c));
}

zn_stat zn_peel_sll2(zn_layers *l)
{
    uint16_t protocol = zn_cursor_be16(&l->c);
    uint16_t hardware;
    zn_cursor_skip(&l->c, 6); /* reserved, interface */
    hardware = zn_cursor_be16(&l->c);
    zn_cursor_skip(&l->c, 10); /* sent or received, length of the address, address */
    return cooked(l, hardware, protocol);
}

/* Junos puts flags before a frame: with 0x80 extensions with a length follow; with 0x02 there is no
 * link header, but four bytes that name a protocol. */
zn_stat zn_peel_juniper(zn_layers *l)
{
    uint32_t magic = zn_cursor_be24(&l->c);
    uint8_t flags = zn_cursor_u8(&l->c);
    if (magic != 0x4d4743) /* "MGC" */
        return ZN_STAT_DROP_NOT_IP;
    if ((flags & 0x80) != 0) {
        uint16_t known = zn_cursor_be16(&l->c);
        zn_cursor_skip(&l->c, known);
    }
    if ((flags & 0x02) == 0)
        return zn_layers_go(l, ZN_HEADER_ETHERNET);
    zn_cursor_skip(&l->c, 4);
    return zn_layers_looks_like_ip(l) ? zn_layers_go(l, ZN_HEADER_IP) : ZN_STAT_DROP_NOT_IP;
}

zn_stat zn_peel_fddi(zn_layers *l)
{
    uint8_t frame_control = zn_cursor_u8(&l->c);
    zn_cursor_skip(&l->c, 12);
    if ((frame_control & 0xf0) != 0x50) /* an LLC frame, asynchronous */
        return ZN_STAT_DROP_NOT_IP;
    return zn_layers_go(l, ZN_HEADER_LLC);
}

zn_stat zn_peel_token_ring(zn_layers *l)
{
    uint8_t frame_control, source;
    zn_cursor_skip(&l->c, 1);
    frame_control = zn_cursor_u8(&l->c);
    zn_cursor_skip(&l->c, 6);
    source = zn_cursor_u8(&l->c);
    zn_cursor_skip(&l->c, 5);
    if ((frame_control & 0xc0) != 0x40) /* an LLC frame */
        return ZN_STAT_DROP_NOT_IP;
    if ((source & 0x80) != 0) { /* the route through the bridges */
        uint8_t length = zn_cursor_u8(&l->c) & 0x1f;
        zn_cursor_skip(&l->c, length < 2 ? 1 : length - 1u);
    }
    return zn_layers_go(l, ZN_HEADER_LLC);
}

zn_stat zn_peel_arcnet(zn_layers *l)
{
    uint8_t type = zn_cursor_u8(&l->c);
    uint8_t split;
    if (type == 0xf0) /* RFC 1051: nothing between type and packet */
        return zn_layers_go(l, ZN_HEADER_IP);
    if (type != 0xd4 && type != 0xc4) /* RFC 1201: IPv4, IPv6 */
        return ZN_STAT_DROP_NOT_IP;
    split = zn_cursor_u8(&l->c);
    if (split == 0xff) { /* an exception packet: three bytes of padding, then the real flag */
        zn_cursor_skip(&l->c, 3);
        split = zn_cursor_u8(&l->c);
    }
    zn_cursor_skip(&l->c, 2); /* sequence number */
    return split == 0 ? zn_layers_go(l, ZN_HEADER_IP) : ZN_STAT_DROP_LINK_FRAGMENT;
}

/* The 802.1AE tag: flags, the length of a short frame, a packet number, and with flag SC who sent
 * it. */
zn_stat zn_peel_macsec(zn_layers *l)
{
    uint8_t control = zn_cursor_u8(&l->c);
    zn_layers_saw(l, ZN_STAT_IN_MACSEC);
    zn_cursor_skip(&l->c, (control & 0x20) != 0 ? 13 : 5);
    if ((control & 0x0c) != 0)
        return ZN_STAT_DROP_ENCRYPTED;
    return zn_layers_go(l, ZN_HEADER_ETHERTYPE);
}

/* The time at which a switch of Arista received the frame. It lies between the MAC addresses and
 * the frame's own EtherType. The version says the clock, TAI or UTC, and the length of the time. */
zn_stat zn_peel_arista(zn_layers *l)
{
    uint16_t subtype = zn_cursor_be16(&l->c);
    uint16_t version = zn_cursor_be16(&l->c);
    uint16_t length = version & 0xfe; /* 0x10, 0x11, 0x20, 0x21, also with 0x100 for UTC */
    if (subtype != 1 || version >> 9 != 0 || (length != 0x10 && length != 0x20))
        return ZN_STAT_DROP_NOT_IP;
    zn_layers_saw(l, ZN_STAT_IN_SWITCH_TAG);
    zn_cursor_skip(&l->c, length == 0x10 ? 8 : 6);
    return zn_layers_go(l, ZN_HEADER_ETHERTYPE);
}

zn_stat zn_peel_trill(zn_layers *l)
{
    uint16_t first = zn_cursor_be16(&l->c); /* version, flags, words of options, hop count */
    zn_layers_saw(l, ZN_STAT_IN_FABRIC);
    zn_cursor_skip(&l->c, 4u + 4u * (first >> 6 & 0x1f));
    return zn_layers_go(l, ZN_HEADER_ETHERNET);
}

/* ---- serial lines and packet logs ---- */

/* RFC 1990: only a packet that is not fragmented starts with a protocol that can be read. */
static zn_stat multilink(zn_layers *l)
{
    uint32_t flags_and_number = zn_cursor_be32(&l->c);
    if (flags_and_number >> 30 != 3)
        return ZN_STAT_DROP_LINK_FRAGMENT;
    return zn_layers_go(l, ZN_HEADER_PPP);
}

/*
 * RFC 1661, with or without RFC 1662's address and control fields, the protocol in one byte or two.
 * A PPP_HDLC line may carry Cisco HDLC instead, which its addresses show.
 */
zn_stat zn_peel_ppp(zn_layers *l)
{
    zn_cursor at_start = l->c;
    uint16_t protocol = zn_cursor_u8(&l->c);
    zn_layers_saw(l, ZN_STAT_IN_PPP);
    if (protocol == 0xff) {
        if (zn_cursor_u8(&l->c) != HDLC_UNNUMBERED)
            return ZN_STAT_DROP_NOT_IP;
        protocol = zn_cursor_u8(&l->c);
    } else if (protocol == 0x0f || protocol == 0x8f) {
        l->c = at_start;
        return zn_layers_go(l, ZN_HEADER_CISCO_HDLC);
    }
    if (protocol % 2 == 0) /* RFC 1661 6.5: a single byte is odd */
        protocol = (uint16_t)(protocol << 8 | zn_cursor_u8(&l->c));
    switch (protocol) {
    case PPP_IPV4:
    case PPP_IPV6:
        return zn_layers_go(l, ZN_HEADER_IP);
    case PPP_MPLS:
    case PPP_MPLS_MULTICAST:
        return zn_layers_go(l, ZN_HEADER_MPLS);
    case PPP_MULTILINK:
        return multilink(l);
    case PPP_ENCRYPTED:
    case PPP_COMPRESSED: /* of PPTP: encrypted too (RFC 3078) */
        return ZN_STAT_DROP_ENCRYPTED;
    default:
        return ZN_STAT_DROP_NOT_IP;
    }
}

zn_stat zn_peel_cisco_hdlc(zn_layers *l)
{
    uint16_t type;
    zn_cursor_skip(&l->c, 2);
    type = zn_cursor_be16(&l->c);
    return type == 0xfefe ? ZN_STAT_DROP_NOT_IP : zn_layers_ethertype(l, type);
}

/* RFC 2427, or Cisco's own form with an EtherType right after the address. */
zn_stat zn_peel_frame_relay(zn_layers *l)
{
    zn_cursor at_type;
    uint8_t octet;
    for (unsigned n = 0; n < 4 && (zn_cursor_u8(&l->c) & 1) == 0; n++)
        continue; /* the address ends with an odd byte, its second to fourth */
    at_type = l->c;
    octet = zn_cursor_u8(&l->c);
    if (octet != HDLC_UNNUMBERED) {
        l->c = at_type;
        return zn_layers_go(l, ZN_HEADER_ETHERTYPE);
    }
    octet = zn_cursor_u8(&l->c);
    if (octet == 0) /* padding */
        octet = zn_cursor_u8(&l->c);
    switch (octet) {
    case NLPID_IPV4:
    case NLPID_IPV6:
        return zn_layers_go(l, ZN_HEADER_IP);
    case NLPID_PPP:
        return zn_layers_go(l, ZN_HEADER_PPP);
    case NLPID_SNAP:
        if (zn_cursor_be24(&l->c) != 0)
            return ZN_STAT_DROP_NOT_IP;
        return zn_layers_go(l, ZN_HEADER_ETHERTYPE);
    default:
        return ZN_STAT_DROP_NOT_IP;
    }
}

zn_stat zn_peel_pppoe(zn_layers *l)
{
    uint16_t version_and_code = zn_cursor_be16(&l->c);
    zn_cursor_skip(&l->c, 4);       /* session, length */
    if (version_and_code != 0x1100) /* not a session's data */
        return ZN_STAT_DROP_NOT_IP;
    zn_layers_saw(l, ZN_STAT_IN_PPPOE);
    return zn_layers_go(l, ZN_HEADER_PPP);
}

/* Attributes of Linux's netfilter; their numbers are in the byte order of the machine that wrote
 * them. */
zn_stat zn_peel_nflog(zn_layers *l)
{
    uint8_t family = zn_cursor_u8(&l->c);
    zn_cursor_skip(&l->c, 3); /* version, group */
    if (family != 2 && family != 10 && family != 7)
        return ZN_STAT_DROP_NOT_IP;
    while (zn_cursor_ok(&l->c)) { /* at least four bytes a turn */
        zn_cursor big = l->c;
        uint16_t length = zn_cursor_le16(&l->c);
        uint16_t type = zn_cursor_le16(&l->c);
        if (type > NFLOG_TYPE_MAX) {
            length = zn_cursor_be16(&big);
            type = zn_cursor_be16(&big);
        }
        if (length < 4)
            break;
        if (type == NFLOG_PAYLOAD) {
            zn_layers_narrow(l, length - 4u);
            return zn_layers_go(l, ZN_HEADER_IP);
        }
        zn_cursor_skip(&l->c, ((length + 3u) & ~3u) - 4u);
    }
    return ZN_STAT_DROP_LINK_TRUNCATED;
}

zn_stat zn_peel_pflog(zn_layers *l)
{
    uint8_t length = zn_cursor_u8(&l->c);
    if (length < 4)
        return ZN_STAT_DROP_LINK_TRUNCATED;
    zn_cursor_skip(&l->c, ((length + 3u) & ~3u) - 1u);
    return zn_layers_go(l, ZN_HEADER_IP);
}

/* Apple's header: its length, a record type, and the link type of the frame that follows. */
zn_stat zn_peel_pktap(zn_layers *l)
{
    uint32_t length = zn_cursor_le32(&l->c);
    uint32_t record = zn_cursor_le32(&l->c);
    uint32_t link_type = zn_cursor_le32(&l->c);
    if (length < 12 || record != 1)
        return ZN_STAT_DROP_NOT_IP;
    zn_cursor_skip(&l->c, length - 12u);
    return zn_layers_link(l, link_type);
}
