/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One secret, and from it by HKDF-SHA256 (RFC 5869, empty salt) all keys of an epoch and, in
 * ephemeral mode, the next secret, so that a leaked key says nothing about another epoch.
 *
 * Every secret byte, also while it is read or computed, stays in this one locked block; what
 * libcrypto copies is wiped by resetting its context after each use.
 */
#include "crypto/keys.h"

#include "crypto/key_file.h"
#include "util/arena.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/mman.h>
#include <sys/random.h>

#define LABEL_CRYPTOPAN "zanon-net/2/cryptopan"
#define LABEL_HOST "zanon-net/2/host"
#define LABEL_RATCHET "zanon-net/2/ratchet"
#define LABEL_MAX 64
#define BASE64_CHARS 44 /* 32 bytes, with one '=' */
#define DECODED_MAX 33  /* EVP_DecodeBlock writes whole groups of three */
#define NO_EPOCH INT64_C(-1)

_Static_assert(ZN_CRYPTOPAN_KEY_BYTES == ZN_MASTER_BYTES, "one secret makes one key");

/* The keys of one epoch, ready for use. */
typedef struct slot {
    int64_t epoch; /* NO_EPOCH: none yet */
    zn_addr_pseudonym *pseudonym;
} slot;

struct zn_keys {
    uint8_t secret[ZN_MASTER_BYTES]; /* the master, or the current epoch's secret */
    uint8_t next[ZN_MASTER_BYTES];   /* a key or secret being made */
    char text[BASE64_CHARS + 2];     /* the key file: its line, its newline, one byte too many */
    uint8_t decoded[DECODED_MAX];
    uint8_t host[ZN_FEISTEL_KEY_BYTES];
    bool derived;
    zn_key_scope scope;
    const zn_addr_plan *plan; /* NULL: no pseudonyms are asked for */
    int64_t secret_epoch;     /* ephemeral mode: whose secret it is; NO_EPOCH until its first use */
    unsigned recent;          /* the slot used last */
    /* derived mode: keys of the two epochs used last; ephemeral mode uses slots[0] only */
    slot slots[2];
    EVP_KDF *kdf;
    EVP_KDF_CTX *context;
};

void zn_wipe(void *p, size_t n)
{
    memset(p, 0, n);
    __asm__ volatile("" : : "r"(p) : "memory"); /* the zeros are "read" here: they must be stored */
}

static uint8_t *put_u64be(uint8_t *at, uint64_t value)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(value >> shift);
    return at;
}

int zn_key_digest(const char *text, size_t n, uint8_t digest[ZN_KEY_DIGEST_BYTES], zn_error *err)
{
    size_t bytes = 0;
    if (EVP_Q_digest(NULL, "SHA256", NULL, text, n, digest, &bytes) == 1 &&
        bytes == ZN_KEY_DIGEST_BYTES)
        return 0;
    return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no SHA-256");
}

/* n bytes (at most ZN_MASTER_BYTES) made from the secret for `info`, into out. */
static bool expand(zn_keys *k, uint8_t *info, size_t info_bytes, uint8_t *out, size_t n)
{
    char digest[] = "SHA256";
    bool ok;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, sizeof digest - 1),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, k->secret, sizeof k->secret),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, info_bytes),
        OSSL_PARAM_construct_end(),
    };
    ok = EVP_KDF_derive(k->context, out, n, params) == 1;
    EVP_KDF_CTX_reset(k->context); /* it holds a copy of the secret */
    if (!ok)
        zn_wipe(out, n);
    return ok;
}

/* Derives the key for `label` in `epoch` from the secret. */
static bool hkdf(zn_keys *k, const char *label, int64_t epoch, uint8_t *out, size_t n)
{
    uint8_t info[LABEL_MAX + 4 * sizeof(uint64_t) + ZN_KEY_DIGEST_BYTES], *end;
    size_t label_bytes = strnlen(label, LABEL_MAX + 1);
    if (label_bytes > LABEL_MAX)
        return false;
    memcpy(info, label, label_bytes);
    end = put_u64be(info + label_bytes, (uint64_t)k->scope.rotate_ns);
    end = put_u64be(put_u64be(end, k->scope.z), (uint64_t)k->scope.window_ns);
    memcpy(end, k->scope.digest, ZN_KEY_DIGEST_BYTES);
    end = put_u64be(end + ZN_KEY_DIGEST_BYTES, (uint64_t)epoch);
    return expand(k, info, (size_t)(end - info), out, n);
}

