/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that were clients in this epoch of the pseudonyms' key or in the previous epoch. A
 * server among them is a person's machine, so its address is not released. An address that carries
 * an IPv4 address counts as the IPv4 address. When a set is full, every address counts as a client.
 */
#ifndef ZN_RELEASE_CLIENTS_H
#define ZN_RELEASE_CLIENTS_H

#include "anonymity/addr_set.h"

typedef struct zn_clients {
    zn_addr_set set[2]; /* this epoch and the previous epoch; both have one hash key */
    int64_t epoch;
    /* First epoch since which all clients are in set[0], and first epoch since which all clients
     * are in both sets together. */
    int64_t since[2];
} zn_clients;

/* Makes empty sets for max_clients clients an epoch; *c is zero. Returns 0, or a negative zn_err
 * with *err filled. */
int zn_clients_init(zn_clients *c, uint32_t max_clients, zn_error *err);
void zn_clients_fini(zn_clients *c);
/* Returns the most bytes of memory that the sets have touched. */
size_t zn_clients_memory(const zn_clients *c);

/* Forgets the previous epoch, and begins another epoch. */
void zn_clients_next_epoch(zn_clients *c, int64_t epoch);
/* Moves to an epoch that may lie in the past. The clients of that epoch count again. If they are
 * forgotten, every address counts as a client. */
void zn_clients_rebase(zn_clients *c, int64_t epoch);

/* Moves to an epoch that may lie in the past, for which clients have to be added again. The clients
 * so far count as clients of the epoch before it. */
void zn_clients_begin_anew(zn_clients *c, int64_t epoch);

/* Returns the hash of an address that the other functions take. */
static inline uint64_t zn_clients_hash(const zn_clients *c, const zn_addr *a)
{
    zn_addr carried = zn_addr_carried(a);
    return zn_addr_set_hash(&c->set[0], &carried);
}

static inline void zn_clients_add(zn_clients *c, uint64_t hash)
{
    zn_addr_set_add_hash(&c->set[0], hash);
}

/* Returns true if a set is full. */
static inline bool zn_clients_incomplete(const zn_clients *c)
{
    return c->set[0].full || c->set[1].full;
}

/* Returns true if the address was a client, or a set is full. */
static inline bool zn_clients_have(const zn_clients *c, uint64_t hash)
{
    return zn_clients_incomplete(c) || zn_addr_set_has_hash(&c->set[0], hash) ||
           zn_addr_set_has_hash(&c->set[1], hash);
}

/* Returns true if the address was a client in the previous epoch, or that epoch's set is full. */
static inline bool zn_clients_had_before(const zn_clients *c, uint64_t hash)
{
    return c->set[1].full || zn_addr_set_has_hash(&c->set[1], hash);
}

/* Prefetches the slot that zn_clients_add reads. */
static inline void zn_clients_prefetch_add(const zn_clients *c, uint64_t hash)
{
    zn_addr_set_prefetch(&c->set[0], hash);
}

/* Prefetches the slots that zn_clients_have reads. */
static inline void zn_clients_prefetch(const zn_clients *c, uint64_t hash)
{
    zn_addr_set_prefetch(&c->set[0], hash);
    zn_addr_set_prefetch(&c->set[1], hash);
}

#endif
