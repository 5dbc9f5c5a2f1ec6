/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/sealed_row.h"

#include "crypto/key_file.h"
#include "crypto/keys.h"
#include "util/arena.h"

#include <endian.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/mman.h>

#define LABEL "zanon-net/1/sealed-row"
#define LABEL_BYTES (sizeof LABEL - 1)
#define PLACE_BYTES 18 /* probe, sequence and shard */
#define INFO_BYTES (LABEL_BYTES + 2 * ZN_X25519_BYTES + PLACE_BYTES)
#define MAKE "zanon-net key new --reader FILE"

static const uint8_t no_nonce[ZN_ROW_NONCE_BYTES];

/* Inputs from which both sides derive the keys of messages. */
typedef struct agreement {
    uint8_t shared[ZN_X25519_BYTES];
    uint8_t key[ZN_ROW_KEY_BYTES];                           /* while it is made */
    uint8_t probe[ZN_X25519_BYTES], reader[ZN_X25519_BYTES]; /* public keys */
    EVP_KDF *kdf;
    EVP_KDF_CTX *context;
} agreement;

struct zn_row_sealer {
    agreement with;
    EVP_PKEY *reader;
    zn_row_cipher *cipher;
    zn_row_place message;
};

struct zn_row_opener {
    agreement with;
    char text[ZN_READER_PEM_MAX];
    EVP_PKEY *secret;
    zn_row_cipher *cipher;
    zn_row_place message; /* whose key the cipher has */
    bool has_shared, has_key;
};

/* ---- PEM ---- */

/* Writes a key as PEM; false when libcrypto fails. */
static bool write_pem(EVP_PKEY *key, bool secret, zn_reader_pem *out)
{
    BIO *memory = BIO_new(BIO_s_mem());
    int n = 0;
    bool ok = memory != NULL;
    if (ok)
        ok = secret ? PEM_write_bio_PKCS8PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL) == 1
                    : PEM_write_bio_PUBKEY(memory, key) == 1;
    if (ok)
        n = BIO_read(memory, out->text, sizeof out->text);
    BIO_free(memory); /* libcrypto wipes what it held */
    out->n = n > 0 ? (size_t)n : 0;
    return n > 0 && n < ZN_READER_PEM_MAX;
}

int zn_reader_key_new(zn_reader_pem *secret, zn_reader_pem *public_key, zn_error *err)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    bool ok = key != NULL && write_pem(key, true, secret) && write_pem(key, false, public_key);
    EVP_PKEY_free(key);
    return ok ? 0 : zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not make an X25519 key");
}

/* An encrypted key would ask at the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

/* Reads an X25519 key; NULL for another text. */
static EVP_PKEY *read_pem(zn_span pem, bool secret)
{
    BIO *memory = pem.n >= ZN_READER_PEM_MAX ? NULL : BIO_new_mem_buf(pem.p, (int)pem.n);
    EVP_PKEY *key = NULL;
    if (memory != NULL && secret)
        key = PEM_read_bio_PrivateKey(memory, NULL, no_passphrase, NULL);
    else if (memory != NULL)
        key = PEM_read_bio_PUBKEY(memory, NULL, no_passphrase, NULL);
    BIO_free(memory);
    if (key != NULL && EVP_PKEY_is_a(key, "X25519") != 1) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    return key;
}

static bool public_half(const EVP_PKEY *key, uint8_t out[ZN_X25519_BYTES])
{
    size_t n = ZN_X25519_BYTES;
    return EVP_PKEY_get_raw_public_key(key, out, &n) == 1 && n == ZN_X25519_BYTES;
}

int zn_reader_public_read(zn_span pem, uint8_t key[ZN_X25519_BYTES], zn_error *err)
{
    EVP_PKEY *parsed = read_pem(pem, false);
    bool ok = parsed != NULL && public_half(parsed, key), is_secret;
    EVP_PKEY_free(parsed);
    if (ok)
        return 0;
    parsed = read_pem(pem, true);
    is_secret = parsed != NULL;
    EVP_PKEY_free(parsed);
    if (is_secret)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "holds a reader's secret key: give the file beside it that ends in .pub");
    return zn_fail(err, ZN_ERR_CONFIG, 0,
                   "does not hold a reader's public key; `" MAKE "` writes one to FILE.pub");
}

