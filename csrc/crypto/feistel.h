/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keyed permutation of strings of 0 to 128 bits: an alternating Feistel network of ten rounds
 * (as in NIST SP 800-38G's FF1) whose round function is AES-128.
 *
 * A string of n bits is split into A, its first floor(n/2) bits, and B, the rest. Round i = 1..10:
 * C = A xor the last |A| bits of AES(K, T xor (byte i, 7 zero bytes, u64be(B))), A = B, B = C; the
 * result is A || B. T = AES(K, tweak).
 *
 * Holds key material: zn_feistel_close wipes it.
 */
#ifndef ZN_CRYPTO_FEISTEL_H
#define ZN_CRYPTO_FEISTEL_H

#include "util/addr.h"

#define ZN_FEISTEL_KEY_BYTES 16

typedef struct zn_feistel zn_feistel;

typedef uint64_t zn_feistel_words __attribute__((vector_size(16)));

/* An AES block in memory order. */
typedef union zn_feistel_block {
    uint64_t word[2];
    zn_feistel_words both;
} zn_feistel_block;

_Static_assert(sizeof(zn_feistel_block) == 16, "a block is one AES block");

/* A string to permute. A half is a number in network byte order in the second word of a block. The
 * first word of the block is zero. */
typedef struct zn_feistel_string {
    zn_feistel_block tweak;   /* the block that makes T, or T; T after the permutation */
    zn_feistel_block half[2]; /* A and B */
    zn_feistel_block mask[2]; /* ones in the bits that each half has */
    bool tweak_is_made;       /* true if tweak is T */
} zn_feistel_string;

/* Returns 0, or -ZN_ERR_CRYPTO / -ZN_ERR_CAPACITY with *err filled and *out NULL. */
int zn_feistel_open(zn_feistel **out, const uint8_t key[ZN_FEISTEL_KEY_BYTES], zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_feistel_close(zn_feistel *f);
/* Takes a new key in place of the old one, which is wiped. */
int zn_feistel_rekey(zn_feistel *f, const uint8_t key[ZN_FEISTEL_KEY_BYTES], zn_error *err);

/* Replaces the block that makes T by T. Returns 0, or -ZN_ERR_CRYPTO with *err filled. */
int zn_feistel_make_tweak(zn_feistel *f, zn_feistel_block *tweak, zn_error *err);

/* Permutes n strings in place. Returns 0, or -ZN_ERR_CRYPTO with all strings wiped. */
int zn_feistel_permute(zn_feistel *f, zn_feistel_string *strings, size_t n);

#endif
