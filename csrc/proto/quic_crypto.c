/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HKDF-SHA256 is spelled out over HMAC: every secret here is one SHA-256 output long, so each
 * expansion is a single HMAC, and the three of a side share its key, as do both sides' secrets.
 * Algorithms and contexts are made once, in zn_quic_open.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "proto/quic_crypto.h"

#include "util/arena.h"

#include <endian.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/sha.h>

#define SALT_BYTES 20u
#define SAMPLE_BYTES 16u
#define NUMBER_MAX 4u                  /* bytes of a packet number; the sample follows them */
#define PACKET_MAX (UINT32_C(1) << 16) /* more than a UDP datagram holds */
#define HIDDEN_BITS 0x0fu              /* of a long header's first byte */
#define NUMBER_BITS 0x03u              /* of these: the bytes of the packet number, less one */
#define DRAFT(n) (UINT32_C(0xff000000) + (n))

/* ---- HMAC-SHA256 ----------------------------------------------------------------------------- */

/*
 * HMAC-SHA256 (RFC 2104) of texts shorter than a block of SHA-256. The cost of its key is paid
 * once, however many hashes are made under it.
 *
 * SHA256_* are deprecated since OpenSSL 3.0, and used nonetheless: their state goes on after a
 * pad at the price of copying a struct, where a copy of EVP's is allocated. And a processor works
 * on several blocks at once when they follow one another and none needs another's hash, which takes
 * texts that are padded beforehand. The keys of both sides' Initials take 0.87 us so, 1.18 us by
 * SHA256_Update and one HMAC after another; EVP_MD takes 1.4 times that, EVP_MAC 1.8 times.
 */

#define HMAC_TEXT_MAX 55
#define HMAC_TEXTS 3 /* most texts of one call */

/* A key: the state of SHA-256 after either of its pads. */
typedef struct hmac_key {
    SHA256_CTX inner, outer;
} hmac_key;

/* A text as the last block that SHA-256 hashes after a key's pad (FIPS 180-4 5.1.1). */
typedef struct hmac_text {
    uint8_t byte[HMAC_TEXT_MAX + 1]; /* the text, a bit that is set, zeros */
    uint8_t bits[8];                 /* of the pad and the text together, highest first */
} hmac_text;
_Static_assert(sizeof(hmac_text) == SHA256_CBLOCK, "a text is one block");

#define HMAC_BITS(n) (8 * (SHA256_CBLOCK + (n)))
/* The text that is a string literal, as an initializer. */
#define HMAC_TEXT(text)                                                                            \
    {text "\x80",                                                                                  \
     {[6] = HMAC_BITS(sizeof(text) - 1) >> 8, [7] = HMAC_BITS(sizeof(text) - 1) & 0xff}}

/* Begins SHA-256 with a key that fills a block, each byte changed by `pad`. */
static bool begin(SHA256_CTX *state, const uint8_t key[SHA256_CBLOCK], uint8_t pad)
{
    uint8_t block[SHA256_CBLOCK];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = key[i] ^ pad;
    if (SHA256_Init(state) != 1)
        return false;
    SHA256_Transform(state, block);
    return true;
}

/* Prepares a key of at most SHA256_CBLOCK bytes. False when it is longer, or libcrypto fails. */
static bool hmac_prepare(hmac_key *h, zn_span key)
{
    uint8_t filled[SHA256_CBLOCK] = {0};
    if (key.n > sizeof filled)
        return false;
    memcpy(filled, key.p, key.n);
    return begin(&h->inner, filled, 0x36) && begin(&h->outer, filled, 0x5c);
}

/* The text of at most HMAC_TEXT_MAX bytes. */
static hmac_text hmac_text_of(zn_span bytes)
{
    size_t bits = HMAC_BITS(bytes.n);
    hmac_text text = {{0}, {[6] = (uint8_t)(bits >> 8), [7] = (uint8_t)bits}};
    if (bytes.n != 0)
        memcpy(text.byte, bytes.p, bytes.n);
    text.byte[bytes.n] = 0x80;
    return text;
}

