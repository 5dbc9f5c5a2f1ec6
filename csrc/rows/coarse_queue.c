/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/coarse_queue.h"

#include "crypto/keys.h"
#include "util/arena.h"
#include "util/sort.h"

void zn_coarse_queue_fini(zn_coarse_queue *q)
{
    if (q->text.bytes != NULL)
        zn_wipe(q->text.bytes, q->text.cap);
    zn_text_fini(&q->text);
    zn_heap_free(q->from);
    zn_heap_free(q->order);
    zn_heap_free(q->spare);
}

static bool grow(zn_coarse_queue *q)
{
    uint32_t space = q->space == 0 ? 1024 : 2 * q->space;
    size_t *from = zn_heap_resize(q->from, (space + 1) * sizeof *from);
    if (from == NULL)
        return false;
    q->from = from;
    zn_heap_free(q->order);
    zn_heap_free(q->spare);
    q->order = zn_heap_alloc(space * sizeof *q->order);
    q->spare = zn_heap_alloc(space * sizeof *q->spare);
    if (q->order == NULL || q->spare == NULL)
        return false;
    q->from[0] = 0;
    q->space = space;
    return true;
}

bool zn_coarse_queue_add(zn_coarse_queue *q)
{
    if (q->text.failed || (q->count == q->space && !grow(q)))
        return false;
    q->from[++q->count] = q->text.n;
    return true;
}

static zn_span line_of(const zn_coarse_queue *q, uint32_t i)
{
    return (zn_span){(const uint8_t *)q->text.bytes + q->from[i], q->from[i + 1] - q->from[i]};
}

static bool is_before(const void *context, uint32_t a, uint32_t b)
{
    zn_span left = line_of(context, a), right = line_of(context, b);
    size_t n = left.n < right.n ? left.n : right.n;
    int order = memcmp(left.p, right.p, n);
    return order != 0 ? order < 0 : left.n < right.n;
}

void zn_coarse_queue_flush(zn_coarse_queue *q, zn_text *out)
{
    if (q->count == 0)
        return;
    for (uint32_t i = 0; i < q->count; i++)
        q->order[i] = i;
    zn_sort(q->order, q->spare, q->count, is_before, q);
    for (uint32_t i = 0; i < q->count; i++)
        zn_text_span(out, line_of(q, q->order[i]));
    q->count = 0;
    q->text.n = 0;
}

void zn_coarse_queue_pass(zn_coarse_queue *q, int64_t minute, zn_text *out)
{
    bool full = q->count >= ZN_COARSE_LINES_MAX || q->text.n >= ZN_COARSE_TEXT_MAX;
    if (minute > q->minute)
        q->minute = minute;
    else if (full)
        q->hold_full += q->count;
    else
        return;
    zn_coarse_queue_flush(q, out);
}
