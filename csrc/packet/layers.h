/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame is a row of headers. A peeler, zn_peel_*(), reads the header at the cursor and names the
 * next one. packet/decode.c has a table of peelers and calls one after the other until the next
 * header is TCP or UDP. Peelers call no peeler: a header inside a header is one more turn of that
 * loop, which counts its turns. packet/layers.c has the steps that peelers share, and calls no
 * peeler either.
 *
 * A peeler returns ZN_STAT_COUNT, or the ZN_STAT_DROP_* counter that says why nothing more can be
 * read. It need not test the cursor's state, because the loop tests it before it uses the result.
 */
#ifndef ZN_PACKET_LAYERS_H
#define ZN_PACKET_LAYERS_H

#include "packet/ip.h"
#include "packet/packet.h"
#include "util/cursor.h"
#include "util/stats.h"

/* Every kind of header: the peeler zn_peel_<name> reads it, ZN_HEADER_<NAME> announces it. */
#define ZN_HEADERS(X)                                                                              \
    X(ETHERNET, ethernet)   /* two MAC addresses, then ETHERTYPE */                                \
    X(ETHERTYPE, ethertype) /* a type field and the header that it announces */                    \
    X(LLC, llc)             /* IEEE 802.2 */                                                       \
    X(FAMILY, family)       /* BSD loopback: an address family */                                  \
    X(SLL, sll)             /* Linux cooked capture */                                             \
    X(SLL2, sll2)           /* its second version */                                               \
    X(JUNIPER, juniper)     /* Junos' prefix of a frame */                                         \
    X(FDDI, fddi)                                                                                  \
    X(TOKEN_RING, token_ring)                                                                      \
    X(ARCNET, arcnet) /* from the type field on */                                                 \
    X(PPP, ppp)                                                                                    \
    X(CISCO_HDLC, cisco_hdlc)                                                                      \
    X(FRAME_RELAY, frame_relay)                                                                    \
    X(PPPOE, pppoe)                                                                                \
    X(NFLOG, nflog)                                                                                \
    X(PFLOG, pflog)                                                                                \
    X(WIFI, wifi)                 /* 802.11 */                                                     \
    X(WIFI_SWAPPED, wifi_swapped) /* 802.11, its frame control perhaps swapped */                  \
    X(RADIOTAP, radiotap)                                                                          \
    X(PRISM, prism) /* or AVS: the first word says which */                                        \
    X(PPI, ppi)                                                                                    \
    X(PKTAP, pktap)                                                                                \
    X(MACSEC, macsec)                                                                              \
    X(ARISTA, arista) /* Arista's own, after its EtherType */                                      \
    X(TRILL, trill)                                                                                \
    X(MPLS, mpls)                                                                                  \
    X(GRE, gre)                                                                                    \
    X(ERSPAN2, erspan2)                                                                            \
    X(ERSPAN3, erspan3)                                                                            \
    X(NSH, nsh)                                                                                    \
    X(ETHERIP, etherip)                                                                            \
    X(MINIMAL, minimal) /* minimal encapsulation within IP */                                      \
    X(VXLAN, vxlan)                                                                                \
    X(GENEVE, geneve)                                                                              \
    X(GTP, gtp)                                                                                    \
    X(TEREDO, teredo)                                                                              \
    X(L2TP, l2tp)                                                                                  \
    X(AYIYA, ayiya)                                                                                \
    X(CAPWAP, capwap)                                                                              \
    X(LISP, lisp)                                                                                  \
    X(MPLS_UDP, mpls_udp) /* MPLS, or another protocol on its port */                              \
    X(GRE_UDP, gre_udp)   /* GRE, or another protocol on its port */                               \
    X(TZSP, tzsp)                                                                                  \
    X(HP_ERM, hp_erm) /* mirrored frames of HP's switches */                                       \
    X(IP, ip)                                                                                      \
    X(UDP, udp) /* a UDP header, which a tunnel may follow */

typedef enum zn_header {
    ZN_HEADER_UNKNOWN, /* the header of a link type that is not decoded */
#define ZN_HEADER_ENUM(name, function) ZN_HEADER_##name,
    ZN_HEADERS(ZN_HEADER_ENUM)
#undef ZN_HEADER_ENUM
        ZN_HEADER_TRANSPORT /* the end of the row: TCP or UDP in `ip` */
} zn_header;

#define ZN_ETHERTYPE_LENGTH_MAX 1500 /* a smaller number is IEEE 802.3's length, and LLC follows */

