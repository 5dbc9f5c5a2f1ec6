/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Replacement of getrandom for bench/instructions.py. Every call gives the same bytes, so keys of
 * hash tables are the same in each run, and so is the number of instructions. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/random.h>

ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
    uint8_t *bytes = buffer;
    uint64_t state = 1;
    (void)flags;
    for (size_t i = 0; i < length; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(state >> 56);
    }
    return (ssize_t)length;
}