/* Gives the slot the keys of `epoch`; on failure the slot serves no epoch. */
static int load_slot(zn_keys *k, slot *s, int64_t epoch, zn_error *err)
{
    int rc;
    s->epoch = NO_EPOCH;
    if (k->plan == NULL) {
        s->epoch = epoch;
        return 0;
    }
    if (!hkdf(k, LABEL_CRYPTOPAN, epoch, k->next, sizeof k->next) ||
        !hkdf(k, LABEL_HOST, epoch, k->host, sizeof k->host))
        rc = zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not derive an epoch's keys");
    else if (s->pseudonym == NULL)
        rc = zn_addr_pseudonym_open(&s->pseudonym, k->plan, k->next, k->host, err);
    else
        rc = zn_addr_pseudonym_rekey(s->pseudonym, k->next, k->host, err);
    zn_wipe(k->next, sizeof k->next);
    zn_wipe(k->host, sizeof k->host);
    if (rc == 0)
        s->epoch = epoch;
    return rc;
}

static int draw_secret(zn_keys *k, zn_error *err)
{
    if (getrandom(k->next, sizeof k->next, 0) != (ssize_t)sizeof k->next)
        return zn_fail(err, ZN_ERR_CRYPTO, errno, "the system gave no random bytes");
    memcpy(k->secret, k->next, sizeof k->secret);
    zn_wipe(k->next, sizeof k->next);
    return 0;
}

/* Decodes text[0 .. n), one line of base64, to the 32 bytes of the secret. */
static bool decode_text(zn_keys *k, size_t n)
{
    const unsigned char *text = (const unsigned char *)k->text;
    unsigned char again[BASE64_CHARS + 1];
    bool same;
    if (n != BASE64_CHARS && !(n == BASE64_CHARS + 1 && text[BASE64_CHARS] == '\n'))
        return false;
    if (EVP_DecodeBlock(k->decoded, text, BASE64_CHARS) != DECODED_MAX)
        return false;
    /* libcrypto lets blanks and stray '=' pass; what is not encoded the same way again is wrong. */
    (void)EVP_EncodeBlock(again, k->decoded, ZN_MASTER_BYTES);
    same = CRYPTO_memcmp(again, text, BASE64_CHARS) == 0;
    zn_wipe(again, sizeof again);
    if (same)
        memcpy(k->secret, k->decoded, sizeof k->secret);
    return same;
}

static int load_master(zn_keys *k, const char *path, zn_error *err)
{
    static const zn_key_file_kind kind = {"key file", "zanon-net key new FILE"};
    size_t n = 0;
    int rc = zn_key_file_read(path, &kind, k->text, sizeof k->text, &n, err);
    if (rc == 0 && !decode_text(k, n))
        rc = zn_fail(err, ZN_ERR_CONFIG, 0,
                     "key file %.120s does not hold exactly one line of 32 bytes in base64; make "
                     "one with `zanon-net key new FILE`",
                     path);
    zn_wipe(k->text, sizeof k->text);
    zn_wipe(k->decoded, sizeof k->decoded);
    return rc;
}

/* Both slots get their memory here, so that nothing is allocated later; epoch 0 is as good as any
 * and is not yet served. */
static int open_slots(zn_keys *k, zn_error *err)
{
    for (unsigned i = 0; i < (k->derived ? 2u : 1u); i++) {
        int rc = load_slot(k, &k->slots[i], 0, err);
        k->slots[i].epoch = NO_EPOCH;
        if (rc != 0)
            return rc;
    }
    return 0;
}

