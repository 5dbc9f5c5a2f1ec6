/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/row_cipher.h"

#include "crypto/keys.h"
#include "util/arena.h"

#include <endian.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/mman.h>

#define LENGTH_BYTES 2
#define CLASS_MIN ((size_t)128)
#define CLASS_MAX ((size_t)ZN_ROW_MAX + LENGTH_BYTES)
#define PLACE_BYTES 22

struct zn_row_cipher {
    uint8_t plain[CLASS_MAX]; /* the row that was opened last, or is being sealed */
    EVP_CIPHER *cipher;
    EVP_CIPHER_CTX *context;
    bool seals;
};

/* The size class of a row of n bytes with its length. */
static size_t class_of(size_t n)
{
    size_t size = CLASS_MIN;
    while (size < n + LENGTH_BYTES)
        size *= 2;
    return size;
}

size_t zn_row_sealed_bytes(size_t n)
{
    return class_of(n) + ZN_ROW_TAG_BYTES;
}

int zn_row_cipher_open(zn_row_cipher **out, bool seals, zn_error *err)
{
    zn_row_cipher *c = zn_block_alloc(sizeof *c);
    *out = NULL;
    if (c == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the cipher of rows");
    (void)mlock(c, sizeof *c);
    c->seals = seals;
    c->cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    c->context = EVP_CIPHER_CTX_new();
    if (c->cipher == NULL || c->context == NULL) {
        zn_row_cipher_close(c);
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no AES-256-GCM");
    }
    *out = c;
    return 0;
}

void zn_row_cipher_close(zn_row_cipher *c)
{
    if (c == NULL)
        return;
    EVP_CIPHER_CTX_free(c->context);
    EVP_CIPHER_free(c->cipher);
    zn_wipe(c, sizeof *c);
    zn_block_free(c, sizeof *c);
}

bool zn_row_cipher_key(zn_row_cipher *c, const uint8_t key[ZN_ROW_KEY_BYTES])
{
    return EVP_CipherInit_ex2(c->context, c->cipher, key, NULL, c->seals ? 1 : 0, NULL) == 1;
}

static void write_place(const zn_row_place *place, uint8_t out[PLACE_BYTES])
{
    uint64_t words[2] = {htole64(place->probe), htole64(place->sequence)};
    uint16_t shard = htole16(place->shard);
    uint32_t index = htole32(place->index);
    memcpy(out, words, sizeof words);
    memcpy(out + 16, &shard, sizeof shard);
    memcpy(out + 18, &index, sizeof index);
}

/* Begins a row: its nonce and its associated data. */
static bool begin(const zn_row_cipher *c, const uint8_t nonce[ZN_ROW_NONCE_BYTES],
                  const zn_row_place *place)
{
    uint8_t own[ZN_ROW_NONCE_BYTES], bound[PLACE_BYTES];
    int written = 0;
    memcpy(own, nonce, sizeof own);
    for (unsigned i = 0; i < 4; i++)
        own[8 + i] ^= (uint8_t)(place->index >> 8 * i);
    write_place(place, bound);
    return EVP_CipherInit_ex2(c->context, NULL, NULL, own, c->seals ? 1 : 0, NULL) == 1 &&
           EVP_CipherUpdate(c->context, NULL, &written, bound, PLACE_BYTES) == 1;
}

bool zn_row_cipher_seal(zn_row_cipher *c, const uint8_t nonce[ZN_ROW_NONCE_BYTES],
                        const zn_row_place *place, zn_span row, uint8_t *out)
{
    int written = 0, rest = 0;
    size_t size;
    if (row.n > ZN_ROW_MAX)
        return false;
    size = class_of(row.n);
    c->plain[0] = (uint8_t)row.n;
    c->plain[1] = (uint8_t)(row.n >> 8);
    if (row.n != 0)
        memcpy(c->plain + LENGTH_BYTES, row.p, row.n);
    memset(c->plain + LENGTH_BYTES + row.n, 0, size - LENGTH_BYTES - row.n);
    return begin(c, nonce, place) &&
           EVP_CipherUpdate(c->context, out, &written, c->plain, (int)size) == 1 &&
           (size_t)written == size && EVP_CipherFinal_ex(c->context, out + size, &rest) == 1 &&
           EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_GET_TAG, ZN_ROW_TAG_BYTES, out + size) ==
               1;
}

/* Decrypts into c->plain; true when the tag is right. */
static bool decrypt(zn_row_cipher *c, zn_span sealed)
{
    uint8_t tag[ZN_ROW_TAG_BYTES], rest[ZN_ROW_TAG_BYTES];
    size_t size = sealed.n - ZN_ROW_TAG_BYTES;
    int written = 0, last = 0;
    memcpy(tag, sealed.p + size, sizeof tag);
    return EVP_CipherUpdate(c->context, c->plain, &written, sealed.p, (int)size) == 1 &&
           EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_SET_TAG, ZN_ROW_TAG_BYTES, tag) == 1 &&
           EVP_CipherFinal_ex(c->context, rest, &last) == 1;
}

bool zn_row_cipher_unseal(zn_row_cipher *c, const uint8_t nonce[ZN_ROW_NONCE_BYTES],
                          const zn_row_place *place, zn_span sealed, zn_span *row)
{
    size_t n;
    *row = (zn_span){c->plain, 0};
    if (sealed.n < CLASS_MIN + ZN_ROW_TAG_BYTES || sealed.n > ZN_SEALED_MAX)
        return false;
    if (!begin(c, nonce, place) || !decrypt(c, sealed)) {
        zn_wipe(c->plain, sizeof c->plain); /* GCM decrypts before it knows the tag */
        return false;
    }
    n = (size_t)c->plain[0] | (size_t)c->plain[1] << 8;
    if (n > ZN_ROW_MAX || zn_row_sealed_bytes(n) != sealed.n)
        return false;
    *row = (zn_span){c->plain + LENGTH_BYTES, n};
    return true;
}
