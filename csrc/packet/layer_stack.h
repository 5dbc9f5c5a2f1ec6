/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positions of the headers around the innermost IP packet. Decoding notes them for a caller that
 * builds the headers again, and only for frames with such headers: other frames cost nothing.
 */
#ifndef ZN_PACKET_LAYER_STACK_H
#define ZN_PACKET_LAYER_STACK_H

#include "util/cursor.h"
#include "util/layer_kind.h"

typedef struct zn_layer {
    uint16_t at;     /* where its header starts in `bytes`; of a VLAN tag, after the EtherType */
    uint16_t number; /* of a VLAN tag: its EtherType */
    uint8_t kind;    /* zn_layer_kind */
} zn_layer;

typedef struct zn_layer_stack {
    zn_span bytes; /* of the frame, or of a datagram that was put together; borrowed */
    uint32_t n;
    zn_layer layer[ZN_LAYERS_MAX]; /* the outermost first */
} zn_layer_stack;

static inline void zn_layer_stack_start(zn_layer_stack *s, zn_span bytes)
{
    s->bytes = bytes;
    s->n = 0;
}

/* Notes a header that starts at `header`, which lies in s->bytes. If there are too many headers,
 * all earlier headers are merged into one header of the kind OTHER, which is not built. */
static inline void zn_layer_stack_note(zn_layer_stack *s, zn_layer_kind kind, const uint8_t *header,
                                       uint16_t number)
{
    size_t at = (size_t)(header - s->bytes.p);
    if (s->n == ZN_LAYERS_MAX || at > UINT16_MAX) {
        s->layer[0] = (zn_layer){0, 0, ZN_LAYER_OTHER};
        s->n = 1;
    }
    if (at <= UINT16_MAX)
        s->layer[s->n++] = (zn_layer){(uint16_t)at, number, (uint8_t)kind};
}

/* Removes the innermost IP header and the headers noted after it, because they are the packet
 * itself. If that header was merged with others, the headers left are of a payload that was
 * mistaken for a tunnel. */
static inline void zn_layer_stack_end(zn_layer_stack *s)
{
    uint32_t n = s->n;
    while (n != 0 && s->layer[n - 1].kind != ZN_LAYER_IP)
        n--;
    if (n != 0)
        s->n = n - 1;
    else if (s->n != 0)
        s->n = 1;
}

#endif
