/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/addr_blocks.h"

#include "util/arena.h"

#include <inttypes.h>
#include <stdlib.h>

#define V4_BITS 32u
#define V6_BITS 128u
#define UNIT_BITS 64u /* of the networks of IPv6 in which messages count */
#define V4(a, b) ((zn_u128)((a) << 8 | (b)) << 112)
#define V6(group) ((zn_u128)(group) << 112)

static const zn_prefix v4_ranges[] = {
    {V4(10, 0), 8}, {V4(100, 64), 10}, {V4(172, 16), 12}, {V4(192, 168), 16}};
static const zn_prefix v6_range[] = {{V6(0xfc00), 7}};
static const zn_prefix v6_halves[] = {{V6(0xfc00), 8}, {V6(0xfd00), 8}};

static zn_u128 last_of(const zn_prefix *p)
{
    return p->first | zn_bits_after(p->bits);
}

static bool overlap(const zn_prefix *a, const zn_prefix *b)
{
    return a->first <= last_of(b) && b->first <= last_of(a);
}

static bool lies_in(const zn_prefix *inner, const zn_prefix *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (overlap(inner, &ranges[i]) && inner->bits >= ranges[i].bits)
            return true;
    return false;
}

/* ---- which blocks there are ---- */

static bool is_used(const zn_kept_networks *all, const zn_prefix *range)
{
    for (uint32_t i = 1; i < all->count; i++) {
        zn_prefix network = {all->network[i].first, all->network[i].bits};
        if (overlap(&network, range))
            return true;
    }
    return false;
}

static int by_size(const void *one, const void *other)
{
    const zn_prefix *a = one, *b = other;
    if (a->bits != b->bits)
        return (int)a->bits - (int)b->bits;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void sort_slots(zn_addr_blocks *b)
{
    qsort(b->root + (b->count - b->slots), b->slots, sizeof *b->root, by_size);
}

/* The ranges among the n that internal networks use become roots, the others spaces. */
static void take_ranges(zn_addr_blocks *b, const zn_kept_networks *all, const zn_prefix *ranges,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_used(all, &ranges[i]))
            b->root[b->count++] = ranges[i];
        else
            b->space[b->spaces++] = ranges[i];
    }
}

static void choose(zn_addr_blocks *b, const zn_kept_networks *all, bool v4)
{
    const zn_prefix *ranges = v4 ? v4_ranges : v6_range;
    size_t n = v4 ? sizeof v4_ranges / sizeof v4_ranges[0] : 1;
    for (uint32_t i = 1; i < all->count; i++) {
        zn_prefix network = {all->network[i].first, all->network[i].bits};
        b->slots += all->network[i].parent == 0 && !lies_in(&network, ranges, n);
    }
    if (v4 || b->slots == 0)
        take_ranges(b, all, ranges, n);
    else
        take_ranges(b, all, v6_halves, 2);
    /* the second half has space for every slot that fits into one half */
    if (!v4 && b->spaces == 2) {
        b->space[0] = b->space[1];
        b->spaces = 1;
    }
    for (uint32_t i = 1; i < all->count; i++) {
        zn_prefix network = {all->network[i].first, all->network[i].bits};
        if (all->network[i].parent == 0 && !lies_in(&network, ranges, n))
            b->root[b->count++] = network;
    }
    sort_slots(b);
}

/* ---- whether there is a place for each slot ---- */

/* The addresses of networks, or all bits where these are too few. */
static zn_u128 sum_of(const zn_prefix *networks, uint32_t n, bool v4)
{
    zn_u128 sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        unsigned bits = networks[i].bits;
        zn_u128 size = (zn_u128)1 << ((v4 ? V4_BITS : V6_BITS) - bits);
        sum = sum + size < sum ? ~(zn_u128)0 : sum + size;
    }
    return sum;
}

/* In networks of UNIT_BITS, begun ones counted. */
static uint64_t units_of(zn_u128 sum)
{
    uint64_t whole = (uint64_t)(sum >> (V6_BITS - UNIT_BITS));
    return (uint64_t)sum != 0 && whole != UINT64_MAX ? whole + 1 : whole;
}

