/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hashes by which the probes of one operator, and no one else, know users, names and addresses
 * from each other: HMAC-SHA256 under K_count, which is HKDF-SHA256 of the key file with the info
 * "zanon-net/1/count" || u64be(generation). The counter that gets the hashes never has the key.
 *
 * The processes of one run share a random secret instead of K_count, and their hashes never leave
 * the memory of the run. They use SipHash-1-3, which is many times as fast.
 */
#ifndef ZN_CRYPTO_COUNT_HASH_H
#define ZN_CRYPTO_COUNT_HASH_H

#include "crypto/keys.h"
#include "util/cursor.h"

typedef struct zn_count_hash zn_count_hash;

/* Kinds of hashed things, in addition to the namespaces of attributes in anonymity/votes.c, which
 * are lower-case letters. So no name that an attacker chooses has the hash of a user, an address or
 * a probe. */
typedef enum zn_count_domain {
    ZN_COUNT_ADDR = 'A',
    ZN_COUNT_KEY = 'K', /* no bytes: which key it is */
    ZN_COUNT_PROBE = 'P',
    ZN_COUNT_USER = 'U',
} zn_count_domain;

/* Lengths that probes and counter must have alike, in ns. */
typedef struct zn_count_settings {
    uint64_t z, window_ns;
    uint64_t rotate_ns;     /* epoch of client addresses; 0: there is one epoch */
    uint64_t generation_ns; /* generation of hashes; 0: there is one generation */
} zn_count_settings;

/* Writes the digest of settings that each message has: the first 64 bits of their SHA-256. Returns
 * 0, or -ZN_ERR_CRYPTO with *err filled. */
int zn_count_settings_digest(uint64_t *out, const zn_count_settings *settings, zn_error *err);

/* Opens the hashes of a generation. `keys` come from a key file, and are not needed afterwards.
 * Returns 0, or -ZN_ERR_CONFIG / -ZN_ERR_CRYPTO / -ZN_ERR_CAPACITY with *err filled. */
int zn_count_hash_open(zn_count_hash **out, zn_keys *keys, uint64_t generation, zn_error *err);
/* Opens the hashes of the processes of one run, which share `secret`. Returns 0, or
 * -ZN_ERR_CAPACITY with *err filled. */
int zn_count_hash_open_local(zn_count_hash **out, const zn_hash_key *secret, zn_error *err);
void zn_count_hash_close(zn_count_hash *h);

/* Returns the first 16 bytes of the HMAC of domain || bytes, as two little-endian numbers; or their
 * SipHash, with a secret of the run. */
zn_id zn_count_hash_id(zn_count_hash *h, uint8_t domain, zn_span bytes);
/* Returns true if libcrypto failed to make a hash, which is then all zeros. */
bool zn_count_hash_failed(const zn_count_hash *h);

#endif
