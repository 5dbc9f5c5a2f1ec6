/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rounds of one string depend on each other, but the rounds of different strings do not. So one
 * call of libcrypto encrypts a round of many strings, which also keeps the processor's AES unit
 * busy.
 */
#include "crypto/feistel.h"

#include "util/arena.h"

#include <endian.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 10u
#define AT_ONCE 256u /* strings of one call */

/* An AES block in memory order. */
typedef struct block {
    uint64_t word[2];
} block;

_Static_assert(sizeof(block) == 16, "a block is one AES block");

/* The halves of a string, in the order that the next round takes them. */
typedef struct halves {
    uint64_t a, b;
    unsigned a_bits, b_bits;
} halves;

struct zn_feistel {
    block work[AT_ONCE], tweak[AT_ONCE];
    halves string[AT_ONCE];
    EVP_CIPHER *cipher;
    EVP_CIPHER_CTX *context;
};

static uint64_t low_bits(uint64_t x, unsigned bits)
{
    return bits >= 64 ? x : x & ((UINT64_C(1) << bits) - 1);
}

static bool encrypt(zn_feistel *f, size_t blocks)
{
    unsigned char *work = (unsigned char *)f->work;
    int length = (int)(blocks * sizeof(block)), written = 0;
    return EVP_EncryptUpdate(f->context, work, &written, work, length) == 1 && written == length;
}

static bool make_tweaks(zn_feistel *f, const zn_feistel_string *strings, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        f->work[k].word[0] = htobe64((uint64_t)(strings[k].tweak >> 64));
        f->work[k].word[1] = htobe64((uint64_t)strings[k].tweak);
    }
    if (!encrypt(f, n))
        return false;
    memcpy(f->tweak, f->work, n * sizeof(block));
    return true;
}

static bool run_round(zn_feistel *f, unsigned round, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        f->work[k].word[0] = f->tweak[k].word[0] ^ htobe64((uint64_t)round << 56);
        f->work[k].word[1] = f->tweak[k].word[1] ^ htobe64(f->string[k].b);
    }
    if (!encrypt(f, n))
        return false;
    for (size_t k = 0; k < n; k++) {
        halves s = f->string[k];
        uint64_t c = s.a ^ low_bits(be64toh(f->work[k].word[1]), s.a_bits);
        f->string[k] = (halves){s.b, c, s.b_bits, s.a_bits};
    }
    return true;
}

/* At most AT_ONCE strings. */
static bool permute(zn_feistel *f, zn_feistel_string *strings, size_t n)
{
    if (!make_tweaks(f, strings, n))
        return false;
    for (size_t k = 0; k < n; k++) {
        unsigned a_bits = strings[k].bits / 2, b_bits = strings[k].bits - a_bits;
        uint64_t a = (uint64_t)(strings[k].value >> b_bits);
        f->string[k] = (halves){a, low_bits((uint64_t)strings[k].value, b_bits), a_bits, b_bits};
    }
    for (unsigned round = 1; round <= ROUNDS; round++)
        if (!run_round(f, round, n))
            return false;
    for (size_t k = 0; k < n; k++) {
        halves s = f->string[k]; /* of the first sizes again: the number of rounds is even */
        strings[k].value = (zn_u128)s.a << s.b_bits | s.b;
    }
    return true;
}

/* Leaves no string in the buffers. */
static void forget_strings(zn_feistel *f)
{
    OPENSSL_cleanse(f->work, sizeof f->work);
    OPENSSL_cleanse(f->tweak, sizeof f->tweak);
    OPENSSL_cleanse(f->string, sizeof f->string);
}

int zn_feistel_permute(zn_feistel *f, zn_feistel_string *strings, size_t n)
{
    size_t count;
    for (size_t done = 0; done < n; done += count) {
        count = n - done < AT_ONCE ? n - done : AT_ONCE;
        if (!permute(f, strings + done, count)) {
            forget_strings(f);
            for (size_t k = 0; k < n; k++)
                strings[k].value = 0;
            return -ZN_ERR_CRYPTO;
        }
    }
    return 0;
}

int zn_feistel_rekey(zn_feistel *f, const uint8_t key[ZN_FEISTEL_KEY_BYTES], zn_error *err)
{
    (void)EVP_CIPHER_CTX_reset(f->context);
    forget_strings(f);
    if (EVP_EncryptInit_ex2(f->context, f->cipher, key, NULL, NULL) == 1 &&
        EVP_CIPHER_CTX_set_padding(f->context, 0) == 1)
        return 0;
    (void)EVP_CIPHER_CTX_reset(f->context);
    return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not set up AES-128 for pseudonyms");
}

int zn_feistel_open(zn_feistel **out, const uint8_t key[ZN_FEISTEL_KEY_BYTES], zn_error *err)
{
    zn_feistel *f = zn_block_alloc(sizeof *f);
    int rc;
    *out = NULL;
    if (f == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for pseudonyms");
    (void)mlock(f, sizeof *f);
    f->cipher = EVP_CIPHER_fetch(NULL, "AES-128-ECB", NULL);
    f->context = EVP_CIPHER_CTX_new();
    if (f->cipher == NULL || f->context == NULL)
        rc = zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no AES-128-ECB");
    else
        rc = zn_feistel_rekey(f, key, err);
    if (rc != 0)
        zn_feistel_close(f);
    else
        *out = f;
    return rc;
}

void zn_feistel_close(zn_feistel *f)
{
    if (f == NULL)
        return;
    EVP_CIPHER_CTX_free(f->context); /* libcrypto wipes the key schedule */
    EVP_CIPHER_free(f->cipher);
    OPENSSL_cleanse(f, sizeof *f);
    zn_block_free(f, sizeof *f);
}
