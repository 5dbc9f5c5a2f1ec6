/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of requests in datagrams that no analyzer of names reads: SIP and STUN. An attribute
 * votes with the response to its request: the response of SIP has the request's Call-ID and CSeq,
 * the response of STUN has its transaction ID. A response that comes before its request
 * proves nothing.
 */
#ifndef ZN_ANALYZER_EXCHANGE_ATTRIBUTES_H
#define ZN_ANALYZER_EXCHANGE_ATTRIBUTES_H

#include "analyzer/attributes.h"

/* Reads a datagram of a flow that has attributes. */
void zn_exchange_attributes_read(const zn_packet_context *s);
/* Notes a client's response, because an echo of it may look like an answer. */
void zn_exchange_attributes_note(const zn_packet_context *s);

#endif
