/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a TCP flow has beside its entry when its table was asked for ZN_SET_LAYER7: the messages,
 * which flow/tcp counts, and bytes that analyzer/ lays out.
 */
#ifndef ZN_FLOW_LAYER7_H
#define ZN_FLOW_LAYER7_H

#include "util/base.h"

#define ZN_FLOW_LAYER7_BYTES 104 /* of analyzer/: zn_layer7_state */

/*
 * Most segments do not touch it: what they change is kept in their zn_flow_side, where messages,
 * message_is_next and sent_is_next tell what is to be added to or taken instead of these three
 * here. The first cache line is what a packet after the handshake touches.
 */
typedef struct zn_flow_layer7 {
    uint32_t messages[2];    /* by tuple index, as all three; ended by PSH or FIN */
    uint32_t message_seq[2]; /* where the last one ended */
    uint32_t sent_seq[2];    /* where the last segment that was not sent before ended */
    _Alignas(8) uint8_t state[ZN_FLOW_LAYER7_BYTES];
} zn_flow_layer7;
_Static_assert(sizeof(zn_flow_layer7) == 128, "two cache lines");

#endif
