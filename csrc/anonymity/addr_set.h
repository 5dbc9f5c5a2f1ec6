/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set of addresses by their keyed 64-bit hashes, with a fixed cap. A hash collision can only add an
 * address to the set, never remove one. If a set is full, `full` is true, and its owner must treat
 * every address as a member. The set starts small, so that few members lie close together, and
 * doubles.
 */
#ifndef ZN_ANONYMITY_ADDR_SET_H
#define ZN_ANONYMITY_ADDR_SET_H

#include "util/addr.h"
#include "util/hash.h"

typedef struct zn_addr_set {
    uint64_t *block;    /* space for every size: `size` slots start at block + size */
    uint64_t max_slots; /* slots of the largest size */
    uint64_t *slots;    /* 0: empty */
    uint64_t mask;      /* slots - 1 */
    uint64_t members, cap;
    zn_hash_key key;
    bool full;
} zn_addr_set;

/* Makes an empty set for `cap` addresses. Returns 0, or a negative zn_err with *err filled. */
int zn_addr_set_init(zn_addr_set *s, uint32_t cap, zn_error *err);
void zn_addr_set_fini(zn_addr_set *s);
/* Adds the address with this hash, or sets `full` when there is no space. */
void zn_addr_set_add_hash(zn_addr_set *s, uint64_t hash);
/* Membership takes three steps, so that other work between them hides the wait for memory. First:
 * the hash of an address, never 0, the same in every set with the same key. */
uint64_t zn_addr_set_hash(const zn_addr_set *s, const zn_addr *a);
/* Second: prefetches the hash's slot. */
void zn_addr_set_prefetch(const zn_addr_set *s, uint64_t hash);
/* Third: whether the set holds the hash; false for an address that found no space. */
bool zn_addr_set_has_hash(const zn_addr_set *s, uint64_t hash);
/* Forgets all members; the set is no longer full. */
void zn_addr_set_clear(zn_addr_set *s);
/* Bytes of memory touched, at most. */
size_t zn_addr_set_memory(const zn_addr_set *s);

/* Adds the members of another set that has the same key. */
void zn_addr_set_add_all(zn_addr_set *s, const zn_addr_set *from);

#endif
