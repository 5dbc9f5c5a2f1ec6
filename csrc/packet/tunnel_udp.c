/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels in UDP. A port is only a hint: other traffic uses the same number, as an ephemeral port
 * too. Each header is therefore checked as far as its format allows, and answers
 * ZN_STAT_DROP_ENCAPSULATION_MALFORMED when it is another protocol's, or a message of the tunnel's
 * own: the packet is then the plain datagram.
 */
#include "packet/layers.h"
#include "util/protocol.h"

#define NOT_THIS ZN_STAT_DROP_ENCAPSULATION_MALFORMED

zn_stat zn_peel_udp(zn_layers *l)
{
    zn_cursor c = l->ip.payload;
    uint16_t source = zn_cursor_be16(&c);
    uint16_t destination = zn_cursor_be16(&c);
    uint16_t length = zn_cursor_be16(&c);
    zn_header next = zn_layers_port(destination);
    if (next == ZN_HEADER_TRANSPORT)
        next = zn_layers_port(source);
    zn_cursor_skip(&c, 2);
    if (ZN_LIKELY(next == ZN_HEADER_TRANSPORT) || source == ZN_DNS_PORT ||
        destination == ZN_DNS_PORT || !zn_cursor_ok(&c) || length < 8 ||
        length > l->ip.payload_wire)
        return zn_layers_go(l, ZN_HEADER_TRANSPORT);
    l->unsure = true;
    l->plain.ip = l->ip;
    l->plain.tunnel_count = l->tunnel_count;
    l->plain.seen = l->seen;
    l->missing = l->ip.payload_wire - 8u - (uint32_t)zn_cursor_left(&c);
    l->c = c;
    zn_layers_narrow(l, length - 8u);
    return zn_layers_go(l, next);
}

/* An Ethernet frame with an IP packet or a VLAN's tag lies at the cursor. Reserved bits are ignored
 * on receipt, but where they are set, other protocols need to be told apart by what follows. */
static bool is_frame_with_ip(zn_cursor c)
{
    uint16_t type;
    uint8_t version;
    zn_cursor_skip(&c, 12);
    type = zn_cursor_be16(&c);
    version = zn_cursor_u8(&c) >> 4;
    if (!zn_cursor_ok(&c))
        return false;
    return (type == 0x0800 && version == 4) || (type == 0x86dd && version == 6) || type == 0x8100 ||
           type == 0x88a8;
}

/* RFC 7348; with a group policy (bit 0x80), or a next protocol (0x04,
 * draft-ietf-nvo3-vxlan-gpe). */
zn_stat zn_peel_vxlan(zn_layers *l)
{
    uint8_t flags = zn_cursor_u8(&l->c);
    uint32_t reserved = zn_cursor_be24(&l->c);
    bool strange = (flags & 0x73) != 0 || ((flags & 0x84) == 0 && reserved != 0);
    zn_cursor_skip(&l->c, 4);
    if ((flags & 0x08) == 0 || (strange && ((flags & 0x04) != 0 || !is_frame_with_ip(l->c))))
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_VXLAN);
    if ((flags & 0x04) == 0)
        return zn_layers_go(l, ZN_HEADER_ETHERNET);
    return zn_layers_nsh_next(l, reserved & 0xff, NOT_THIS);
}

/* RFC 8926. */
zn_stat zn_peel_geneve(zn_layers *l)
{
    uint8_t version_and_options = zn_cursor_u8(&l->c);
    uint8_t flags = zn_cursor_u8(&l->c);
    uint16_t type = zn_cursor_be16(&l->c);
    zn_cursor_skip(&l->c, 4u + 4u * (version_and_options & 0x3f));
    if (version_and_options >> 6 != 0 || (flags & 0x80) != 0 || type <= 1500 ||
        !zn_cursor_ok(&l->c))
        return NOT_THIS;
    if ((flags & 0x3f) != 0 &&
        !(type == 0x6558 ? is_frame_with_ip(l->c) : zn_layers_looks_like_ip(l)))
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_GENEVE);
    return zn_layers_ethertype(l, type);
}

