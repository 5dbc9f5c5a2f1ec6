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

/* Bits of an address that are permuted together. */
typedef struct part {
    zn_feistel_block mask[2]; /* ones in the bits that each half has */
    uint8_t after[2];         /* bits of an address after each half, of 128 */
    uint8_t before;           /* bits of an address before the part */
} part;

/* Parameters by which the addresses of a kept network are mapped. */
typedef struct place {
    zn_feistel_block tweak; /* T of the first part, if all addresses have the same T */
    zn_u128 kept;           /* ones in the bits that are not permuted */
    part part[2];           /* the user's part and the host's */
    const zn_addr_scheme *scheme;
    uint32_t network;   /* index of the kept network */
    uint8_t parts;      /* 0 .. 2; parts without bits are left out */
    uint8_t pan_bits;   /* bits that Crypto-PAn anonymizes */
    bool tweak_is_made; /* true if tweak is in use */
    bool has_inner;     /* true if kept networks lie inside the network */
} place;

struct zn_addr_pseudonym {
    const zn_addr_plan *plan;
    zn_cryptopan *pan;
    zn_feistel *feistel;
    place *place; /* of the kept networks of IPv4, then of the kept networks of IPv6 */
    size_t place_bytes;
    zn_u128 value[AT_ONCE];   /* the first bit of an address is the most significant */
    const place *at[AT_ONCE]; /* place of the longest kept network that contains an address */
    uint8_t pan_bits[AT_ONCE];
    uint32_t open[AT_ONCE]; /* addresses whose permutation is not over */
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

/* ---- places ---- */

static zn_u128 first_bits(unsigned n)
{
    return ~zn_bits_after(n);
}

/* Returns the block that selects the permutation of the bits after the first n of an address. */
static zn_feistel_block tweak_of(zn_u128 x, unsigned width, unsigned n)
{
    zn_u128 form = x;
    if (width == V4_BITS) {
        form = (zn_u128)0xffff << V4_BITS | x >> ZN_MAPPED_BITS;
        n += ZN_MAPPED_BITS;
    }
    form = (form & first_bits(n)) | (zn_u128)1 << (V6_BITS - 1 - n);
    return (zn_feistel_block){{htobe64((uint64_t)(form >> 64)), htobe64((uint64_t)form)}};
}

/* Appends the part of bits from .. to - 1, if it has bits. */
static void add_part(place *p, unsigned from, unsigned to)
{
    unsigned middle = from + (to - from) / 2;
    part *added = &p->part[p->parts];
    if (from == to)
        return;
    p->parts++;
    p->kept &= ~(zn_bits_after(from) & first_bits(to));
    added->before = (uint8_t)from;
    added->after[0] = (uint8_t)(middle == 0 ? 0 : V6_BITS - middle); /* 0: the half is empty */
    added->after[1] = (uint8_t)(V6_BITS - to);
    added->mask[0].word[1] = htobe64((uint64_t)zn_bits_after(V6_BITS - (middle - from)));
    added->mask[1].word[1] = htobe64((uint64_t)zn_bits_after(V6_BITS - (to - middle)));
}

/* The bits of a block of ZN_PSEUDONYMS_CRYPTO_PAN, or of the root where it has more. */
static unsigned block_bits(const zn_addr_scheme *s, const zn_kept_network *network)
{
    /* The network is a root, because nothing else is kept, or it is /0. */
    return network->bits > s->block_bits ? network->bits : s->block_bits;
}

/* Returns the parameters of a kept network, with the block that makes T in place of T. */
static place place_of(const zn_addr_plan *plan, const zn_addr_scheme *s, uint32_t network)
{
    const zn_kept_network *kept = &s->kept.network[network];
    bool blocks = plan->pseudonyms == ZN_PSEUDONYMS_CRYPTO_PAN;
    unsigned from = blocks ? block_bits(s, kept) : kept->bits;
    unsigned user_end = from > s->user_bits ? from : s->user_bits;
    place p = {.scheme = s,
               .network = network,
               .kept = ~(zn_u128)0,
               .pan_bits = blocks ? (uint8_t)from : kept->inner_bits,
               .has_inner = kept->inner_bits != kept->bits};
    add_part(&p, from, user_end);
    add_part(&p, user_end, s->width);
    p.tweak_is_made = p.parts != 0 && from == kept->bits;
    if (p.tweak_is_made)
        p.tweak = tweak_of(kept->first, s->width, from);
    return p;
}

/* Prepares the places of all kept networks under the key of the permutation. */
static int make_places(zn_addr_pseudonym *p, zn_error *err)
{
    const zn_addr_scheme *schemes[] = {&p->plan->v4, &p->plan->v6};
    place *next = p->place;
    int rc = 0;
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = 0; rc == 0 && i < schemes[k]->kept.count; i++, next++) {
            *next = place_of(p->plan, schemes[k], i);
            if (next->tweak_is_made)
                rc = zn_feistel_make_tweak(p->feistel, &next->tweak, err);
        }
    return rc;
}

