/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serial lines (PPP, Cisco HDLC, Frame Relay, PPPoE), and the headers with which firewalls and
 * macOS log packets.
 */
#include "packet/layers.h"

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
#define NFLOG_TYPE_MAX 255   /* more: the bytes are the other way round */

/* RFC 1990: only a packet in one piece starts with a protocol that can be read. */
static zn_stat multilink(zn_layers *l)
{
    uint32_t flags_and_number = zn_cursor_be32(&l->c);
    if (flags_and_number >> 30 != 3)
        return ZN_STAT_DROP_LINK_FRAGMENT;
    return zn_layers_go(l, ZN_HEADER_PPP);
}

/*
 * RFC 1661, with RFC 1662's address and control fields or without, the protocol in one byte or two.
 * A PPP_HDLC line may carry Cisco HDLC instead, which its own addresses show.
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

/* RFC 2427, or Cisco's own form: an EtherType right behind the address. */
zn_stat zn_peel_frame_relay(zn_layers *l)
{
    zn_cursor at_type;
    uint8_t octet;
    for (unsigned n = 0; n < 4 && (zn_cursor_u8(&l->c) & 1) == 0; n++)
        continue; /* the address ends with an odd byte, the second to fourth */
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

/* Attributes of Linux's netfilter, numbers in the order of the machine that wrote them. */
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

/* Apple's header: its length, a record type, and the link type of what follows. */
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
