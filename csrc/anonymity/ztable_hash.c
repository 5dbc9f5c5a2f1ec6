/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-1-3 (util/hash.h) of sixteen numbers at a time, one in each lane of a vector. The
 * compiler splits the vectors into what the processor has: more with AVX2, and with AVX-512 two
 * groups of eight that do not wait for each other.
 */
#include "anonymity/ztable.h"

#include <string.h>

#define LANES 16

typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t))));

typedef struct sip_lanes {
    lanes v0, v1, v2, v3;
} sip_lanes;

#define INLINE static inline __attribute__((always_inline))

/* The same number in every lane. */
#define ALL(x) ((lanes){0} + (x))

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

INLINE void sip_round(sip_lanes *s)
{
    s->v0 += s->v1;
    s->v1 = ROTATE(s->v1, 13) ^ s->v0;
    s->v0 = ROTATE(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = ROTATE(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = ROTATE(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = ROTATE(s->v1, 17) ^ s->v2;
    s->v2 = ROTATE(s->v2, 32);
}

INLINE void sip_start(sip_lanes *s, const zn_hash_key *key)
{
    s->v0 = ALL(key->k0 ^ UINT64_C(0x736f6d6570736575));
    s->v1 = ALL(key->k1 ^ UINT64_C(0x646f72616e646f6d));
    s->v2 = ALL(key->k0 ^ UINT64_C(0x6c7967656e657261));
    s->v3 = ALL(key->k1 ^ UINT64_C(0x7465646279746573));
}

INLINE void sip_absorb(sip_lanes *s, const lanes *word)
{
    s->v3 ^= *word;
    sip_round(s);
    s->v0 ^= *word;
}

INLINE void sip_squeeze(sip_lanes *s, uint64_t *out)
{
    lanes hash;
    sip_round(s);
    sip_round(s);
    sip_round(s);
    hash = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
    memcpy(out, &hash, sizeof hash);
}

/* Each user as zn_hash_words gives it. */
INLINE void hash_users(const zn_hash_key *key, const uint64_t *user, uint64_t *out)
{
    const lanes length = ALL(UINT64_C(1) << 59);
    lanes word;
    sip_lanes s;
    memcpy(&word, user, sizeof word);
    sip_start(&s, key);
    sip_absorb(&s, &word);
    sip_absorb(&s, &length);
    s.v2 ^= 0xff;
    sip_squeeze(&s, out);
}

/* Each attribute as zn_hash128 gives it for its eight bytes. */
INLINE void hash_attributes(const zn_hash_key *key, uint8_t domain, const uint64_t *attribute,
                            uint64_t *out)
{
    const lanes domains = ALL(domain), length = ALL(UINT64_C(8) << 56);
    lanes word;
    sip_lanes s;
    memcpy(&word, attribute, sizeof word);
    sip_start(&s, key);
    s.v1 ^= 0xee;
    sip_absorb(&s, &domains);
    sip_absorb(&s, &word);
    sip_absorb(&s, &length);
    s.v2 ^= 0xee;
    sip_squeeze(&s, out);
    s.v1 ^= 0xdd;
    sip_squeeze(&s, out + LANES);
}

INLINE void hash_groups(const zn_hash_key *key, const zn_columns *in, size_t n, zn_observation *out)
{
    uint64_t user[LANES], attribute[2 * LANES];
    for (size_t i = 0; i + LANES <= n; i += LANES, out += LANES) {
        hash_users(key, in->user + i, user);
        hash_attributes(key, in->domain, in->attribute + i, attribute);
        for (size_t k = 0; k < LANES; k++) {
            out[k].t_ns = in->t_ns[i + k];
            out[k].user = user[k];
            out[k].attribute.lo = attribute[k];
            out[k].attribute.hi = attribute[LANES + k];
        }
    }
}

typedef void hash_function(const zn_hash_key *key, const zn_columns *in, size_t n,
                           zn_observation *out);

static void hash_groups_portable(const zn_hash_key *key, const zn_columns *in, size_t n,
                                 zn_observation *out)
{
    hash_groups(key, in, n, out);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static void
hash_groups_avx2(const zn_hash_key *key, const zn_columns *in, size_t n, zn_observation *out)
{
    hash_groups(key, in, n, out);
}

/* A rotation is one instruction here. */
__attribute__((target("avx512f"))) static void
hash_groups_avx512(const zn_hash_key *key, const zn_columns *in, size_t n, zn_observation *out)
{
    hash_groups(key, in, n, out);
}

static hash_function *choose(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return hash_groups_avx512;
    return __builtin_cpu_supports("avx2") ? hash_groups_avx2 : hash_groups_portable;
}

#else

static hash_function *choose(void)
{
    return hash_groups_portable;
}

#endif

void zn_observations_hash(const zn_hash_key *key, const zn_columns *in, size_t n,
                          zn_observation *out)
{
    choose()(key, in, n, out);
    for (size_t i = n - n % LANES; i < n; i++) {
        out[i].t_ns = in->t_ns[i];
        out[i].user = zn_hash_words(key, in->user + i, 1);
        out[i].attribute = zn_hash128(key, in->domain, in->attribute + i, sizeof *in->attribute);
    }
}
