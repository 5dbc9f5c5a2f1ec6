/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of 5-tuples for test_tuples.py: by csrc, by FNV-1a, and a walk over the same bytes. */
#include "packet/tuple.h"

/* A tuple as the walk and the hashes read it: addresses as two words each, ports, protocol. */
typedef struct ends {
    zn_addr_words src, dst;
    uint32_t ports, proto;
} ends;

static const zn_bucket_key key = {{1, 2, 3, 4, 5, 6, 7, 8}};

/* Return a sum of the hashes of n tuples, which keeps the compiler from leaving them out. */
uint64_t tuples_hash(const ends *in, size_t n)
{
    uint64_t sum = 0;
    zn_packet p;
    for (size_t i = 0; i < n; i++) {
        zn_packet_set_tuple(&p, in[i].src, in[i].dst, in[i].ports, in[i].proto, &key);
        sum += p.hash;
    }
    return sum;
}

uint64_t tuples_fnv(const ends *in, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *bytes = (const uint8_t *)&in[i];
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (size_t k = 0; k < sizeof in[i]; k++)
            hash = (hash ^ bytes[k]) * UINT64_C(0x100000001b3);
        sum += hash;
    }
    return sum;
}

uint64_t tuples_walk(const ends *in, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += in[i].src.low + in[i].dst.low + in[i].ports;
    return sum;
}
