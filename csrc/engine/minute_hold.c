/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/minute_hold.h"

#include "util/arena.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ENTRIES 256u
#define FIRST_BYTES ((size_t)64 << 10)

void zn_minute_hold_fini(zn_minute_hold *h)
{
    zn_heap_free(h->held);
    zn_heap_free(h->leaving);
    zn_heap_free(h->bytes);
    memset(h, 0, sizeof *h);
}

/* Makes space for n entries in one of the hold's lists. */
static bool grow_list(zn_held **list, uint32_t *cap, uint32_t n)
{
    uint32_t more = *cap == 0 ? FIRST_ENTRIES : *cap;
    zn_held *grown;
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

uint8_t *zn_minute_hold_reserve(zn_minute_hold *h, size_t most)
{
    size_t cap = h->bytes_cap == 0 ? FIRST_BYTES : h->bytes_cap;
    if (!grow_list(&h->held, &h->cap, h->n + 1))
        return NULL;
    while (cap < h->used + most)
        cap *= 2;
    if (cap != h->bytes_cap) {
        uint8_t *bytes = zn_heap_resize(h->bytes, cap);
        if (bytes == NULL)
            return NULL;
        h->bytes = bytes;
        h->bytes_cap = cap;
    }
    return h->bytes + h->used;
}

void zn_minute_hold_add(zn_minute_hold *h, int64_t minute, uint64_t rank, size_t bytes)
{
    h->held[h->n] = (zn_held){.minute = minute, .rank = rank, .at = h->used, .number = h->n};
    h->n++;
    h->used += bytes;
}

static int compare(const void *left, const void *right)
{
    const zn_held *a = left, *b = right;
    if (a->minute != b->minute)
        return a->minute < b->minute ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

int64_t zn_minute_hold_leave(zn_minute_hold *h, int64_t before)
{
    h->leaving_n = 0;
    if (h->n == 0)
        return 0;
    if (!grow_list(&h->leaving, &h->leaving_cap, h->n))
        return -ZN_ERR_CAPACITY;
    for (uint32_t i = 0; i < h->n; i++)
        if (h->held[i].minute < before)
            h->leaving[h->leaving_n++] = h->held[i];
    if (h->leaving_n != 0)
        qsort(h->leaving, h->leaving_n, sizeof *h->leaving, compare);
    return h->leaving_n;
}

void zn_minute_hold_left(zn_minute_hold *h, int64_t before)
{
    uint32_t kept = 0;
    size_t used = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        zn_held entry = h->held[i];
        size_t end = i + 1 < h->n ? h->held[i + 1].at : h->used;
        if (entry.minute < before)
            continue;
        memmove(h->bytes + used, h->bytes + entry.at, end - entry.at);
        h->held[kept] = (zn_held){entry.minute, entry.rank, used, kept};
        kept++;
        used += end - entry.at;
    }
    h->n = kept;
    h->used = used;
    h->leaving_n = 0;
}

size_t zn_minute_hold_memory(const zn_minute_hold *h)
{
    return h->bytes_cap + (size_t)(h->cap + h->leaving_cap) * sizeof *h->held;
}
