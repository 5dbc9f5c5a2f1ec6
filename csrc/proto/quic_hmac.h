/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA256 (RFC 2104) of texts shorter than a block of SHA-256. What its key costs is paid once,
 * however many hashes are made under it. */
#ifndef ZN_PROTO_QUIC_HMAC_H
#define ZN_PROTO_QUIC_HMAC_H

#include "proto/quic.h"
#include "util/cursor.h"

#include <openssl/sha.h>

#define ZN_QUIC_HMAC_TEXT_MAX 55
#define ZN_QUIC_HMAC_TEXTS 3 /* most texts of one call */

/* A key, as SHA-256 stands behind either of its pads. */
typedef struct zn_quic_hmac_key {
    SHA256_CTX inner, outer;
} zn_quic_hmac_key;

/* A text as the last block that SHA-256 hashes behind a key's pad (FIPS 180-4 5.1.1). */
typedef struct zn_quic_hmac_text {
    uint8_t byte[ZN_QUIC_HMAC_TEXT_MAX + 1]; /* the text, a bit that is set, zeros */
    uint8_t bits[8];                         /* of the pad and the text together, highest first */
} zn_quic_hmac_text;
_Static_assert(sizeof(zn_quic_hmac_text) == SHA256_CBLOCK, "a text is one block");

#define ZN_QUIC_HMAC_BITS(n) (8 * (SHA256_CBLOCK + (n)))
/* The text that is a string literal, as an initializer. */
#define ZN_QUIC_HMAC_TEXT(text)                                                                    \
    {text "\x80",                                                                                  \
     {[6] = ZN_QUIC_HMAC_BITS(sizeof(text) - 1) >> 8,                                              \
      [7] = ZN_QUIC_HMAC_BITS(sizeof(text) - 1) & 0xff}}

/* Prepares a key of at most SHA256_CBLOCK bytes. False when it is longer, or libcrypto fails. */
bool zn_quic_hmac_prepare(zn_quic_hmac_key *h, zn_span key);
/* The text of at most ZN_QUIC_HMAC_TEXT_MAX bytes. */
zn_quic_hmac_text zn_quic_hmac_text_of(zn_span bytes);
/* The HMACs of n texts, at most ZN_QUIC_HMAC_TEXTS. */
void zn_quic_hmac(const zn_quic_hmac_key *h, const zn_quic_hmac_text *texts, size_t n,
                  zn_quic_secret *out);

#endif