static int check_sum(const zn_addr_blocks *b, bool v4, zn_error *err)
{
    zn_u128 wanted = sum_of(b->root + (b->count - b->slots), b->slots, v4);
    zn_u128 space = sum_of(b->space, b->spaces, v4);
    if (wanted <= space)
        return 0;
    if (v4)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "no room for pseudonyms in packets: the public internal networks have "
                       "%" PRIu64 " IPv4 addresses, the private ranges without internal networks "
                       "%" PRIu64 "; name fewer of them, or give --addresses wide",
                       (uint64_t)wanted, (uint64_t)space);
    return zn_fail(err, ZN_ERR_CONFIG, 0,
                   "no room for pseudonyms in packets: the public internal networks have %" PRIu64
                   " /64 of IPv6, the half of fc00::/7 without internal networks %" PRIu64
                   "; name fewer of them, or give --addresses wide",
                   units_of(wanted), units_of(space));
}

int zn_addr_blocks_init(zn_addr_blocks *blocks, const zn_net *internal, size_t n, bool v4,
                        zn_error *err)
{
    zn_kept_networks all;
    zn_kept_choice choice = {.internal = internal, .internal_count = n, .bits_max = V6_BITS};
    int rc = zn_kept_networks_init(&all, &choice, v4, err);
    *blocks = (zn_addr_blocks){.root = NULL};
    if (rc == 0 && all.all_internal)
        rc = zn_fail(err, ZN_ERR_CONFIG, 0,
                     "`--internal any` needs `--addresses wide`: pseudonyms of all addresses do "
                     "not fit into private ranges");
    if (rc == 0) {
        size_t most = ((size_t)all.count + ZN_ADDR_RANGES_MAX) * sizeof *blocks->root;
        blocks->root = zn_heap_resize(NULL, most);
        blocks->drawn = zn_heap_resize(NULL, most);
        if (blocks->root == NULL || blocks->drawn == NULL)
            rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the internal networks");
    }
    if (rc == 0) {
        choose(blocks, &all, v4);
        rc = check_sum(blocks, v4, err);
    }
    zn_kept_networks_fini(&all);
    return rc;
}

void zn_addr_blocks_fini(zn_addr_blocks *blocks)
{
    zn_heap_free(blocks->root);
    zn_heap_free(blocks->drawn);
    *blocks = (zn_addr_blocks){.root = NULL};
}

/* ---- where the slots are ---- */

/* A walk over the free places of one size, by address. */
typedef struct walk {
    unsigned shift;  /* log2 of the size */
    zn_u128 left;    /* places to pass by */
    zn_u128 passed;  /* places that were */
    zn_u128 first;   /* of the place that was looked for */
    uint32_t before; /* drawn slots before it */
} walk;

/* Passes by the places from `first` up to `end`; returns whether the one looked for is there. */
static bool pass_by(walk *w, zn_u128 first, zn_u128 end)
{
    zn_u128 places = (end - first) >> w->shift;
    if (w->left < places) {
        w->first = first + (w->left << w->shift);
        return true;
    }
    w->left -= places;
    w->passed += places;
    return false;
}

/* Looks for the place with w->left others before it; false: there are only w->passed. */
static bool find_place(const zn_addr_blocks *b, uint32_t drawn, uint8_t bits, walk *w)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < b->spaces; i++) {
        zn_u128 at = b->space[i].first, last = last_of(&b->space[i]);
        for (; k < drawn && b->drawn[k].first <= last; k++) {
            w->before = k;
            if (b->space[i].bits <= bits && pass_by(w, at, b->drawn[k].first))
                return true;
            at = last_of(&b->drawn[k]) + 1;
        }
        w->before = k;
        if (b->space[i].bits <= bits && pass_by(w, at, last + 1))
            return true;
    }
    return false;
}

static zn_u128 draw_one(zn_addr_blocks *b, uint32_t drawn, uint8_t bits, zn_u128 random)
{
    walk all = {.shift = V6_BITS - bits, .left = ~(zn_u128)0}, one = {.shift = V6_BITS - bits};
    (void)find_place(b, drawn, bits, &all);
    ZN_ASSERT(all.passed != 0); /* zn_addr_blocks_init saw to it */
    one.left = all.passed == 0 ? 0 : random % all.passed;
    (void)find_place(b, drawn, bits, &one);
    memmove(&b->drawn[one.before + 1], &b->drawn[one.before],
            (drawn - one.before) * sizeof *b->drawn);
    b->drawn[one.before] = (zn_prefix){one.first, bits};
    return one.first;
}

void zn_addr_blocks_draw(zn_addr_blocks *blocks, const zn_u128 *random, zn_u128 *place)
{
    uint32_t ranges = blocks->count - blocks->slots;
    for (uint32_t i = 0; i < ranges; i++)
        place[i] = blocks->root[i].first;
    for (uint32_t i = 0; i < blocks->slots; i++)
        place[ranges + i] = draw_one(blocks, i, blocks->root[ranges + i].bits, random[i]);
}
