/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polynomials are remembered in a table where each group has one place, which the next group there
 * takes over: popular attributes find theirs, and a rare one costs two microseconds.
 */
#include "crypto/threshold.h"

#include "crypto/keys.h"
#include "util/arena.h"

#include <endian.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define LABEL "zanon-net/1/threshold"
#define ROW_LABEL "zanon-net/1/threshold-row"
#define LABEL_MAX 32
#define DIGEST_BYTES 32
#define KEPT_BYTES ((size_t)16 << 20) /* memory for polynomials that are remembered */
#define KEPT_MAX ((size_t)1 << 14)

_Static_assert(sizeof ROW_LABEL <= LABEL_MAX, "labels fit into what is hashed");
_Static_assert(ZN_F127_BYTES == sizeof(zn_f127), "a number is read as it lies");

/* A polynomial that is remembered; its coefficients lie apart. */
typedef struct kept {
    zn_threshold_group group;
    bool live;
    uint8_t row_key[ZN_ROW_KEY_BYTES];
} kept;

struct zn_threshold {
    uint8_t nonce[ZN_ROW_NONCE_BYTES];
    zn_threshold_rule rule;
    EVP_MAC *hmac;
    EVP_MAC_CTX *mac; /* with the key */
    EVP_CIPHER *ctr;
    EVP_CIPHER_CTX *stream;
    zn_row_cipher *cipher;
    kept *kept;
    zn_f127 *coefficients; /* z of each kept polynomial */
    size_t kept_count;     /* a power of two */
};

int zn_threshold_check(const zn_threshold_rule *rule, zn_error *err)
{
    if (rule->z < 1 || rule->z > ZN_THRESHOLD_Z_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "z is %u: shares of a key need 1 to %u", rule->z,
                       ZN_THRESHOLD_Z_MAX);
    if (rule->epochs < 1 || rule->epochs > ZN_THRESHOLD_EPOCHS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "epochs is %u: it must be 1 to %u", rule->epochs,
                       ZN_THRESHOLD_EPOCHS_MAX);
    if (rule->window_ns < (int64_t)rule->epochs)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the window is shorter than %u ns, one an epoch",
                       rule->epochs);
    return 0;
}

int64_t zn_threshold_epoch(const zn_threshold_rule *rule, int64_t t_ns)
{
    int64_t step = rule->window_ns / (int64_t)rule->epochs;
    return t_ns / step - (t_ns % step < 0 ? 1 : 0);
}

/* Writes a label and a group, and returns where the text ends. */
static uint8_t *write_group(uint8_t *at, const char *label, size_t label_bytes,
                            const zn_threshold_group *group)
{
    uint64_t words[3] = {htole64(group->id.lo), htole64(group->id.hi),
                         htole64((uint64_t)group->epoch)};
    memcpy(at, label, label_bytes);
    memcpy(at + label_bytes, words, sizeof words);
    return at + label_bytes + sizeof words;
}

bool zn_threshold_row_key(const zn_threshold_group *group, zn_f127 secret,
                          uint8_t key[ZN_ROW_KEY_BYTES])
{
    uint8_t text[LABEL_MAX + 3 * sizeof(uint64_t) + 1];
    uint64_t words[2] = {htole64((uint64_t)secret), htole64((uint64_t)(secret >> 64))};
    uint8_t *end = write_group(text, ROW_LABEL, sizeof ROW_LABEL - 1, group);
    unsigned bytes = 0;
    bool ok;
    *end++ = 1; /* HKDF-Expand: the only block */
    ok = HMAC(EVP_sha256(), words, sizeof words, text, (size_t)(end - text), key, &bytes) != NULL;
    zn_wipe(words, sizeof words);
    return ok && bytes == ZN_ROW_KEY_BYTES;
}

/* ---- open and close ---- */

static size_t kept_count(uint32_t z)
{
    size_t count = KEPT_MAX;
    while (count > 1 && count * (sizeof(kept) + z * sizeof(zn_f127)) > KEPT_BYTES)
        count /= 2;
    return count;
}

static int open_ciphers(zn_threshold *s, const uint8_t key[ZN_THRESHOLD_KEY_BYTES], zn_error *err)
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, sizeof digest - 1),
        OSSL_PARAM_construct_end(),
    };
    s->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (s->hmac != NULL)
        s->mac = EVP_MAC_CTX_new(s->hmac);
    s->ctr = EVP_CIPHER_fetch(NULL, "AES-256-CTR", NULL);
    s->stream = EVP_CIPHER_CTX_new();
    if (s->mac == NULL || s->ctr == NULL || s->stream == NULL ||
        EVP_MAC_init(s->mac, key, ZN_THRESHOLD_KEY_BYTES, params) != 1)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no HMAC or AES-256-CTR");
    return zn_row_cipher_open(&s->cipher, true, err);
}

static int open_parts(zn_threshold *s, const uint8_t key[ZN_THRESHOLD_KEY_BYTES], zn_error *err)
{
    int rc = open_ciphers(s, key, err);
    s->kept_count = kept_count(s->rule.z);
    s->kept = zn_block_alloc(s->kept_count * sizeof *s->kept);
    s->coefficients = zn_block_alloc(s->kept_count * s->rule.z * sizeof *s->coefficients);
    if (rc == 0 && (s->kept == NULL || s->coefficients == NULL))
        rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for polynomials");
    return rc == 0 ? zn_threshold_renew(s, err) : rc;
}

