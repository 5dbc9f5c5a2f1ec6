/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/minute_queue.h"

#include "util/arena.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ENTRIES 256u
#define FIRST_BYTES ((size_t)64 << 10)

void zn_minute_queue_fini(zn_minute_queue *q)
{
    zn_heap_free(q->queued);
    zn_heap_free(q->leaving);
    zn_heap_free(q->bytes);
    memset(q, 0, sizeof *q);
}

/* Makes space for n entries in a list of the queue. */
static bool grow_list(zn_queued **list, uint32_t *cap, uint32_t n)
{
    uint32_t more = *cap == 0 ? FIRST_ENTRIES : *cap;
    zn_queued *grown;
    while (more < n)
        more *= 2;
    if (more == *cap)
        return true;
    grown = zn_heap_resize(*list, more * sizeof **list);
    if (grown == NULL)
        return false;
    *list = grown;
    *cap = more;
    return true;
}

uint8_t *zn_minute_queue_reserve(zn_minute_queue *q, size_t most)
{
    size_t cap = q->bytes_cap == 0 ? FIRST_BYTES : q->bytes_cap;
    if (!grow_list(&q->queued, &q->cap, q->n + 1))
        return NULL;
    while (cap < q->used + most)
        cap *= 2;
    if (cap != q->bytes_cap) {
        uint8_t *bytes = zn_heap_resize(q->bytes, cap);
        if (bytes == NULL)
            return NULL;
        q->bytes = bytes;
        q->bytes_cap = cap;
    }
    return q->bytes + q->used;
}

void zn_minute_queue_add(zn_minute_queue *q, int64_t minute, uint64_t rank, size_t bytes)
{
    q->queued[q->n] = (zn_queued){.minute = minute, .rank = rank, .at = q->used, .number = q->n};
    q->n++;
    q->used += bytes;
}

static int compare(const void *left, const void *right)
{
    const zn_queued *a = left, *b = right;
    if (a->minute != b->minute)
        return a->minute < b->minute ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

int64_t zn_minute_queue_leave(zn_minute_queue *q, int64_t before)
{
    q->leaving_n = 0;
    if (q->n == 0)
        return 0;
    if (!grow_list(&q->leaving, &q->leaving_cap, q->n))
        return -ZN_ERR_CAPACITY;
    for (uint32_t i = 0; i < q->n; i++)
        if (q->queued[i].minute < before)
            q->leaving[q->leaving_n++] = q->queued[i];
    if (q->leaving_n != 0)
        qsort(q->leaving, q->leaving_n, sizeof *q->leaving, compare);
    return q->leaving_n;
}

void zn_minute_queue_left(zn_minute_queue *q, int64_t before)
{
    uint32_t kept = 0;
    size_t used = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        zn_queued entry = q->queued[i];
        size_t end = i + 1 < q->n ? q->queued[i + 1].at : q->used;
        if (entry.minute < before)
            continue;
        memmove(q->bytes + used, q->bytes + entry.at, end - entry.at);
        q->queued[kept] = (zn_queued){entry.minute, entry.rank, used, kept};
        kept++;
        used += end - entry.at;
    }
    q->n = kept;
    q->used = used;
    q->leaving_n = 0;
}

size_t zn_minute_queue_memory(const zn_minute_queue *q)
{
    return q->bytes_cap + (size_t)(q->cap + q->leaving_cap) * sizeof *q->queued;
}
