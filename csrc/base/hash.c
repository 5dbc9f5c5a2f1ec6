/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

typedef struct sip_state {
    uint64_t v0, v1, v2, v3;
} sip_state;

static inline uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void sip_round(sip_state *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static inline sip_state sip_start(const zn_hash_key *key)
{
    sip_state s = {key->k0 ^ UINT64_C(0x736f6d6570736575), key->k1 ^ UINT64_C(0x646f72616e646f6d),
                   key->k0 ^ UINT64_C(0x6c7967656e657261), key->k1 ^ UINT64_C(0x7465646279746573)};
    return s;
}

static inline void sip_absorb(sip_state *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

static inline uint64_t sip_squeeze(sip_state *s)
{
    sip_round(s);
    sip_round(s);
    sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static void sip_absorb_bytes(sip_state *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t word;
    size_t left = n;
    for (; left >= sizeof word; left -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        sip_absorb(s, word);
    }
    word = 0;
    if (left != 0)
        memcpy(&word, p, left);
    sip_absorb(s, word | (uint64_t)n << 56);
}

int zn_hash_key_random(zn_hash_key *key, zn_error *err)
{
    if (getrandom(key, sizeof *key, 0) != (ssize_t)sizeof *key)
        return zn_fail(err, ZN_ERR_IO, errno, "the system gave no random bytes");
    return 0;
}

uint64_t zn_hash64(const zn_hash_key *key, const void *bytes, size_t n)
{
    sip_state s = sip_start(key);
    sip_absorb_bytes(&s, bytes, n);
    s.v2 ^= 0xff;
    return sip_squeeze(&s);
}

zn_id zn_hash128(const zn_hash_key *key, uint8_t domain, const void *bytes, size_t n)
{
    sip_state s = sip_start(key);
    zn_id id;
    s.v1 ^= 0xee;
    sip_absorb(&s, domain);
    sip_absorb_bytes(&s, bytes, n);
    s.v2 ^= 0xee;
    id.lo = sip_squeeze(&s);
    s.v1 ^= 0xdd;
    id.hi = sip_squeeze(&s);
    return id;
}

uint64_t zn_hash_words(const zn_hash_key *key, const uint64_t *words, size_t n)
{
    sip_state s = sip_start(key);
    for (size_t i = 0; i < n; i++)
        sip_absorb(&s, words[i]);
    sip_absorb(&s, (uint64_t)n << 59);
    s.v2 ^= 0xff;
    return sip_squeeze(&s);
}
