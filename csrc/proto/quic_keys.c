/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initial keys and Initial protection (RFC 9001 5, RFC 9369 3.3).
 *
 * HKDF-SHA256 is spelled out over HMAC: every secret here is one SHA-256 output long, so each
 * expansion is a single HMAC, and the three of a side share its key, as do both sides' secrets.
 * Algorithms and contexts are made once, in zn_quic_open.
 */
#include "proto/quic.h"
#include "proto/quic_hmac.h"
#include "util/arena.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#define SALT_BYTES 20u
#define SAMPLE_BYTES 16u
#define NUMBER_MAX 4u                  /* bytes of a packet number */
#define PACKET_MAX (UINT32_C(1) << 16) /* more than a UDP datagram holds */
#define HIDDEN_BITS 0x0fu              /* of a long header's first byte */
#define DRAFT(n) (UINT32_C(0xff000000) + (n))

/* HKDF-Expand-Label's info (RFC 8446 7.1): length, "tls13 " label, no context; and the 0x01 of the
 * first block of HKDF-Expand. */
#define INFO ZN_QUIC_HMAC_TEXT

static const zn_quic_hmac_text side_infos[] = {
    [ZN_QUIC_CLIENT] = INFO("\0\x20\x0ftls13 client in\0\1"),
    [ZN_QUIC_SERVER] = INFO("\0\x20\x0ftls13 server in\0\1"),
};

enum { KEY, IV, HEADER_KEY, KEYS };

static const zn_quic_hmac_text infos_v1[KEYS] = {
    INFO("\0\x10\x0etls13 quic key\0\1"),
    INFO("\0\x0c\x0dtls13 quic iv\0\1"),
    INFO("\0\x10\x0dtls13 quic hp\0\1"),
};
static const zn_quic_hmac_text infos_v2[KEYS] = {
    INFO("\0\x10\x10tls13 quicv2 key\0\1"),
    INFO("\0\x0c\x0ftls13 quicv2 iv\0\1"),
    INFO("\0\x10\x0ftls13 quicv2 hp\0\1"),
};

/* Versions first .. last share a salt and labels. */
typedef struct version_keys {
    uint32_t first, last;
    const zn_quic_hmac_text *infos; /* of KEYS */
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
    {1, 1, infos_v1, SALT_V1},
    {UINT32_C(0x6b3343cf), UINT32_C(0x6b3343cf), infos_v2, SALT_V2},
    {DRAFT(33), DRAFT(34), infos_v1, SALT_V1},
    {DRAFT(29), DRAFT(32), infos_v1, SALT_DRAFT_29},
    {DRAFT(23), DRAFT(28), infos_v1, SALT_DRAFT_23},
    {DRAFT(22), DRAFT(22), infos_v1, SALT_DRAFT_22},
    /* mvfst: Facebook's library, under its own numbers */
    {UINT32_C(0xfaceb001), UINT32_C(0xfaceb001), infos_v1, SALT_DRAFT_22},
    {UINT32_C(0xfaceb002), UINT32_C(0xfaceb01f), infos_v1, SALT_DRAFT_23},
};

#define VERSIONS (sizeof versions / sizeof versions[0])

struct zn_quic {
    EVP_CIPHER *ecb, *gcm;
    EVP_CIPHER_CTX *mask, *open;
    uint8_t tag[ZN_QUIC_TAG_BYTES];  /* of the packet that is opened */
    OSSL_PARAM tagged[2];            /* hands it to libcrypto together with a key */
    zn_quic_hmac_key salt[VERSIONS]; /* of versions[] */
    uint8_t plain[PACKET_MAX], header[PACKET_MAX + NUMBER_MAX];
};

static const version_keys *find_version(uint32_t version)
{
    for (size_t i = 0; i < VERSIONS; i++)
        if (version >= versions[i].first && version <= versions[i].last)
            return &versions[i];
    return NULL;
}

bool zn_quic_reads(uint32_t version)
{
    return find_version(version) != NULL;
}

static bool prepare_salts(zn_quic *q)
{
    for (size_t i = 0; i < VERSIONS; i++)
        if (!zn_quic_hmac_prepare(&q->salt[i], (zn_span){versions[i].salt, SALT_BYTES}))
            return false;
    return true;
}