/* 3GPP TS 29.281: a user's packet is message 255, behind extension headers if there are any. */
zn_stat zn_peel_gtp(zn_layers *l)
{
    uint8_t flags = zn_cursor_u8(&l->c);
    uint8_t message = zn_cursor_u8(&l->c);
    uint16_t length = zn_cursor_be16(&l->c);
    uint8_t next = 0;
    zn_cursor_skip(&l->c, 4); /* tunnel endpoint */
    if ((flags & 0xf0) != 0x30 || message != 255 || length > zn_layers_wire(l))
        return NOT_THIS;
    zn_layers_narrow(l, length);
    if ((flags & 0x07) != 0) {
        zn_cursor_skip(&l->c, 3); /* sequence number, N-PDU number */
        next = zn_cursor_u8(&l->c);
        if ((flags & 0x04) == 0)
            next = 0;
    }
    while (next != 0 && zn_cursor_ok(&l->c)) { /* at least four bytes a turn */
        uint8_t words = zn_cursor_u8(&l->c);
        zn_cursor_skip(&l->c, words == 0 ? SIZE_MAX : 4u * words - 2u);
        next = zn_cursor_u8(&l->c);
    }
    if (!zn_layers_looks_like_ip(l))
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_GTP);
    return zn_layers_go(l, ZN_HEADER_IP);
}

/* RFC 4380 5.1.1: authentication and origin may come before the IPv6 packet; RFC 6081's trailers
 * behind it are no part of it. */
zn_stat zn_peel_teredo(zn_layers *l)
{
    zn_cursor ahead = l->c;
    uint16_t indication = zn_cursor_be16(&ahead);
    if (indication == 1) {
        uint8_t client_bytes = zn_cursor_u8(&ahead);
        uint8_t value_bytes = zn_cursor_u8(&ahead);
        zn_cursor_skip(&ahead, 9u + client_bytes + value_bytes);
        l->c = ahead;
        indication = zn_cursor_be16(&ahead);
    }
    if (indication == 0)
        zn_cursor_skip(&l->c, 8);
    ahead = l->c;
    if (zn_cursor_u8(&ahead) >> 4 != 6 || !zn_layers_looks_like_ip(l))
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_TEREDO);
    return zn_layers_go(l, ZN_HEADER_IP);
}

/* RFC 2661: data messages of version 2, which carry PPP. */
zn_stat zn_peel_l2tp(zn_layers *l)
{
    uint16_t flags = zn_cursor_be16(&l->c);
    zn_cursor ahead;
    uint8_t protocol;
    if ((flags & 0xb4ff) != 0x0002) /* a control message, another version, or reserved bits */
        return NOT_THIS;
    if ((flags & 0x4000) != 0)
        zn_cursor_skip(&l->c, 2); /* length */
    zn_cursor_skip(&l->c, 4);     /* tunnel, session */
    if ((flags & 0x0800) != 0)
        zn_cursor_skip(&l->c, 4); /* sequence numbers */
    if ((flags & 0x0200) != 0) {
        uint16_t offset = zn_cursor_be16(&l->c);
        zn_cursor_skip(&l->c, offset);
    }
    ahead = l->c;
    protocol = zn_cursor_u8(&ahead);
    if (protocol == 0xff) {
        if (zn_cursor_u8(&ahead) != 0x03)
            return NOT_THIS;
        protocol = zn_cursor_u8(&ahead);
    }
    if (protocol % 2 == 0 && zn_cursor_u8(&ahead) % 2 == 0) /* no PPP protocol number */
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_L2TP);
    return zn_layers_go(l, ZN_HEADER_PPP);
}

