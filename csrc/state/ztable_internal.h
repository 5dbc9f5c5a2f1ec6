/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a z-table is laid out; only csrc/state/ztable*.c may see it.
 *
 * An attribute holds a list of entries, one a user, from the newest to the oldest. Attributes and
 * entries live in slabs and know each other by 32-bit index (0: none). Two indexes lead to them:
 * identity -> attribute and (attribute, user) -> entry.
 *
 * A list that has to go as a whole (idle, or thrown out at the attribute cap) and is long is taken
 * out of the index of attributes at once and put on the stack `dying`, from which every observation
 * frees a few entries. So no call pays for a long list.
 */
#ifndef ZN_STATE_ZTABLE_INTERNAL_H
#define ZN_STATE_ZTABLE_INTERNAL_H

#include "base/clock.h"
#include "state/ztable.h"
#include "state/ztable_index.h"

#define ZN_ZLIST_SHORT 64 /* lists up to this length are freed in one go */

typedef struct zn_zentry {
    int64_t t_ns;
    uint32_t user; /* low half of the user's hash; eight more bits are the index's tag */
    uint32_t attribute;
    uint32_t newer, older;
} zn_zentry;

_Static_assert(sizeof(zn_zentry) == 24, "24 bytes a tuple");

typedef struct zn_zattribute {
    zn_id id; /* of a dying one, id.lo is the next on the stack */
    int64_t newest_ns, oldest_ns;
    uint32_t newest, oldest;
    uint32_t count; /* entries; 0: the slot is free */
    bool dying;
} zn_zattribute;

struct zn_ztable {
    zn_ztable_config config;
    zn_clock clock;
    uint64_t secret; /* mixed into every hash of (attribute, user) */
    zn_slab attributes, entries;
    zn_zindex by_id, by_user;
    uint32_t dying;
    uint32_t sweep_hand;   /* last attribute looked at by the sweep */
    uint32_t cap_hand;     /* last attribute thrown out at a cap */
    int64_t swept_ns;      /* clock when the sweep last came round */
    bool sweeping;         /* a round is under way */
    zn_ztable_stats stats; /* attributes and tuples: those not dying */
};

static inline zn_zattribute *zn_zattribute_at(const zn_ztable *t, uint32_t index)
{
    ZN_ASSERT(index >= 1 && index <= t->attributes.used_high);
    return (zn_zattribute *)(void *)t->attributes.base + (index - 1);
}

static inline zn_zentry *zn_zentry_at(const zn_ztable *t, uint32_t index)
{
    ZN_ASSERT(index >= 1 && index <= t->entries.used_high);
    return (zn_zentry *)(void *)t->entries.base + (index - 1);
}

/* Anything older than this is out of the window that ends at t_ns. */
static inline int64_t zn_zwindow_start(const zn_ztable *t, int64_t t_ns)
{
    return t_ns - t->config.window_ns;
}

/* A tag has to be non-zero. */
static inline uint8_t zn_ztag(uint64_t hash)
{
    uint8_t tag = (uint8_t)(hash >> 56);
    return tag != 0 ? tag : 1;
}

static inline uint64_t zn_zentry_hash(const zn_ztable *t, uint32_t attribute, uint32_t user)
{
    uint64_t x = ((uint64_t)attribute << 32 | user) ^ t->secret;
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

/* ztable_list.c: attributes and their lists */

/* Index of the attribute, or 0. */
uint32_t zn_zattribute_find(const zn_ztable *t, zn_id id);
/* A new attribute with no entries yet; the slab always has room for one. */
uint32_t zn_zattribute_make(zn_ztable *t, zn_id id);
/* Users in the window that ends at the clock. */
uint64_t zn_zattribute_live(const zn_ztable *t, uint32_t attribute);
/* Forgets an attribute and its entries: now when they are few, else by and by. */
void zn_zattribute_retire(zn_ztable *t, uint32_t attribute);
/* Index of the user's entry in the attribute's list, or 0. */
uint32_t zn_zentry_find(const zn_ztable *t, uint32_t attribute, uint64_t user);
/* Adds a user's entry behind `newer` (0: in front); the slab always has room for one. */
void zn_zentry_add(zn_ztable *t, uint32_t attribute, uint32_t newer, const zn_observation *o);
/* Moves an entry behind `newer` (0: to the front) and sets its time. */
void zn_zentry_move(zn_ztable *t, uint32_t entry, uint32_t newer, int64_t t_ns);
/* Frees the oldest entry of an attribute, which may be left with none. */
void zn_zentry_drop_oldest(zn_ztable *t, uint32_t attribute);
/* Frees up to n entries of dying attributes. */
void zn_zdying_drain(zn_ztable *t, uint32_t n);
/* The hashes the two indexes were filled with. */
uint64_t zn_zattribute_rehash(const void *table, uint32_t attribute);
uint64_t zn_zentry_rehash(const void *table, uint32_t entry);

/* ztable_room.c: giving memory back */

/* A bounded step of reclaiming what is idle. */
void zn_zroom_sweep(zn_ztable *t);
/* Throws out the oldest until the caps hold again; `current` is the attribute just observed. */
void zn_zroom_enforce_caps(zn_ztable *t, uint32_t current);

#endif
