/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/kept_networks.h"

#include "util/arena.h"

#include <stdlib.h>

#define V4_BITS 32u
#define V6_BITS 128u
#define BYTE_SHIFT 120u
#define LEFT_MIN 16u /* inner networks leave at least 1/16 of their network, or nothing */

/* The address's 16 bytes, of either family, as a number. */
static zn_u128 bytes_of(const zn_addr *a)
{
    zn_u128 x = 0;
    for (unsigned i = 0; i < sizeof a->byte; i++)
        x = x << 8 | a->byte[i];
    return x;
}

static int by_place(const void *one, const void *other)
{
    const zn_kept_network *a = one, *b = other;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (int)a->bits - (int)b->bits;
}

/* The length of its prefix among the bits of its family's addresses. */
static unsigned bits_of(const zn_net *network, bool v4)
{
    return network->bits - (v4 ? ZN_MAPPED_BITS : 0);
}

static bool is_v4(const zn_net *network)
{
    return network->bits >= ZN_MAPPED_BITS && zn_addr_is_v4(&network->prefix);
}

/* Returns the sibling of the network of `bits` > 0 bits that contains ::ffff:0:0/96. */
static zn_u128 sibling_of_mapped(unsigned bits)
{
    zn_u128 mapped = (zn_u128)0xffff << V4_BITS, last = (zn_u128)1 << (V6_BITS - bits);
    return (mapped & ~zn_bits_after(bits)) ^ last;
}

static bool is_sibling_of_mapped(const zn_net *network, unsigned bits)
{
    return network->bits == bits && bytes_of(&network->prefix) == sibling_of_mapped(bits);
}

/*
 * An IPv6 network that contains ::ffff:0:0/96 may be given as the list of its parts without that
 * network, because IPv4 addresses must not lie in it. Returns the bits of such a network, or
 * ZN_MAPPED_BITS if the list has no such network.
 */
static unsigned bits_around_mapped(const zn_net *internal, size_t n)
{
    unsigned bits = ZN_MAPPED_BITS;
    for (; bits > 0; bits--) {
        size_t i = 0;
        while (i < n && !is_sibling_of_mapped(&internal[i], bits))
            i++;
        if (i == n)
            break;
    }
    return bits;
}

static void add(zn_kept_networks *kept, zn_u128 first, unsigned bits, uint32_t root)
{
    kept->network[kept->count++] = (zn_kept_network){
        .first = first, .last = first | zn_bits_after(bits), .root = root, .bits = (uint8_t)bits};
}

static void add_internal(zn_kept_networks *kept, zn_u128 first, unsigned bits, unsigned bits_max)
{
    kept->all_internal = kept->all_internal || bits == 0;
    if (bits > bits_max)
        kept->left_out++;
    else
        add(kept, first, bits, 0);
}

/* Appends the internal networks of the family that are short enough, and the roots. */
static void choose(zn_kept_networks *kept, const zn_kept_choice *choice, bool v4)
{
    const zn_net *internal = choice->internal;
    size_t n = choice->internal_count;
    unsigned around = v4 ? ZN_MAPPED_BITS : bits_around_mapped(internal, n);
    if (around < ZN_MAPPED_BITS)
        add_internal(kept, ((zn_u128)0xffff << V4_BITS) & ~zn_bits_after(around), around,
                     choice->bits_max);
    for (size_t i = 0; i < n; i++) {
        unsigned bits = internal[i].bits;
        if (is_v4(&internal[i]) != v4)
            continue;
        if (bits > around && bits <= ZN_MAPPED_BITS && !v4 &&
            is_sibling_of_mapped(&internal[i], bits))
            continue;
        add_internal(kept, bytes_of(&internal[i].prefix) << (v4 ? ZN_MAPPED_BITS : 0),
                     bits_of(&internal[i], v4), choice->bits_max);
    }
    for (uint32_t i = 0; i < choice->root_count; i++)
        add(kept, choice->root[i].first, choice->root[i].bits, i + 1);
}