/* draft-massar-v6ops-ayiya: who sends, a signature, and the packet. */
zn_stat zn_peel_ayiya(zn_layers *l)
{
    uint8_t identity = zn_cursor_u8(&l->c);
    uint8_t signature = zn_cursor_u8(&l->c);
    uint8_t opcode = zn_cursor_u8(&l->c) & 0x0f;
    uint8_t protocol = zn_cursor_u8(&l->c);
    zn_cursor_skip(&l->c, 4u + (1u << (identity >> 4)) + 4u * (signature >> 4));
    if (opcode != 1 || (protocol != 4 && protocol != 41) || !zn_layers_looks_like_ip(l))
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_AYIYA);
    return zn_layers_go(l, ZN_HEADER_IP);
}

/* RFC 5415 4.3: 802.3 or, with T set, 802.11 frames, which some controllers send with the two bytes
 * of their frame control swapped. */
zn_stat zn_peel_capwap(zn_layers *l)
{
    uint8_t prefix = zn_cursor_u8(&l->c);
    uint32_t bits = zn_cursor_be24(&l->c);
    uint32_t words = bits >> 19;
    bool native = (bits & 0x100) != 0;
    if (prefix != 0 || words < 2 || (bits & 0x0f) != 0) /* DTLS, keep-alive, reserved bits */
        return NOT_THIS;
    zn_cursor_skip(&l->c, 4u * words - 4u);
    if (!zn_cursor_ok(&l->c))
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_CAPWAP);
    if ((bits & 0x80) != 0)
        return ZN_STAT_DROP_LINK_FRAGMENT;
    return zn_layers_go(l, native ? ZN_HEADER_WIFI_SWAPPED : ZN_HEADER_ETHERNET);
}

/* RFC 9300. */
zn_stat zn_peel_lisp(zn_layers *l)
{
    zn_cursor_skip(&l->c, 8);
    if (!zn_layers_looks_like_ip(l))
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_LISP);
    return zn_layers_go(l, ZN_HEADER_IP);
}

/* RFC 7510. Behind the last label has to lie an IP packet, or a pseudowire's frame with one. */
zn_stat zn_peel_mpls_udp(zn_layers *l)
{
    zn_cursor labels = l->c, control;
    while ((zn_cursor_be32(&l->c) & 0x100) == 0 && zn_cursor_ok(&l->c)) /* four bytes a turn */
        continue;
    control = l->c;
    if (zn_cursor_be32(&control) >> 28 != 0)
        control = l->c; /* an address, or an IP packet's version: no control word */
    if (!zn_layers_looks_like_ip(l) && !is_frame_with_ip(l->c) && !is_frame_with_ip(control))
        return NOT_THIS;
    l->c = labels;
    return zn_layers_go(l, ZN_HEADER_MPLS);
}

/* Frames that a sensor passes on: version 1, received or sent, their kind, tagged fields. */
zn_stat zn_peel_tzsp(zn_layers *l)
{
    uint16_t version_and_type = zn_cursor_be16(&l->c);
    uint16_t kind = zn_cursor_be16(&l->c);
    uint8_t tag = zn_cursor_u8(&l->c);
    while (tag != 1 && zn_cursor_ok(&l->c)) { /* 1 ends them; at least a byte a turn */
        if (tag != 0) {                       /* 0 is filling */
            uint8_t length = zn_cursor_u8(&l->c);
            zn_cursor_skip(&l->c, length);
        }
        tag = zn_cursor_u8(&l->c);
    }
    if (version_and_type >> 8 != 1 || (version_and_type & 0xfe) != 0 || !zn_cursor_ok(&l->c))
        return NOT_THIS;
    if (kind != 1 && kind != 18 && kind != 119)
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_TZSP);
    return zn_layers_go(l, kind == 1    ? ZN_HEADER_ETHERNET
                           : kind == 18 ? ZN_HEADER_WIFI
                                        : ZN_HEADER_PRISM);
}
