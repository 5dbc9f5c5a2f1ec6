/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peelers of the headers between Ethernet and IP and between IP and IP: MPLS, GRE and its payloads,
 * NSH, and the tunnels in UDP.
 */
#include "packet/layers.h"
#include "util/protocol.h"
#include "zanon/zanon.h"

#define LABELS_MAX 16 /* MPLS; networks use up to about ten */

enum { GRE_CHECKSUM = 0x8000, GRE_ROUTING = 0x4000, GRE_KEY = 0x2000, GRE_SEQUENCE = 0x1000 };
enum { GRE_ACKNOWLEDGES = 0x0080, GRE_VERSION = 0x0007 };

/* Evidence in bytes 12 and 13 that an Ethernet frame starts `skip` bytes after the cursor. */
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
 * No field gives the protocol behind the last label. IP is recognised by its version and lengths;
 * all else is read as a pseudowire's Ethernet (RFC 4448), with a control word (RFC 4385) or
 * without. Two bytes of a MAC address are often a possible length, as in 52:54:00:12:34:56, and
 * hardly ever a known type.
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

/* Goes to the header that GRE's protocol type announces: an EtherType, or a number of its own. */
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

/* RFC 2784 and 2890 with RFC 1701's routes. Version 1 is PPTP's (RFC 2637), or MikroTik's EoIP. */
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
    if ((last & 1) != 0) /* a platform-specific subheader follows */
        zn_cursor_skip(&l->c, 8);
    return zn_layers_go(l, ZN_HEADER_ETHERNET);
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
 * RFC 2004: no second IP header, only those fields of the first that were changed. The first one's
 * current addresses are the tunnel's ends.
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

/* ---- in UDP ---- */

/*
 * A port is only a hint: other traffic uses the same number, as an ephemeral port too. Each peeler
 * therefore checks its header as far as the format allows. It returns NOT_THIS for another
 * protocol, and for the tunnel's own messages: the packet is then the plain datagram.
 */
#define NOT_THIS ZN_STAT_DROP_ENCAPSULATION_MALFORMED

zn_stat zn_peel_udp(zn_layers *l)
{
    zn_cursor c = l->ip.payload;
    uint16_t source = zn_cursor_be16(&c);
    uint16_t destination = zn_cursor_be16(&c);
    uint16_t length = zn_cursor_be16(&c);
    zn_header next = zn_layers_port(l->ports, destination);
    if (next == ZN_HEADER_TRANSPORT)
        next = zn_layers_port(l->ports, source);
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

/* Returns true when an Ethernet frame with an IP packet or a VLAN tag lies at the cursor. Reserved
 * bits are ignored on receipt; but where they are set, only the bytes after them tell the tunnel
 * from other protocols. */
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

/* 3GPP TS 29.281: a user's packet is in message 255, after extension headers if there are any. */
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

/* RFC 4380 5.1.1: authentication and origin may come before the IPv6 packet. RFC 6081's trailers
 * after it are no part of it. */
zn_stat zn_peel_teredo(zn_layers *l)
{
    zn_cursor peek = l->c;
    uint16_t indication = zn_cursor_be16(&peek);
    if (indication == 1) {
        uint8_t client_bytes = zn_cursor_u8(&peek);
        uint8_t value_bytes = zn_cursor_u8(&peek);
        zn_cursor_skip(&peek, 9u + client_bytes + value_bytes);
        l->c = peek;
        indication = zn_cursor_be16(&peek);
    }
    if (indication == 0)
        zn_cursor_skip(&l->c, 8);
    peek = l->c;
    if (zn_cursor_u8(&peek) >> 4 != 6 || !zn_layers_looks_like_ip(l))
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_TEREDO);
    return zn_layers_go(l, ZN_HEADER_IP);
}

/* RFC 2661: data messages of version 2, which carry PPP. */
zn_stat zn_peel_l2tp(zn_layers *l)
{
    uint16_t flags = zn_cursor_be16(&l->c);
    zn_cursor peek;
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
    peek = l->c;
    protocol = zn_cursor_u8(&peek);
    if (protocol == 0xff) {
        if (zn_cursor_u8(&peek) != 0x03)
            return NOT_THIS;
        protocol = zn_cursor_u8(&peek);
    }
    if (protocol % 2 == 0 && zn_cursor_u8(&peek) % 2 == 0) /* no PPP protocol number */
        return NOT_THIS;
    zn_layers_saw(l, ZN_STAT_IN_L2TP);
    return zn_layers_go(l, ZN_HEADER_PPP);
}

/* draft-massar-v6ops-ayiya: an identity, a signature, and the packet. */
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

