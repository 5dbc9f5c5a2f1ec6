/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pseudonyms of users that are texts and not addresses: the first 128 bits of HMAC-SHA256(key,
 * user) in hexadecimal. The key is the epoch's, derived for "zanon-net/1/filter" (crypto/keys.h),
 * so a user has one pseudonym within an epoch and another in the next; nobody without the key can
 * link a pseudonym to a user or to another epoch.
 *
 * Recent pseudonyms are remembered, by the caller's keyed hash of the user, and wiped with their
 * key.
 */
#ifndef ZN_CRYPTO_ALIAS_H
#define ZN_CRYPTO_ALIAS_H

#include "util/hash.h"
#include "release/row.h"

typedef struct zn_alias zn_alias;

/* As zn_keys_open: an epoch's length in ns, a key file or NULL for a random key. */
int zn_alias_open(zn_alias **out, int64_t rotate_ns, const char *key_file, zn_error *err);
void zn_alias_close(zn_alias *a);

/* Someone at a time. */
typedef struct zn_alias_of {
    int64_t t_ns; /* >= 0 */
    zn_id id;     /* a keyed hash of the user, always the same for the same user */
    zn_span user;
} zn_alias_of;

/* Their pseudonym into out. 0, or -ZN_ERR_CRYPTO and *err filled. */
int zn_alias_make(zn_alias *a, const zn_alias_of *who, char out[ZN_ALIAS_CHARS], zn_error *err);

/* The clock was set back to t_ns: with a random key, a fresh one. */
int zn_alias_rebase(zn_alias *a, int64_t t_ns, zn_error *err);

#endif
