/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/dictionary.h"

#include "util/arena.h"

#define FIRST_TEXTS 256
#define FIRST_BYTES 4096
#define LOAD 2 /* slots a text */

void zn_dictionary_fini(zn_dictionary *d)
{
    zn_heap_free(d->offsets);
    zn_heap_free(d->bytes);
    zn_heap_free(d->addresses);
    zn_heap_free(d->slots);
    memset(d, 0, sizeof *d);
}

/* Resizes *block; false leaves the old one valid. */
static bool resize(void **block, size_t bytes)
{
    void *bigger = zn_heap_resize(*block, bytes);
    if (bigger != NULL)
        *block = bigger;
    return bigger != NULL;
}

static zn_span text_at(const zn_dictionary *d, size_t index)
{
    size_t from = (size_t)d->offsets[index];
    return (zn_span){d->bytes + from, (size_t)d->offsets[index + 1] - from};
}

static uint64_t hash_at(const zn_dictionary *d, const zn_hash_key *key, size_t index)
{
    zn_span text;
    if (d->addresses != NULL)
        return zn_hash64(key, d->addresses[index].byte, sizeof d->addresses->byte);
    text = text_at(d, index);
    return zn_hash64(key, text.p, text.n);
}

/* The slots of a dictionary with room for cap texts, filled with those it has. */
static bool rebuild(zn_dictionary *d, const zn_hash_key *key, size_t cap)
{
    uint32_t slots = (uint32_t)(cap * LOAD);
    if (!resize((void **)&d->slots, slots * sizeof *d->slots))
        return false;
    memset(d->slots, 0, slots * sizeof *d->slots);
    d->slot_count = slots;
    for (size_t i = 0; i < d->n; i++) {
        uint32_t at = (uint32_t)hash_at(d, key, i) & (slots - 1);
        while (d->slots[at] != 0)
            at = (at + 1) & (slots - 1);
        d->slots[at] = (uint32_t)i + 1;
    }
    return true;
}

/* Makes room for one more text of n bytes; false when memory is out. */
static bool reserve(zn_dictionary *d, const zn_hash_key *key, size_t n, bool addresses)
{
    size_t bytes = d->bytes_cap == 0 ? FIRST_BYTES : d->bytes_cap;
    while (bytes - d->bytes_n < n)
        bytes *= 2;
    if (bytes > INT32_MAX || (bytes != d->bytes_cap && !resize((void **)&d->bytes, bytes)))
        return false;
    d->bytes_cap = bytes;
    if (d->n == d->cap) {
        size_t cap = d->cap == 0 ? FIRST_TEXTS : 2 * d->cap;
        if (!resize((void **)&d->offsets, (cap + 1) * sizeof *d->offsets) ||
            (addresses && !resize((void **)&d->addresses, cap * sizeof *d->addresses)) ||
            !rebuild(d, key, cap))
            return false;
        d->cap = cap;
        d->offsets[0] = 0;
    }
    return true;
}

/* Makes the text of `slot` the next one. */
static uint32_t append(zn_dictionary *d, uint32_t slot, zn_span text)
{
    if (text.n != 0)
        memcpy(d->bytes + d->bytes_n, text.p, text.n);
    d->bytes_n += text.n;
    d->n++;
    d->offsets[d->n] = (int32_t)d->bytes_n;
    d->slots[slot] = (uint32_t)d->n;
    d->last = (uint32_t)d->n - 1;
    return d->last;
}

static uint32_t number_of(zn_dictionary *d, const zn_hash_key *key, zn_span text, uint64_t hash)
{
    uint32_t at;
    if (!reserve(d, key, text.n, false))
        return ZN_DICTIONARY_FULL;
    at = (uint32_t)hash & (d->slot_count - 1);
    while (d->slots[at] != 0) {
        if (zn_span_equal(text_at(d, d->slots[at] - 1), text))
            return d->last = d->slots[at] - 1;
        at = (at + 1) & (d->slot_count - 1);
    }
    return append(d, at, text);
}

