/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/quic_seal.h"

#include "proto/quic.h"

#include <openssl/evp.h>

#define PACKET_MAX (1u << 16)
#define SAMPLE_AT 4u /* behind the start of the packet number (RFC 9001 5.4.2) */
#define BLOCK_BYTES 16
#define HIDDEN_BITS 0x0fu /* of a long header's first byte */

static bool encrypt(EVP_CIPHER_CTX *c, const zn_quic_keys *keys, uint8_t *packet, size_t header,
                    size_t n)
{
    uint8_t nonce[ZN_QUIC_IV_BYTES];
    size_t front = header + ZN_QUIC_NUMBER_BYTES;
    int written = 0;
    memcpy(nonce, keys->iv, sizeof nonce);
    for (size_t i = 0; i < ZN_QUIC_NUMBER_BYTES; i++)
        nonce[sizeof nonce - ZN_QUIC_NUMBER_BYTES + i] ^= packet[header + i];
    return EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, keys->key, nonce) == 1 &&
           EVP_EncryptUpdate(c, NULL, &written, packet, (int)front) == 1 &&
           EVP_EncryptUpdate(c, packet + front, &written, packet + front, (int)(n - front)) == 1 &&
           EVP_EncryptFinal_ex(c, packet + n, &written) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, ZN_QUIC_TAG_BYTES, packet + n) == 1;
}

static bool hide_header(EVP_CIPHER_CTX *c, const zn_quic_keys *keys, uint8_t *packet, size_t header)
{
    uint8_t mask[BLOCK_BYTES];
    int written = 0;
    if (EVP_EncryptInit_ex(c, EVP_aes_128_ecb(), NULL, keys->header_key, NULL) != 1 ||
        EVP_EncryptUpdate(c, mask, &written, packet + header + SAMPLE_AT, BLOCK_BYTES) != 1 ||
        written != BLOCK_BYTES)
        return false;
    packet[0] ^= mask[0] & HIDDEN_BITS;
    for (size_t i = 0; i < ZN_QUIC_NUMBER_BYTES; i++)
        packet[header + i] ^= mask[1 + i];
    return true;
}

bool zn_quic_seal(const zn_quic_keys *keys, uint8_t *packet, size_t header, size_t n)
{
    EVP_CIPHER_CTX *context;
    bool ok;
    if (header == 0 || n > PACKET_MAX || n < header + SAMPLE_AT)
        return false;
    context = EVP_CIPHER_CTX_new();
    ok = context != NULL && encrypt(context, keys, packet, header, n) &&
         EVP_CIPHER_CTX_reset(context) == 1 && hide_header(context, keys, packet, header);
    EVP_CIPHER_CTX_free(context);
    return ok;
}
