/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The protection of an Initial, as its sender puts it on: for traffic to measure and test with. */
#ifndef ZN_PROTO_QUIC_SEAL_H
#define ZN_PROTO_QUIC_SEAL_H

#include "proto/quic.h"

#define ZN_QUIC_NUMBER_BYTES 2 /* of the packet numbers that are sealed here */

/*
 * Seals the packet of `n` bytes in place: `header` bytes up to the packet number, whose last two
 * bits say that it has ZN_QUIC_NUMBER_BYTES, the number, and at least two bytes of frames. Behind
 * it is room for ZN_QUIC_TAG_BYTES, which are written too. RFC 9001 5.3 and 5.4. False when it is
 * too short or too long, or libcrypto fails: then nothing in it may be used.
 */
bool zn_quic_seal(const zn_quic_keys *keys, uint8_t *packet, size_t header, size_t n);

#endif