int zn_quic_open(zn_quic **out, zn_error *err)
{
    zn_quic *q = zn_block_alloc(sizeof *q);
    *out = NULL;
    if (q == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for opening QUIC packets");
    q->tagged[0] =
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, q->tag, sizeof q->tag);
    q->tagged[1] = OSSL_PARAM_construct_end();
    q->ecb = EVP_CIPHER_fetch(NULL, "AES-128-ECB", NULL);
    q->gcm = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
    q->mask = EVP_CIPHER_CTX_new();
    q->open = EVP_CIPHER_CTX_new();
    if (q->ecb == NULL || q->gcm == NULL || q->mask == NULL || q->open == NULL ||
        !prepare_salts(q) || EVP_EncryptInit_ex2(q->mask, q->ecb, NULL, NULL, NULL) != 1 ||
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
    EVP_CIPHER_free(q->gcm);
    EVP_CIPHER_free(q->ecb);
    OPENSSL_cleanse(q->plain, sizeof q->plain); /* it holds names */
    zn_block_free(q, sizeof *q);
}

bool zn_quic_derive(const zn_quic *q, uint32_t version, zn_span first_dcid, zn_quic_secret sides[2])
{
    const version_keys *v = find_version(version);
    zn_quic_hmac_text id;
    zn_quic_hmac_key by;
    zn_quic_secret secret;
    if (v == NULL || first_dcid.n > ZN_QUIC_ID_MAX)
        return false;
    id = zn_quic_hmac_text_of(first_dcid);
    zn_quic_hmac(&q->salt[v - versions], &id, 1, &secret);
    if (!zn_quic_hmac_prepare(&by, (zn_span){secret.byte, sizeof secret.byte}))
        return false;
    zn_quic_hmac(&by, side_infos, 2, sides);
    return true;
}

bool zn_quic_expand(uint32_t version, const zn_quic_secret *side, zn_quic_keys *out)
{
    const version_keys *v = find_version(version);
    zn_quic_secret keys[KEYS];
    zn_quic_hmac_key by;
    if (v == NULL || !zn_quic_hmac_prepare(&by, (zn_span){side->byte, sizeof side->byte}))
        return false;
    zn_quic_hmac(&by, v->infos, KEYS, keys);
    memcpy(out->key, keys[KEY].byte, sizeof out->key);
    memcpy(out->iv, keys[IV].byte, sizeof out->iv);
    memcpy(out->header_key, keys[HEADER_KEY].byte, sizeof out->header_key);
    return true;
}

/* The five bytes that hide a long header's last bits and its packet number (RFC 9001 5.4). */
static bool make_mask(zn_quic *q, const zn_quic_keys *keys, zn_span sample,
                      uint8_t mask[SAMPLE_BYTES])
{
    int n = 0;
    return EVP_EncryptInit_ex2(q->mask, NULL, keys->header_key, NULL, NULL) == 1 &&
           EVP_EncryptUpdate(q->mask, mask, &n, sample.p, SAMPLE_BYTES) == 1 && n == SAMPLE_BYTES;
}

/* Decrypts what is sealed behind q->header, of whose `header` bytes the last `number` are the
 * packet number. All of it must authenticate with q->tag. */
static bool decrypt(zn_quic *q, const zn_quic_keys *keys, size_t header, size_t number,
                    zn_span sealed)
{
    uint8_t nonce[ZN_QUIC_IV_BYTES];
    int n = 0, written = 0;
    memcpy(nonce, keys->iv, sizeof nonce);
    for (size_t i = 1; i <= number; i++)
        nonce[sizeof nonce - i] ^= q->header[header - i];
    return EVP_DecryptInit_ex2(q->open, NULL, keys->key, nonce, q->tagged) == 1 &&
           EVP_DecryptUpdate(q->open, NULL, &n, q->header, (int)header) == 1 &&
           EVP_DecryptUpdate(q->open, q->plain, &written, sealed.p, (int)sealed.n) == 1 &&
           (size_t)written == sealed.n && EVP_DecryptFinal_ex(q->open, q->plain + written, &n) == 1;
}

zn_parse zn_quic_unseal(zn_quic *q, const zn_quic_keys *keys, const zn_quic_packet *packet,
                        zn_span *plain)
{
    zn_cursor sealed = zn_cursor_over_span(packet->sealed, !packet->cut);
    zn_cursor numbered = sealed;
    size_t header = packet->header.n, number;
    uint8_t mask[SAMPLE_BYTES];
    zn_span sample, body;
    *plain = (zn_span){q->plain, 0};
    if (packet->cut)
        return ZN_NEED_MORE;
    zn_cursor_skip(&sealed, NUMBER_MAX); /* the sample stands where the longest number would end */
    sample = zn_cursor_take(&sealed, SAMPLE_BYTES);
    if (!zn_cursor_ok(&sealed) || header == 0 || header > PACKET_MAX ||
        packet->sealed.n > PACKET_MAX)
        return ZN_MALFORMED;
    if (!make_mask(q, keys, sample, mask))
        return ZN_OTHER;
    memcpy(q->header, packet->header.p, header);
    q->header[0] ^= mask[0] & HIDDEN_BITS;
    number = (q->header[0] & 3u) + 1u;
    for (size_t i = 1; i <= number; i++)
        q->header[header++] = zn_cursor_u8(&numbered) ^ mask[i];
    body = zn_cursor_take(&numbered, zn_cursor_left(&numbered) - ZN_QUIC_TAG_BYTES);
    memcpy(q->tag, zn_cursor_rest(&numbered).p, ZN_QUIC_TAG_BYTES);
    if (!decrypt(q, keys, header, number, body))
        return ZN_OTHER;
    plain->n = body.n;
    return ZN_DONE;
}
