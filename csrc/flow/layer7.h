/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a TCP flow beside its entry in a table with ZN_SET_LAYER7: messages, which flow/tcp
 * counts, and bytes that analyzer/ lays out.
 */
#ifndef ZN_FLOW_LAYER7_H
#define ZN_FLOW_LAYER7_H

#include "util/base.h"

#define ZN_FLOW_LAYER7_BYTES 104 /* analyzer/'s zn_layer7_state */

/*
 * Most segments do not touch these counts. Their zn_flow_side has `messages`, which will be added.
 * If its message_is_next or sent_is_next is true, its next_seq replaces message_seq or sent_seq.
 * Packets after the handshake touch the first cache line only.
 */
typedef struct zn_flow_layer7 {
    uint32_t messages[2];    /* by tuple index, as the next two; ended by PSH or FIN */
    uint32_t message_seq[2]; /* where the last one ended */
    uint32_t sent_seq[2];    /* where the last segment that was no repetition ended */
    _Alignas(8) uint8_t state[ZN_FLOW_LAYER7_BYTES];
} zn_flow_layer7;
_Static_assert(sizeof(zn_flow_layer7) == 128, "two cache lines");

#endif
