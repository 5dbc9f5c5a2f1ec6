/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each stream has a sorted list of the ranges that it holds. Adding [from, to) compares every range
 * that overlaps with the segment, copies the segment, and merges all ranges that overlap or touch
 * it into one.
 */
#include "flow/reassembly.h"

_Static_assert(ZN_STREAM_MAX <= UINT16_MAX, "ranges are 16 bits wide");

int zn_stream_pool_init(zn_stream_pool *pool, uint32_t cap, zn_error *err)
{
    int rc;
    memset(pool, 0, sizeof *pool);
    rc = zn_slab_init(&pool->streams, sizeof(zn_stream), cap, err);
    if (rc != 0)
        return rc;
    pool->bytes = zn_block_alloc((size_t)cap * ZN_STREAM_MAX);
    if (pool->bytes == NULL) {
        zn_slab_fini(&pool->streams);
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %u streams", cap);
    }
    return 0;
}

void zn_stream_pool_fini(zn_stream_pool *pool)
{
    if (pool->bytes != NULL)
        zn_block_free(pool->bytes, (size_t)pool->streams.cap * ZN_STREAM_MAX);
    zn_slab_fini(&pool->streams);
    pool->bytes = NULL;
}

static zn_stream *stream_at(const zn_stream_pool *pool, uint32_t stream)
{
    return zn_slab_at(&pool->streams, stream);
}

static uint8_t *bytes_of(const zn_stream_pool *pool, uint32_t stream)
{
    return pool->bytes + (size_t)(stream - 1) * ZN_STREAM_MAX;
}

uint32_t zn_stream_take(zn_stream_pool *pool)
{
    return zn_slab_take(&pool->streams);
}

void zn_stream_give(zn_stream_pool *pool, uint32_t stream)
{
    const zn_stream *s = stream_at(pool, stream);
    if (s->ranges != 0)
        memset(bytes_of(pool, stream), 0, s->range[s->ranges - 1].to);
    zn_slab_give(&pool->streams, stream);
}

/* Sets *first and *last: the ranges *first .. *last - 1 overlap or touch [from, to). */
static void touching(const zn_stream *s, uint32_t from, uint32_t to, unsigned *first,
                     unsigned *last)
{
    *first = 0;
    while (*first < s->ranges && s->range[*first].to < from)
        ++*first;
    *last = *first;
    while (*last < s->ranges && s->range[*last].from <= to)
        ++*last;
}

/* Returns whether the bytes that both the range and the segment have are the same. */
static bool agrees(const zn_stream_range *range, const uint8_t *bytes, uint32_t from,
                   zn_span segment)
{
    uint32_t to = from + (uint32_t)segment.n;
    uint32_t a = range->from > from ? range->from : from;
    uint32_t b = range->to < to ? range->to : to;
    return a >= b || memcmp(bytes + a, segment.p + (a - from), b - a) == 0;
}

/* Replaces ranges first .. last-1 by a range that covers them and [from, to). */
static void merge(zn_stream *s, unsigned first, unsigned last, zn_stream_range with)
{
    if (first != last) {
        if (s->range[first].from < with.from)
            with.from = s->range[first].from;
        if (s->range[last - 1].to > with.to)
            with.to = s->range[last - 1].to;
    }
    memmove(&s->range[first + 1], &s->range[last], (s->ranges - last) * sizeof s->range[0]);
    s->range[first] = with;
    s->ranges = (uint8_t)(s->ranges - (last - first) + 1);
}

zn_stream_result zn_stream_add(zn_stream_pool *pool, uint32_t stream, uint32_t offset,
                               zn_span segment)
{
    zn_stream *s = stream_at(pool, stream);
    uint8_t *bytes = bytes_of(pool, stream);
    size_t start = zn_stream_start(pool, stream).n;
    zn_stream_range with;
    unsigned first, last;
    if (s->conflict)
        return ZN_STREAM_CONFLICT;
    if (offset >= ZN_STREAM_MAX)
        return ZN_STREAM_OUTSIDE;
    if (segment.n > ZN_STREAM_MAX - offset)
        segment.n = ZN_STREAM_MAX - offset;
    if (segment.n == 0)
        return ZN_STREAM_NOTHING;
    with.from = (uint16_t)offset;
    with.to = (uint16_t)(offset + segment.n);
    touching(s, with.from, with.to, &first, &last);
    for (unsigned i = first; i < last; i++) {
        if (!agrees(&s->range[i], bytes, offset, segment)) {
            s->conflict = true;
            return ZN_STREAM_CONFLICT;
        }
    }
    if (first != last && s->range[first].from <= with.from && s->range[first].to >= with.to)
        return ZN_STREAM_NOTHING;
    if (first == last && s->ranges == ZN_STREAM_RANGES)
        return ZN_STREAM_OUTSIDE;
    memcpy(bytes + offset, segment.p, segment.n);
    if (s->segments != UINT16_MAX)
        s->segments++;
    merge(s, first, last, with);
    return zn_stream_start(pool, stream).n > start ? ZN_STREAM_GREW : ZN_STREAM_STORED;
}

zn_span zn_stream_start(const zn_stream_pool *pool, uint32_t stream)
{
    const zn_stream *s = stream_at(pool, stream);
    zn_span start = {bytes_of(pool, stream), 0};
    if (s->ranges != 0 && s->range[0].from == 0)
        start.n = s->range[0].to;
    return start;
}

void zn_stream_consume(zn_stream_pool *pool, uint32_t stream, uint32_t bytes)
{
    zn_stream *s = stream_at(pool, stream);
    uint8_t *base = bytes_of(pool, stream);
    uint32_t end = s->ranges == 0 ? 0 : s->range[s->ranges - 1].to;
    uint8_t kept = 0;
    s->segments = 0;
    if (bytes > end)
        bytes = end;
    for (uint8_t i = 0; i < s->ranges; i++) {
        zn_stream_range r = s->range[i];
        if (r.to <= bytes)
            continue;
        r.from = r.from > bytes ? (uint16_t)(r.from - bytes) : 0;
        r.to = (uint16_t)(r.to - bytes);
        s->range[kept++] = r;
    }
    s->ranges = kept;
    memmove(base, base + bytes, end - bytes);
    memset(base + (end - bytes), 0, bytes);
}

uint32_t zn_stream_first(const zn_stream_pool *pool, uint32_t stream)
{
    const zn_stream *s = stream_at(pool, stream);
    return s->ranges == 0 ? ZN_STREAM_MAX : s->range[0].from;
}

bool zn_stream_has_hole(const zn_stream_pool *pool, uint32_t stream)
{
    const zn_stream *s = stream_at(pool, stream);
    return s->ranges > 1 || (s->ranges == 1 && s->range[0].from != 0);
}

uint32_t zn_stream_segments(const zn_stream_pool *pool, uint32_t stream)
{
    return stream_at(pool, stream)->segments;
}
