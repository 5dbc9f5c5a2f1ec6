/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that a probe seals to a reader. Programs in between cannot open them.
 *
 * The reader has a pair of X25519 keys (RFC 7748), in PEM files as `openssl genpkey -algorithm
 * X25519` writes them. A probe draws a pair of its own for each interval, and forgets its secret
 * half at once. The key of a message is
 *
 *     HKDF-SHA256(X25519 of both, empty salt, info = "zanon-net/1/sealed-row" || the probe's public
 *     key || the reader's || u64le probe || u64le sequence || u16le shard)
 *
 * and rows are encrypted under it by crypto/row_cipher with a nonce of zeros, so that the nonce is
 * the index of the vote. A thief of the probe cannot open rows that it sent before.
 *
 * A seal does not prove who sealed the row, because the reader's key is public.
 */
#ifndef ZN_CRYPTO_SEALED_ROW_H
#define ZN_CRYPTO_SEALED_ROW_H

#include "crypto/row_cipher.h"

#define ZN_X25519_BYTES 32
#define ZN_READER_PEM_MAX 512 /* bytes of a key in PEM; more are refused */

/* A PEM text, without NUL. */
typedef struct zn_reader_pem {
    char text[ZN_READER_PEM_MAX];
    size_t n;
} zn_reader_pem;

/* Draws a reader's pair of keys. The caller wipes *secret. Returns 0 or -ZN_ERR_CRYPTO. */
int zn_reader_key_new(zn_reader_pem *secret, zn_reader_pem *public_key, zn_error *err);

/* Reads a reader's public key. Returns 0, or -ZN_ERR_CONFIG for any other text. *err then has the
 * reason, as the end of a sentence about the file. */
int zn_reader_public_read(zn_span pem, uint8_t key[ZN_X25519_BYTES], zn_error *err);

/* ---- probes ---- */

typedef struct zn_row_sealer zn_row_sealer;

/* Returns 0, -ZN_ERR_CONFIG for a key that is no point of use, -ZN_ERR_CAPACITY or
 * -ZN_ERR_CRYPTO. */
int zn_row_sealer_open(zn_row_sealer **out, const uint8_t reader[ZN_X25519_BYTES], zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_row_sealer_close(zn_row_sealer *s);

/* Draws a pair of keys for the next interval. Returns 0 or -ZN_ERR_CRYPTO. */
int zn_row_sealer_renew(zn_row_sealer *s, zn_error *err);
/* The public half of the pair, which goes with each message of the interval. */
const uint8_t *zn_row_sealer_public(const zn_row_sealer *s);

/* Begins a message; place->index is not used. False when libcrypto fails. */
bool zn_row_sealer_begin(zn_row_sealer *s, const zn_row_place *place);
/* Seals the row of a vote of the message, as zn_row_cipher_seal does. */
bool zn_row_sealer_seal(zn_row_sealer *s, uint32_t index, zn_span row, uint8_t *out);

/* ---- readers ---- */

typedef struct zn_row_opener zn_row_opener;

/* path: the reader's secret key, which only its owner may read. Returns 0, -ZN_ERR_CONFIG,
 * -ZN_ERR_IO, -ZN_ERR_CAPACITY or -ZN_ERR_CRYPTO. */
int zn_row_opener_open(zn_row_opener **out, const char *path, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_row_opener_close(zn_row_opener *o);

/* Opens the row at *place of a message with the probe's public key; *row is valid until the next
 * call. Returns false if the row was not sealed to this reader, or was changed. */
bool zn_row_opener_unseal(zn_row_opener *o, const uint8_t probe_key[ZN_X25519_BYTES],
                          const zn_row_place *place, zn_span sealed, zn_span *row);

#endif