int zn_threshold_open(zn_threshold **out, const zn_threshold_rule *rule,
                      const uint8_t key[ZN_THRESHOLD_KEY_BYTES], zn_error *err)
{
    int rc = zn_threshold_check(rule, err);
    zn_threshold *s;
    *out = NULL;
    if (rc != 0)
        return rc;
    s = zn_block_alloc(sizeof *s);
    if (s == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for shares");
    s->rule = *rule;
    rc = open_parts(s, key, err);
    if (rc != 0)
        zn_threshold_close(s);
    else
        *out = s;
    return rc;
}

/* Wipes a block and gives it back. */
static void drop(void *block, size_t bytes)
{
    if (block != NULL)
        zn_wipe(block, bytes);
    zn_block_free(block, bytes);
}

void zn_threshold_close(zn_threshold *s)
{
    if (s == NULL)
        return;
    EVP_MAC_CTX_free(s->mac);
    EVP_MAC_free(s->hmac);
    EVP_CIPHER_CTX_free(s->stream);
    EVP_CIPHER_free(s->ctr);
    zn_row_cipher_close(s->cipher);
    drop(s->kept, s->kept_count * sizeof *s->kept);
    drop(s->coefficients, s->kept_count * s->rule.z * sizeof *s->coefficients);
    zn_block_free(s, sizeof *s);
}

int zn_threshold_renew(zn_threshold *s, zn_error *err)
{
    if (getrandom(s->nonce, sizeof s->nonce, 0) == (ssize_t)sizeof s->nonce)
        return 0;
    return zn_fail(err, ZN_ERR_CRYPTO, 0, "the system gave no random bytes");
}

const uint8_t *zn_threshold_nonce(const zn_threshold *s)
{
    return s->nonce;
}

/* ---- polynomials ---- */

/* Fills `seed` for the polynomial of a group. */
static bool seed_of(zn_threshold *s, const zn_threshold_group *group, uint8_t seed[DIGEST_BYTES])
{
    uint8_t text[LABEL_MAX + 4 * sizeof(uint64_t)];
    uint8_t *end = write_group(text, LABEL, sizeof LABEL - 1, group);
    uint32_t z = htole32(s->rule.z);
    size_t bytes = 0;
    memcpy(end, &z, sizeof z);
    end += sizeof z;
    return EVP_MAC_init(s->mac, NULL, 0, NULL) == 1 &&
           EVP_MAC_update(s->mac, text, (size_t)(end - text)) == 1 &&
           EVP_MAC_final(s->mac, seed, &bytes, DIGEST_BYTES) == 1 && bytes == DIGEST_BYTES;
}

/* Fills the coefficients of a group. */
static bool make(zn_threshold *s, const zn_threshold_group *group, zn_f127 *coefficients)
{
    static const uint8_t counter[16];
    uint8_t seed[DIGEST_BYTES], *bytes = (uint8_t *)coefficients;
    int n = (int)(s->rule.z * sizeof *coefficients), written = 0;
    bool ok =
        seed_of(s, group, seed) && EVP_EncryptInit_ex2(s->stream, s->ctr, seed, counter, NULL) == 1;
    zn_wipe(seed, sizeof seed);
    memset(bytes, 0, (size_t)n);
    if (!ok || EVP_EncryptUpdate(s->stream, bytes, &written, bytes, n) != 1 || written != n)
        return false;
    for (uint32_t i = 0; i < s->rule.z; i++) {
        uint64_t words[2];
        memcpy(words, &coefficients[i], sizeof words);
        coefficients[i] =
            zn_f127_of(((zn_u128)le64toh(words[1]) << 64 | le64toh(words[0])) & ZN_F127_PRIME);
    }
    return true;
}

/* Returns where a group's polynomial is remembered, after making it where it is not; kept_count
 * when libcrypto fails. */
static size_t place_of(zn_threshold *s, const zn_threshold_group *group)
{
    uint64_t mixed = group->id.lo + (uint64_t)group->epoch * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(mixed & (s->kept_count - 1));
    kept *k = &s->kept[at];
    zn_f127 *coefficients = s->coefficients + at * s->rule.z;
    if (k->live && k->group.epoch == group->epoch && k->group.id.lo == group->id.lo &&
        k->group.id.hi == group->id.hi)
        return at;
    k->group = *group;
    k->live =
        make(s, group, coefficients) && zn_threshold_row_key(group, coefficients[0], k->row_key);
    return k->live ? at : s->kept_count;
}

static uint8_t *write_number(uint8_t *at, zn_f127 y)
{
    uint64_t words[2] = {htole64((uint64_t)y), htole64((uint64_t)(y >> 64))};
    memcpy(at, words, sizeof words);
    return at + sizeof words;
}

size_t zn_threshold_seal(zn_threshold *s, const zn_threshold_vote *vote, zn_span row, uint8_t *out)
{
    zn_threshold_group group = {vote->id, zn_threshold_epoch(&s->rule, vote->t_ns)};
    uint64_t x = zn_threshold_point(vote->user);
    uint8_t *at = out;
    size_t place = 0;
    for (uint32_t i = 0; i < s->rule.epochs; i++, group.epoch--) {
        place = place_of(s, &group);
        if (place == s->kept_count)
            return 0;
        at = write_number(at, zn_shamir_share(s->coefficients + place * s->rule.z, s->rule.z, x));
    }
    if (row.n == 0)
        return (size_t)(at - out);
    /* The last one was the oldest, whose key is the row's. */
    if (!zn_row_cipher_key(s->cipher, s->kept[place].row_key) ||
        !zn_row_cipher_seal(s->cipher, s->nonce, &vote->place, row, at))
        return 0;
    return (size_t)(at - out) + zn_row_sealed_bytes(row.n);
}
