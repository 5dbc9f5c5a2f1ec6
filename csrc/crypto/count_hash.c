/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/count_hash.h"

#include "util/arena.h"

#include <endian.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#define KEY_BYTES 32
#define HMAC_BYTES 32

struct zn_count_hash {
    EVP_MAC *mac;
    EVP_MAC_CTX *context; /* NULL: `secret` is the key */
    zn_hash_key secret;
    bool failed;
};

int zn_count_settings_digest(uint64_t *out, const zn_count_settings *settings, zn_error *err)
{
    static const char domain[] = "zanon-net/1/count-settings";
    uint8_t text[sizeof domain - 1 + 4 * sizeof(uint64_t)], digest[EVP_MAX_MD_SIZE];
    uint8_t *at = text + sizeof domain - 1;
    memcpy(text, domain, sizeof domain - 1);
    at = zn_le_put(at, settings->z, sizeof(uint64_t));
    at = zn_le_put(at, settings->window_ns, sizeof(uint64_t));
    at = zn_le_put(at, settings->rotate_ns, sizeof(uint64_t));
    if (settings->generation_ns != 0)
        at = zn_le_put(at, settings->generation_ns, sizeof(uint64_t));
    if (EVP_Digest(text, (size_t)(at - text), digest, NULL, EVP_sha256(), NULL) != 1)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no SHA-256");
    *out = zn_le_get(digest, sizeof *out);
    return 0;
}

/* Gives the context its key, of which it keeps a copy. */
static bool set_key(zn_count_hash *h, const uint8_t key[KEY_BYTES])
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, sizeof digest - 1),
        OSSL_PARAM_construct_end(),
    };
    h->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (h->mac != NULL)
        h->context = EVP_MAC_CTX_new(h->mac);
    return h->context != NULL && EVP_MAC_init(h->context, key, KEY_BYTES, params) == 1;
}

int zn_count_hash_open(zn_count_hash **out, zn_keys *keys, uint64_t generation, zn_error *err)
{
    uint8_t key[KEY_BYTES];
    zn_count_hash *h;
    int rc = zn_keys_derive_shared(keys, "zanon-net/1/count", generation, key, sizeof key);
    *out = NULL;
    if (rc == -ZN_ERR_CONFIG)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "probes that share a counter need a key file");
    if (rc != 0)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "the crypto library could not derive a key");
    h = zn_heap_alloc(sizeof *h);
    if (h == NULL)
        rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the hashes of votes");
    else if (!set_key(h, key))
        rc = zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no HMAC with SHA-256");
    zn_wipe(key, sizeof key);
    if (rc != 0)
        zn_count_hash_close(h);
    else
        *out = h;
    return rc;
}

int zn_count_hash_open_local(zn_count_hash **out, const zn_hash_key *secret, zn_error *err)
{
    zn_count_hash *h = zn_heap_alloc(sizeof *h);
    *out = h;
    if (h == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the hashes of votes");
    h->secret = *secret;
    return 0;
}

void zn_count_hash_close(zn_count_hash *h)
{
    if (h == NULL)
        return;
    zn_wipe(&h->secret, sizeof h->secret);
    EVP_MAC_CTX_free(h->context);
    EVP_MAC_free(h->mac);
    zn_heap_free(h);
}

zn_id zn_count_hash_id(zn_count_hash *h, uint8_t domain, zn_span bytes)
{
    uint8_t out[HMAC_BYTES];
    size_t n = 0;
    zn_id id;
    if (h->context == NULL)
        return zn_hash128(&h->secret, domain, bytes.p, bytes.n);
    if (EVP_MAC_init(h->context, NULL, 0, NULL) != 1 ||
        EVP_MAC_update(h->context, &domain, sizeof domain) != 1 ||
        EVP_MAC_update(h->context, bytes.p, bytes.n) != 1 ||
        EVP_MAC_final(h->context, out, &n, sizeof out) != 1 || n != sizeof out) {
        h->failed = true;
        return (zn_id){0};
    }
    memcpy(&id.lo, out, sizeof id.lo);
    memcpy(&id.hi, out + sizeof id.lo, sizeof id.hi);
    return (zn_id){.lo = le64toh(id.lo), .hi = le64toh(id.hi)};
}

bool zn_count_hash_failed(const zn_count_hash *h)
{
    return h->failed;
}
