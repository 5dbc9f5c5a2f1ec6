/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring of messages in memory that two processes share: one process puts messages, the other takes
 * them. Neither process waits in these functions.
 *
 * Each process has a zn_vote_ring of its own for the shared bytes, and keeps its own position in
 * private memory. It checks the other process's position and every length, so a damaged ring can
 * disclose or overwrite no other memory.
 */
#ifndef ZN_COUNT_VOTE_RING_H
#define ZN_COUNT_VOTE_RING_H

#include "util/cursor.h"

#define ZN_VOTE_RING_HEAD_BYTES 128 /* shared memory of a ring in addition to its messages */

/* Positions are counts of bytes since the ring was made. They never go back. */
typedef struct zn_vote_ring {
    void *shared;
    uint64_t size; /* bytes for messages, a power of two */
    uint64_t at;   /* position of this process */
} zn_vote_ring;

/* Fills *ring for shared memory of `bytes` bytes that is all zero, or that another process uses
 * since it was zero. `bytes` is ZN_VOTE_RING_HEAD_BYTES plus a power of two. */
void zn_vote_ring_init(zn_vote_ring *ring, void *shared, size_t bytes);
/* Returns the longest message that a ring can contain. */
size_t zn_vote_ring_longest(const zn_vote_ring *ring);
/* Puts a message of 1 to zn_vote_ring_longest bytes; false if there is no space now. */
bool zn_vote_ring_put(zn_vote_ring *ring, zn_span message);
/* Sets *n to the length of the next message, 0 without a message. Returns 0, or -ZN_ERR_FORMAT with
 * *err filled if the ring is damaged. */
int zn_vote_ring_next(const zn_vote_ring *ring, size_t *n, zn_error *err);
/* Copies the next message, whose length n is from zn_vote_ring_next, to `out`. */
void zn_vote_ring_read(const zn_vote_ring *ring, uint8_t *out, size_t n);
/* Removes the next message, whose length is n. */
void zn_vote_ring_remove(zn_vote_ring *ring, size_t n);

#endif
