/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Google's QUIC before TLS 1.3, of which no RFC exists: the packets of a handshake in the versions
 * Q043, Q046 and Q050, and the messages CHLO and REJ in them.
 *
 * Packets of Q043 and Q046 are not encrypted. They carry a hash that anybody can make (FNV-1a), but
 * that an echo of the other side's packet does not have, because the sender's side is hashed, too.
 * Q050 has long headers and Initial keys like QUIC, with a salt of its own.
 */
#ifndef ZN_PROTO_GQUIC_H
#define ZN_PROTO_GQUIC_H

#include "proto/quic_crypto.h"
#include "util/cursor.h"

#define ZN_GQUIC_Q043 UINT32_C(0x51303433)
#define ZN_GQUIC_Q046 UINT32_C(0x51303436)
#define ZN_GQUIC_Q050 UINT32_C(0x51303530)
#define ZN_GQUIC_ID_BYTES 8u

/* Returns true for one of the three versions. */
static inline bool zn_gquic_reads(uint32_t version)
{
    return version == ZN_GQUIC_Q043 || version == ZN_GQUIC_Q046 || version == ZN_GQUIC_Q050;
}

/* A packet of a handshake. Spans borrow the datagram. */
typedef struct zn_gquic_packet {
    uint32_t version;
    zn_span id;     /* the connection's; empty if the server left it out */
    zn_span header; /* Q043, Q046: up to the hash. Q050: up to the packet number */
    zn_span sealed; /* Q043, Q046: the hash and the frames. Q050: the rest from the number on */
    uint8_t number_bytes; /* Q043, Q046: of the packet number */
} zn_gquic_packet;

/*
 * Reads the header of a packet in a datagram, of which `whole` says that no byte is missing.
 * version: 0 for a packet of a client, which names its version; else the version of the connection
 * that a server's packet is looked for in. Returns ZN_DONE; ZN_OTHER if the bytes begin no such
 * packet; ZN_NEED_MORE if the capture cut the header; or ZN_MALFORMED.
 */
zn_parse zn_gquic_packet_read(zn_span datagram, bool whole, uint32_t version, zn_gquic_packet *out);

/*
 * Checks the hash of a packet, or removes its protection. `from` is the side that sent it, id the
 * connection ID of the client's first packet. Returns ZN_DONE with *frames, which borrows the
 * packet or q's buffer until the next call; or ZN_OTHER if the packet is not of this side, or was
 * changed: no byte of it may be used.
 */
zn_parse zn_gquic_open(zn_quic *q, const zn_gquic_packet *packet, zn_quic_side from, zn_span id,
                       zn_span *frames);

/* Reads the frames of an opened packet. Returns ZN_DONE with the parts of the handshake's stream in
 * the order of the packet, or ZN_MALFORMED for an unknown frame or a wrong length. */
zn_parse zn_gquic_frames_read(const zn_gquic_packet *packet, zn_span frames,
                              zn_quic_crypto_frames *out);

/* A message of the handshake. Spans borrow its bytes. */
typedef struct zn_gquic_message {
    zn_span name;  /* SNI as sent; empty without an SNI */
    zn_span token; /* STK, the source-address token; empty without an STK */
    size_t bytes;  /* of the message */
} zn_gquic_message;

/* Reads the CHLO at the start of the bytes. Returns ZN_DONE; ZN_NEED_MORE if it is not whole;
 * ZN_OTHER for another message; or ZN_MALFORMED if its tags or offsets do not rise. */
zn_parse zn_gquic_hello_read(zn_span bytes, zn_gquic_message *out);
/* Reads the token of a REJ, as soon as its bytes are there. Returns as zn_gquic_hello_read does. */
zn_parse zn_gquic_rejection_read(zn_span bytes, zn_span *token);

#endif
