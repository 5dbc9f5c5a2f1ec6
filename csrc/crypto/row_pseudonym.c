/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each of the two slots serves an epoch: a keyed HMAC context that is set to its start for every
 * user. Derived keys use both, so that late rows around a change of epoch do not derive a key each;
 * random keys only go forward and use the first. A pseudonym costs most of a microsecond, a
 * remembered one a cache line: `seen` holds them by the user's hash, each slot its own, and `used`
 * says which entries must be wiped when the slot changes its key.
 */
#include "crypto/row_pseudonym.h"

#include "crypto/keys.h"
#include "util/arena.h"
#include "util/little_endian.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#define PURPOSE "zanon-net/2/filter"
#define KEY_BYTES 32
#define DIGEST_BYTES 32
#define SEEN 131072u /* 4.5 MiB a slot where all are used; a power of two */
#define NO_EPOCH INT64_C(-1)

/* An entry of zeros is empty: no hash of 128 bits is zero in practice. */
typedef struct seen {
    zn_id id;
    uint8_t digest[ZN_PSEUDONYM_CHARS / 2];
} seen;

typedef struct slot {
    int64_t epoch; /* NO_EPOCH: none yet */
    EVP_MAC_CTX *mac;
    _Alignas(64) seen seen[SEEN];
    uint32_t used[SEEN];
    size_t used_count;
} slot;

struct zn_row_pseudonym {
    uint8_t key[KEY_BYTES]; /* only while it is made */
    zn_keys *keys;
    bool derived;
    unsigned recent;
    EVP_MAC *hmac;
    slot slots[2];
};

static int open_hmac(zn_row_pseudonym *a, zn_error *err)
{
    a->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    for (unsigned i = 0; i < 2; i++) {
        a->slots[i].epoch = NO_EPOCH;
        if (a->hmac != NULL)
            a->slots[i].mac = EVP_MAC_CTX_new(a->hmac);
        if (a->slots[i].mac == NULL)
            return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no HMAC");
    }
    return 0;
}

int zn_row_pseudonym_open(zn_row_pseudonym **out, const zn_key_scope *scope, const char *key_file,
                          zn_error *err)
{
    zn_row_pseudonym *a = zn_block_alloc(sizeof *a);
    int rc;
    *out = NULL;
    if (a == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the pseudonyms");
    a->derived = key_file != NULL;
    rc = open_hmac(a, err);
    if (rc == 0)
        rc = zn_keys_open(&a->keys, scope, NULL, key_file, err);
    if (rc != 0)
        zn_row_pseudonym_close(a);
    else
        *out = a;
    return rc;
}

static void forget(slot *s)
{
    for (size_t i = 0; i < s->used_count; i++)
        zn_wipe(&s->seen[s->used[i]], sizeof s->seen[0]);
    s->used_count = 0;
    s->epoch = NO_EPOCH;
}

void zn_row_pseudonym_close(zn_row_pseudonym *a)
{
    if (a == NULL)
        return;
    for (unsigned i = 0; i < 2; i++) {
        forget(&a->slots[i]);
        EVP_MAC_CTX_free(a->slots[i].mac);
    }
    EVP_MAC_free(a->hmac);
    zn_keys_close(a->keys);
    zn_block_free(a, sizeof *a);
}

/* Gives the slot the key of `epoch`; on failure it serves none. */
static bool load_slot(zn_row_pseudonym *a, slot *s, int64_t epoch)
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, sizeof digest - 1),
        OSSL_PARAM_construct_end(),
    };
    bool ok;
    forget(s);
    ok = zn_keys_derive(a->keys, PURPOSE, epoch, a->key, KEY_BYTES) == 0 &&
         EVP_MAC_init(s->mac, a->key, KEY_BYTES, params) == 1;
    zn_wipe(a->key, sizeof a->key);
    if (ok)
        s->epoch = epoch;
    return ok;
}

/* The slot that serves time t_ns, or NULL when libcrypto fails. */
static slot *serve(zn_row_pseudonym *a, int64_t t_ns)
{
    int64_t epoch = zn_keys_epoch(a->keys, t_ns);
    unsigned other = a->recent ^ 1u;
    if (ZN_LIKELY(a->slots[a->recent].epoch == epoch))
        return &a->slots[a->recent];
    if (!a->derived)
        other = 0;
    if (a->slots[other].epoch != epoch && !load_slot(a, &a->slots[other], epoch))
        return NULL;
    a->recent = other;
    return &a->slots[other];
}

static bool compute(slot *s, zn_span user, uint8_t digest[DIGEST_BYTES])
{
    size_t n = 0;
    return EVP_MAC_init(s->mac, NULL, 0, NULL) == 1 &&
           EVP_MAC_update(s->mac, user.p, user.n) == 1 &&
           EVP_MAC_final(s->mac, digest, &n, DIGEST_BYTES) == 1 && n == DIGEST_BYTES;
}

/* The user's entry, with its digest; NULL when libcrypto fails. */
static const seen *look_up(slot *s, zn_id id, zn_span user)
{
    uint32_t at = (uint32_t)id.lo & (SEEN - 1);
    seen *entry = &s->seen[at];
    uint8_t digest[DIGEST_BYTES];
    if (zn_id_equal(entry->id, id))
        return entry;
    if (!compute(s, user, digest))
        return NULL;
    if (zn_id_equal(entry->id, (zn_id){0, 0}))
        s->used[s->used_count++] = at;
    entry->id = id;
    memcpy(entry->digest, digest, sizeof entry->digest);
    return entry;
}

void zn_row_pseudonym_expect(const zn_row_pseudonym *a, zn_id id)
{
    __builtin_prefetch(&a->slots[a->recent].seen[(uint32_t)id.lo & (SEEN - 1)]);
}

/* Returns the 8 hexadecimal digits of 4 bytes, each digit in a byte, in the order of memory. */
static uint64_t hex_digits(const uint8_t bytes[4])
{
    uint64_t x = (uint64_t)bytes[0] | (uint64_t)bytes[1] << 16 | (uint64_t)bytes[2] << 32 |
                 (uint64_t)bytes[3] << 48;
    uint64_t letters;
    x = (x >> 4 & UINT64_C(0x000f000f000f000f)) | (x & UINT64_C(0x000f000f000f000f)) << 8;
    letters = (x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    return x + UINT64_C(0x3030303030303030) + letters * ('a' - '0' - 10);
}

int zn_row_pseudonym_make(zn_row_pseudonym *a, const zn_row_pseudonym_of *who,
                          char out[ZN_PSEUDONYM_CHARS], zn_error *err)
{
    slot *s = serve(a, who->t_ns);
    const seen *entry = s == NULL ? NULL : look_up(s, who->id, who->user);
    if (entry == NULL)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not make a pseudonym");
    for (size_t i = 0; i < sizeof entry->digest; i += 4)
        (void)zn_le_put((uint8_t *)out + 2 * i, hex_digits(entry->digest + i), 8);
    return 0;
}

int zn_row_pseudonym_rebase(zn_row_pseudonym *a, int64_t t_ns, zn_error *err)
{
    if (!a->derived)
        forget(&a->slots[0]);
    return zn_keys_rebase(a->keys, t_ns, err);
}
