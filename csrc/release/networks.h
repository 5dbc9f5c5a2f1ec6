/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Autonomous system (AS) and country of an address, from a table of address ranges that do not
 * overlap. The table is copied at start and never changes. A look-up takes no memory.
 */
#ifndef ZN_RELEASE_NETWORKS_H
#define ZN_RELEASE_NETWORKS_H

#include "util/addr.h"
#include "zanon/zanon.h"

#define ZN_NETWORKS_INDEX 65536u /* IPv4 ranges are found by the first 16 bits */

typedef struct zn_networks {
    zn_network *rows; /* by their first address; NULL: no table */
    size_t count, bytes;
    /* Index of the first row that begins at a.b.0.0 or later, for each a.b and for the end. */
    uint32_t *index;
} zn_networks;

/* Copies the table; *networks is zero before, and zn_networks_fini follows in any case. Returns 0,
 * or a negative zn_err with *err filled, such as -ZN_ERR_CONFIG for rows out of order. */
int zn_networks_init(zn_networks *networks, const zn_network *rows, size_t count, zn_error *err);
void zn_networks_fini(zn_networks *networks);
/* Returns the row of the address, or NULL if the address is before all rows. */
const zn_network *zn_networks_find(const zn_networks *networks, const zn_addr *address);

#endif
