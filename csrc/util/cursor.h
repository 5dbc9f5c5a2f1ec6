/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to packet bytes: a reader that cannot leave its buffer.
 *
 * Failure is sticky: after a read that does not fit, every later read gives zero, so a parser reads
 * straight down like the RFC and asks for the state once. The state tells two failures apart:
 *   SHORT  the captured bytes ended (more may come, or the snapshot length cut the packet);
 *   BAD    an inner length points past the structure that holds it: the sender lies.
 * `whole` decides which: it is true when no byte of the structure is missing from the capture.
 */
#ifndef ZN_UTIL_CURSOR_H
#define ZN_UTIL_CURSOR_H

#include "util/base.h"
#include "util/little_endian.h"
#include "zanon/zanon.h"

#include <endian.h>
#include <string.h>

typedef enum zn_cursor_state { ZN_CURSOR_OK, ZN_CURSOR_SHORT, ZN_CURSOR_BAD } zn_cursor_state;

typedef struct zn_cursor {
    const uint8_t *p, *end;
    zn_cursor_state state;
    bool whole;
} zn_cursor;

/* Returns a cursor over n bytes at p. whole: no byte of the structure is missing from the
 * capture. */
static inline zn_cursor zn_cursor_over(const uint8_t *p, size_t n, bool whole)
{
    /* Adding to a null pointer is undefined, even zero. */
    zn_cursor c = {p, n == 0 ? p : p + n, ZN_CURSOR_OK, whole};
    return c;
}

static inline zn_cursor zn_cursor_over_span(zn_span s, bool whole)
{
    return zn_cursor_over(s.p, s.n, whole);
}

static inline size_t zn_cursor_left(const zn_cursor *c)
{
    return (size_t)(c->end - c->p);
}

static inline bool zn_cursor_ok(const zn_cursor *c)
{
    return c->state == ZN_CURSOR_OK;
}

static inline void zn_cursor_fail(zn_cursor *c, zn_cursor_state why)
{
    if (c->state == ZN_CURSOR_OK)
        c->state = why;
    c->p = c->end;
}

/* Returns true when n more bytes are there; otherwise the cursor fails for good. */
static inline bool zn_cursor_need(zn_cursor *c, size_t n)
{
    if (ZN_LIKELY(c->state == ZN_CURSOR_OK && n <= (size_t)(c->end - c->p)))
        return true;
    zn_cursor_fail(c, c->whole ? ZN_CURSOR_BAD : ZN_CURSOR_SHORT);
    return false;
}

/* Returns the next n bytes, or an empty span when there are fewer: the cursor has failed then. */
static inline zn_span zn_cursor_take(zn_cursor *c, size_t n)
{
    zn_span s = {c->p, 0};
    if (zn_cursor_need(c, n)) {
        s.n = n;
        c->p += n;
    }
    return s;
}

static inline void zn_cursor_skip(zn_cursor *c, size_t n)
{
    if (zn_cursor_need(c, n))
        c->p += n;
}

/* Skips the zero bytes at the cursor, eight at a time: padding has hundreds. */
static inline void zn_cursor_skip_zeros(zn_cursor *c)
{
    uint64_t word;
    while (zn_cursor_left(c) >= sizeof word) {
        memcpy(&word, c->p, sizeof word);
        if (word != 0)
            break;
        c->p += sizeof word;
    }
    while (c->p != c->end && *c->p == 0)
        c->p++;
}

/* Takes all bytes that are left. */
static inline zn_span zn_cursor_rest(zn_cursor *c)
{
    return zn_cursor_take(c, zn_cursor_left(c));
}

static inline uint8_t zn_cursor_u8(zn_cursor *c)
{
    zn_span s = zn_cursor_take(c, 1);
    return s.n != 0 ? s.p[0] : 0;
}

static inline uint16_t zn_cursor_be16(zn_cursor *c)
{
    zn_span s = zn_cursor_take(c, 2);
    return s.n != 0 ? (uint16_t)(s.p[0] << 8 | s.p[1]) : 0;
}

static inline uint32_t zn_cursor_be24(zn_cursor *c)
{
    zn_span s = zn_cursor_take(c, 3);
    return s.n != 0 ? (uint32_t)s.p[0] << 16 | (uint32_t)s.p[1] << 8 | s.p[2] : 0;
}

static inline uint32_t zn_cursor_be32(zn_cursor *c)
{
    zn_span s = zn_cursor_take(c, 4);
    if (s.n == 0)
        return 0;
    return (uint32_t)s.p[0] << 24 | (uint32_t)s.p[1] << 16 | (uint32_t)s.p[2] << 8 | s.p[3];
}

static inline uint32_t zn_cursor_le32(zn_cursor *c)
{
    zn_span s = zn_cursor_take(c, 4);
    if (s.n == 0)
        return 0;
    return (uint32_t)s.p[3] << 24 | (uint32_t)s.p[2] << 16 | (uint32_t)s.p[1] << 8 | s.p[0];
}

