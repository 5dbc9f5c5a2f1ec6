/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/once.h"

#include "util/arena.h"

int zn_once_init(zn_once *o, int64_t length_ns, int64_t late_ns, uint32_t users, zn_error *err)
{
    o->length_ns = length_ns;
    o->late_ns = late_ns;
    o->cap = users;
    for (o->slots = 16; o->slots / 2 < users; o->slots *= 2)
        ;
    o->entries = zn_block_alloc(o->cap * sizeof *o->entries);
    o->index = zn_block_alloc(o->slots * sizeof *o->index);
    if (o->entries == NULL || o->index == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the users of a duration");
    return 0;
}

void zn_once_fini(zn_once *o)
{
    if (o->entries != NULL)
        zn_block_clear(o->entries, o->cap * sizeof *o->entries);
    zn_block_free(o->entries, o->cap * sizeof *o->entries);
    zn_block_free(o->index, o->slots * sizeof *o->index);
    memset(o, 0, sizeof *o);
}

void zn_once_set_back(zn_once *o, int64_t now_ns)
{
    for (uint32_t i = 0; i < o->count; i++) {
        zn_once_entry *entry = &o->entries[(o->first + i) % o->cap];
        if (entry->t_ns > now_ns)
            entry->t_ns = now_ns;
    }
}

/* The slot where the user's search ends: its own, or an empty one. */
static uint32_t slot_of(const zn_once *o, uint64_t user)
{
    uint32_t mask = o->slots - 1, slot = (uint32_t)user & mask;
    while (o->index[slot] != 0 && o->entries[o->index[slot] - 1].user != user)
        slot = (slot + 1) & mask;
    return slot;
}

/* Empties a slot, and moves entries of the run after it that a search would no longer reach. */
static void empty_slot(zn_once *o, uint32_t hole)
{
    uint32_t mask = o->slots - 1;
    for (uint32_t slot = (hole + 1) & mask; o->index[slot] != 0; slot = (slot + 1) & mask) {
        uint32_t home = (uint32_t)o->entries[o->index[slot] - 1].user & mask;
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            o->index[hole] = o->index[slot];
            hole = slot;
        }
    }
    o->index[hole] = 0;
}

/* Forgets the entries at the front to which no row can be near any more. */
static void expire(zn_once *o, int64_t now_ns)
{
    while (o->count != 0) {
        const zn_once_entry *entry = &o->entries[o->first];
        uint32_t slot;
        if (now_ns < entry->t_ns || now_ns - entry->t_ns < o->length_ns ||
            now_ns - entry->t_ns - o->length_ns < o->late_ns)
            return;
        slot = slot_of(o, entry->user);
        if (o->index[slot] == o->first + 1) /* else the user came again */
            empty_slot(o, slot);
        o->first = (o->first + 1) % o->cap;
        o->count--;
    }
}

static void append(zn_once *o, uint32_t slot, zn_once_entry entry)
{
    uint32_t place = (o->first + o->count) % o->cap;
    o->entries[place] = entry;
    o->index[slot] = place + 1;
    o->count++;
}

zn_once_answer zn_once_ask(zn_once *o, uint64_t user, int64_t t_ns, int64_t now_ns)
{
    uint32_t slot;
    expire(o, now_ns);
    slot = slot_of(o, user);
    if (o->index[slot] != 0) {
        int64_t latest = o->entries[o->index[slot] - 1].t_ns;
        if (t_ns <= latest || t_ns - latest < o->length_ns)
            return ZN_ONCE_SEEN;
    }
    if (o->count == o->cap)
        return ZN_ONCE_FULL;
    append(o, slot, (zn_once_entry){user, t_ns});
    return ZN_ONCE_NEW;
}

bool zn_once_restore(zn_once *o, zn_once_entry entry)
{
    if (o->count == o->cap)
        return false;
    append(o, slot_of(o, entry.user), entry);
    return true;
}

size_t zn_once_memory(const zn_once *o)
{
    return o->count * (sizeof *o->entries + 2 * sizeof *o->index);
}
