/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tap on the gate: functions by which packet output follows the decisions of the gate. The gate
 * knows nothing else about packet output. Sets of outputs are bits.
 */
#ifndef ZN_RELEASE_GATE_TAP_H
#define ZN_RELEASE_GATE_TAP_H

#include "anonymity/votes.h"

typedef struct zn_gate_tap {
    void *of; /* first argument of each function */
    /* Takes the decision on the vote for the server's address of a flow: `released_in` is the set
     * of outputs that may show the address. */
    void (*addr_decided)(void *of, const zn_vote *v, uint8_t released_in);
    /* Takes the answer to a vote that is a question: enough users share its attribute for the
     * outputs in `shared_in`. */
    void (*peek_answered)(void *of, const zn_vote *v, uint8_t shared_in);
    /* Returns the outputs that may show an attribute of `users` users, which the gate releases at
     * this z. NULL if all outputs need z users; then the gate does not count the users. */
    uint8_t (*outputs_of_release)(void *of, uint64_t users, uint32_t z);
    /* Withholds the packets of a flow that are due at from_ns or later, because the flow's server
     * was a client. */
    void (*server_was_client)(void *of, uint32_t flow, int64_t from_ns);
} zn_gate_tap;

#endif
