/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users that had a row recently: a table of bounded size, in the order of arrival. Rows may come
 * late, by less than `late`. A user's next row has to be `length` after the user's latest accepted
 * row, and that row is remembered until no earlier row can come.
 */
#ifndef ZN_ROWS_ONCE_H
#define ZN_ROWS_ONCE_H

#include "util/text.h"

typedef struct zn_once_entry {
    uint64_t user;
    int64_t t_ns;
} zn_once_entry;

/* All zeros is a closed table. */
typedef struct zn_once {
    int64_t length_ns, late_ns;
    uint32_t cap, first, count; /* of the ring of entries */
    uint32_t slots;             /* of the index, a power of two */
    zn_once_entry *entries;
    uint32_t *index; /* 1 + an entry's place in the ring; 0: empty */
} zn_once;

typedef enum zn_once_answer {
    ZN_ONCE_NEW,  /* the user is remembered from now on */
    ZN_ONCE_SEEN, /* had a row less than length_ns before, or one after */
    ZN_ONCE_FULL  /* there is no room for another user */
} zn_once_answer;

/* Opens a table of at most `users` (>= 1) entries. Returns 0 or -ZN_ERR_CAPACITY; zn_once_fini is
 * due then, too. */
int zn_once_init(zn_once *o, int64_t length_ns, int64_t late_ns, uint32_t users, zn_error *err);
/* Wipes and frees. */
void zn_once_fini(zn_once *o);

/* Asks about a user, by a keyed hash, at t_ns >= 0, and remembers a new one. now_ns: the stream's
 * clock, less than late_ns after t_ns. */
zn_once_answer zn_once_ask(zn_once *o, uint64_t user, int64_t t_ns, int64_t now_ns);

/* The clock was wrong, and is set back to now_ns: no entry is later than that. */
void zn_once_set_back(zn_once *o, int64_t now_ns);
/* Entry i of o->count, oldest arrival first. */
static inline const zn_once_entry *zn_once_at(const zn_once *o, uint32_t i)
{
    return &o->entries[(o->first + i) % o->cap];
}
/* Adds an entry that zn_once_at gave; false when there is no room. */
bool zn_once_restore(zn_once *o, zn_once_entry entry);
/* Bytes of memory that entries take. */
size_t zn_once_memory(const zn_once *o);

#endif
