/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most half full. */
#include "anonymity/addr_set.h"

#include "util/arena.h"
#include "util/hash.h"

#define FIRST_SLOTS (UINT64_C(1) << 12)

static void set_size(zn_addr_set *s, uint64_t slots)
{
    s->slots = s->block + slots;
    s->mask = slots - 1;
}

static size_t block_bytes(const zn_addr_set *s)
{
    return 2 * s->max_slots * sizeof *s->block;
}

int zn_addr_set_init(zn_addr_set *s, uint32_t cap, zn_error *err)
{
    uint64_t slots = FIRST_SLOTS;
    memset(s, 0, sizeof *s);
    while (slots < 2 * (uint64_t)cap)
        slots *= 2;
    s->max_slots = slots;
    s->block = zn_block_alloc(block_bytes(s));
    if (s->block == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a set of %u addresses", cap);
    set_size(s, FIRST_SLOTS);
    s->cap = cap;
    return zn_hash_key_random(&s->key, err);
}

void zn_addr_set_fini(zn_addr_set *s)
{
    zn_block_free(s->block, block_bytes(s));
    memset(s, 0, sizeof *s);
}

uint64_t zn_addr_set_hash(const zn_addr_set *s, const zn_addr *a)
{
    uint64_t word[2], hash;
    zn_sip sip = zn_sip_start(&s->key);
    memcpy(word, a->byte, sizeof word);
    zn_sip_absorb(&sip, word[0]);
    zn_sip_absorb(&sip, word[1]);
    hash = zn_sip_words_end(&sip, 2);
    return hash == 0 ? 1 : hash;
}

/* Returns the slot that has `hash`, or the empty slot for it. */
static uint64_t slot_of(const zn_addr_set *s, uint64_t hash)
{
    uint64_t at = hash & s->mask;
    while (s->slots[at] != 0 && s->slots[at] != hash)
        at = (at + 1) & s->mask;
    return at;
}

static void grow(zn_addr_set *s)
{
    const uint64_t *old = s->slots;
    uint64_t slots = s->mask + 1;
    set_size(s, 2 * slots);
    /* Every slot is used now, most are read before they are written: a page would cost two
     * faults. */
    (void)zn_block_populate(s->slots, 2 * slots * sizeof *s->slots);
    for (uint64_t i = 0; i < slots; i++)
        if (old[i] != 0)
            s->slots[slot_of(s, old[i])] = old[i];
}

void zn_addr_set_add_hash(zn_addr_set *s, uint64_t hash)
{
    uint64_t at = slot_of(s, hash);
    if (s->slots[at] == hash)
        return;
    if (s->members == s->cap) {
        s->full = true;
        return;
    }
    if (2 * s->members > s->mask && s->mask + 1 < s->max_slots) {
        grow(s);
        at = slot_of(s, hash);
    }
    s->slots[at] = hash;
    s->members++;
}

bool zn_addr_set_has_hash(const zn_addr_set *s, uint64_t hash)
{
    return s->members != 0 && s->slots[slot_of(s, hash)] != 0;
}

void zn_addr_set_prefetch(const zn_addr_set *s, uint64_t hash)
{
    ZN_PREFETCH(&s->slots[hash & s->mask]);
}

void zn_addr_set_clear(zn_addr_set *s)
{
    if (s->members != 0)
        zn_block_clear(s->block, block_bytes(s));
    set_size(s, FIRST_SLOTS);
    s->members = 0;
    s->full = false;
}

size_t zn_addr_set_memory(const zn_addr_set *s)
{
    return s->members == 0 ? 0 : (2 * (s->mask + 1) - FIRST_SLOTS) * sizeof *s->block;
}

void zn_addr_set_add_all(zn_addr_set *s, const zn_addr_set *from)
{
    for (uint64_t at = 0; from->members != 0 && at <= from->mask; at++)
        if (from->slots[at] != 0)
            zn_addr_set_add_hash(s, from->slots[at]);
    s->full |= from->full;
}
