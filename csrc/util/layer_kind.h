/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of headers around an IP packet, which packet/ finds and build/ builds. */
#ifndef ZN_UTIL_LAYER_KIND_H
#define ZN_UTIL_LAYER_KIND_H

/* The most headers around an IP packet that are noted and built. */
#define ZN_LAYERS_MAX 8u

typedef enum zn_layer_kind {
    ZN_LAYER_NONE,
    ZN_LAYER_OTHER,    /* a header that build/ does not build */
    ZN_LAYER_ETHERNET, /* inside another one: two MAC addresses and a type */
    ZN_LAYER_VLAN,     /* a tag of 802.1Q or 802.1ad, with its own EtherType */
    ZN_LAYER_MPLS,     /* RFC 3032 */
    ZN_LAYER_CONTROL,  /* the control word of a pseudowire, RFC 4385 */
    ZN_LAYER_PPPOE,    /* RFC 2516 */
    ZN_LAYER_PPP,      /* RFC 1661 */
    ZN_LAYER_IP,
    ZN_LAYER_UDP,
    ZN_LAYER_GRE,     /* RFC 2784 */
    ZN_LAYER_ETHERIP, /* RFC 3378 */
    ZN_LAYER_VXLAN,   /* RFC 7348 */
    ZN_LAYER_GENEVE,  /* RFC 8926 */
    ZN_LAYER_GTP,     /* 3GPP TS 29.281 */
    ZN_LAYER_L2TP,    /* RFC 2661 */
    ZN_LAYER_CAPWAP,  /* RFC 5415 */
    ZN_LAYER_LISP     /* RFC 9300 */
} zn_layer_kind;

#endif