uint32_t zn_dictionary_text(zn_dictionary *d, const zn_hash_key *key, zn_span text)
{
    if (d->n != 0 && zn_span_equal(text_at(d, d->last), text))
        return d->last;
    return number_of(d, key, text, zn_hash64(key, text.p, text.n));
}

bool zn_dictionary_texts(zn_dictionary *d, const zn_hash_key *key, const zn_short_text *texts,
                         uint64_t which, uint32_t numbers[64])
{
    uint64_t hash[64];
    memset(numbers, 0, 64 * sizeof *numbers);
    for (uint64_t left = which; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        hash[i] = zn_hash64(key, texts[i].text, texts[i].n);
        if (d->slot_count != 0)
            ZN_PREFETCH(&d->slots[hash[i] & (d->slot_count - 1)]);
    }
    for (uint64_t left = d->slot_count == 0 ? 0 : which; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        numbers[i] = d->slots[hash[i] & (d->slot_count - 1)];
        if (numbers[i] != 0)
            ZN_PREFETCH(&d->offsets[numbers[i] - 1]);
    }
    for (uint64_t left = which; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if (numbers[i] != 0)
            ZN_PREFETCH(d->bytes + d->offsets[numbers[i] - 1]);
    }
    for (uint64_t left = which; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        numbers[i] = number_of(d, key, (zn_span){texts[i].text, texts[i].n}, hash[i]);
        if (numbers[i] == ZN_DICTIONARY_FULL)
            return false;
    }
    return true;
}

static uint32_t address_of(zn_dictionary *d, const zn_hash_key *key, const zn_addr *address,
                           uint64_t hash)
{
    char text[ZN_ADDR_TEXT_MAX];
    uint32_t at;
    if (!reserve(d, key, sizeof text, true))
        return ZN_DICTIONARY_FULL;
    at = (uint32_t)hash & (d->slot_count - 1);
    while (d->slots[at] != 0) {
        if (zn_addr_equal(&d->addresses[d->slots[at] - 1], address))
            return d->slots[at] - 1;
        at = (at + 1) & (d->slot_count - 1);
    }
    d->addresses[d->n] = *address;
    return append(d, at, (zn_span){(const uint8_t *)text, zn_addr_text(address, text)});
}

bool zn_dictionary_addresses(zn_dictionary *d, const zn_hash_key *key, const zn_addr *addresses,
                             uint64_t which, uint32_t numbers[64])
{
    uint64_t hash[64];
    for (unsigned i = 0; i < 64; i++) {
        hash[i] = (which >> i & 1) == 0 ? 0 : zn_hash64(key, addresses[i].byte, sizeof(zn_addr));
        if (d->slot_count != 0)
            ZN_PREFETCH(&d->slots[hash[i] & (d->slot_count - 1)]);
    }
    for (unsigned i = 0; i < 64 && d->slot_count != 0; i++) {
        uint32_t number = d->slots[hash[i] & (d->slot_count - 1)];
        if (number != 0)
            ZN_PREFETCH(&d->addresses[number - 1]);
    }
    for (unsigned i = 0; i < 64; i++) {
        numbers[i] = 0;
        if ((which >> i & 1) != 0)
            numbers[i] = address_of(d, key, &addresses[i], hash[i]);
        if (numbers[i] == ZN_DICTIONARY_FULL)
            return false;
    }
    return true;
}

void zn_dictionary_clear(zn_dictionary *d)
{
    if (d->slots != NULL)
        memset(d->slots, 0, d->slot_count * sizeof *d->slots);
    d->n = d->bytes_n = 0;
    d->last = 0;
}

size_t zn_dictionary_memory(const zn_dictionary *d)
{
    size_t addresses = d->addresses == NULL ? 0 : sizeof *d->addresses;
    return d->cap * (sizeof *d->offsets + addresses) + d->bytes_cap +
           d->slot_count * sizeof *d->slots;
}
