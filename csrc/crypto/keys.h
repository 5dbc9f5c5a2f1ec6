/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs and their keys.
 *
 * Epoch index = floor(t / rotate). A key is HKDF-SHA256(secret, empty salt, L, info = label ||
 * u64be(rotate_ns) || u64be(z) || u64be(window_ns) || D || u64be(epoch index)): two outputs of the
 * same traffic with different settings share no pseudonyms. A label is "zanon-net/2/" and the
 * purpose of the key. Two modes:
 *   ephemeral  the secret is random and lives in memory only. At each change of epoch the secret is
 *              ratcheted forward once (label "ratchet"), even if epochs were skipped, and the old
 *              secret is wiped. So past pseudonyms cannot be computed again. A clock rebase draws a
 *              new secret.
 *   derived    the secret is the master key of a key file, so every probe with the same file and
 *              settings gives the same pseudonyms, whatever it saw before.
 * Key material is in locked memory if the system allows it, is kept out of core dumps, and is wiped
 * after use. No message contains a byte of it.
 */
#ifndef ZN_CRYPTO_KEYS_H
#define ZN_CRYPTO_KEYS_H

#include "crypto/addr_pseudonym.h"

#define ZN_MASTER_BYTES 32

#define ZN_KEY_DIGEST_BYTES 32

typedef struct zn_keys zn_keys;

/* Settings that enter each key in addition to its label and its epoch. */
typedef struct zn_key_scope {
    int64_t rotate_ns; /* length of an epoch, >= 1 */
    uint32_t z;        /* as the operator gave it, also while it follows the stream */
    int64_t window_ns;
    uint8_t digest[ZN_KEY_DIGEST_BYTES]; /* D: zn_key_digest of the other settings, or zeros */
} zn_key_scope;

/* SHA-256 of n bytes of text. 0, or -ZN_ERR_CRYPTO with *err filled. */
int zn_key_digest(const char *text, size_t n, uint8_t digest[ZN_KEY_DIGEST_BYTES], zn_error *err);

/*
 * Opens the keys of a run. plan: plan of the pseudonyms of addresses, borrowed; if NULL, only keys
 * for other purposes are derived. key_file: NULL for ephemeral mode, else the path of a file with
 * one line, 32 bytes in base64. Only the file's owner may be able to read it (a regular file of
 * mode 0600 or stricter), or it is a credential that systemd keeps for this unit (owned by root,
 * mode 0440, in $CREDENTIALS_DIRECTORY). Returns 0, or -ZN_ERR_CONFIG / -ZN_ERR_IO / -ZN_ERR_CRYPTO
 * / -ZN_ERR_CAPACITY and *out NULL.
 */
int zn_keys_open(zn_keys **out, const zn_key_scope *scope, const zn_addr_plan *plan,
                 const char *key_file, zn_error *err);
void zn_keys_close(zn_keys *k);

/* Returns true if the keys are derived from a key file. */
bool zn_keys_is_derived(const zn_keys *k);

/* The epoch that serves time t_ns (>= 0): floor(t / rotate) in derived mode; in ephemeral mode the
 * current one for any t that is not after it, because older keys are gone. */
int64_t zn_keys_epoch(const zn_keys *k, int64_t t_ns);

/* Moves to `epoch`, which zn_keys_epoch returned: in ephemeral mode the keys before it are gone
 * then. False when libcrypto fails. */
bool zn_keys_enter(zn_keys *k, int64_t epoch);

/*
 * Makes the pseudonyms of n addresses in `epoch`, which zn_keys_epoch returned, and moves to that
 * first. Derived mode keeps the keys of the two last used epochs at hand. 0, or -ZN_ERR_CRYPTO and
 * all pseudonyms zeros.
 */
int zn_keys_pseudonyms(zn_keys *k, int64_t epoch, const zn_addr *real, zn_addr *pseudonyms,
                       size_t n);

/* Follows a packet clock that was rebased to t_ns: ephemeral mode draws a fresh secret for t's
 * epoch. Returns 0, or -ZN_ERR_CRYPTO with *err filled. */
int zn_keys_rebase(zn_keys *k, int64_t t_ns, zn_error *err);

/* Derives n (1..32) bytes for another purpose of the same epoch, by the formula above with
 * `purpose`, such as "zanon-net/2/filter", as label. Ephemeral mode moves to the epoch
 * first, as zn_keys_enter does. Returns 0, -ZN_ERR_CONFIG for an epoch whose secret is gone, or
 * -ZN_ERR_CRYPTO. */
int zn_keys_derive(zn_keys *k, const char *purpose, int64_t epoch, uint8_t *out, size_t n);

/* Derives n (1..32) bytes that depend on the key file alone, whatever the scope: HKDF-SHA256 of the
 * master, with an empty salt and info = label || u64be(number). Returns 0, -ZN_ERR_CONFIG in
 * ephemeral mode, or -ZN_ERR_CRYPTO. */
int zn_keys_derive_shared(zn_keys *k, const char *label, uint64_t number, uint8_t *out, size_t n);

/* Overwrites n bytes at p in a way the compiler keeps. */
void zn_wipe(void *p, size_t n);

#endif