/* ---- agreement ---- */

static int open_agreement(agreement *with, zn_error *err)
{
    with->kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    if (with->kdf != NULL)
        with->context = EVP_KDF_CTX_new(with->kdf);
    return with->context != NULL ? 0 : zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no HKDF");
}

static void close_agreement(agreement *with)
{
    EVP_KDF_CTX_free(with->context);
    EVP_KDF_free(with->kdf);
    zn_wipe(with, sizeof *with);
}

/* Computes the shared secret of own (secret) and peer (public); false for a peer of small order. */
static bool agree(agreement *with, EVP_PKEY *own, EVP_PKEY *peer)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, own, NULL);
    size_t n = sizeof with->shared;
    bool ok = context != NULL && EVP_PKEY_derive_init(context) == 1 &&
              EVP_PKEY_derive_set_peer(context, peer) == 1 &&
              EVP_PKEY_derive(context, with->shared, &n) == 1 && n == sizeof with->shared;
    EVP_PKEY_CTX_free(context);
    return ok;
}

static size_t write_info(const agreement *with, const zn_row_place *message,
                         uint8_t info[INFO_BYTES])
{
    uint64_t words[2] = {htole64(message->probe), htole64(message->sequence)};
    uint16_t shard = htole16(message->shard);
    uint8_t *at = info;
    memcpy(at, LABEL, LABEL_BYTES);
    memcpy(at += LABEL_BYTES, with->probe, ZN_X25519_BYTES);
    memcpy(at += ZN_X25519_BYTES, with->reader, ZN_X25519_BYTES);
    memcpy(at += ZN_X25519_BYTES, words, sizeof words);
    memcpy(at + sizeof words, &shard, sizeof shard);
    return INFO_BYTES;
}

/* Gives the cipher the key of a message. */
static bool enter_message(agreement *with, const zn_row_place *message, zn_row_cipher *cipher)
{
    uint8_t info[INFO_BYTES];
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, sizeof digest - 1),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, with->shared, sizeof with->shared),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info,
                                          write_info(with, message, info)),
        OSSL_PARAM_construct_end(),
    };
    bool ok = EVP_KDF_derive(with->context, with->key, sizeof with->key, params) == 1;
    EVP_KDF_CTX_reset(with->context); /* it holds a copy of the secret */
    ok = ok && zn_row_cipher_key(cipher, with->key);
    zn_wipe(with->key, sizeof with->key);
    return ok;
}

/* ---- probes ---- */

