/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distinct texts of a column of output/table, numbered in the order in which they came, and
 * laid out as an Arrow string array: offsets and bytes.
 */
#ifndef ZN_OUTPUT_DICTIONARY_H
#define ZN_OUTPUT_DICTIONARY_H

#include "util/addr.h"
#include "util/cursor.h"
#include "util/hash.h"

typedef struct zn_dictionary {
    int32_t *offsets; /* n + 1 into bytes */
    uint8_t *bytes;
    zn_addr *addresses; /* by index, when the texts are addresses */
    uint32_t *slots;    /* index + 1 by hash, 0: empty */
    size_t n, cap, bytes_n, bytes_cap;
    uint32_t slot_count; /* a power of two, or 0 */
    uint32_t last;       /* index of the text asked for last */
} zn_dictionary;

#define ZN_DICTIONARY_FULL UINT32_MAX
#define ZN_SHORT_TEXT_MAX 255 /* bytes, as many as any name has */

typedef struct zn_short_text {
    uint8_t n;
    uint8_t text[ZN_SHORT_TEXT_MAX];
} zn_short_text;

/* A dictionary needs no initialisation beyond zeros. It holds texts or addresses, not both. */
void zn_dictionary_fini(zn_dictionary *d);
/* The number of a text; ZN_DICTIONARY_FULL when memory is out. */
uint32_t zn_dictionary_text(zn_dictionary *d, const zn_hash_key *key, zn_span text);
/* The numbers of up to 64 addresses whose bits are set in `which`, and 0 for others; false when
 * memory is out. Together they wait for memory once. */
bool zn_dictionary_addresses(zn_dictionary *d, const zn_hash_key *key, const zn_addr *addresses,
                             uint64_t which, uint32_t numbers[64]);
/* Encodes texts as zn_dictionary_addresses does addresses. */
bool zn_dictionary_texts(zn_dictionary *d, const zn_hash_key *key, const zn_short_text *texts,
                         uint64_t which, uint32_t numbers[64]);
/* Forgets everything; the memory stays. */
void zn_dictionary_clear(zn_dictionary *d);
/* Bytes of memory in use. */
size_t zn_dictionary_memory(const zn_dictionary *d);

#endif
