/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initial keys and Initial protection (RFC 9001 5, RFC 9369 3.3).
 *
 * HKDF-SHA256 is spelled out over bare digests: every secret here is one SHA-256 output long, so
 * each expansion is a single HMAC, and libcrypto's HKDF and HMAC objects would cost more than the
 * hashing. Algorithms and contexts are made once, in zn_quic_open.
 */
#include "base/arena.h"
#include "proto/quic.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define SALT_BYTES 20u
#define HASH_BYTES 32u
#define BLOCK_BYTES 64u /* of SHA-256 */
#define TAG_BYTES 16u
#define SAMPLE_BYTES 16u
#define NUMBER_MAX 4u                 /* bytes of a packet number */
#define INFO_MAX 32u                  /* longest info below */
#define PLAIN_MAX (UINT32_C(1) << 16) /* more than a UDP datagram holds */
#define HIDDEN_BITS 0x0fu             /* of a long header's first byte */
#define DRAFT(n) (UINT32_C(0xff000000) + (n))

struct zn_quic {
    EVP_MD *sha256;
    EVP_CIPHER *ecb, *gcm;
    EVP_MD_CTX *digest;
    EVP_CIPHER_CTX *mask, *open;
    uint8_t plain[PLAIN_MAX];
};

/* HKDF-Expand-Label's info (RFC 8446 7.1): length, "tls13 " label, no context; and the 0x01 of the
 * first block of HKDF-Expand. */
typedef struct info {
    uint8_t n;
    uint8_t bytes[INFO_MAX];
} info;

#define INFO(text) {sizeof(text) - 1, text}

static const info side_infos[] = {
    [ZN_QUIC_CLIENT] = INFO("\0\x20\x0ftls13 client in\0\1"),
    [ZN_QUIC_SERVER] = INFO("\0\x20\x0ftls13 server in\0\1"),
};

typedef struct key_infos {
    info key, iv, header_key;
} key_infos;

static const key_infos infos_v1 = {
    INFO("\0\x10\x0etls13 quic key\0\1"),
    INFO("\0\x0c\x0dtls13 quic iv\0\1"),
    INFO("\0\x10\x0dtls13 quic hp\0\1"),
};
static const key_infos infos_v2 = {
    INFO("\0\x10\x10tls13 quicv2 key\0\1"),
    INFO("\0\x0c\x0ftls13 quicv2 iv\0\1"),
    INFO("\0\x10\x0ftls13 quicv2 hp\0\1"),
};

/* Versions first .. last share a salt and labels. */
typedef struct version_keys {
    uint32_t first, last;
    const key_infos *infos;
    uint8_t salt[SALT_BYTES];
} version_keys;

#define SALT_V1                                                                                    \
    {0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,                                   \
     0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a}
#define SALT_V2                                                                                    \
    {0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93,                                   \
     0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9}
#define SALT_DRAFT_29                                                                              \
    {0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97,                                   \
     0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0, 0x43, 0x90, 0xa8, 0x99}
#define SALT_DRAFT_23                                                                              \
    {0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7,                                   \
     0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65, 0xbe, 0xf9, 0xf5, 0x02}
#define SALT_DRAFT_22                                                                              \
    {0x7f, 0xbc, 0xdb, 0x0e, 0x7c, 0x66, 0xbb, 0xe9, 0x19, 0x3a,                                   \
     0x96, 0xcd, 0x21, 0x51, 0x9e, 0xbd, 0x7a, 0x02, 0x64, 0x4a}

static const version_keys versions[] = {
    {1, 1, &infos_v1, SALT_V1},
    {UINT32_C(0x6b3343cf), UINT32_C(0x6b3343cf), &infos_v2, SALT_V2},
    {DRAFT(33), DRAFT(34), &infos_v1, SALT_V1},
    {DRAFT(29), DRAFT(32), &infos_v1, SALT_DRAFT_29},
    {DRAFT(23), DRAFT(28), &infos_v1, SALT_DRAFT_23},
    {DRAFT(22), DRAFT(22), &infos_v1, SALT_DRAFT_22},
    /* mvfst: Facebook's library, under its own numbers */
    {UINT32_C(0xfaceb001), UINT32_C(0xfaceb001), &infos_v1, SALT_DRAFT_22},
    {UINT32_C(0xfaceb002), UINT32_C(0xfaceb01f), &infos_v1, SALT_DRAFT_23},
};