int zn_row_sealer_open(zn_row_sealer **out, const uint8_t reader[ZN_X25519_BYTES], zn_error *err)
{
    zn_row_sealer *s = zn_block_alloc(sizeof *s);
    int rc;
    *out = NULL;
    if (s == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to seal rows");
    (void)mlock(s, sizeof *s);
    memcpy(s->with.reader, reader, ZN_X25519_BYTES);
    s->reader = EVP_PKEY_new_raw_public_key_ex(NULL, "X25519", NULL, reader, ZN_X25519_BYTES);
    rc = s->reader == NULL ? zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no X25519")
                           : open_agreement(&s->with, err);
    if (rc == 0)
        rc = zn_row_cipher_open(&s->cipher, true, err);
    if (rc == 0)
        rc = zn_row_sealer_renew(s, err);
    if (rc != 0)
        zn_row_sealer_close(s);
    else
        *out = s;
    return rc;
}

void zn_row_sealer_close(zn_row_sealer *s)
{
    if (s == NULL)
        return;
    close_agreement(&s->with);
    EVP_PKEY_free(s->reader);
    zn_row_cipher_close(s->cipher);
    zn_block_free(s, sizeof *s);
}

int zn_row_sealer_renew(zn_row_sealer *s, zn_error *err)
{
    EVP_PKEY *own = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    bool drawn = own != NULL && public_half(own, s->with.probe);
    bool agreed = drawn && agree(&s->with, own, s->reader);
    EVP_PKEY_free(own); /* libcrypto wipes the secret half */
    if (agreed)
        return 0;
    if (drawn)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the reader's public key is not a usable point");
    return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not make an X25519 key");
}

const uint8_t *zn_row_sealer_public(const zn_row_sealer *s)
{
    return s->with.probe;
}

bool zn_row_sealer_begin(zn_row_sealer *s, const zn_row_place *place)
{
    s->message = *place;
    return enter_message(&s->with, place, s->cipher);
}

bool zn_row_sealer_seal(zn_row_sealer *s, uint32_t index, zn_span row, uint8_t *out)
{
    s->message.index = index;
    return zn_row_cipher_seal(s->cipher, no_nonce, &s->message, row, out);
}

/* ---- readers ---- */

static int load_secret(zn_row_opener *o, const char *path, zn_error *err)
{
    static const zn_key_file_kind kind = {"reader key file", MAKE};
    size_t n = 0;
    int rc = zn_key_file_read(path, &kind, o->text, sizeof o->text, &n, err);
    if (rc == 0)
        o->secret = read_pem((zn_span){(const uint8_t *)o->text, n}, true);
    zn_wipe(o->text, sizeof o->text);
    if (rc == 0 && o->secret == NULL)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "reader key file %.120s does not hold a reader's secret key in PEM; make "
                       "one with `" MAKE "`",
                       path);
    if (rc == 0 && !public_half(o->secret, o->with.reader))
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not use the reader's key");
    return rc;
}

int zn_row_opener_open(zn_row_opener **out, const char *path, zn_error *err)
{
    zn_row_opener *o = zn_block_alloc(sizeof *o);
    int rc;
    *out = NULL;
    if (o == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to open rows");
    (void)mlock(o, sizeof *o);
    rc = open_agreement(&o->with, err);
    if (rc == 0)
        rc = load_secret(o, path, err);
    if (rc == 0)
        rc = zn_row_cipher_open(&o->cipher, false, err);
    if (rc != 0)
        zn_row_opener_close(o);
    else
        *out = o;
    return rc;
}

void zn_row_opener_close(zn_row_opener *o)
{
    if (o == NULL)
        return;
    close_agreement(&o->with);
    EVP_PKEY_free(o->secret);
    zn_row_cipher_close(o->cipher);
    zn_block_free(o, sizeof *o);
}

/* Agrees with a probe's key, unless it is the last one's. */
static bool meet(zn_row_opener *o, const uint8_t probe_key[ZN_X25519_BYTES])
{
    EVP_PKEY *peer;
    if (o->has_shared && memcmp(o->with.probe, probe_key, ZN_X25519_BYTES) == 0)
        return true;
    o->has_key = false;
    memcpy(o->with.probe, probe_key, ZN_X25519_BYTES);
    peer = EVP_PKEY_new_raw_public_key_ex(NULL, "X25519", NULL, probe_key, ZN_X25519_BYTES);
    o->has_shared = peer != NULL && agree(&o->with, o->secret, peer);
    EVP_PKEY_free(peer);
    return o->has_shared;
}

/* Takes the key of a message, unless it is the last one's. */
static bool enter(zn_row_opener *o, const zn_row_place *place)
{
    if (o->has_key && o->message.probe == place->probe && o->message.shard == place->shard &&
        o->message.sequence == place->sequence)
        return true;
    o->message = *place;
    o->has_key = enter_message(&o->with, place, o->cipher);
    return o->has_key;
}

bool zn_row_opener_unseal(zn_row_opener *o, const uint8_t probe_key[ZN_X25519_BYTES],
                          const zn_row_place *place, zn_span sealed, zn_span *row)
{
    *row = (zn_span){NULL, 0};
    return meet(o, probe_key) && enter(o, place) &&
           zn_row_cipher_unseal(o->cipher, no_nonce, place, sealed, row);
}
