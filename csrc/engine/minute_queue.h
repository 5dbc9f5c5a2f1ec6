/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records, or released names, that wait until their minute is over. What leaves together is sorted
 * by minute and, within one, by a rank that says nothing to whoever lacks its key: so the order
 * tells no more than the minute.
 *
 * Holds only what the gate let out, never a real address or a suppressed name.
 */
#ifndef ZN_ENGINE_MINUTE_QUEUE_H
#define ZN_ENGINE_MINUTE_QUEUE_H

#include "util/clock.h"

#define ZN_MINUTE_NS (60 * ZN_NS_PER_S)
#define ZN_MINUTE_QUEUE_MAX 262144u /* most entries of a hold */

/* An entry: where its bytes lie, and its place among those that leave together. */
typedef struct zn_queued {
    int64_t minute;
    uint64_t rank;
    size_t at;
    uint32_t number; /* the order in which entries came, for equal ranks */
} zn_queued;

typedef struct zn_minute_queue {
    zn_queued *queued;  /* in the order in which they came */
    zn_queued *leaving; /* sorted; entries of `queued` that leave now */
    uint32_t n, cap, leaving_n, leaving_cap;
    uint8_t *bytes;
    size_t used, bytes_cap;
} zn_minute_queue;

/* Frees the memory of a hold, which is zero then, as at first. */
void zn_minute_queue_fini(zn_minute_queue *q);

/* Returns space for an entry of at most `most` bytes, or NULL without memory. */
uint8_t *zn_minute_queue_reserve(zn_minute_queue *q, size_t most);
/* Adds the entry whose `bytes` bytes were written to that space. */
void zn_minute_queue_add(zn_minute_queue *q, int64_t minute, uint64_t rank, size_t bytes);
static inline bool zn_minute_queue_is_full(const zn_minute_queue *q)
{
    return q->n >= ZN_MINUTE_QUEUE_MAX;
}

/* Has the entries of minutes before `before` leave: q->leaving has them in their order, and
 * q->bytes + at their bytes, until zn_minute_queue_left. Returns how many, or -ZN_ERR_CAPACITY. */
int64_t zn_minute_queue_leave(zn_minute_queue *q, int64_t before);
/* Forgets the entries that left. */
void zn_minute_queue_left(zn_minute_queue *q, int64_t before);

/* Returns the bytes of memory in use. */
size_t zn_minute_queue_memory(const zn_minute_queue *q);

#endif
