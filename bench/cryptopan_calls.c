/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions for test_pseudonyms.py: Crypto-PAn written directly with libcrypto, one call of 32
 * (128) blocks an address; Crypto-PAn of csrc, one address a call; and libcrypto alone, on the
 * number of blocks that csrc encrypts.
 */
#include "crypto/cryptopan.h"

#include <openssl/evp.h>

#define ADDRESS_BITS_MAX 128u
#define AT_ONCE 128u /* addresses of libcrypto alone: their blocks stay in the nearest cache */

static EVP_CIPHER_CTX *open_cipher(const uint8_t *key)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context != NULL && EVP_EncryptInit_ex(context, EVP_aes_128_ecb(), NULL, key, NULL) == 1 &&
        EVP_CIPHER_CTX_set_padding(context, 0) == 1)
        return context;
    EVP_CIPHER_CTX_free(context);
    return NULL;
}

/* The blocks of one address of `bits` bits in `a`: its first i bits, then the pad. */
static void lay_out(uint8_t (*block)[16], const uint8_t *a, const uint8_t pad[16], unsigned bits)
{
    for (unsigned i = 0; i < bits; i++) {
        memcpy(block[i], a, i / 8);
        memcpy(block[i] + i / 8, pad + i / 8, 16 - i / 8);
        if (i % 8 != 0) {
            unsigned ones = 0xff00u >> i % 8;
            block[i][i / 8] = (uint8_t)((a[i / 8] & ones) | (pad[i / 8] & ~ones));
        }
    }
}

/* n addresses of `bytes` network-order bytes. 0, or -1 when libcrypto fails. */
int plain_addresses(const uint8_t key[32], const uint8_t *in, uint8_t *out, size_t n, size_t bytes)
{
    EVP_CIPHER_CTX *context = open_cipher(key);
    uint8_t pad[16], block[ADDRESS_BITS_MAX][16];
    unsigned bits = 8 * (unsigned)bytes;
    int written, rc = -1;
    if (context == NULL || EVP_EncryptUpdate(context, pad, &written, key + 16, 16) != 1)
        goto done;
    for (size_t k = 0; k < n; k++) {
        lay_out(block, in + k * bytes, pad, bits);
        if (EVP_EncryptUpdate(context, block[0], &written, block[0], (int)(16 * bits)) != 1)
            goto done;
        memcpy(out + k * bytes, in + k * bytes, bytes);
        for (unsigned i = 0; i < bits; i++)
            out[k * bytes + i / 8] ^= (uint8_t)((block[i][0] >> 7) << (7 - i % 8));
    }
    rc = 0;
done:
    EVP_CIPHER_CTX_free(context);
    return rc;
}

/* Maps n addresses by zn_cryptopan_addrs, one address a call. The caller opens the handle, so that
 * its table is not measured. Returns 0, or -1 when libcrypto fails. */
int single_addresses(zn_cryptopan *p, const uint8_t *in, uint8_t *out, size_t n, size_t bytes)
{
    for (size_t k = 0; k < n; k++) {
        zn_addr a;
        if (bytes == 4)
            a = zn_addr_from_v4(in + 4 * k);
        else
            memcpy(a.byte, in + 16 * k, 16);
        if (zn_cryptopan_addrs(p, &a, &a, 1) != 0)
            return -1;
        memcpy(out + k * bytes, a.byte + 16 - bytes, bytes);
    }
    return 0;
}

/* Only the encryption that n addresses need whose first ZN_CRYPTOPAN_TABLE_BITS bits are known. */
int blocks_alone(const uint8_t key[32], size_t n, size_t bytes)
{
    static uint8_t block[(size_t)AT_ONCE * ADDRESS_BITS_MAX * 16];
    EVP_CIPHER_CTX *context = open_cipher(key);
    int size = (int)(16 * (8 * bytes - ZN_CRYPTOPAN_TABLE_BITS) * AT_ONCE), written, rc = -1;
    if (context == NULL)
        return -1;
    for (size_t k = 0; k < n; k += AT_ONCE)
        if (EVP_EncryptUpdate(context, block, &written, block, size) != 1)
            goto done;
    rc = 0;
done:
    EVP_CIPHER_CTX_free(context);
    return rc;
}

zn_cryptopan *single_open(const uint8_t key[ZN_CRYPTOPAN_KEY_BYTES])
{
    zn_cryptopan *p;
    zn_error err;
    return zn_cryptopan_open(&p, key, &err) == 0 ? p : NULL;
}

void single_close(zn_cryptopan *p)
{
    zn_cryptopan_close(p);
}
