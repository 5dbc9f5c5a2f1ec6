/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evidence that the clients of QUIC connections are real.
 *
 * The client addresses a packet to the ID that the server chose, which it can only know
 * from the server's packets. Taps may reorder the directions: an answer counts if it was captured
 * at most ZN_EARLY_ANSWER_NS before the client's first Initial, or so long after such a packet.
 *
 * Only a packet that authenticates shows that ID: other protocols repeat in their answers what they
 * were sent, up to 16 bytes of their start, which is all that a long header takes. A server that
 * echoes whole datagrams sends back what does authenticate, so no ID that the client ever sent, as
 * its own or another's, proves anything.
 *
 * Some servers make their ID out of the client's, by changing a byte, or choose one of few bytes or
 * none: a sender with a forged address can guess those. There the evidence is how much the server
 * sends: before it has proof of the client's address it must not send more than three times what it
 * received (RFC 9000 8.1).
 */
#ifndef ZN_ANALYZER_QUIC_EVIDENCE_H
#define ZN_ANALYZER_QUIC_EVIDENCE_H

#include "analyzer/quic_flow.h"

/* Notes an ID of the client's making, which is no evidence. */
void zn_quic_note_own(const zn_packet_context *s, zn_span id);
/* Notes the IDs in a packet of the client's, or, if not `counts`, of anybody in its name. */
void zn_quic_note_sent(const zn_packet_context *s, const zn_quic_packet *packet, bool counts);
/* Notes that a client's packet is addressed to the ID that the server chose. */
void zn_quic_note_addressed(zn_quic_flow *q, const zn_quic_packet *packet);
/* Keeps the start of a packet with a short header, which does not say how long the ID is. */
void zn_quic_note_early_start(const zn_packet_context *s, zn_cursor c);
/* Returns true if the server of the connection sent the packet. Takes its ID from the packet. */
bool zn_quic_note_answered(const zn_packet_context *s, const zn_quic_packet *packet);

/* Keeps a datagram of a flow whose other side sent none so far. */
void zn_quic_keep_early(const zn_packet_context *s);
/* Returns the slot for an early answer of the flow. */
zn_quic_early *zn_quic_early_slot(const zn_packet_context *s);
/* Returns true if the slot holds an answer to the packet's sender that is at most
 * ZN_EARLY_ANSWER_NS old. */
bool zn_quic_is_early(const zn_packet_context *s, const zn_quic_early *early);

#endif
