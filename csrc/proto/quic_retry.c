/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tag of a Retry (RFC 9001 5.8, RFC 9369 3.3.3), whose keys are public: it shows that whoever
 * made it had the client's first Initial. Drafts before 25 have none.
 */
#include "proto/quic.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define DRAFT(n) (UINT32_C(0xff000000) + (n))

typedef struct tag_keys {
    uint32_t first, last; /* versions that share them */
    uint8_t key[ZN_QUIC_KEY_BYTES], nonce[ZN_QUIC_IV_BYTES];
} tag_keys;

#define KEY_V1                                                                                     \
    {0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e}
#define NONCE_V1 {0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb}

static const tag_keys versions[] = {
    {1, 1, KEY_V1, NONCE_V1},
    {DRAFT(33), DRAFT(34), KEY_V1, NONCE_V1},
    {UINT32_C(0x6b3343cf),
     UINT32_C(0x6b3343cf),
     {0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc,
      0x92},
     {0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a}},
    {DRAFT(29),
     DRAFT(32),
     {0xcc, 0xce, 0x18, 0x7e, 0xd0, 0x9a, 0x09, 0xd0, 0x57, 0x28, 0x15, 0x5a, 0x6c, 0xb9, 0x6b,
      0xe1},
     {0xe5, 0x49, 0x30, 0xf9, 0x7f, 0x21, 0x36, 0xf0, 0x53, 0x0a, 0x8c, 0x1c}},
    {DRAFT(25),
     DRAFT(28),
     {0x4d, 0x32, 0xec, 0xdb, 0x2a, 0x21, 0x33, 0xc8, 0x41, 0xe4, 0x04, 0x3d, 0xf2, 0x7d, 0x44,
      0x30},
     {0x4d, 0x16, 0x11, 0xd0, 0x55, 0x13, 0xa5, 0x52, 0xc5, 0x87, 0xd5, 0x75}},
};

static const tag_keys *find(uint32_t version)
{
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        if (version >= versions[i].first && version <= versions[i].last)
            return &versions[i];
    return NULL;
}

/* The tag over the first ID, with its length, and all of the Retry before its own. */
static bool make_tag(EVP_CIPHER_CTX *c, const tag_keys *keys, zn_span first_dcid, zn_span retry,
                     uint8_t tag[ZN_QUIC_TAG_BYTES])
{
    uint8_t n = (uint8_t)first_dcid.n, none;
    int written = 0;
    return EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, keys->key, keys->nonce) == 1 &&
           EVP_EncryptUpdate(c, NULL, &written, &n, 1) == 1 &&
           (n == 0 || EVP_EncryptUpdate(c, NULL, &written, first_dcid.p, n) == 1) &&
           EVP_EncryptUpdate(c, NULL, &written, retry.p, (int)retry.n) == 1 &&
           EVP_EncryptFinal_ex(c, &none, &written) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, ZN_QUIC_TAG_BYTES, tag) == 1;
}

bool zn_quic_retry_is_whole(const zn_quic_packet *packet, zn_span first_dcid)
{
    const tag_keys *keys = find(packet->version);
    uint8_t tag[ZN_QUIC_TAG_BYTES];
    EVP_CIPHER_CTX *context;
    bool same;
    if (keys == NULL || packet->type != ZN_QUIC_RETRY || packet->cut ||
        packet->sealed.n != ZN_QUIC_TAG_BYTES || packet->header.n > INT32_MAX ||
        first_dcid.n > ZN_QUIC_ID_MAX)
        return false;
    context = EVP_CIPHER_CTX_new();
    same = context != NULL && make_tag(context, keys, first_dcid, packet->header, tag) &&
           CRYPTO_memcmp(tag, packet->sealed.p, sizeof tag) == 0;
    EVP_CIPHER_CTX_free(context);
    return same;
}
