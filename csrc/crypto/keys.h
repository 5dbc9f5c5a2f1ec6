/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs and their Crypto-PAn keys.
 *
 * Epoch index = floor(t / rotate). Two modes:
 *   ephemeral  a random secret that lives in memory only. At each change of epoch it is ratcheted
 *              forward once (HKDF-SHA256 of itself), however many epochs were skipped, and the old
 * one is wiped: nobody can compute past pseudonyms again. A clock rebase draws a fresh secret.
 *   derived    epoch key = HKDF-SHA256(master, empty salt, L=32, info = "zanon-net/1/cryptopan" ||
 *              u64be(rotate_ns) || u64be(epoch index)), so every probe with the same key file gives
 *              the same pseudonyms, whatever it saw before.
 * All key material is held here in locked memory where the system allows it, kept out of core
 * dumps, and wiped after use. No message ever holds a byte of it.
 */
#ifndef ZN_CRYPTO_KEYS_H
#define ZN_CRYPTO_KEYS_H

#include "crypto/cryptopan.h"

#define ZN_MASTER_BYTES 32

typedef struct zn_keys zn_keys;

/* rotate_ns >= 1. key_file NULL: ephemeral mode; else the path of a file with one line, 32 bytes in
 * base64, that only its owner may read (mode 0600 or stricter, a regular file), or a credential
 * that systemd keeps for this unit (root's, mode 0440, in $CREDENTIALS_DIRECTORY). Returns 0, or
 * -ZN_ERR_CONFIG / -ZN_ERR_IO / -ZN_ERR_CRYPTO / -ZN_ERR_CAPACITY and *out NULL. */
int zn_keys_open(zn_keys **out, int64_t rotate_ns, const char *key_file, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_keys_close(zn_keys *k);

/* The epoch that serves time t_ns (>= 0): floor(t / rotate) in derived mode; in ephemeral mode the
 * current one for any t that is not after it, because older keys are gone. */
int64_t zn_keys_epoch(const zn_keys *k, int64_t t_ns);

/*
 * The pseudonym of `real` at time t_ns, into *pseudonym, and its epoch into *epoch. Moves to t's
 * epoch first where that is due: ephemeral keys only move forward; derived mode keeps the keys of
 * the two last used epochs at hand. 0, or -ZN_ERR_CRYPTO and *pseudonym all zeros.
 */
int zn_keys_pseudonym(zn_keys *k, int64_t t_ns, const zn_addr *real, zn_addr *pseudonym,
                      int64_t *epoch);

/* Follows a packet clock that was rebased to t_ns: ephemeral mode draws a fresh secret for t's
 * epoch. Returns 0, or -ZN_ERR_CRYPTO with *err filled. */
int zn_keys_rebase(zn_keys *k, int64_t t_ns, zn_error *err);

/* Derives n (1..32) bytes for another purpose of the same epoch ("zanon-net/1/filter"), by the
 * formula above with `purpose` in place of the first label. Ephemeral mode moves to the epoch
 * first, as zn_keys_pseudonym does. Returns 0, -ZN_ERR_CONFIG for an epoch whose secret is gone, or
 * -ZN_ERR_CRYPTO. */
int zn_keys_derive(zn_keys *k, const char *purpose, int64_t epoch, uint8_t *out, size_t n);

/* Overwrites n bytes at p in a way the compiler keeps. */
void zn_wipe(void *p, size_t n);

#endif
