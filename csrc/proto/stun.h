/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of STUN (RFC 8489 5, 14), which TURN and ICE send as well. */
#ifndef ZN_PROTO_STUN_H
#define ZN_PROTO_STUN_H

#include "util/cursor.h"

typedef enum zn_stun_class {
    ZN_STUN_REQUEST,
    ZN_STUN_INDICATION,
    ZN_STUN_SUCCESS,
    ZN_STUN_ERROR
} zn_stun_class;

/* A message. Spans borrow its bytes. */
typedef struct zn_stun_message {
    zn_stun_class type;
    zn_span transaction; /* its ID, which the response repeats */
    zn_span software;    /* SOFTWARE as sent; empty if it is absent */
} zn_stun_message;

/* Returns the message that the client's bytes of a connection begin with (RFC 8489 6.2.2), or all
 * bytes if they end before the message does. */
zn_span zn_stun_first(zn_span bytes);

/* Reads the message that fills the bytes, such as a datagram. An attribute behind the message's
 * integrity does not count, and of an attribute that comes twice only the first. Returns ZN_DONE;
 * ZN_OTHER if the bytes are no message of RFC 8489; or ZN_MALFORMED. */
zn_parse zn_stun_read(zn_span bytes, zn_stun_message *out);

#endif
