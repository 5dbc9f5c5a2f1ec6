/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set of pairs (owner, identity), numbered from 0 in the order in which they came, each with a
 * count that belongs to the caller. Identities are keyed hashes (util/hash.h), so a sender cannot
 * aim at a slot. The set grows by doubling, and clearing it costs as much as its members.
 */
#ifndef ZN_UTIL_ID_SET_H
#define ZN_UTIL_ID_SET_H

#include "util/hash.h"

typedef struct zn_id_entry {
    zn_id id;
    uint32_t owner;
    uint32_t count; /* 0 at first */
} zn_id_entry;

/* Zeroed, it is empty and without memory. */
typedef struct zn_id_set {
    zn_id_entry *at;
    uint32_t n;
    uint32_t room; /* pairs that it holds before it has to grow */
    /* open addressing: upper half of the hash, and the pair's number + 1; 0: empty */
    uint64_t *slots;
    uint64_t mask; /* slots in use - 1 */
    size_t at_bytes, slots_bytes;
} zn_id_set;

/* Gives the memory back; a zeroed set is fine. */
void zn_id_set_fini(zn_id_set *s);
/* Makes room for one more pair, with zn_id_set_reserve. Returns 0, or -ZN_ERR_CAPACITY. */
int zn_id_set_grow(zn_id_set *s, zn_error *err);
/* Forgets all pairs. */
void zn_id_set_clear(zn_id_set *s);
/* Bytes of memory laid out. */
size_t zn_id_set_memory(const zn_id_set *s);

/* Has room for one more pair afterwards. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
static inline int zn_id_set_reserve(zn_id_set *s, zn_error *err)
{
    return ZN_LIKELY(s->n < s->room) ? 0 : zn_id_set_grow(s, err);
}

static inline uint64_t zn_id_set_hash(uint32_t owner, zn_id id)
{
    return id.lo ^ (owner + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The pair's number; it is new when that is the count before. There is room for one more. */
static inline uint32_t zn_id_set_put(zn_id_set *s, uint32_t owner, zn_id id)
{
    uint64_t hash = zn_id_set_hash(owner, id), place = hash & s->mask;
    ZN_ASSERT(s->n < s->room);
    for (; s->slots[place] != 0; place = (place + 1) & s->mask) {
        uint32_t i = (uint32_t)s->slots[place] - 1;
        if (s->slots[place] >> 32 == hash >> 32 && s->at[i].owner == owner &&
            zn_id_equal(s->at[i].id, id))
            return i;
    }
    s->slots[place] = (hash >> 32) << 32 | (s->n + 1);
    s->at[s->n] = (zn_id_entry){id, owner, 0};
    return s->n++;
}

#endif
