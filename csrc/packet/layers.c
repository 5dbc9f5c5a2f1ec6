/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables from the numbers in headers (link types, EtherTypes, protocols of IP and of NSH) to the
 * headers that they announce, and the steps that all peelers share.
 */
#include "packet/layers.h"

enum {
    PROTOCOL_IPIP = 4,
    PROTOCOL_IPV6 = 41,
    PROTOCOL_GRE = 47,
    PROTOCOL_ESP = 50,
    PROTOCOL_MINIMAL = 55,
    PROTOCOL_ETHERIP = 97,
    PROTOCOL_L2TP = 115,
    PROTOCOL_MPLS = 137,
    PROTOCOL_ETHERNET = 143
};

void zn_layers_narrow(zn_layers *l, uint32_t n)
{
    uint32_t wire = zn_layers_wire(l);
    size_t left = zn_cursor_left(&l->c);
    if (n > wire)
        n = wire;
    if (n < left) {
        l->c = zn_cursor_sub(&l->c, n);
        l->missing = 0;
    } else {
        l->missing = n - (uint32_t)left;
        l->c.whole |= l->missing == 0 && zn_cursor_ok(&l->c);
    }
}

bool zn_layers_looks_like_ip(const zn_layers *l)
{
    zn_cursor c = l->c;
    uint32_t wire = zn_layers_wire(l);
    uint8_t first = zn_cursor_u8(&c);
    uint16_t length;
    zn_cursor_skip(&c, first >> 4 == 6 ? 3 : 1);
    length = zn_cursor_be16(&c);
    if (!zn_cursor_ok(&c))
        return false;
    if (first >> 4 == 6)
        return length + 40u <= wire;
    return first >> 4 == 4 && (first & 0x0f) >= 5 && length >= (first & 0x0fu) * 4u &&
           length <= wire;
}

bool zn_layers_nest(zn_layers *l)
{
    if (l->tunnel_count == ZN_TUNNELS_MAX)
        return false;
    l->tunnels[l->tunnel_count++] = (zn_tunnel){{l->ip.src, l->ip.dst}};
    return true;
}

/* For each link type the bytes to skip at the start of its frames, and the header after them. */
static const struct link_start {
    uint8_t skip, next;
} starts[] = {
    [0] = {0, ZN_HEADER_FAMILY},       /* NULL */
    [1] = {12, ZN_HEADER_ETHERTYPE},   /* ETHERNET */
    [6] = {0, ZN_HEADER_TOKEN_RING},   /* IEEE802_5 */
    [7] = {2, ZN_HEADER_ARCNET},       /* ARCNET_BSD: source and destination */
    [8] = {16, ZN_HEADER_IP},          /* SLIP: direction and compression state */
    [9] = {0, ZN_HEADER_PPP},          /* PPP */
    [10] = {0, ZN_HEADER_FDDI},        /* FDDI */
    [12] = {0, ZN_HEADER_IP},          /* DLT_RAW of most systems */
    [14] = {0, ZN_HEADER_IP},          /* DLT_RAW of OpenBSD */
    [50] = {0, ZN_HEADER_PPP},         /* PPP_HDLC */
    [51] = {0, ZN_HEADER_PPPOE},       /* PPP_ETHER */
    [100] = {0, ZN_HEADER_LLC},        /* ATM_RFC1483 */
    [101] = {0, ZN_HEADER_IP},         /* RAW */
    [104] = {0, ZN_HEADER_CISCO_HDLC}, /* C_HDLC */
    [105] = {0, ZN_HEADER_WIFI},       /* IEEE802_11 */
    [107] = {0, ZN_HEADER_FRAME_RELAY}, [108] = {0, ZN_HEADER_FAMILY}, /* LOOP */
    [109] = {12, ZN_HEADER_IP},                                        /* ENC: family, SPI, flags */
    [113] = {0, ZN_HEADER_SLL},                                        /* LINUX_SLL */
    [117] = {0, ZN_HEADER_PFLOG},                                      /* PFLOG */
    [119] = {0, ZN_HEADER_PRISM},                                      /* IEEE802_11_PRISM */
    [122] = {16, ZN_HEADER_LLC},        /* IP_OVER_FC: two addresses */
    [127] = {0, ZN_HEADER_RADIOTAP},    /* IEEE802_11_RADIOTAP */
    [129] = {4, ZN_HEADER_ARCNET},      /* ARCNET_LINUX: source, destination, offset */
    [138] = {16, ZN_HEADER_ETHERTYPE},  /* APPLE_IP_OVER_IEEE1394: two addresses */
    [163] = {0, ZN_HEADER_PRISM},       /* IEEE802_11_AVS */
    [166] = {2, ZN_HEADER_PPP},         /* PPP_PPPD: direction and control */
    [178] = {0, ZN_HEADER_JUNIPER},     /* JUNIPER_ETHER */
    [192] = {0, ZN_HEADER_PPI},         /* PPI */
    [204] = {1, ZN_HEADER_PPP},         /* PPP_WITH_DIR */
    [205] = {1, ZN_HEADER_CISCO_HDLC},  /* C_HDLC_WITH_DIR */
    [206] = {1, ZN_HEADER_FRAME_RELAY}, /* FRELAY_WITH_DIR */
    [226] = {24, ZN_HEADER_IP},         /* IPNET */
    [228] = {0, ZN_HEADER_IP},          /* IPV4 */
    [229] = {0, ZN_HEADER_IP},          /* IPV6 */
    [239] = {0, ZN_HEADER_NFLOG},       /* NFLOG */
    [258] = {0, ZN_HEADER_PKTAP},       /* PKTAP */
    [274] = {8, ZN_HEADER_ETHERNET},    /* ETHERNET_MPACKET: the preamble */
    [276] = {0, ZN_HEADER_SLL2},        /* LINUX_SLL2 */
    [281] = {16, ZN_HEADER_ETHERTYPE},  /* DSA_TAG_BRCM: two MAC addresses, four bytes */
    [282] = {4, ZN_HEADER_ETHERNET},    /* DSA_TAG_BRCM_PREPEND */
    [284] = {16, ZN_HEADER_ETHERTYPE},  /* DSA_TAG_DSA */
    [285] = {20, ZN_HEADER_ETHERTYPE},  /* DSA_TAG_EDSA: its own EtherType and eight bytes */
};