/* RFC 5415 4.3: 802.3 or, with T set, 802.11 frames. Some controllers send the latter with the two
 * bytes of their frame control swapped. */
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

/* Passes over MPLS labels. Returns true if an IP packet follows the last label, or a pseudowire's
 * frame with an IP packet. */
static bool skip_labels_before_ip(zn_layers *l)
{
    zn_cursor control;
    while ((zn_cursor_be32(&l->c) & 0x100) == 0 && zn_cursor_ok(&l->c)) /* four bytes a turn */
        continue;
    control = l->c;
    if (zn_cursor_be32(&control) >> 28 != 0)
        control = l->c; /* no control word, but an address or an IP packet's version */
    return zn_layers_looks_like_ip(l) || is_frame_with_ip(l->c) || is_frame_with_ip(control);
}

/* RFC 7510. */
zn_stat zn_peel_mpls_udp(zn_layers *l)
{
    zn_cursor labels = l->c;
    if (!skip_labels_before_ip(l))
        return NOT_THIS;
    l->c = labels;
    return zn_layers_go(l, ZN_HEADER_MPLS);
}

/* RFC 8086: GRE of version 0 without routes. The bytes behind its header have to fit its protocol
 * type. */
zn_stat zn_peel_gre_udp(zn_layers *l)
{
    zn_cursor header = l->c;
    uint16_t flags = zn_cursor_be16(&l->c), type = zn_cursor_be16(&l->c);
    bool fits;
    if ((flags & ~(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE)) != 0)
        return NOT_THIS;
    zn_cursor_skip(&l->c, 4u * (unsigned)__builtin_popcount(flags));
    switch (type) {
    case 0x0800:
    case 0x86dd:
        fits = zn_layers_looks_like_ip(l);
        break;
    case 0x6558:
        fits = is_frame_with_ip(l->c);
        break;
    case 0x8847:
    case 0x8848:
        fits = skip_labels_before_ip(l);
        break;
    default:
        fits = false;
    }
    if (!fits)
        return NOT_THIS;
    l->c = header;
    return zn_layers_go(l, ZN_HEADER_GRE);
}

/* Frames that a sensor sends on: version 1, received or sent, the frames' kind, tagged fields. */
zn_stat zn_peel_tzsp(zn_layers *l)
{
    uint16_t version_and_type = zn_cursor_be16(&l->c);
    uint16_t kind = zn_cursor_be16(&l->c);
    uint8_t tag = zn_cursor_u8(&l->c);
    while (tag != 1 && zn_cursor_ok(&l->c)) { /* tag 1 ends them; at least one byte a turn */
        if (tag != 0) {                       /* tag 0 is padding */
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

/* Encapsulated remote mirroring of HP's switches: 8 bytes of unknown meaning, 4 bytes with the
 * priority and VLAN of the mirrored frame, and the frame. No field gives the frame's type. */
zn_stat zn_peel_hp_erm(zn_layers *l)
{
    if (ethernet_likeness(l->c, 12) != FRAME_BY_TYPE)
        return NOT_THIS;
    zn_cursor_skip(&l->c, 12);
    zn_layers_saw(l, ZN_STAT_IN_HP_ERM);
    return zn_layers_go(l, ZN_HEADER_ETHERNET);
}

bool zn_tunnel_ports_add(zn_tunnel_ports *ports, uint16_t port, unsigned kind)
{
    static const uint8_t headers[] = {
        [ZN_TUNNEL_VXLAN] = ZN_HEADER_VXLAN,   [ZN_TUNNEL_GENEVE] = ZN_HEADER_GENEVE,
        [ZN_TUNNEL_GTP] = ZN_HEADER_GTP,       [ZN_TUNNEL_TEREDO] = ZN_HEADER_TEREDO,
        [ZN_TUNNEL_L2TP] = ZN_HEADER_L2TP,     [ZN_TUNNEL_AYIYA] = ZN_HEADER_AYIYA,
        [ZN_TUNNEL_CAPWAP] = ZN_HEADER_CAPWAP, [ZN_TUNNEL_LISP] = ZN_HEADER_LISP,
        [ZN_TUNNEL_MPLS] = ZN_HEADER_MPLS_UDP, [ZN_TUNNEL_TZSP] = ZN_HEADER_TZSP,
        [ZN_TUNNEL_HP_ERM] = ZN_HEADER_HP_ERM, [ZN_TUNNEL_GRE] = ZN_HEADER_GRE_UDP};
    if (ports->n == ZN_TUNNEL_PORTS_MAX || kind >= sizeof headers || port == 0 ||
        port == ZN_DNS_PORT)
        return false;
    ports->port[ports->n] = port;
    ports->header[ports->n++] = headers[kind];
    return true;
}
