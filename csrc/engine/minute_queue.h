/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue of records, or of released names, that wait for the end of their minute. Entries that leave
 * together are sorted by minute and, within a minute, by a rank. The rank is random to readers
 * without its key, so the order discloses no more than the minute.
 *
 * The queue contains only output of the gate, never a real address or a suppressed name.
 */
#ifndef ZN_ENGINE_MINUTE_QUEUE_H
#define ZN_ENGINE_MINUTE_QUEUE_H

#include "util/clock.h"

#define ZN_MINUTE_NS (60 * ZN_NS_PER_S)
#define ZN_MINUTE_QUEUE_MAX 262144u /* most entries of a queue */

#define ZN_MINUTE_QUEUE_UNIT 8u  /* offsets and lengths of entries are multiples of it */
#define ZN_MINUTE_QUEUE_AHEAD 8u /* entries that are prefetched before they are read */

/* Entry of the queue. Entries of one minute are sorted by rank, then by arrival. */
typedef struct zn_queued {
    uint64_t rank;
    int32_t minute;
    uint32_t at; /* offset of the entry's bytes, in ZN_MINUTE_QUEUE_UNIT */
} zn_queued;

typedef struct zn_minute_queue {
    zn_queued *queued;  /* in order of arrival */
    zn_queued *leaving; /* sorted entries of `queued` that leave now; then space for the sort */
    uint32_t n, cap;    /* entries of `queued`, and entries that it has space for */
    uint32_t leaving_n, leaving_cap; /* entries that leave, and entries that `leaving` can have */
    uint8_t *bytes;                  /* bytes of the entries, in order of arrival */
    size_t used, bytes_cap;          /* bytes in use, and size of `bytes` */
} zn_minute_queue;

/* Frees the memory of a queue and zeroes the queue. */
void zn_minute_queue_fini(zn_minute_queue *q);

/* Returns space for an entry of at most `most` bytes, or NULL without memory. */
uint8_t *zn_minute_queue_reserve(zn_minute_queue *q, size_t most);
/* Adds the entry whose `bytes` bytes were written to that space. */
void zn_minute_queue_add(zn_minute_queue *q, int64_t minute, uint64_t rank, size_t bytes);
static inline bool zn_minute_queue_is_full(const zn_minute_queue *q)
{
    return q->n >= ZN_MINUTE_QUEUE_MAX;
}

/* Sorts the entries of minutes before `before`. Returns the number of these entries, or
 * -ZN_ERR_CAPACITY. */
int64_t zn_minute_queue_leave(zn_minute_queue *q, int64_t before);
/* Returns the bytes of the i-th entry that leaves, until zn_minute_queue_left. Prefetches the bytes
 * of a later entry. */
static inline const uint8_t *zn_minute_queue_leaving(const zn_minute_queue *q, int64_t i)
{
    const zn_queued *entry = &q->leaving[i];
    if (i + ZN_MINUTE_QUEUE_AHEAD < q->leaving_n)
        ZN_PREFETCH(q->bytes + (size_t)entry[ZN_MINUTE_QUEUE_AHEAD].at * ZN_MINUTE_QUEUE_UNIT);
    return q->bytes + (size_t)entry->at * ZN_MINUTE_QUEUE_UNIT;
}
/* Forgets the entries that left. */
void zn_minute_queue_left(zn_minute_queue *q, int64_t before);

/* Returns the bytes of memory in use. */
size_t zn_minute_queue_memory(const zn_minute_queue *q);

#endif