static const version_keys *find_version(uint32_t version)
{
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        if (version >= versions[i].first && version <= versions[i].last)
            return &versions[i];
    return NULL;
}

bool zn_quic_reads(uint32_t version)
{
    return find_version(version) != NULL;
}

int zn_quic_open(zn_quic **out, zn_error *err)
{
    zn_quic *q = zn_block_alloc(sizeof *q);
    *out = NULL;
    if (q == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for opening QUIC packets");
    q->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    q->ecb = EVP_CIPHER_fetch(NULL, "AES-128-ECB", NULL);
    q->gcm = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
    q->digest = EVP_MD_CTX_new();
    q->mask = EVP_CIPHER_CTX_new();
    q->open = EVP_CIPHER_CTX_new();
    if (q->sha256 == NULL || q->ecb == NULL || q->gcm == NULL || q->digest == NULL ||
        q->mask == NULL || q->open == NULL || EVP_DigestInit_ex2(q->digest, q->sha256, NULL) != 1 ||
        EVP_EncryptInit_ex2(q->mask, q->ecb, NULL, NULL, NULL) != 1 ||
        EVP_DecryptInit_ex2(q->open, q->gcm, NULL, NULL, NULL) != 1) {
        zn_quic_close(q);
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no SHA-256 or AES-128 for QUIC");
    }
    *out = q;
    return 0;
}

void zn_quic_close(zn_quic *q)
{
    if (q == NULL)
        return;
    EVP_CIPHER_CTX_free(q->open);
    EVP_CIPHER_CTX_free(q->mask);
    EVP_MD_CTX_free(q->digest);
    EVP_CIPHER_free(q->gcm);
    EVP_CIPHER_free(q->ecb);
    EVP_MD_free(q->sha256);
    OPENSSL_cleanse(q->plain, sizeof q->plain); /* it holds names */
    zn_block_free(q, sizeof *q);
}

/* SHA-256 of a pad block and `n` (at most INFO_MAX) bytes. */
static bool digest(zn_quic *q, const uint8_t pad[BLOCK_BYTES], const void *bytes, size_t n,
                   uint8_t out[HASH_BYTES])
{
    uint8_t message[BLOCK_BYTES + INFO_MAX];
    memcpy(message, pad, BLOCK_BYTES);
    if (n != 0) /* a connection ID may be empty, and then anywhere */
        memcpy(message + BLOCK_BYTES, bytes, n);
    return EVP_DigestInit_ex2(q->digest, NULL, NULL) == 1 &&
           EVP_DigestUpdate(q->digest, message, BLOCK_BYTES + n) == 1 &&
           EVP_DigestFinal_ex(q->digest, out, NULL) == 1;
}

_Static_assert(HASH_BYTES <= INFO_MAX && ZN_QUIC_ID_MAX <= INFO_MAX, "all that is hashed fits");

/* HMAC-SHA256 (RFC 2104) under a key of at most a block. */
static bool hmac(zn_quic *q, zn_span key, zn_span bytes, uint8_t out[HASH_BYTES])
{
    uint8_t inner[BLOCK_BYTES] = {0}, outer[BLOCK_BYTES], hash[HASH_BYTES];
    memcpy(inner, key.p, key.n);
    for (unsigned i = 0; i < BLOCK_BYTES; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    return digest(q, inner, bytes.p, bytes.n, hash) && digest(q, outer, hash, sizeof hash, out);
}

static bool expand(zn_quic *q, const uint8_t secret[HASH_BYTES], const info *what, uint8_t *out,
                   size_t n)
{
    uint8_t block[HASH_BYTES];
    zn_span key = {secret, HASH_BYTES}, bytes = {what->bytes, what->n};
    if (!hmac(q, key, bytes, block))
        return false;
    memcpy(out, block, n);
    return true;
}

bool zn_quic_derive(zn_quic *q, uint32_t version, zn_span first_dcid, zn_quic_side side,
                    zn_quic_keys *out)
{
    const version_keys *v = find_version(version);
    uint8_t common[HASH_BYTES], secret[HASH_BYTES];
    zn_span salt;
    if (v == NULL || first_dcid.n > ZN_QUIC_ID_MAX)
        return false;
    salt = (zn_span){v->salt, SALT_BYTES};
    return hmac(q, salt, first_dcid, common) &&
           expand(q, common, &side_infos[side], secret, sizeof secret) &&
           expand(q, secret, &v->infos->key, out->key, sizeof out->key) &&
           expand(q, secret, &v->infos->iv, out->iv, sizeof out->iv) &&
           expand(q, secret, &v->infos->header_key, out->header_key, sizeof out->header_key);
}

/* The five bytes that hide a long header's last bits and its packet number (RFC 9001 5.4). */
static bool make_mask(zn_quic *q, const zn_quic_keys *keys, zn_span sample,
                      uint8_t mask[SAMPLE_BYTES])
{
    int n = 0;
    return EVP_EncryptInit_ex2(q->mask, NULL, keys->header_key, NULL, NULL) == 1 &&
           EVP_EncryptUpdate(q->mask, mask, &n, sample.p, SAMPLE_BYTES) == 1 && n == SAMPLE_BYTES;
}

/* What authenticates a packet beside its ciphertext. */
typedef struct opened_header {
    uint8_t first;              /* the first byte, unmasked */
    zn_span middle;             /* up to the packet number, as sent */
    uint8_t number[NUMBER_MAX]; /* unmasked */
    size_t number_bytes;
} opened_header;

static bool decrypt(zn_quic *q, const zn_quic_keys *keys, const opened_header *header,
                    zn_span sealed, zn_span tag)
{
    uint8_t nonce[ZN_QUIC_IV_BYTES], expected[TAG_BYTES];
    int n = 0, written = 0;
    memcpy(nonce, keys->iv, sizeof nonce);
    for (size_t i = 0; i < header->number_bytes; i++)
        nonce[sizeof nonce - header->number_bytes + i] ^= header->number[i];
    memcpy(expected, tag.p, sizeof expected);
    return EVP_DecryptInit_ex2(q->open, NULL, keys->key, nonce, NULL) == 1 &&
           EVP_DecryptUpdate(q->open, NULL, &n, &header->first, 1) == 1 &&
           EVP_DecryptUpdate(q->open, NULL, &n, header->middle.p, (int)header->middle.n) == 1 &&
           EVP_DecryptUpdate(q->open, NULL, &n, header->number, (int)header->number_bytes) == 1 &&
           EVP_DecryptUpdate(q->open, q->plain, &written, sealed.p, (int)sealed.n) == 1 &&
           (size_t)written == sealed.n &&
           EVP_CIPHER_CTX_ctrl(q->open, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, expected) == 1 &&
           EVP_DecryptFinal_ex(q->open, q->plain + written, &n) == 1;
}

zn_parse zn_quic_unseal(zn_quic *q, const zn_quic_keys *keys, const zn_quic_packet *packet,
                        zn_span *plain)
{
    zn_cursor sealed = zn_cursor_over_span(packet->sealed, !packet->cut);
    zn_cursor header = zn_cursor_over_span(packet->header, true);
    zn_cursor numbered = sealed;
    uint8_t mask[SAMPLE_BYTES];
    opened_header opened;
    zn_span sample, body, tag;
    *plain = (zn_span){q->plain, 0};
    if (packet->cut)
        return ZN_NEED_MORE;
    zn_cursor_skip(&sealed, NUMBER_MAX); /* the sample stands where the longest number would end */
    sample = zn_cursor_take(&sealed, SAMPLE_BYTES);
    if (!zn_cursor_ok(&sealed) || packet->sealed.n > PLAIN_MAX || packet->header.n > PLAIN_MAX)
        return ZN_MALFORMED;
    if (!make_mask(q, keys, sample, mask))
        return ZN_OTHER;
    opened.first = zn_cursor_u8(&header) ^ (mask[0] & HIDDEN_BITS);
    opened.middle = zn_cursor_rest(&header);
    opened.number_bytes = (opened.first & 3u) + 1u;
    for (size_t i = 0; i < opened.number_bytes; i++)
        opened.number[i] = zn_cursor_u8(&numbered) ^ mask[1 + i];
    body = zn_cursor_take(&numbered, zn_cursor_left(&numbered) - TAG_BYTES);
    tag = zn_cursor_rest(&numbered);
    if (!decrypt(q, keys, &opened, body, tag))
        return ZN_OTHER;
    plain->n = body.n;
    return ZN_DONE;
}