int zn_keys_open(zn_keys **out, const zn_key_scope *scope, const zn_addr_plan *plan,
                 const char *key_file, zn_error *err)
{
    zn_keys *k;
    int rc;
    *out = NULL;
    if (scope->rotate_ns < 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "an epoch must last at least 1 ns");
    k = zn_block_alloc(sizeof *k);
    if (k == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the keys");
    (void)mlock(k, sizeof *k);
    k->scope = *scope;
    k->plan = plan;
    k->secret_epoch = NO_EPOCH;
    k->derived = key_file != NULL;
    k->kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    if (k->kdf != NULL)
        k->context = EVP_KDF_CTX_new(k->kdf);
    if (k->context == NULL)
        rc = zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no HKDF");
    else
        rc = k->derived ? load_master(k, key_file, err) : draw_secret(k, err);
    if (rc == 0 && plan != NULL)
        rc = open_slots(k, err);
    if (rc != 0)
        zn_keys_close(k);
    else
        *out = k;
    return rc;
}

void zn_keys_close(zn_keys *k)
{
    if (k == NULL)
        return;
    for (unsigned i = 0; i < 2; i++)
        zn_addr_pseudonym_close(k->slots[i].pseudonym);
    EVP_KDF_CTX_free(k->context);
    EVP_KDF_free(k->kdf);
    zn_wipe(k, sizeof *k);
    zn_block_free(k, sizeof *k);
}

bool zn_keys_is_derived(const zn_keys *k)
{
    return k->derived;
}

int64_t zn_keys_epoch(const zn_keys *k, int64_t t_ns)
{
    int64_t epoch = t_ns / k->scope.rotate_ns;
    ZN_ASSERT(t_ns >= 0);
    return !k->derived && epoch < k->secret_epoch ? k->secret_epoch : epoch;
}

/* Ephemeral mode: moves the secret on to a later epoch; the old one is overwritten. */
static bool ratchet(zn_keys *k, int64_t epoch)
{
    if (k->secret_epoch != NO_EPOCH && k->secret_epoch != epoch) {
        if (!hkdf(k, LABEL_RATCHET, epoch, k->next, sizeof k->next))
            return false;
        memcpy(k->secret, k->next, sizeof k->secret);
        zn_wipe(k->next, sizeof k->next);
    }
    k->secret_epoch = epoch;
    return true;
}

/* Returns the slot that serves `epoch`, moved there where needed; NULL when libcrypto fails. */
static slot *serve(zn_keys *k, int64_t epoch)
{
    unsigned other = k->recent ^ 1u;
    if (ZN_LIKELY(k->slots[k->recent].epoch == epoch))
        return &k->slots[k->recent];
    if (!k->derived) {
        other = 0;
        if (!ratchet(k, epoch))
            return NULL;
    }
    if (k->slots[other].epoch != epoch && load_slot(k, &k->slots[other], epoch, NULL) != 0)
        return NULL;
    k->recent = other;
    return &k->slots[other];
}

bool zn_keys_enter(zn_keys *k, int64_t epoch)
{
    return serve(k, epoch) != NULL;
}

int zn_keys_pseudonyms(zn_keys *k, int64_t epoch, const zn_addr *real, zn_addr *pseudonyms,
                       size_t n)
{
    slot *s = serve(k, epoch);
    if (s != NULL)
        return zn_addr_pseudonym_make(s->pseudonym, real, pseudonyms, n);
    memset(pseudonyms, 0, n * sizeof *pseudonyms);
    return -ZN_ERR_CRYPTO;
}

int zn_keys_rebase(zn_keys *k, int64_t t_ns, zn_error *err)
{
    int rc;
    if (k->derived)
        return 0;
    rc = draw_secret(k, err);
    if (rc != 0)
        return rc;
    k->secret_epoch = t_ns / k->scope.rotate_ns;
    return k->plan == NULL ? 0 : load_slot(k, &k->slots[0], k->secret_epoch, err);
}

int zn_keys_derive(zn_keys *k, const char *purpose, int64_t epoch, uint8_t *out, size_t n)
{
    if (!k->derived) {
        if (epoch < k->secret_epoch)
            return -ZN_ERR_CONFIG;
        if (!ratchet(k, epoch))
            return -ZN_ERR_CRYPTO;
    }
    return hkdf(k, purpose, epoch, out, n) ? 0 : -ZN_ERR_CRYPTO;
}

int zn_keys_derive_shared(zn_keys *k, const char *label, uint64_t number, uint8_t *out, size_t n)
{
    uint8_t info[LABEL_MAX + sizeof number];
    size_t label_bytes = strnlen(label, LABEL_MAX + 1);
    if (!k->derived || label_bytes > LABEL_MAX)
        return -ZN_ERR_CONFIG;
    memcpy(info, label, label_bytes);
    (void)put_u64be(info + label_bytes, number);
    return expand(k, info, label_bytes + sizeof number, out, n) ? 0 : -ZN_ERR_CRYPTO;
}
