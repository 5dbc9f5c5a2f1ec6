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

typedef zn_feistel_block block;

struct zn_feistel {
    block work[AT_ONCE]; /* of each string, the block to encrypt */
    EVP_CIPHER *cipher;
    EVP_CIPHER_CTX *context;
};

static bool encrypt(zn_feistel *f, size_t blocks)
{
    unsigned char *work = (unsigned char *)f->work;
    int length = (int)(blocks * sizeof(block)), written = 0;
    return EVP_EncryptUpdate(f->context, work, &written, work, length) == 1 && written == length;
}

int zn_feistel_make_tweak(zn_feistel *f, zn_feistel_block *tweak, zn_error *err)
{
    f->work[0] = *tweak;
    if (!encrypt(f, 1))
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not encrypt with AES-128");
    *tweak = f->work[0];
    return 0;
}

/* Replaces the blocks that make T by T. */
static bool make_tweaks(zn_feistel *f, zn_feistel_string *strings, size_t n)
{
    size_t plain = 0;
    for (size_t k = 0; k < n; k++)
        if (!strings[k].tweak_is_made)
            f->work[plain++] = strings[k].tweak;
    if (plain == 0)
        return true;
    if (!encrypt(f, plain))
        return false;
    plain = 0;
    for (size_t k = 0; k < n; k++)
        if (!strings[k].tweak_is_made)
            strings[k].tweak = f->work[plain++];
    return true;
}

/* Returns the block that differs from round to round. */
static zn_feistel_words round_block(unsigned round)
{
    return (zn_feistel_words){htobe64((uint64_t)round << 56), 0};
}

_Static_assert(ROUNDS % 2 == 0, "the last round replaces half[1]");

/* Replaces half[replaced] of each string, and writes the blocks of the next round. */
static inline bool run_round(zn_feistel *f, zn_feistel_string *strings, size_t n, unsigned round,
                             unsigned replaced)
{
    const zn_feistel_words next = round_block(round + 1);
    if (!encrypt(f, n))
        return false;
    for (size_t k = 0; k < n; k++) {
        zn_feistel_string *s = &strings[k];
        s->half[replaced].both ^= f->work[k].both & s->mask[replaced].both;
        f->work[k].both = s->half[replaced].both ^ s->tweak.both ^ next;
    }
    return true;
}

/* At most AT_ONCE strings. */
static bool permute(zn_feistel *f, zn_feistel_string *strings, size_t n)
{
    const zn_feistel_words first = round_block(1);
    if (!make_tweaks(f, strings, n))
        return false;
    for (size_t k = 0; k < n; k++)
        f->work[k].both = strings[k].half[1].both ^ strings[k].tweak.both ^ first;
    for (unsigned round = 1; round < ROUNDS; round += 2)
        if (!run_round(f, strings, n, round, 0) || !run_round(f, strings, n, round + 1, 1))
            return false;
    return true;
}

int zn_feistel_permute(zn_feistel *f, zn_feistel_string *strings, size_t n)
{
    size_t count;
    for (size_t done = 0; done < n; done += count) {
        count = n - done < AT_ONCE ? n - done : AT_ONCE;
        if (!permute(f, strings + done, count)) {
            OPENSSL_cleanse(f->work, sizeof f->work);
            OPENSSL_cleanse(strings, n * sizeof *strings);
            return -ZN_ERR_CRYPTO;
        }
    }
    return 0;
}

int zn_feistel_rekey(zn_feistel *f, const uint8_t key[ZN_FEISTEL_KEY_BYTES], zn_error *err)
{
    (void)EVP_CIPHER_CTX_reset(f->context);
    OPENSSL_cleanse(f->work, sizeof f->work);
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
