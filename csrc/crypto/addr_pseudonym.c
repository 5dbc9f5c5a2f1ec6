/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/addr_pseudonym.h"

#include "util/arena.h"

#include <openssl/crypto.h>
#include <sys/mman.h>

#define V4_BITS 32u
#define V6_BITS 128u
#define KEPT_BITS_SPARE 8u /* a kept network is at least that much shorter than a user's prefix */
#define AT_ONCE 128u       /* addresses of one call of the permutation */
#define STRINGS (2 * AT_ONCE) /* of an address: the user's part and the host's */

struct zn_addr_pseudonym {
    const zn_addr_plan *plan;
    zn_cryptopan *pan;
    zn_feistel *feistel;
    zn_u128 value[AT_ONCE]; /* the first bit of an address is the most significant */
    const zn_addr_scheme *scheme[AT_ONCE];
    uint32_t network[AT_ONCE]; /* place of the longest kept network that holds it */
    uint8_t pan_bits[AT_ONCE]; /* that Crypto-PAn anonymizes */
    uint32_t open[AT_ONCE];    /* addresses whose permutation is not over */
    zn_feistel_string string[STRINGS];
};

/* ---- the plan ---- */

static int init_scheme(zn_addr_scheme *s, const zn_addr_choice *choice, bool v4, zn_error *err)
{
    bool networks = choice->pseudonyms == ZN_PSEUDONYMS_NETWORKS;
    unsigned user = v4 ? choice->v4_user_bits : choice->v6_user_bits;
    int rc;
    s->width = v4 ? V4_BITS : V6_BITS;
    s->block_bits = v4 ? choice->v4_block_bits : choice->v6_block_bits;
    s->user_bits = choice->pseudonyms == ZN_PSEUDONYMS_RANDOM ? s->width : (uint8_t)user;
    rc = zn_kept_networks_init(
        &s->kept,
        &(zn_kept_choice){.internal = choice->internal,
                          .internal_count = networks ? choice->internal_count : 0,
                          .root = v4 ? choice->v4_root : choice->v6_root,
                          .root_count = v4 ? choice->v4_roots : choice->v6_roots,
                          .bits_max = user < KEPT_BITS_SPARE ? 0 : user - KEPT_BITS_SPARE},
        v4, err);
    return rc != 0 ? rc : zn_kept_networks_check(&s->kept, err);
}

int zn_addr_plan_init(zn_addr_plan *plan, const zn_addr_choice *choice, zn_error *err)
{
    int rc;
    *plan = (zn_addr_plan){.pseudonyms = choice->pseudonyms};
    rc = init_scheme(&plan->v4, choice, true, err);
    return rc != 0 ? rc : init_scheme(&plan->v6, choice, false, err);
}

void zn_addr_plan_fini(zn_addr_plan *plan)
{
    zn_kept_networks_fini(&plan->v4.kept);
    zn_kept_networks_fini(&plan->v6.kept);
}

/* ---- an address as a number ---- */

/* Bits from .. to - 1 of x; from < to. */
static zn_u128 bits_of(zn_u128 x, unsigned from, unsigned to)
{
    return x << from >> (V6_BITS - (to - from));
}

/* The block that says which permutation of the bits behind the first n an address takes. */
static zn_u128 tweak_of(zn_u128 x, unsigned width, unsigned n)
{
    zn_u128 form = x;
    if (width == V4_BITS) {
        form = (zn_u128)0xffff << V4_BITS | x >> ZN_MAPPED_BITS;
        n += ZN_MAPPED_BITS;
    }
    form = n == 0 ? 0 : form >> (V6_BITS - n) << (V6_BITS - n);
    return form | (zn_u128)1 << (V6_BITS - 1 - n);
}

/* ---- the permutation ---- */

/* The bits of a block of ZN_PSEUDONYMS_CRYPTO_PAN, or of the root where it has more. */
static unsigned block_bits(const zn_addr_scheme *s, uint32_t network)
{
    unsigned bits = s->kept.network[network].bits; /* of a root, as nothing else is kept, or 0 */
    return bits > s->block_bits ? bits : s->block_bits;
}

/* Returns the index of an address's first permuted bit. */
static unsigned first_permuted(const zn_addr_pseudonym *p, size_t i)
{
    const zn_addr_scheme *s = p->scheme[i];
    if (p->plan->pseudonyms == ZN_PSEUDONYMS_CRYPTO_PAN)
        return block_bits(s, p->network[i]);
    return s->kept.network[p->network[i]].bits;
}

/* Returns the index of the bit behind the user's part. */
static unsigned user_end(const zn_addr_scheme *s, unsigned first)
{
    return first > s->user_bits ? first : s->user_bits;
}

/* Puts the strings to permute of address i at *to; returns how many. */
static size_t put_strings(const zn_addr_pseudonym *p, size_t i, zn_feistel_string *to)
{
    const zn_addr_scheme *s = p->scheme[i];
    unsigned from = first_permuted(p, i), end = user_end(s, from);
    size_t n = 0;
    for (; from < s->width; from = end, end = s->width)
        if (from < end)
            to[n++] = (zn_feistel_string){tweak_of(p->value[i], s->width, from),
                                          bits_of(p->value[i], from, end), end - from};
    return n;
}

