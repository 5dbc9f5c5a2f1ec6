/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen bytes of a text at a time. A mask has bit i for byte i of the block. A text whose length
 * is no multiple of sixteen ends with a block of bytes that were seen before.
 */
#ifndef ZN_UTIL_BLOCK_H
#define ZN_UTIL_BLOCK_H

#include "util/cursor.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define ZN_BLOCK_BYTES ((size_t)16)

#ifdef __SSE2__

typedef __m128i zn_block;

static inline zn_block zn_block_load(const uint8_t bytes[ZN_BLOCK_BYTES])
{
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

/* Returns the bytes that equal `byte`. */
static inline uint32_t zn_block_equal(zn_block b, uint8_t byte)
{
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(b, _mm_set1_epi8((char)byte)));
}

/* Returns the bytes that are not printable ASCII, 0x20 to 0x7e. */
static inline uint32_t zn_block_odd(zn_block b)
{
    __m128i below = _mm_cmplt_epi8(b, _mm_set1_epi8(0x20)); /* also bytes from 0x80 on */
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(below, _mm_cmpeq_epi8(b, _mm_set1_epi8(0x7f))));
}

#else

typedef struct zn_block {
    uint64_t word[2];
} zn_block;

#define ZN_BLOCK_ONES (~UINT64_C(0) / 255)
#define ZN_BLOCK_HIGHS (ZN_BLOCK_ONES << 7)

static inline zn_block zn_block_load(const uint8_t bytes[ZN_BLOCK_BYTES])
{
    return (zn_block){{zn_le_get(bytes, 8), zn_le_get(bytes + 8, 8)}};
}

/* Gathers the highest bits of eight bytes. */
static inline uint32_t zn_block_gather(uint64_t word)
{
    return (uint32_t)(((word & ZN_BLOCK_HIGHS) >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

/* Returns the highest bit of each byte that is 0. No carry leaves a byte. */
static inline uint64_t zn_block_zeros(uint64_t word)
{
    return ~(((word & ~ZN_BLOCK_HIGHS) + ~ZN_BLOCK_HIGHS) | word);
}

static inline uint32_t zn_block_equal(zn_block b, uint8_t byte)
{
    uint64_t all = ZN_BLOCK_ONES * byte;
    return zn_block_gather(zn_block_zeros(b.word[0] ^ all)) |
           zn_block_gather(zn_block_zeros(b.word[1] ^ all)) << 8;
}

static inline uint32_t zn_block_odd(zn_block b)
{
    uint32_t odd[2];
    for (unsigned i = 0; i < 2; i++) {
        uint64_t low = b.word[i] & ~ZN_BLOCK_HIGHS;
        odd[i] = zn_block_gather(b.word[i] | ~(low + ZN_BLOCK_ONES * 0x60) | (low + ZN_BLOCK_ONES));
    }
    return odd[0] | odd[1] << 8;
}

#endif

#endif
