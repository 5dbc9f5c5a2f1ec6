/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anonymity/user_ages.h"

#include "util/arena.h"

#include <string.h>

static size_t generation_bytes(const zn_user_ages *ages)
{
    return (ages->mask + 1) * sizeof(zn_user_age);
}

int zn_user_ages_init(zn_user_ages *ages, uint32_t cap, zn_error *err)
{
    uint64_t slots = 2;
    while (slots < 2 * (uint64_t)cap)
        slots *= 2;
    ages->cap = cap;
    ages->mask = slots - 1;
    for (int i = 0; i < 2; i++)
        if ((ages->generation[i] = zn_block_alloc(generation_bytes(ages))) == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the ages of %u users", cap);
    return 0;
}

void zn_user_ages_fini(zn_user_ages *ages)
{
    for (int i = 0; i < 2; i++)
        zn_block_free(ages->generation[i], generation_bytes(ages));
    memset(ages, 0, sizeof *ages);
}

/* Returns the slot that has the user, or the empty slot for it. */
static zn_user_age *slot_of(const zn_user_ages *ages, int generation, uint64_t user)
{
    zn_user_age *slots = ages->generation[generation];
    uint64_t at = user & ages->mask;
    while (slots[at].user != 0 && slots[at].user != user)
        at = (at + 1) & ages->mask;
    return slots + at;
}

/* Hash 0 is that of flows without a user. */
static uint64_t key_of(uint64_t user)
{
    return user != 0 ? user : 1;
}

int64_t zn_user_ages_first(const zn_user_ages *ages, uint64_t user, int64_t t_ns)
{
    for (int i = 0; i < 2; i++) {
        const zn_user_age *slot = slot_of(ages, i, key_of(user));
        if (slot->user != 0)
            return slot->first_ns < t_ns ? slot->first_ns : t_ns;
    }
    return t_ns;
}

/* Forgets the older generation, and begins another one. */
static void begin_generation(zn_user_ages *ages)
{
    zn_user_age *older = ages->generation[1];
    ages->generation[1] = ages->generation[0];
    ages->generation[0] = older;
    zn_block_clear(older, generation_bytes(ages));
    ages->members = 0;
}

int64_t zn_user_ages_see(zn_user_ages *ages, uint64_t user, int64_t t_ns)
{
    int64_t first_ns = zn_user_ages_first(ages, user, t_ns);
    zn_user_age *slot = slot_of(ages, 0, key_of(user));
    if (slot->user == 0 && ages->members == ages->cap) {
        begin_generation(ages);
        slot = slot_of(ages, 0, key_of(user));
    }
    ages->members += slot->user == 0;
    slot->user = key_of(user);
    slot->first_ns = first_ns;
    return first_ns;
}

size_t zn_user_ages_memory(const zn_user_ages *ages)
{
    return ages->generation[0] != NULL ? 2 * generation_bytes(ages) : 0;
}