/* Takes the permuted strings of address i from *from in place of its bits; returns how many. */
static size_t take_strings(zn_addr_pseudonym *p, size_t i, const zn_feistel_string *from)
{
    unsigned width = p->scheme[i]->width, at = first_permuted(p, i);
    zn_u128 x = at == 0 ? 0 : p->value[i] >> (V6_BITS - at) << (V6_BITS - at);
    size_t n = 0;
    for (; at < width; at += from[n].bits, n++)
        x |= from[n].value << (V6_BITS - at - from[n].bits);
    p->value[i] = x;
    return n;
}

/* Permutes the addresses of open[0 .. n) once. */
static bool permute_once(zn_addr_pseudonym *p, size_t n)
{
    size_t strings = 0, at = 0;
    for (size_t k = 0; k < n; k++)
        strings += put_strings(p, p->open[k], &p->string[strings]);
    if (zn_feistel_permute(p->feistel, p->string, strings) != 0)
        return false;
    for (size_t k = 0; k < n; k++)
        at += take_strings(p, p->open[k], &p->string[at]);
    return true;
}

/* Permutes the addresses until each lies in no kept network inside its own. */
static bool permute(zn_addr_pseudonym *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p->open[i] = (uint32_t)i;
    while (n != 0) {
        size_t left = 0;
        if (!permute_once(p, n))
            return false;
        for (size_t k = 0; k < n; k++) {
            size_t i = p->open[k];
            if (zn_kept_networks_find(&p->scheme[i]->kept, p->value[i]) != p->network[i])
                p->open[left++] = (uint32_t)i;
        }
        n = left;
    }
    return true;
}

/* At most AT_ONCE addresses, into value[]. */
static bool make(zn_addr_pseudonym *p, const zn_addr *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const zn_addr_scheme *s = zn_addr_is_v4(&in[i]) ? &p->plan->v4 : &p->plan->v6;
        p->value[i] = zn_addr_number(&in[i]);
        p->scheme[i] = s;
        p->network[i] = zn_kept_networks_find(&s->kept, p->value[i]);
        p->pan_bits[i] = p->plan->pseudonyms == ZN_PSEUDONYMS_CRYPTO_PAN
                             ? (uint8_t)block_bits(s, p->network[i])
                             : s->kept.network[p->network[i]].inner_bits;
    }
    return permute(p, n) && zn_cryptopan_prefixes(p->pan, p->value, p->pan_bits, n) == 0;
}

int zn_addr_pseudonym_make(zn_addr_pseudonym *p, const zn_addr *in, zn_addr *out, size_t n)
{
    size_t count;
    for (size_t done = 0; done < n; done += count) {
        count = n - done < AT_ONCE ? n - done : AT_ONCE;
        if (!make(p, in + done, count)) {
            OPENSSL_cleanse(p->value, sizeof p->value);
            OPENSSL_cleanse(p->string, sizeof p->string);
            memset(out, 0, n * sizeof *out);
            return -ZN_ERR_CRYPTO;
        }
        for (size_t i = 0; i < count; i++)
            out[done + i] = zn_addr_of_number(p->value[i], p->scheme[i]->width == V4_BITS);
    }
    return 0;
}

/* ---- keys ---- */

int zn_addr_pseudonym_rekey(zn_addr_pseudonym *p, const uint8_t pan_key[ZN_CRYPTOPAN_KEY_BYTES],
                            const uint8_t host_key[ZN_FEISTEL_KEY_BYTES], zn_error *err)
{
    int rc = zn_cryptopan_rekey(p->pan, pan_key, err);
    return rc != 0 ? rc : zn_feistel_rekey(p->feistel, host_key, err);
}

int zn_addr_pseudonym_open(zn_addr_pseudonym **out, const zn_addr_plan *plan,
                           const uint8_t pan_key[ZN_CRYPTOPAN_KEY_BYTES],
                           const uint8_t host_key[ZN_FEISTEL_KEY_BYTES], zn_error *err)
{
    zn_addr_pseudonym *p = zn_block_alloc(sizeof *p);
    int rc;
    *out = NULL;
    if (p == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for pseudonyms");
    (void)mlock(p, sizeof *p);
    p->plan = plan;
    rc = zn_cryptopan_open(&p->pan, pan_key, err);
    if (rc == 0)
        rc = zn_feistel_open(&p->feistel, host_key, err);
    if (rc != 0)
        zn_addr_pseudonym_close(p);
    else
        *out = p;
    return rc;
}

void zn_addr_pseudonym_close(zn_addr_pseudonym *p)
{
    if (p == NULL)
        return;
    zn_cryptopan_close(p->pan);
    zn_feistel_close(p->feistel);
    OPENSSL_cleanse(p, sizeof *p);
    zn_block_free(p, sizeof *p);
}
