/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encrypts the row that goes with a vote, so that its length says little: AES-256-GCM over
 *
 *     u16 (little endian) length of the row, the row, zeros up to a size class
 *
 * and the 16 bytes of the tag. A size class is 128, 256, 512, 1024, 2048 or 4096 bytes: a row of up
 * to 126 bytes, as most observations are, is as long as any other such row. The nonce is 12 bytes
 * that the caller chooses for each message, with the index of the vote (32 bits, little endian)
 * added to the last four by exclusive or. Associated data is the place of the vote, 22 bytes:
 * probe, sequence, shard, index, little endian. A row that was moved to another place does not
 * open.
 */
#ifndef ZN_CRYPTO_ROW_CIPHER_H
#define ZN_CRYPTO_ROW_CIPHER_H

#include "util/base.h"
#include "zanon/zanon.h"

#define ZN_ROW_KEY_BYTES 32
#define ZN_ROW_NONCE_BYTES 12
#define ZN_ROW_TAG_BYTES 16
#define ZN_ROW_MAX 4094 /* longest row */
#define ZN_SEALED_MAX (ZN_ROW_MAX + 2 + ZN_ROW_TAG_BYTES)

typedef struct zn_row_cipher zn_row_cipher;

/* Place of a vote: its message, and its index in the message. */
typedef struct zn_row_place {
    uint64_t probe, sequence;
    uint16_t shard;
    uint32_t index;
} zn_row_place;

/* Returns how long a row of n (<= ZN_ROW_MAX) bytes is once it is sealed. */
size_t zn_row_sealed_bytes(size_t n);

/* seals: whether it seals rows, or opens them. Returns 0, -ZN_ERR_CAPACITY or -ZN_ERR_CRYPTO. */
int zn_row_cipher_open(zn_row_cipher **out, bool seals, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_row_cipher_close(zn_row_cipher *c);

/* Takes the key of the rows to come; false when libcrypto fails. */
bool zn_row_cipher_key(zn_row_cipher *c, const uint8_t key[ZN_ROW_KEY_BYTES]);

/* Writes zn_row_sealed_bytes(row.n) bytes into out. False for a row that is too long, or when
 * libcrypto fails. A nonce serves one message under one key. */
bool zn_row_cipher_seal(zn_row_cipher *c, const uint8_t nonce[ZN_ROW_NONCE_BYTES],
                        const zn_row_place *place, zn_span row, uint8_t *out);

/* Opens a sealed row; *row is valid until the next call. Returns false if the row was not sealed
 * with this key and place. */
bool zn_row_cipher_unseal(zn_row_cipher *c, const uint8_t nonce[ZN_ROW_NONCE_BYTES],
                          const zn_row_place *place, zn_span sealed, zn_span *row);

#endif
