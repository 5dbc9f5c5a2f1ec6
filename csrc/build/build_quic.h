/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUIC datagrams (RFC 9000 17, RFC 9001 5, RFC 8999), each packet in its place:
 *
 *   Initial that opens   First byte but its reserved bits, version, both connection IDs, packet
 *                        number, all lengths. Frames: PADDING, PING, ACK; CRYPTO with the bytes of
 *                        the stream that the caller gives; CONNECTION_CLOSE without its reason.
 *                        Sealed again, so that it authenticates. The token is zeros.
 *   Initial that does not open, 0-RTT, Handshake
 *                        The unprotected bits of the first byte, version, both connection IDs, all
 *                        lengths.
 *   Retry                Likewise; then a token of zeros, and the tag of what was built.
 *   Version Negotiation, a version that is not read
 *                        Likewise, without IDs that are longer than QUIC's.
 *   short header         The unprotected bits of the first byte: form, fixed and spin bit.
 *
 * Bits that are protected, of a packet that is not opened, depend on all of its sealed bytes, so
 * they are not copied.
 */
#ifndef ZN_BUILD_BUILD_QUIC_H
#define ZN_BUILD_BUILD_QUIC_H

#include "build/build.h"
#include "proto/quic_crypto.h"
#include "util/cursor.h"

/* What a side's datagram is built from. */
typedef struct zn_build_quic_choice {
    zn_quic_side sender;
    const zn_span *key_id; /* the connection's keys come from it: the client's first Destination
                              Connection ID, or after a Retry, the Retry's Source Connection ID.
                              NULL: each packet of a client is tried with its own, and the server's
                              are not opened */
    zn_span crypto; /* the sender's handshake stream from offset 0, as it may leave; zeros stand for
                       bytes after its end, and PADDING for frames that begin there */
} zn_build_quic_choice;

/*
 * Builds a datagram of one side. whole: no byte of it is missing from the capture. `out` has
 * datagram.n bytes, all zeros. Where bytes are not QUIC, or the capture cut a header, they stay
 * zeros to the end. Returns how many Initials were sealed again.
 */
unsigned zn_build_quic_datagram(zn_quic *q, zn_span datagram, bool whole,
                                const zn_build_quic_choice *choice, uint8_t *out);

#endif
