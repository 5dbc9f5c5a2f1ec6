/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pseudonyms of users that are texts and not addresses: the first 128 bits of HMAC-SHA256(key,
 * user) in hexadecimal. The key is the epoch's, derived for "zanon-net/2/filter" (crypto/keys.h),
 * so a user has one pseudonym within an epoch and another in the next epoch. Without the key a
 * pseudonym cannot be linked to a user or to another epoch.
 *
 * Recent pseudonyms are remembered, by the caller's keyed hash of the user, and wiped with their
 * key.
 */
#ifndef ZN_CRYPTO_ROW_PSEUDONYM_H
#define ZN_CRYPTO_ROW_PSEUDONYM_H

#include "crypto/keys.h"
#include "util/hash.h"

#define ZN_PSEUDONYM_CHARS 32 /* 128 bits in hexadecimal */

typedef struct zn_row_pseudonym zn_row_pseudonym;

/* As zn_keys_open without a plan. */
int zn_row_pseudonym_open(zn_row_pseudonym **out, const zn_key_scope *scope, const char *key_file,
                          zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_row_pseudonym_close(zn_row_pseudonym *a);

/* The user of a row, and its time. */
typedef struct zn_row_pseudonym_of {
    int64_t t_ns; /* >= 0 */
    zn_id id;     /* keyed hash of the user, equal for each call */
    zn_span user;
} zn_row_pseudonym_of;

/* Prefetches what is remembered of a user whose pseudonym will be made. */
void zn_row_pseudonym_expect(const zn_row_pseudonym *a, zn_id id);

/* Writes the pseudonym of *who into out, without NUL. Returns 0, or -ZN_ERR_CRYPTO with *err
 * filled. */
int zn_row_pseudonym_make(zn_row_pseudonym *a, const zn_row_pseudonym_of *who,
                          char out[ZN_PSEUDONYM_CHARS], zn_error *err);

/* Follows a clock that was set back to t_ns: a random key is replaced by a fresh one. Returns as
 * zn_keys_rebase does. */
int zn_row_pseudonym_rebase(zn_row_pseudonym *a, int64_t t_ns, zn_error *err);

#endif
