/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Internet checksum (RFC 1071). A sum is of 16-bit words in memory order, so its end is stored
 * as it is. The parts of a message are added one by one; all but the last have an even length.
 */
#ifndef ZN_UTIL_CHECKSUM_H
#define ZN_UTIL_CHECKSUM_H

#include "util/cursor.h"

#include <endian.h>
#include <string.h>

/* Adds up to 64 KiB to a sum, which begins as 0. */
static inline uint64_t zn_checksum_add(uint64_t sum, zn_span bytes)
{
    const uint8_t *p = bytes.p;
    uint32_t word;
    size_t n = bytes.n;
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        sum += word;
    }
    if (n != 0) {
        word = 0;
        memcpy(&word, p, n);
        sum += word;
    }
    return sum;
}

/* Adds a number of 32 bits in network order, such as the length or the protocol of a
 * pseudo-header. */
static inline uint64_t zn_checksum_add_be32(uint64_t sum, uint32_t number)
{
    return sum + htobe32(number);
}

/* Writes the checksum of the added bytes to the two bytes at `out`. A message with a correct
 * checksum in it gives 0. */
static inline void zn_checksum_end(uint64_t sum, uint8_t *out)
{
    uint16_t end;
    while (sum >> 16 != 0)
        sum = (sum & 0xffffu) + (sum >> 16);
    end = (uint16_t)~sum;
    memcpy(out, &end, sizeof end);
}

#endif
