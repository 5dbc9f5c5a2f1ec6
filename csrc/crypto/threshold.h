/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that open only if z users share their attribute (after STAR, Davidson et al. 2022).
 *
 * For each attribute and epoch all probes know one polynomial of degree z - 1 (crypto/shamir),
 * whose coefficients are pseudorandom under a key that the counter does not have. A vote carries
 * the polynomial's value at the *user's* hash: z shares are z users, and repeated votes of a user
 * are one share. The row is sealed under the polynomial's secret. So a row whose attribute fewer
 * than z users had in its epoch cannot be opened without the probes' key.
 *
 * Overlapping epochs replace the sliding window: m epochs overlap, and each is m steps of
 * floor(window / m) long, at most the window. Epoch e covers the times from e to e + m steps. A
 * vote at t belongs to m epochs, from floor(t / step) - m + 1 to floor(t / step), and has a share
 * of each epoch. Its row is sealed for the oldest epoch alone, which has at least the votes of the
 * other epochs, and no vote older than the window.
 *
 * polynomial    its z coefficients, constant first, are 16 bytes each (little endian, without the
 *               highest bit; the prime itself is 0) of AES-256-CTR under
 *               HMAC-SHA256(key, "zanon-net/1/threshold" || u64le lo || u64le hi || u64le epoch ||
 *               u32le z), from counter block 0
 * point         user + 1, user being the 40 bits of the hash that decide: 0 to 31 and 56 to 63
 * key of rows   HKDF-Expand-SHA256(secret as 16 bytes, little endian, "zanon-net/1/threshold-row"
 *               || u64le lo || u64le hi || u64le epoch)
 * attachment    the m shares, 16 bytes each, little endian, of the newest epoch first, then the row
 *               as crypto/row_cipher seals it, or nothing where the vote has none
 */
#ifndef ZN_CRYPTO_THRESHOLD_H
#define ZN_CRYPTO_THRESHOLD_H

#include "crypto/row_cipher.h"
#include "crypto/shamir.h"

#define ZN_THRESHOLD_KEY_BYTES 32
#define ZN_THRESHOLD_Z_MAX 1024u
#define ZN_THRESHOLD_EPOCHS_MAX 16u
#define ZN_THRESHOLD_POINT_MAX (UINT64_C(1) << 40)
#define ZN_ATTACHMENT_MAX (ZN_THRESHOLD_EPOCHS_MAX * ZN_F127_BYTES + ZN_SEALED_MAX)

/* Parameters that must be equal in probes and counter. */
typedef struct zn_threshold_rule {
    int64_t window_ns;
    uint32_t z;      /* 1 .. ZN_THRESHOLD_Z_MAX */
    uint32_t epochs; /* m, 1 .. ZN_THRESHOLD_EPOCHS_MAX */
} zn_threshold_rule;

/* Returns 0, or -ZN_ERR_CONFIG with *err filled for numbers out of range. */
int zn_threshold_check(const zn_threshold_rule *rule, zn_error *err);

/* The newest epoch of a time; with it the vote belongs to the rule->epochs - 1 before it. */
int64_t zn_threshold_epoch(const zn_threshold_rule *rule, int64_t t_ns);

/* The point of a user's hash. */
static inline uint64_t zn_threshold_point(uint64_t user)
{
    return ((user & UINT32_MAX) | user >> 56 << 32) + 1;
}

/* An attribute in an epoch: what has a polynomial. */
typedef struct zn_threshold_group {
    zn_id id;
    int64_t epoch;
} zn_threshold_group;

/* Derives the key of a group's rows. False when libcrypto fails. */
bool zn_threshold_row_key(const zn_threshold_group *group, zn_f127 secret,
                          uint8_t key[ZN_ROW_KEY_BYTES]);

/* A probe's side. */
typedef struct zn_threshold zn_threshold;

/* key: common to all probes, and unknown to the counter. Returns 0, -ZN_ERR_CONFIG,
 * -ZN_ERR_CAPACITY or -ZN_ERR_CRYPTO. */
int zn_threshold_open(zn_threshold **out, const zn_threshold_rule *rule,
                      const uint8_t key[ZN_THRESHOLD_KEY_BYTES], zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_threshold_close(zn_threshold *s);

/* Draws the nonce of the next message. Returns 0 or -ZN_ERR_CRYPTO. */
int zn_threshold_renew(zn_threshold *s, zn_error *err);
const uint8_t *zn_threshold_nonce(const zn_threshold *s);

/* The vote that an attachment goes with. */
typedef struct zn_threshold_vote {
    int64_t t_ns;
    uint64_t user;
    zn_id id;
    zn_row_place place;
} zn_threshold_vote;

/* Writes the attachment of a vote into out, with a row where row.n is not 0: at most
 * ZN_ATTACHMENT_MAX bytes. Returns its length, or 0 for a row that is too long or when libcrypto
 * fails. */
size_t zn_threshold_seal(zn_threshold *s, const zn_threshold_vote *vote, zn_span row, uint8_t *out);

#endif