static void sort(zn_kept_networks *kept)
{
    uint32_t count = 1;
    qsort(kept->network, kept->count, sizeof *kept->network, by_place);
    for (uint32_t i = 1; i < kept->count; i++) /* the first is /0 */
        if (by_place(&kept->network[i], &kept->network[count - 1]) != 0)
            kept->network[count++] = kept->network[i];
        else if (kept->network[i].root != 0)
            kept->network[count - 1].root = kept->network[i].root;
    kept->count = count;
}

static void find_parents(zn_kept_networks *kept)
{
    zn_kept_network *network = kept->network;
    for (uint32_t i = 1; i < kept->count; i++) {
        uint32_t parent = i - 1;
        while (network[i].first > network[parent].last)
            parent = network[parent].parent;
        network[i].parent = parent;
        if (network[i].root == 0)
            network[i].root = network[parent].root;
    }
    for (uint32_t i = 0; i < kept->count; i++)
        network[i].inner_bits = network[i].bits;
    for (uint32_t i = kept->count; i-- > 1;)
        if (network[network[i].parent].inner_bits < network[i].inner_bits)
            network[network[i].parent].inner_bits = network[i].inner_bits;
}

/* Returns true if each network from `first` on has enough addresses of its own to be permuted
 * without a long search. */
static bool leave_enough(const zn_kept_networks *kept, uint32_t first)
{
    for (uint32_t i = first; i < kept->count; i++) {
        /* In units of the smallest kept network. */
        unsigned unit = kept->network[i].inner_bits;
        zn_u128 all = (zn_u128)1 << (unit - kept->network[i].bits), left = all;
        for (uint32_t k = i + 1; k < kept->count && kept->network[k].first <= kept->network[i].last;
             k++)
            if (kept->network[k].parent == i)
                left -= (zn_u128)1 << (unit - kept->network[k].bits);
        if (left != 0 && left * LEFT_MIN < all)
            return false;
    }
    return true;
}

/* Finds the network of each first byte, if the byte's addresses belong to one network. */
static void index_bytes(zn_kept_networks *kept)
{
    for (unsigned byte = 0; byte < ZN_KEPT_BYTES; byte++)
        kept->of_byte[byte] = zn_kept_networks_search(kept, (zn_u128)byte << BYTE_SHIFT);
    for (uint32_t i = 0; i < kept->count; i++)
        if (kept->network[i].bits > V6_BITS - BYTE_SHIFT)
            kept->of_byte[(size_t)(kept->network[i].first >> BYTE_SHIFT)] = ZN_KEPT_MIXED;
}

int zn_kept_networks_init(zn_kept_networks *kept, const zn_kept_choice *choice, bool v4,
                          zn_error *err)
{
    size_t most = choice->internal_count + choice->root_count + 2;
    *kept = (zn_kept_networks){.network = NULL};
    kept->network = zn_heap_resize(NULL, most * sizeof *kept->network);
    if (kept->network == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the internal networks");
    add(kept, 0, 0, 0);
    choose(kept, choice, v4);
    sort(kept);
    find_parents(kept);
    index_bytes(kept);
    return 0;
}

static bool has_roots(const zn_kept_networks *kept)
{
    for (uint32_t i = 0; i < kept->count; i++)
        if (kept->network[i].root != 0)
            return true;
    return false;
}

int zn_kept_networks_check(const zn_kept_networks *kept, zn_error *err)
{
    if (leave_enough(kept, has_roots(kept) ? 1 : 0))
        return 0;
    return zn_fail(err, ZN_ERR_CONFIG, 0,
                   "internal networks take more than 15/16 of one that holds them, but not all: "
                   "give the outer network alone, or networks that fill it");
}

void zn_kept_networks_fini(zn_kept_networks *kept)
{
    zn_heap_free(kept->network);
    *kept = (zn_kept_networks){.network = NULL};
}

zn_addr zn_kept_network_address(const zn_kept_network *network, bool v4)
{
    return zn_addr_of_number(network->first, v4);
}

uint32_t zn_kept_networks_search(const zn_kept_networks *kept, zn_u128 address)
{
    uint32_t from = 0, to = kept->count;
    while (to - from > 1) { /* the last that begins at or before the address */
        uint32_t middle = from + (to - from) / 2;
        if (kept->network[middle].first <= address)
            from = middle;
        else
            to = middle;
    }
    while (address > kept->network[from].last)
        from = kept->network[from].parent;
    return from;
}