/* ---- the permutation ---- */

/* Puts the strings to permute of address i at *to; returns how many. */
static size_t put_strings(const zn_addr_pseudonym *p, size_t i, zn_feistel_string *to)
{
    const place *at = p->at[i];
    zn_u128 x = p->value[i];
    for (size_t n = 0; n < at->parts; n++, to++) {
        const part *from = &at->part[n];
        to->tweak_is_made = n == 0 && at->tweak_is_made;
        to->tweak = to->tweak_is_made ? at->tweak : tweak_of(x, at->scheme->width, from->before);
        for (size_t half = 0; half < 2; half++) {
            uint64_t bits = htobe64((uint64_t)(x >> from->after[half]));
            to->mask[half] = from->mask[half];
            to->half[half].word[0] = 0;
            to->half[half].word[1] = bits & from->mask[half].word[1];
        }
    }
    return at->parts;
}

/* Takes the permuted strings of address i from *from in place of its bits; returns how many. */
static size_t take_strings(zn_addr_pseudonym *p, size_t i, const zn_feistel_string *from)
{
    const place *at = p->at[i];
    zn_u128 x = p->value[i] & at->kept;
    for (size_t n = 0; n < at->parts; n++)
        for (size_t half = 0; half < 2; half++)
            x |= (zn_u128)be64toh(from[n].half[half].word[1]) << at->part[n].after[half];
    p->value[i] = x;
    return at->parts;
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

/* Returns true if address i, which was permuted, lies in a kept network inside its own. */
static bool lies_deeper(const zn_addr_pseudonym *p, size_t i)
{
    const place *at = p->at[i];
    return at->has_inner && zn_kept_networks_find(&at->scheme->kept, p->value[i]) != at->network;
}

/* Permutes the addresses until each lies in no kept network inside its own. */
static bool permute(zn_addr_pseudonym *p, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (p->at[i]->parts != 0)
            p->open[left++] = (uint32_t)i;
    while ((n = left) != 0) {
        if (!permute_once(p, n))
            return false;
        left = 0;
        for (size_t k = 0; k < n; k++)
            if (lies_deeper(p, p->open[k]))
                p->open[left++] = p->open[k];
    }
    return true;
}

/* At most AT_ONCE addresses, into value[]. */
static bool make(zn_addr_pseudonym *p, const zn_addr *in, size_t n)
{
    const zn_addr_plan *plan = p->plan;
    const place *v6 = p->place + plan->v4.kept.count;
    for (size_t i = 0; i < n; i++) {
        bool v4 = zn_addr_is_v4(&in[i]);
        zn_u128 x = p->value[i] = zn_addr_number(&in[i]);
        p->at[i] = v4 ? p->place + zn_kept_networks_find(&plan->v4.kept, x)
                      : v6 + zn_kept_networks_find(&plan->v6.kept, x);
        p->pan_bits[i] = p->at[i]->pan_bits;
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
            out[done + i] = zn_addr_of_number(p->value[i], p->at[i]->scheme->width == V4_BITS);
    }
    return 0;
}

/* ---- keys ---- */

int zn_addr_pseudonym_rekey(zn_addr_pseudonym *p, const uint8_t pan_key[ZN_CRYPTOPAN_KEY_BYTES],
                            const uint8_t host_key[ZN_FEISTEL_KEY_BYTES], zn_error *err)
{
    int rc = zn_cryptopan_rekey(p->pan, pan_key, err);
    if (rc == 0)
        rc = zn_feistel_rekey(p->feistel, host_key, err);
    return rc != 0 ? rc : make_places(p, err);
}

/* Allocates memory for the places of all kept networks. */
static int alloc_places(zn_addr_pseudonym *p, zn_error *err)
{
    size_t count = (size_t)p->plan->v4.kept.count + p->plan->v6.kept.count;
    p->place_bytes = count * sizeof *p->place;
    p->place = zn_block_alloc(p->place_bytes);
    if (p->place == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for pseudonyms");
    (void)mlock(p->place, p->place_bytes);
    return 0;
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
    rc = alloc_places(p, err);
    if (rc == 0)
        rc = zn_cryptopan_open(&p->pan, pan_key, err);
    if (rc == 0)
        rc = zn_feistel_open(&p->feistel, host_key, err);
    if (rc == 0)
        rc = make_places(p, err);
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
    if (p->place != NULL)
        OPENSSL_cleanse(p->place, p->place_bytes);
    zn_block_free(p->place, p->place_bytes);
    OPENSSL_cleanse(p, sizeof *p);
    zn_block_free(p, sizeof *p);
}
