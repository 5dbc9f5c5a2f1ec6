/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/networks.h"

#include "util/arena.h"

#define V4_PLACE 12 /* byte of a zn_addr at which an IPv4 address begins */
#define INDEX_BYTES ((ZN_NETWORKS_INDEX + 1) * sizeof(uint32_t))

static int compare(const zn_addr *a, const zn_addr *b)
{
    return memcmp(a->byte, b->byte, sizeof a->byte);
}

/* Returns the first row from `low` on, before `high`, whose first address is after the address. */
static size_t after(const zn_networks *networks, size_t low, size_t high, const zn_addr *address)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&networks->rows[middle].first, address) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Returns the index of the first row that begins at the IPv4 address a.b.0.0 or later. */
static uint32_t first_from(const zn_networks *networks, uint32_t a_b)
{
    zn_addr address = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};
    size_t at;
    address.byte[V4_PLACE] = (uint8_t)(a_b >> 8);
    address.byte[V4_PLACE + 1] = (uint8_t)a_b;
    at = after(networks, 0, networks->count, &address);
    if (at != 0 && compare(&networks->rows[at - 1].first, &address) == 0)
        at--;
    return (uint32_t)at;
}

/* Returns the index of the first row that begins after the last IPv4 address. */
static uint32_t after_v4(const zn_networks *networks)
{
    zn_addr last = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    return (uint32_t)after(networks, 0, networks->count, &last);
}

int zn_networks_init(zn_networks *networks, const zn_network *rows, size_t count, zn_error *err)
{
    if (count == 0)
        return 0;
    if (count > UINT32_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "too many networks");
    for (size_t i = 1; i < count; i++)
        if (compare(&rows[i - 1].first, &rows[i].first) >= 0)
            return zn_fail(err, ZN_ERR_CONFIG, 0, "networks are not in the order of addresses");
    networks->bytes = count * sizeof *rows;
    networks->rows = zn_block_alloc(networks->bytes);
    networks->index = zn_block_alloc(INDEX_BYTES);
    if (networks->rows == NULL || networks->index == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %zu networks", count);
    memcpy(networks->rows, rows, networks->bytes);
    networks->count = count;
    for (uint32_t i = 0; i < ZN_NETWORKS_INDEX; i++)
        networks->index[i] = first_from(networks, i);
    networks->index[ZN_NETWORKS_INDEX] = after_v4(networks);
    return 0;
}

void zn_networks_fini(zn_networks *networks)
{
    if (networks->rows != NULL)
        zn_block_free(networks->rows, networks->bytes);
    if (networks->index != NULL)
        zn_block_free(networks->index, INDEX_BYTES);
    memset(networks, 0, sizeof *networks);
}

const zn_network *zn_networks_find(const zn_networks *networks, const zn_addr *address)
{
    size_t low = 0, high = networks->count, at;
    if (networks->rows == NULL)
        return NULL;
    if (zn_addr_is_v4(address)) {
        uint32_t a_b = (uint32_t)address->byte[V4_PLACE] << 8 | address->byte[V4_PLACE + 1];
        low = networks->index[a_b];
        high = networks->index[a_b + 1];
    }
    at = after(networks, low, high, address);
    return at == 0 ? NULL : &networks->rows[at - 1];
}