static inline uint16_t zn_cursor_le16(zn_cursor *c)
{
    zn_span s = zn_cursor_take(c, 2);
    return s.n != 0 ? (uint16_t)(s.p[1] << 8 | s.p[0]) : 0;
}

/* Returns a number of n (<= 8) bytes, the least significant first. */
static inline uint64_t zn_cursor_le(zn_cursor *c, size_t n)
{
    zn_span s = zn_cursor_take(c, n);
    return s.n != 0 ? zn_le_get(s.p, n) : 0;
}

/*
 * Returns a cursor over the next n bytes, and skips them here. When fewer were captured, the
 * sub-cursor covers those and inherits `whole`: a read past them is then SHORT in a cut capture,
 * and BAD where n was a lie.
 */
static inline zn_cursor zn_cursor_sub(zn_cursor *c, size_t n)
{
    size_t left = zn_cursor_left(c);
    zn_cursor sub;
    if (c->state == ZN_CURSOR_OK && n <= left) {
        sub = zn_cursor_over(c->p, n, true);
        c->p += n;
        return sub;
    }
    sub = zn_cursor_over(c->p, left, c->whole);
    sub.state = c->state;
    zn_cursor_fail(c, c->whole ? ZN_CURSOR_BAD : ZN_CURSOR_SHORT);
    return sub;
}

/*
 * Fields of a header of fixed length that was taken whole, so that its span is not empty: one check
 * serves all of them. `at` is a constant, and the field lies inside the header.
 */
static inline uint8_t zn_header_u8(zn_span header, size_t at)
{
    ZN_ASSERT(at < header.n);
    return header.p[at];
}

static inline uint16_t zn_header_be16(zn_span header, size_t at)
{
    uint16_t value;
    ZN_ASSERT(at + sizeof value <= header.n);
    memcpy(&value, header.p + at, sizeof value);
    return be16toh(value);
}

static inline uint32_t zn_header_be32(zn_span header, size_t at)
{
    uint32_t value;
    ZN_ASSERT(at + sizeof value <= header.n);
    memcpy(&value, header.p + at, sizeof value);
    return be32toh(value);
}

static inline uint32_t zn_header_le32(zn_span header, size_t at)
{
    uint32_t value;
    ZN_ASSERT(at + sizeof value <= header.n);
    memcpy(&value, header.p + at, sizeof value);
    return le32toh(value);
}

/* Returns eight bytes in memory order. */
static inline uint64_t zn_header_word(zn_span header, size_t at)
{
    uint64_t value;
    ZN_ASSERT(at + sizeof value <= header.n);
    memcpy(&value, header.p + at, sizeof value);
    return value;
}

/* Parts of a span: all but its first `at` (<= s.n) bytes; its bytes [from, to), with from <= to <=
 * s.n; and its first n bytes, or all when there are fewer. */
static inline zn_span zn_span_after(zn_span s, size_t at)
{
    ZN_ASSERT(at <= s.n);
    return (zn_span){s.p + at, s.n - at};
}

static inline zn_span zn_span_part(zn_span s, size_t from, size_t to)
{
    ZN_ASSERT(from <= to && to <= s.n);
    return (zn_span){s.p + from, to - from};
}

static inline zn_span zn_span_first(zn_span s, size_t n)
{
    return (zn_span){s.p, n < s.n ? n : s.n};
}

/* Returns the offset in `s` at which `borrowed`, a part of `s`, starts; s.n if `borrowed` is not a
 * part of `s`. */
static inline size_t zn_span_offset(zn_span s, zn_span borrowed)
{
    size_t at = (size_t)((uintptr_t)borrowed.p - (uintptr_t)s.p);
    return at < s.n ? at : s.n;
}

/* Returns the offset of the first byte with this value; s.n if no byte has it. */
static inline size_t zn_span_find(zn_span s, uint8_t byte)
{
    const uint8_t *hit = s.n == 0 ? NULL : memchr(s.p, byte, s.n);
    return hit == NULL ? s.n : (size_t)(hit - s.p);
}

/* Prefetches the cache lines of the span's first n bytes, or of all, from `fetched` on: the lines
 * before it were fetched by an earlier call. Returns where it ended. */
__attribute__((always_inline)) static inline const uint8_t *zn_span_fetch(zn_span s, size_t n,
                                                                          const uint8_t *fetched)
{
    const uint8_t *end = s.p + (n < s.n ? n : s.n);
    const uint8_t *at = fetched > s.p ? fetched : s.p;
    for (; at < end; at += ZN_CACHE_LINE)
        ZN_PREFETCH(at);
    return at;
}

/* Returns the result of a parser by the state of its cursor. */
static inline zn_parse zn_cursor_parse(const zn_cursor *c)
{
    if (c->state == ZN_CURSOR_OK)
        return ZN_DONE;
    return c->state == ZN_CURSOR_SHORT ? ZN_NEED_MORE : ZN_MALFORMED;
}

static inline bool zn_span_equal(zn_span a, zn_span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

#endif
