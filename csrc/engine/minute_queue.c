/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/minute_queue.h"

#include "util/arena.h"

#include <string.h>

#define FIRST_ENTRIES 256u
#define RANK_BITS 64u
#define DIGIT_BITS_MAX 10u
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
    most += ZN_MINUTE_QUEUE_UNIT - 1; /* zn_minute_queue_add rounds up */
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
    size_t units = (bytes + ZN_MINUTE_QUEUE_UNIT - 1) / ZN_MINUTE_QUEUE_UNIT;
    size_t at = q->used / ZN_MINUTE_QUEUE_UNIT;
    ZN_ASSERT(at <= UINT32_MAX);
    q->queued[q->n++] = (zn_queued){rank, (int32_t)minute, (uint32_t)at};
    q->used += units * ZN_MINUTE_QUEUE_UNIT;
}

/* A digit of the number by which a pass sorts. */
typedef struct digit {
    bool of_minute; /* false: digit of the rank */
    int32_t first;  /* first minute, which counts as 0 */
    unsigned shift; /* bits behind the digit */
    unsigned bits;  /* of the digit */
} digit;

static uint32_t digit_of(const zn_queued *entry, const digit *d)
{
    uint64_t number = d->of_minute ? (uint64_t)((int64_t)entry->minute - d->first) : entry->rank;
    return (uint32_t)(number >> d->shift) & ((UINT32_C(1) << d->bits) - 1);
}

/* Copies n entries to `to`, sorted by a digit. Entries with equal digits keep their order. */
static void sort_by_digit(const zn_queued *from, zn_queued *to, uint32_t n, const digit *d)
{
    uint32_t place[1u << DIGIT_BITS_MAX] = {0}, before = 0;
    for (uint32_t i = 0; i < n; i++)
        place[digit_of(&from[i], d)]++;
    for (uint32_t i = 0; i < 1u << d->bits; i++) {
        uint32_t count = place[i];
        place[i] = before;
        before += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[place[digit_of(&from[i], d)]++] = from[i];
}

/* Sorts n entries by rank, of which the highest bits are sorted. */
static void sort_by_rest(zn_queued *entries, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        zn_queued moved = entries[i];
        uint32_t to = i;
        for (; to != 0 && moved.rank < entries[to - 1].rank; to--)
            entries[to] = entries[to - 1];
        entries[to] = moved;
    }
}

/* Returns the bits of a digit with which two passes leave about one entry for each place. */
static unsigned digit_bits(uint32_t n)
{
    unsigned bits = (32u - (unsigned)__builtin_clz(n) + 1u) / 2u;
    return bits < DIGIT_BITS_MAX ? bits : DIGIT_BITS_MAX;
}

/* Sorts n > 0 entries; scratch has space for as many. Ranks are random, so two digits of them
 * leave little to sort. Entries of one minute are the usual case and take no further pass. */
static void sort(zn_queued *entries, zn_queued *scratch, uint32_t n)
{
    digit d = {.bits = digit_bits(n), .first = entries[0].minute};
    int64_t last = d.first;
    for (uint32_t i = 1; i < n; i++) {
        d.first = entries[i].minute < d.first ? entries[i].minute : d.first;
        last = entries[i].minute > last ? entries[i].minute : last;
    }
    d.shift = RANK_BITS - 2 * d.bits;
    sort_by_digit(entries, scratch, n, &d);
    d.shift = RANK_BITS - d.bits;
    sort_by_digit(scratch, entries, n, &d);
    sort_by_rest(entries, n);
    d.of_minute = true;
    for (d.shift = 0; (last - d.first) >> d.shift != 0; d.shift += d.bits) {
        sort_by_digit(entries, scratch, n, &d);
        memcpy(entries, scratch, n * sizeof *entries);
    }
}

int64_t zn_minute_queue_leave(zn_minute_queue *q, int64_t before)
{
    q->leaving_n = 0;
    if (q->n == 0)
        return 0;
    if (!grow_list(&q->leaving, &q->leaving_cap, 2 * q->n))
        return -ZN_ERR_CAPACITY;
    for (uint32_t i = 0; i < q->n; i++)
        if (q->queued[i].minute < before)
            q->leaving[q->leaving_n++] = q->queued[i];
    if (q->leaving_n != 0)
        sort(q->leaving, q->leaving + q->n, q->leaving_n);
    return q->leaving_n;
}

void zn_minute_queue_left(zn_minute_queue *q, int64_t before)
{
    uint32_t kept = 0;
    uint32_t used = 0, end = (uint32_t)(q->used / ZN_MINUTE_QUEUE_UNIT);
    for (uint32_t i = 0; i < q->n; i++) {
        zn_queued entry = q->queued[i];
        uint32_t units = (i + 1 < q->n ? q->queued[i + 1].at : end) - entry.at;
        if (entry.minute < before)
            continue;
        memmove(q->bytes + (size_t)used * ZN_MINUTE_QUEUE_UNIT,
                q->bytes + (size_t)entry.at * ZN_MINUTE_QUEUE_UNIT,
                (size_t)units * ZN_MINUTE_QUEUE_UNIT);
        q->queued[kept++] = (zn_queued){entry.rank, entry.minute, used};
        used += units;
    }
    q->n = kept;
    q->used = (size_t)used * ZN_MINUTE_QUEUE_UNIT;
    q->leaving_n = 0;
}

size_t zn_minute_queue_memory(const zn_minute_queue *q)
{
    return q->bytes_cap + (size_t)(q->cap + q->leaving_cap) * sizeof *q->queued;
}
