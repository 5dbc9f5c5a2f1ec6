/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as bytes, the least significant first, as our own formats have them. */
#ifndef ZN_UTIL_LITTLE_ENDIAN_H
#define ZN_UTIL_LITTLE_ENDIAN_H

#include "util/base.h"

#include <endian.h>
#include <string.h>

/* Writes the lowest n (<= 8) bytes of a number and returns the end of the written bytes. */
static inline uint8_t *zn_le_put(uint8_t *at, uint64_t value, size_t n)
{
    uint64_t bytes = htole64(value);
    memcpy(at, &bytes, n);
    return at + n;
}

/* Reads a number of n (<= 8) bytes. */
static inline uint64_t zn_le_get(const uint8_t *at, size_t n)
{
    uint64_t bytes = 0;
    memcpy(&bytes, at, n);
    return le64toh(bytes);
}

#endif
