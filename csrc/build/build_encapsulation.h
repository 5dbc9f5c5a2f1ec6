/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the outer headers of an IP packet in an Ethernet frame from their fields: tags, labels,
 * sessions and tunnels. Lengths, checksums, and the numbers that announce the next header are
 * computed. Options, extension headers, sequence numbers and reserved bits are not built. So a
 * header may be shorter than the original header.
 */
#ifndef ZN_BUILD_BUILD_ENCAPSULATION_H
#define ZN_BUILD_BUILD_ENCAPSULATION_H

#include "build/build_ip.h"
#include "util/cursor.h"
#include "util/layer_kind.h"

#define ZN_BUILD_OUTER_ADDRESSES 6u /* addresses of three IP headers */
/* Upper bound of the bytes of all headers. The longest header is that of IPv6. */
#define ZN_BUILD_ENCAPSULATION_MAX (ZN_LAYERS_MAX * 40u)

enum {
    ZN_BUILD_LAYER_V6 = 0x01,            /* IP */
    ZN_BUILD_LAYER_DONT_FRAGMENT = 0x02, /* IPv4 */
    ZN_BUILD_LAYER_HAS_ID = 0x04,        /* GRE with a key, or LISP with an instance */
    ZN_BUILD_LAYER_NEXT = 0x08,  /* VXLAN: with a next protocol (draft-ietf-nvo3-vxlan-gpe) */
    ZN_BUILD_LAYER_FRAMED = 0x10 /* PPP: with address and control (RFC 1662) */
};

/* Outer header. Meaning of `number` and `id`, of which - is unused:
 *   VLAN             EtherType of the tag, its TCI
 *   MPLS             -, entry of the label stack
 *   PPPoE            session, -
 *   IP               DSCP and ECN, then TTL, in a byte each; -
 *   UDP              -, source and destination port in 16 bits each
 *   GRE              -, key
 *   VXLAN, Geneve    -, network
 *   GTP              -, tunnel
 *   L2TP             -, tunnel and session in 16 bits each
 *   LISP             -, instance
 * Other kinds have no fields. */
typedef struct zn_build_layer {
    uint8_t kind;  /* zn_layer_kind */
    uint8_t flags; /* ZN_BUILD_LAYER_* */
    uint16_t number;
    uint32_t id;
} zn_build_layer;

typedef struct zn_build_encapsulation {
    /* Headers behind the frame's own Ethernet header, the outermost first; ends with
     * ZN_LAYER_NONE. */
    zn_build_layer layer[ZN_LAYERS_MAX];
    zn_addr address[ZN_BUILD_OUTER_ADDRESSES]; /* source and destination of each IP header */
} zn_build_encapsulation;

/* Returns true if the header `next` can follow `before`; NULL: the frame's own Ethernet header. */
bool zn_build_layer_follows(const zn_build_layer *before, const zn_build_layer *next);

/* Returns the bytes that the headers add to a frame. */
uint32_t zn_build_encapsulation_bytes(const zn_build_encapsulation *e);

/* Writes the start of a frame up to the IP header of the packet. `out` has room for
 * zn_build_encapsulation_bytes and for the frame that zn_build_headers_put writes for h. The bytes
 * of that frame after its Ethernet header are already at the end of `out`. sum is that of
 * zn_build_headers_put. Each header must be able to follow the header before it, and the lengths
 * must fit. */
void zn_build_encapsulation_put(const zn_build_encapsulation *e, const zn_build_headers *h,
                                uint32_t sum, uint8_t *out);

#endif