zn_stat zn_layers_link(zn_layers *l, uint32_t link_type)
{
    const struct link_start *start;
    if (link_type >= sizeof starts / sizeof starts[0])
        return ZN_STAT_DROP_LINK_TYPE;
    start = &starts[link_type];
    if (start->next == ZN_HEADER_UNKNOWN)
        return ZN_STAT_DROP_LINK_TYPE;
    zn_cursor_skip(&l->c, start->skip);
    return zn_layers_go(l, (zn_header)start->next);
}

/* EtherTypes that another header follows: bytes to skip, the header after them, the counter. */
static const struct announced {
    uint16_t type;
    uint8_t skip, next;
    zn_stat seen; /* ZN_STAT_COUNT: the next header's peeler counts it */
} announced[] = {
    {0x8100, 2, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_VLAN},       /* 802.1Q */
    {0x88a8, 2, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_VLAN},       /* 802.1ad */
    {0x9100, 2, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_VLAN},       /* before 802.1ad, */
    {0x9200, 2, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_VLAN},       /* each vendor */
    {0x9300, 2, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_VLAN},       /* had its own */
    {0x88e7, 4, ZN_HEADER_ETHERNET, ZN_STAT_IN_PBB},         /* 802.1ah I-TAG */
    {0x8847, 0, ZN_HEADER_MPLS, ZN_STAT_COUNT},              /* RFC 3032 */
    {0x8848, 0, ZN_HEADER_MPLS, ZN_STAT_COUNT},              /* RFC 5332 */
    {0x8864, 0, ZN_HEADER_PPPOE, ZN_STAT_COUNT},             /* RFC 2516, sessions */
    {0x880b, 0, ZN_HEADER_PPP, ZN_STAT_COUNT},               /* in GRE (RFC 2637) */
    {0x6558, 0, ZN_HEADER_ETHERNET, ZN_STAT_COUNT},          /* transparent bridging (RFC 1701) */
    {0x894f, 0, ZN_HEADER_NSH, ZN_STAT_COUNT},               /* RFC 8300 */
    {0x88e5, 0, ZN_HEADER_MACSEC, ZN_STAT_COUNT},            /* 802.1AE */
    {0xd28b, 0, ZN_HEADER_ARISTA, ZN_STAT_COUNT},            /* TAP aggregation switches */
    {0x22f3, 0, ZN_HEADER_TRILL, ZN_STAT_COUNT},             /* RFC 6325 */
    {0x8903, 2, ZN_HEADER_ETHERNET, ZN_STAT_IN_FABRIC},      /* Cisco FabricPath */
    {0x8926, 4, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_SWITCH_TAG}, /* Cisco VN-Tag */
    {0x893f, 6, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_SWITCH_TAG}, /* 802.1BR E-TAG */
    {0xf1c1, 4, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_SWITCH_TAG}, /* 802.1CB R-TAG */
    {0x892f, 4, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_SWITCH_TAG}, /* HSR */
    {0x8909, 6, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_SWITCH_TAG}, /* Cisco metadata (SGT) */
    {0xdada, 6, ZN_HEADER_ETHERTYPE, ZN_STAT_IN_SWITCH_TAG}, /* Marvell EDSA */
    {0x8870, 0, ZN_HEADER_LLC, ZN_STAT_COUNT},               /* LLC in a jumbo frame */
};

zn_stat zn_layers_ethertype(zn_layers *l, uint16_t type)
{
    if (ZN_LIKELY(type == 0x0800 || type == 0x86dd))
        return zn_layers_go(l, ZN_HEADER_IP);
    if (type <= ZN_ETHERTYPE_LENGTH_MAX)
        return zn_layers_go(l, ZN_HEADER_LLC);
    for (size_t i = 0; i < sizeof announced / sizeof announced[0]; i++) {
        const struct announced *a = &announced[i];
        if (a->type != type)
            continue;
        if (a->seen != ZN_STAT_COUNT) {
            zn_layers_saw(l, a->seen);
            zn_layers_note(l, a->seen == ZN_STAT_IN_VLAN ? ZN_LAYER_VLAN : ZN_LAYER_OTHER, type);
        }
        zn_cursor_skip(&l->c, a->skip);
        return zn_layers_go(l, (zn_header)a->next);
    }
    return ZN_STAT_DROP_NOT_IP;
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

zn_stat zn_layers_protocol(zn_layers *l, uint8_t protocol)
{
    switch (protocol) {
    case ZN_PROTO_TCP:
        return zn_layers_go(l, ZN_HEADER_TRANSPORT);
    case ZN_PROTO_UDP:
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
