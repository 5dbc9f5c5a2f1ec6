/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/vote_ring.h"

#include <stdatomic.h>
#include <string.h>

#define LINE_BYTES 64
#define LENGTH_BYTES 4

/* Start of the shared memory. Each position has a cache line of its own. */
typedef struct ring_head {
    _Alignas(LINE_BYTES) _Atomic uint64_t put;
    _Alignas(LINE_BYTES) _Atomic uint64_t taken;
} ring_head;

_Static_assert(sizeof(ring_head) == ZN_VOTE_RING_HEAD_BYTES, "as the header says");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "positions work between processes");

static ring_head *head_of(const zn_vote_ring *ring)
{
    return ring->shared;
}

static uint8_t *bytes_of(const zn_vote_ring *ring)
{
    return (uint8_t *)ring->shared + sizeof(ring_head);
}

void zn_vote_ring_init(zn_vote_ring *ring, void *shared, size_t bytes)
{
    *ring = (zn_vote_ring){.shared = shared, .size = bytes - sizeof(ring_head)};
}

size_t zn_vote_ring_longest(const zn_vote_ring *ring)
{
    return (size_t)ring->size - LENGTH_BYTES;
}

/* Copies n bytes into the ring at a position. */
static void copy_in(const zn_vote_ring *ring, uint64_t at, const uint8_t *from, size_t n)
{
    size_t place = at & (ring->size - 1), first = ring->size - place;
    if (first > n)
        first = n;
    memcpy(bytes_of(ring) + place, from, first);
    memcpy(bytes_of(ring), from + first, n - first);
}

static void copy_out(const zn_vote_ring *ring, uint64_t at, uint8_t *out, size_t n)
{
    size_t place = at & (ring->size - 1), first = ring->size - place;
    if (first > n)
        first = n;
    memcpy(out, bytes_of(ring) + place, first);
    memcpy(out + first, bytes_of(ring), n - first);
}

bool zn_vote_ring_put(zn_vote_ring *ring, zn_span message)
{
    uint64_t taken = atomic_load_explicit(&head_of(ring)->taken, memory_order_acquire);
    uint8_t length[LENGTH_BYTES];
    ZN_ASSERT(message.n != 0 && message.n <= zn_vote_ring_longest(ring));
    /* a damaged position makes the difference large: there is no space then */
    if (ring->at - taken > ring->size || ring->size - (ring->at - taken) < LENGTH_BYTES + message.n)
        return false;
    (void)zn_le_put(length, message.n, LENGTH_BYTES);
    copy_in(ring, ring->at, length, LENGTH_BYTES);
    copy_in(ring, ring->at + LENGTH_BYTES, message.p, message.n);
    ring->at += LENGTH_BYTES + message.n;
    atomic_store_explicit(&head_of(ring)->put, ring->at, memory_order_release);
    return true;
}

int zn_vote_ring_next(const zn_vote_ring *ring, size_t *n, zn_error *err)
{
    uint64_t put = atomic_load_explicit(&head_of(ring)->put, memory_order_acquire);
    uint64_t filled = put - ring->at;
    uint8_t length[LENGTH_BYTES];
    *n = 0;
    if (filled == 0)
        return 0;
    if (filled > LENGTH_BYTES && filled <= ring->size) {
        copy_out(ring, ring->at, length, LENGTH_BYTES);
        *n = (size_t)zn_le_get(length, LENGTH_BYTES);
        if (*n != 0 && *n <= filled - LENGTH_BYTES)
            return 0;
    }
    *n = 0;
    return zn_fail(err, ZN_ERR_FORMAT, 0, "the memory between a shard and its counter is damaged");
}

void zn_vote_ring_read(const zn_vote_ring *ring, uint8_t *out, size_t n)
{
    copy_out(ring, ring->at + LENGTH_BYTES, out, n);
}

void zn_vote_ring_remove(zn_vote_ring *ring, size_t n)
{
    ring->at += LENGTH_BYTES + n;
    atomic_store_explicit(&head_of(ring)->taken, ring->at, memory_order_release);
}
