/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The request line of SIP, and the fields by which a response names its request (RFC 3261). */
#ifndef ZN_PROTO_SIP_H
#define ZN_PROTO_SIP_H

#include "util/cursor.h"

/* A message. Spans borrow its bytes. */
typedef struct zn_sip_message {
    bool is_response;
    zn_span call_id, sequence; /* values of Call-ID and CSeq, which a response repeats */
} zn_sip_message;

/* Reads the head of a message. Returns ZN_DONE; ZN_OTHER if the bytes begin no message of SIP; or
 * ZN_MALFORMED if the head has no end, or not one Call-ID and one CSeq. */
zn_parse zn_sip_read(zn_span bytes, zn_sip_message *out);

/* Finds the host of the request URI, without user, port and parameters, in a request that may stand
 * outside of a call. Returns ZN_DONE; ZN_OTHER if the bytes begin no such request, or its URI names
 * no host; or ZN_MALFORMED. */
zn_parse zn_sip_request_host(zn_span bytes, zn_span *host);

#endif
