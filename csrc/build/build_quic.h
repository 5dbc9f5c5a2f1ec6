/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUIC datagrams (RFC 9000 17, RFC 9001 5, RFC 8999), with each packet at its place:
 *
 *   Initial that opens   First byte without its reserved bits, version, both connection IDs, packet
 *                        number, all lengths. Frames: PADDING, PING, ACK; CRYPTO with the bytes of
 *                        the stream that the caller gives; CONNECTION_CLOSE without its reason. The
 *                        packet is sealed again, so that it authenticates. The token is zeros.
 *   Initial that does not open, 0-RTT, Handshake
 *                        Unprotected bits of the first byte, version, both connection IDs, all
 *                        lengths.
 *   Retry                Unprotected bits of the first byte, version, both connection IDs, a token
 *                        of zeros, and the tag of the built packet.
 *   Version Negotiation, unknown version
 *                        Unprotected bits of the first byte, version, and connection IDs of at most
 *                        the length of a QUIC connection ID.
 *   short header         Unprotected bits of the first byte: form, fixed and spin bit.
 *
 * The protected bits of a packet that does not open depend on all of its sealed bytes. So they are
 * not copied.
 */
#ifndef ZN_BUILD_BUILD_QUIC_H
#define ZN_BUILD_BUILD_QUIC_H

#include "build/build.h"
#include "proto/quic_crypto.h"
#include "util/cursor.h"

/* Input for the datagram of a side. */
typedef struct zn_build_quic_choice {
    zn_quic_side sender;
    /* Connection ID from which the connection's keys are derived: the client's first Destination
     * Connection ID, or after a Retry, the Retry's Source Connection ID. NULL: each packet of a
     * client is tried with its own ID, and packets of the server are not opened. */
    const zn_span *key_id;
    /* Handshake stream with which the sender leaves, from offset 0. Zeros replace bytes behind its
     * end, and PADDING replaces frames that begin there. */
    zn_span crypto;
} zn_build_quic_choice;

/*
 * Builds a datagram of one side. With `whole`, the capture has all of its bytes. `out` has
 * datagram.n bytes, all zeros. From bytes that are not QUIC, or a header that the capture cut, the
 * rest stays zeros. Returns the number of Initials that were sealed again.
 */
unsigned zn_build_quic_datagram(zn_quic *q, zn_span datagram, bool whole,
                                const zn_build_quic_choice *choice, uint8_t *out);

#endif
