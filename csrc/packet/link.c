/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link types, and the headers between a link and IP: Ethernet, LLC, tags, captures of Linux, Junos
 * and BSD's loopback, rings and ARCNET. Serial lines are in link_serial.c, radio in link_wifi.c.
 */
#include "packet/layers.h"

#define ETHERTYPE_LENGTH_MAX 1500 /* up to here the field is IEEE 802.3's length, and LLC follows */
#define SLL_LLC 4                 /* Linux ETH_P_802_2 in a cooked capture's protocol field */
#define ARPHRD_NETLINK 824
#define ARPHRD_IEEE80211 801
#define ARPHRD_IEEE80211_RADIOTAP 803

/* What to skip at the start of a link type's frames, and what comes then. */
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

/* EtherTypes behind which another header lies: what to skip, what comes then, what to count. */
static const struct announced {
    uint16_t type;
    uint8_t skip, next;
    zn_stat seen; /* ZN_STAT_COUNT: the next header counts itself */
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
    if (type <= ETHERTYPE_LENGTH_MAX)
        return zn_layers_go(l, ZN_HEADER_LLC);
    for (size_t i = 0; i < sizeof announced / sizeof announced[0]; i++) {
        const struct announced *a = &announced[i];
        if (a->type != type)
            continue;
        if (a->seen != ZN_STAT_COUNT)
            zn_layers_saw(l, a->seen);
        zn_cursor_skip(&l->c, a->skip);
        return zn_layers_go(l, (zn_header)a->next);
    }
    return ZN_STAT_DROP_NOT_IP;
}

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

/* A cooked capture's protocol field means what the hardware type makes of it. */
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
        if (protocol > ETHERTYPE_LENGTH_MAX)
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

/* A router of Juniper's puts flags before a frame, and what it knows of it where 0x80 says so; with
 * 0x02 there is no link header, but four bytes that name a protocol. */
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
    if (split == 0xff) { /* an exception packet: three bytes of filling, then the real flag */
        zn_cursor_skip(&l->c, 3);
        split = zn_cursor_u8(&l->c);
    }
    zn_cursor_skip(&l->c, 2); /* sequence number */
    return split == 0 ? zn_layers_go(l, ZN_HEADER_IP) : ZN_STAT_DROP_LINK_FRAGMENT;
}

/* The 802.1AE tag: flags, length of a short frame, packet number, and where C says so, who sent. */
zn_stat zn_peel_macsec(zn_layers *l)
{
    uint8_t control = zn_cursor_u8(&l->c);
    zn_layers_saw(l, ZN_STAT_IN_MACSEC);
    zn_cursor_skip(&l->c, (control & 0x20) != 0 ? 13 : 5);
    if ((control & 0x0c) != 0)
        return ZN_STAT_DROP_ENCRYPTED;
    return zn_layers_go(l, ZN_HEADER_ETHERTYPE);
}

zn_stat zn_peel_trill(zn_layers *l)
{
    uint16_t first = zn_cursor_be16(&l->c); /* version, flags, words of options, hop count */
    zn_layers_saw(l, ZN_STAT_IN_FABRIC);
    zn_cursor_skip(&l->c, 4u + 4u * (first >> 6 & 0x1f));
    return zn_layers_go(l, ZN_HEADER_ETHERNET);
}