/* The state of decoding a frame. */
typedef struct zn_layers {
    zn_cursor c;      /* at the next header */
    uint32_t missing; /* bytes on the wire after the cursor's end, not captured */
    zn_header next;
    const zn_tunnel_ports *ports;      /* zn_packet_outer.ports */
    uint32_t seen;                     /* zn_packet.encapsulations */
    zn_ip ip;                          /* the innermost IP header so far */
    zn_tunnel tunnels[ZN_TUNNELS_MAX]; /* the outermost first */
    uint32_t tunnel_count;
    zn_layer_stack *stack; /* NULL if the positions of headers are not wanted */
    bool in_ip;            /* `ip` holds a header */
    bool unsure; /* a UDP port announced a tunnel, and no IP header has been read in it yet */
    struct {     /* with `unsure`: the state at the UDP header, if it is no tunnel */
        zn_ip ip;
        uint32_t tunnel_count;
        uint32_t seen;
    } plain;
} zn_layers;

#define ZN_PEEL_DECLARE(name, function) zn_stat zn_peel_##function(zn_layers *l);
ZN_HEADERS(ZN_PEEL_DECLARE)
#undef ZN_PEEL_DECLARE

/* Ends a peeler, with the header that comes next. */
static inline zn_stat zn_layers_go(zn_layers *l, zn_header next)
{
    l->next = next;
    return ZN_STAT_COUNT;
}

/* Notes that the frame has this encapsulation, a ZN_STAT_IN_* counter. */
static inline void zn_layers_saw(zn_layers *l, zn_stat encapsulation)
{
    l->seen |= UINT32_C(1) << (encapsulation - ZN_STAT_IN_FIRST);
}

/* Notes that a header of this kind starts at the cursor. */
static inline void zn_layers_note(zn_layers *l, zn_layer_kind kind, uint16_t number)
{
    if (ZN_UNLIKELY(l->stack != NULL))
        zn_layer_stack_note(l->stack, kind, l->c.p, number);
}

/* Returns how many bytes there were on the wire from the cursor on. */
static inline uint32_t zn_layers_wire(const zn_layers *l)
{
    return (uint32_t)zn_cursor_left(&l->c) + l->missing;
}

/* Cuts what is left to the next n bytes on the wire, or to fewer when there are fewer. */
void zn_layers_narrow(zn_layers *l, uint32_t n);

/* Puts `ip` among the tunnels, before another IP header is read. False when there are too many. */
bool zn_layers_nest(zn_layers *l);

/* Goes to the header that an EtherType announces. */
zn_stat zn_layers_ethertype(zn_layers *l, uint16_t type);
/* Goes to the header that the next protocol of NSH and VXLAN-GPE announces (RFC 8300, 2.2); returns
 * `unknown` for other numbers. */
zn_stat zn_layers_nsh_next(zn_layers *l, uint32_t protocol, zn_stat unknown);
/* Goes to the header that a protocol number of `ip` announces. */
zn_stat zn_layers_protocol(zn_layers *l, uint8_t protocol);
/* Goes to the first header of a LINKTYPE_*, after the bytes to skip. */
zn_stat zn_layers_link(zn_layers *l, uint32_t link_type);
/* Returns the tunnel that uses a UDP port by default, or ZN_HEADER_TRANSPORT. */
static inline zn_header zn_layers_known_port(uint16_t port)
{
    switch (port) {
    case 1701:
        return ZN_HEADER_L2TP;
    case 2152:
        return ZN_HEADER_GTP;
    case 3544:
        return ZN_HEADER_TEREDO;
    case 4341:
        return ZN_HEADER_LISP;
    case 4754:
        return ZN_HEADER_GRE_UDP;
    case 4789:
    case 4790: /* with next protocol */
    case 8472: /* Linux, before the number was assigned */
        return ZN_HEADER_VXLAN;
    case 5072:
        return ZN_HEADER_AYIYA;
    case 5247:
        return ZN_HEADER_CAPWAP;
    case 6081:
        return ZN_HEADER_GENEVE;
    case 6635:
        return ZN_HEADER_MPLS_UDP;
    case 7932:
        return ZN_HEADER_HP_ERM;
    case 37008:
        return ZN_HEADER_TZSP;
    default:
        return ZN_HEADER_TRANSPORT;
    }
}

/* Returns the tunnel that uses a UDP port, or ZN_HEADER_TRANSPORT. ports: ports that the operator
 * gave, which are looked up first; may be NULL. */
static inline zn_header zn_layers_port(const zn_tunnel_ports *ports, uint16_t port)
{
    if (ZN_UNLIKELY(ports != NULL))
        for (uint32_t i = 0; i < ports->n; i++)
            if (ports->port[i] == port)
                return (zn_header)ports->header[i];
    return zn_layers_known_port(port);
}

/* Adds a port. Returns false if there is no space, the tunnel is not known, or the port carries
 * none: 0, and the port of DNS. */
bool zn_tunnel_ports_add(zn_tunnel_ports *ports, uint16_t port, unsigned kind);

/* Returns true when an IP header can start at the cursor: version and lengths fit. */
bool zn_layers_looks_like_ip(const zn_layers *l);

#endif
