/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* Returns the n (< 8) bytes at p as a word, zeros after them. Loads of fixed sizes overlap, because
 * a copy of a size that is not known costs more. */
static inline uint64_t last_word(const unsigned char *p, size_t n)
{
    uint32_t first, last;
    if (n >= 4) {
        memcpy(&first, p, sizeof first);
        memcpy(&last, p + n - sizeof last, sizeof last);
        return first | (uint64_t)last << (8 * (n - sizeof last));
    }
    if (n == 0)
        return 0;
    return p[0] | (uint64_t)p[n / 2] << (8 * (n / 2)) | (uint64_t)p[n - 1] << (8 * (n - 1));
}

/* Inline, as most inputs are a few words. */
__attribute__((always_inline)) static inline void sip_absorb_bytes(zn_sip *s, const void *bytes,
                                                                   size_t n)
{
    const unsigned char *p = bytes;
    uint64_t word;
    size_t left = n;
    for (; left >= sizeof word; left -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        zn_sip_absorb(s, word);
    }
    zn_sip_absorb(s, last_word(p, left) | (uint64_t)n << 56);
}

static int fill_random(void *secret, size_t bytes, zn_error *err)
{
    if (getrandom(secret, bytes, 0) != (ssize_t)bytes)
        return zn_fail(err, ZN_ERR_IO, errno, "the system gave no random bytes");
    return 0;
}

int zn_hash_key_random(zn_hash_key *key, zn_error *err)
{
    return fill_random(key, sizeof *key, err);
}

int zn_bucket_key_random(zn_bucket_key *key, zn_error *err)
{
    return fill_random(key, sizeof *key, err);
}

uint64_t zn_hash64(const zn_hash_key *key, const void *bytes, size_t n)
{
    zn_sip s = zn_sip_start(key);
    sip_absorb_bytes(&s, bytes, n);
    s.v2 ^= 0xff;
    return zn_sip_squeeze(&s);
}

zn_id zn_hash128(const zn_hash_key *key, uint8_t domain, const void *bytes, size_t n)
{
    zn_sip s = zn_sip_start(key);
    zn_id id;
    s.v1 ^= 0xee;
    zn_sip_absorb(&s, domain);
    sip_absorb_bytes(&s, bytes, n);
    s.v2 ^= 0xee;
    id.lo = zn_sip_squeeze(&s);
    s.v1 ^= 0xdd;
    id.hi = zn_sip_squeeze(&s);
    return id;
}

uint64_t zn_hash_words(const zn_hash_key *key, const uint64_t *words, size_t n)
{
    zn_sip s = zn_sip_start(key);
    for (size_t i = 0; i < n; i++)
        zn_sip_absorb(&s, words[i]);
    return zn_sip_words_end(&s, n);
}