/* The hash that was begun, ended with `text`. */
static zn_quic_secret finish(const SHA256_CTX *begun, const hmac_text *text)
{
    SHA256_CTX state = *begun;
    zn_quic_secret hash;
    SHA256_Transform(&state, (const unsigned char *)text);
    for (size_t i = 0; i < sizeof hash / sizeof *state.h; i++)
        state.h[i] = htobe32(state.h[i]);
    memcpy(&hash, state.h, sizeof hash);
    return hash;
}

/* The HMACs of n texts, at most HMAC_TEXTS. */
static void hmac(const hmac_key *h, const hmac_text *texts, size_t n, zn_quic_secret *out)
{
    static const hmac_text hash = {
        {[SHA256_DIGEST_LENGTH] = 0x80},
        {[6] = HMAC_BITS(SHA256_DIGEST_LENGTH) >> 8, [7] = HMAC_BITS(SHA256_DIGEST_LENGTH) & 0xff}};
    hmac_text inner[HMAC_TEXTS];
    for (size_t i = 0; i < n; i++) {
        zn_quic_secret of_text = finish(&h->inner, &texts[i]);
        inner[i] = hash;
        memcpy(inner[i].byte, &of_text, sizeof of_text);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = finish(&h->outer, &inner[i]);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* HKDF-Expand-Label's info (RFC 8446 7.1): length, "tls13 " label, no context; and the 0x01 of the
 * first block of HKDF-Expand. */
#define INFO HMAC_TEXT

static const hmac_text side_infos[] = {
    [ZN_QUIC_CLIENT] = INFO("\0\x20\x0ftls13 client in\0\1"),
    [ZN_QUIC_SERVER] = INFO("\0\x20\x0ftls13 server in\0\1"),
};

enum { KEY, IV, HEADER_KEY, KEYS };

static const hmac_text infos_v1[KEYS] = {
    INFO("\0\x10\x0etls13 quic key\0\1"),
    INFO("\0\x0c\x0dtls13 quic iv\0\1"),
    INFO("\0\x10\x0dtls13 quic hp\0\1"),
};
static const hmac_text infos_v2[KEYS] = {
    INFO("\0\x10\x10tls13 quicv2 key\0\1"),
    INFO("\0\x0c\x0ftls13 quicv2 iv\0\1"),
    INFO("\0\x10\x0ftls13 quicv2 hp\0\1"),
};

/* Versions first .. last share a salt and labels. */
typedef struct version_keys {
    uint32_t first, last;
    const hmac_text *infos; /* of KEYS */
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

#define Q050 UINT32_C(0x51303530)
#define SALT_Q050                                                                                  \
    {0x50, 0x45, 0x74, 0xef, 0xd0, 0x66, 0xfe, 0x2f, 0x9d, 0x94,                                   \
     0x5c, 0xfc, 0xdb, 0xd3, 0xa7, 0xf0, 0xd3, 0xb5, 0x6b, 0x45}

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
    /* Google's QUIC, whose frames proto/gquic reads */
    {Q050, Q050, infos_v1, SALT_Q050},
};

#define VERSIONS (sizeof versions / sizeof versions[0])

struct zn_quic {
    EVP_CIPHER *ecb, *gcm;
    EVP_CIPHER_CTX *mask, *open, *seal;
    size_t front;                   /* bytes of `header` before the frames */
    uint8_t tag[ZN_QUIC_TAG_BYTES]; /* of the packet that is opened */
    OSSL_PARAM tagged[2];           /* hands it to libcrypto together with a key */
    hmac_key salt[VERSIONS];        /* of versions[] */
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
    return version != Q050 && find_version(version) != NULL;
}

static bool prepare_salts(zn_quic *q)
{
    for (size_t i = 0; i < VERSIONS; i++)
        if (!hmac_prepare(&q->salt[i], (zn_span){versions[i].salt, SALT_BYTES}))
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
    q->seal = EVP_CIPHER_CTX_new();
    if (q->ecb == NULL || q->gcm == NULL || q->mask == NULL || q->open == NULL || q->seal == NULL ||
        !prepare_salts(q) || EVP_EncryptInit_ex2(q->mask, q->ecb, NULL, NULL, NULL) != 1 ||
        EVP_DecryptInit_ex2(q->open, q->gcm, NULL, NULL, NULL) != 1 ||
        EVP_EncryptInit_ex2(q->seal, q->gcm, NULL, NULL, NULL) != 1) {
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
    EVP_CIPHER_CTX_free(q->seal);
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
    hmac_text id;
    hmac_key by;
    zn_quic_secret secret;
    if (v == NULL || first_dcid.n > ZN_QUIC_ID_MAX)
        return false;
    id = hmac_text_of(first_dcid);
    hmac(&q->salt[v - versions], &id, 1, &secret);
    if (!hmac_prepare(&by, (zn_span){secret.byte, sizeof secret.byte}))
        return false;
    hmac(&by, side_infos, 2, sides);
    return true;
}

bool zn_quic_expand(uint32_t version, const zn_quic_secret *side, zn_quic_keys *out)
{
    const version_keys *v = find_version(version);
    zn_quic_secret keys[KEYS];
    hmac_key by;
    if (v == NULL || !hmac_prepare(&by, (zn_span){side->byte, sizeof side->byte}))
        return false;
    hmac(&by, v->infos, KEYS, keys);
    memcpy(out->key, keys[KEY].byte, sizeof out->key);
    memcpy(out->iv, keys[IV].byte, sizeof out->iv);
    memcpy(out->header_key, keys[HEADER_KEY].byte, sizeof out->header_key);
    return true;
}

/* Makes the five bytes that hide the last bits of a long header and its packet number (RFC 9001
 * 5.4). */
static bool make_mask(zn_quic *q, const zn_quic_keys *keys, zn_span sample,
                      uint8_t mask[SAMPLE_BYTES])
{
    int n = 0;
    return EVP_EncryptInit_ex2(q->mask, NULL, keys->header_key, NULL, NULL) == 1 &&
           EVP_EncryptUpdate(q->mask, mask, &n, sample.p, SAMPLE_BYTES) == 1 && n == SAMPLE_BYTES;
}

/* The nonce of a packet (RFC 9001 5.3). The packet number, as it is sent, is the last `number` of
 * the `front` bytes of its header. */
static void make_nonce(const zn_quic_keys *keys, const uint8_t *header, size_t front, size_t number,
                       uint8_t nonce[ZN_QUIC_IV_BYTES])
{
    memcpy(nonce, keys->iv, ZN_QUIC_IV_BYTES);
    for (size_t i = 1; i <= number; i++)
        nonce[ZN_QUIC_IV_BYTES - i] ^= header[front - i];
}

/* Decrypts what is sealed after q->header, of whose `header` bytes the last `number` are the
 * packet number. All of it must authenticate with q->tag. */
static bool decrypt(zn_quic *q, const zn_quic_keys *keys, size_t header, size_t number,
                    zn_span sealed)
{
    uint8_t nonce[ZN_QUIC_IV_BYTES];
    int n = 0, written = 0;
    make_nonce(keys, q->header, header, number, nonce);
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
    q->front = 0;
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
    number = (q->header[0] & NUMBER_BITS) + 1u;
    for (size_t i = 1; i <= number; i++)
        q->header[header++] = zn_cursor_u8(&numbered) ^ mask[i];
    body = zn_cursor_take(&numbered, zn_cursor_left(&numbered) - ZN_QUIC_TAG_BYTES);
    memcpy(q->tag, zn_cursor_rest(&numbered).p, ZN_QUIC_TAG_BYTES);
    if (!decrypt(q, keys, header, number, body))
        return ZN_OTHER;
    q->front = header;
    plain->n = body.n;
    return ZN_DONE;
}

zn_span zn_quic_front(const zn_quic *q)
{
    return (zn_span){q->header, q->front};
}

/* ---- sealing --------------------------------------------------------------------------------- */

static bool encrypt(zn_quic *q, const zn_quic_keys *keys, uint8_t *packet, size_t front,
                    size_t number, size_t n)
{
    uint8_t nonce[ZN_QUIC_IV_BYTES];
    int written = 0;
    make_nonce(keys, packet, front, number, nonce);
    return EVP_EncryptInit_ex2(q->seal, NULL, keys->key, nonce, NULL) == 1 &&
           EVP_EncryptUpdate(q->seal, NULL, &written, packet, (int)front) == 1 &&
           EVP_EncryptUpdate(q->seal, packet + front, &written, packet + front, (int)(n - front)) ==
               1 &&
           EVP_EncryptFinal_ex(q->seal, packet + n, &written) == 1 &&
           EVP_CIPHER_CTX_ctrl(q->seal, EVP_CTRL_AEAD_GET_TAG, ZN_QUIC_TAG_BYTES, packet + n) == 1;
}

bool zn_quic_seal(zn_quic *q, const zn_quic_keys *keys, uint8_t *packet, size_t header, size_t n)
{
    uint8_t mask[SAMPLE_BYTES];
    size_t number;
    if (header == 0 || n > PACKET_MAX || n < header + NUMBER_MAX)
        return false;
    number = (packet[0] & NUMBER_BITS) + 1u;
    if (!encrypt(q, keys, packet, header + number, number, n) ||
        !make_mask(q, keys, (zn_span){packet + header + NUMBER_MAX, SAMPLE_BYTES}, mask))
        return false;
    packet[0] ^= mask[0] & HIDDEN_BITS;
    for (size_t i = 0; i < number; i++)
        packet[header + i] ^= mask[1 + i];
    return true;
}

/* ---- Retry ----------------------------------------------------------------------------------- */

/*
 * Keys of the tag of a Retry (RFC 9001 5.8, RFC 9369 3.3.3). The keys are public: the tag shows
 * that its sender had the client's first Initial. Drafts before 25 have no tag.
 */
typedef struct tag_keys {
    uint32_t first, last; /* versions that share them */
    uint8_t key[ZN_QUIC_KEY_BYTES], nonce[ZN_QUIC_IV_BYTES];
} tag_keys;

#define KEY_V1                                                                                     \
    {0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e}
#define NONCE_V1 {0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb}

static const tag_keys retry_versions[] = {
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

static const tag_keys *find_tag_keys(uint32_t version)
{
    for (size_t i = 0; i < sizeof retry_versions / sizeof retry_versions[0]; i++)
        if (version >= retry_versions[i].first && version <= retry_versions[i].last)
            return &retry_versions[i];
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

bool zn_quic_retry_tag(uint32_t version, zn_span first_dcid, zn_span retry,
                       uint8_t tag[ZN_QUIC_TAG_BYTES])
{
    const tag_keys *keys = find_tag_keys(version);
    EVP_CIPHER_CTX *context;
    bool ok;
    if (keys == NULL || retry.n > INT32_MAX || first_dcid.n > ZN_QUIC_ID_MAX)
        return false;
    context = EVP_CIPHER_CTX_new();
    ok = context != NULL && make_tag(context, keys, first_dcid, retry, tag);
    EVP_CIPHER_CTX_free(context);
    return ok;
}

bool zn_quic_retry_is_whole(const zn_quic_packet *packet, zn_span first_dcid)
{
    uint8_t tag[ZN_QUIC_TAG_BYTES];
    return packet->type == ZN_QUIC_RETRY && !packet->cut && packet->sealed.n == ZN_QUIC_TAG_BYTES &&
           zn_quic_retry_tag(packet->version, first_dcid, packet->header, tag) &&
           CRYPTO_memcmp(tag, packet->sealed.p, sizeof tag) == 0;
}
