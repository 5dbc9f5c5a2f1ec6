/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of messages. With a first byte below 0x80 the rest are lengths of messages, put and taken
 * in turns. Traps if a message is lost or changed. With another first byte the rest is the memory
 * that a hostile process shares with the reader.
 */
#include "count/vote_ring.h"

#include <stdlib.h>

#define SIZE 256
#define BYTES (ZN_VOTE_RING_HEAD_BYTES + SIZE)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* Takes a message, if there is one. Returns its length. */
static size_t take(zn_vote_ring *ring, uint8_t *out)
{
    size_t n = 0;
    if (zn_vote_ring_next(ring, &n, NULL) != 0 || n == 0)
        return 0;
    require(n <= zn_vote_ring_longest(ring));
    zn_vote_ring_read(ring, out, n);
    zn_vote_ring_remove(ring, n);
    return n;
}

static void put_and_take(uint8_t *shared, const uint8_t *data, size_t size)
{
    uint8_t message[SIZE], out[SIZE];
    size_t waiting[SIZE], first = 0, last = 0;
    zn_vote_ring writer, reader;
    zn_vote_ring_init(&writer, shared, BYTES);
    zn_vote_ring_init(&reader, shared, BYTES);
    for (size_t i = 0; i < size; i++) {
        size_t n = data[i] % zn_vote_ring_longest(&writer) + 1;
        memset(message, (int)n, n);
        while (!zn_vote_ring_put(&writer, (zn_span){message, n})) {
            size_t taken = take(&reader, out);
            require(taken == waiting[first++ % SIZE] && out[0] == taken && out[taken - 1] == taken);
        }
        waiting[last++ % SIZE] = n;
    }
    while (first != last)
        require(take(&reader, out) == waiting[first++ % SIZE]);
    require(take(&reader, out) == 0);
}

static void read_hostile(uint8_t *shared, const uint8_t *data, size_t size)
{
    uint8_t out[SIZE];
    zn_vote_ring ring;
    memcpy(shared, data, size < BYTES ? size : BYTES);
    zn_vote_ring_init(&ring, shared, BYTES);
    while (take(&ring, out) != 0)
        ;
    (void)zn_vote_ring_put(&ring, (zn_span){out, 1});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *shared = size == 0 ? NULL : aligned_alloc(64, BYTES);
    if (shared == NULL)
        return 0;
    memset(shared, 0, BYTES);
    if (data[0] < 0x80)
        put_and_take(shared, data + 1, size - 1);
    else
        read_hostile(shared, data + 1, size - 1);
    free(shared);
    return 0;
}
