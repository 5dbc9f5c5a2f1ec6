/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds what is around an IP packet in an Ethernet frame from its fields: tags, labels, sessions
 * and tunnels. Lengths, checksums, and the number by which each header announces the next one, are
 * computed. All else that a header can hold is not built: options, extension headers, sequence
 * numbers, reserved bits. So a header may be shorter than the one that it stands for.
 */
#ifndef ZN_BUILD_BUILD_ENCAPSULATION_H
#define ZN_BUILD_BUILD_ENCAPSULATION_H

#include "build/build_ip.h"
#include "util/cursor.h"
#include "util/layer_kind.h"

#define ZN_BUILD_OUTER_ADDRESSES 6u /* of three IP headers */
/* Bytes of no fewer headers than there can be: none is longer than one of IPv6. */
#define ZN_BUILD_ENCAPSULATION_MAX (ZN_LAYERS_MAX * 40u)

enum {
    ZN_BUILD_LAYER_V6 = 0x01,            /* IP */
    ZN_BUILD_LAYER_DONT_FRAGMENT = 0x02, /* IPv4 */
    ZN_BUILD_LAYER_HAS_ID = 0x04,        /* GRE: the key; LISP: the instance */
    ZN_BUILD_LAYER_NEXT = 0x08,  /* VXLAN: with a next protocol (draft-ietf-nvo3-vxlan-gpe) */
    ZN_BUILD_LAYER_FRAMED = 0x10 /* PPP: with address and control (RFC 1662) */
};

/* One header. `number` and `id`:
 *   VLAN             EtherType of the tag, its TCI
 *   MPLS             -, the entry of the stack
 *   PPPoE            session, -
 *   IP               DSCP and ECN, then TTL, in a byte each; -
 *   UDP              -, source and destination port in 16 bits each
 *   GRE              -, key
 *   VXLAN, Geneve    -, network
 *   GTP              -, tunnel
 *   L2TP             -, tunnel and session in 16 bits each
 *   LISP             -, instance
 * and none of others. */
typedef struct zn_build_layer {
    uint8_t kind;  /* zn_layer_kind */
    uint8_t flags; /* ZN_BUILD_LAYER_* */
    uint16_t number;
    uint32_t id;
} zn_build_layer;

typedef struct zn_build_encapsulation {
    /* The outermost first, behind the frame's own Ethernet header; up to ZN_LAYER_NONE. */
    zn_build_layer layer[ZN_LAYERS_MAX];
    zn_addr address[ZN_BUILD_OUTER_ADDRESSES]; /* source and destination of each IP header */
} zn_build_encapsulation;

/* Returns whether the header `next` can come right after `before`; NULL: the frame's own Ethernet
 * header. */
bool zn_build_layer_follows(const zn_build_layer *before, const zn_build_layer *next);

/* Returns the bytes that the headers add to a frame. */
uint32_t zn_build_encapsulation_bytes(const zn_build_encapsulation *e);

/* Writes the start of a frame, up to the IP header of the packet in it: `out` has room for
 * zn_build_encapsulation_bytes and all of the frame that zn_build_headers_put writes for h, and
 * what comes after the Ethernet header of that stands at its end already. `sum`: as there. Each
 * header has to follow the one before it, and the lengths have to fit. */
void zn_build_encapsulation_put(const zn_build_encapsulation *e, const zn_build_headers *h,
                                uint32_t sum, uint8_t *out);

#endif
