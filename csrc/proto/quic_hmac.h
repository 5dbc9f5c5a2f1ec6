/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA256 (RFC 2104). What its key costs is paid once, however many hashes are made under
 * it. */
#ifndef ZN_PROTO_QUIC_HMAC_H
#define ZN_PROTO_QUIC_HMAC_H

#include "base/cursor.h"

#include <openssl/sha.h>

/* A key, as SHA-256 stands behind either of its pads. */
typedef struct zn_quic_hmac_key {
    SHA256_CTX inner, outer;
} zn_quic_hmac_key;

/* Prepares a key of at most SHA256_CBLOCK bytes. False when it is longer, or libcrypto fails. */
bool zn_quic_hmac_prepare(zn_quic_hmac_key *h, zn_span key);
/* The HMAC of `bytes`. False when libcrypto fails. */
bool zn_quic_hmac(const zn_quic_hmac_key *h, zn_span bytes, uint8_t out[SHA256_DIGEST_LENGTH]);

#endif
