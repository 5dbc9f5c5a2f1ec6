/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Text: decimal digits, a growing buffer for output lines, and UTF-8. */
#ifndef ZN_UTIL_TEXT_H
#define ZN_UTIL_TEXT_H

#include "util/cursor.h"

#include <string.h>

/*
 * ---- digits ----
 * Write numbers as decimal digits to memory with enough space, and return the end of the digits.
 * They are for lines of many small numbers, because a zn_text would check its space for each
 * number.
 */

#define ZN_DIGITS_MAX 20 /* most digits of 64 bits, sign included */
#define ZN_FIXED_MAX (ZN_DIGITS_MAX + 8)

/* "00" to "99", as one string. */
extern const char zn_digit_pairs[201];

/* zn_digits_put for a number of at least 100. */
char *zn_digits_several(char *at, uint64_t value);

static inline char *zn_digits_pair(char *at, uint32_t below_100)
{
    memcpy(at, zn_digit_pairs + 2 * below_100, 2);
    return at + 2;
}

static inline char *zn_digits_put(char *at, uint64_t value)
{
    if (ZN_LIKELY(value < 10)) {
        *at = (char)('0' + value);
        return at + 1;
    }
    return value < 100 ? zn_digits_pair(at, (uint32_t)value) : zn_digits_several(at, value);
}

/* Writes value / 10^6 with six digits after the point, such as ns as ms: at most ZN_FIXED_MAX
 * bytes. */
static inline char *zn_digits_put_millionths(char *at, int64_t value)
{
    uint64_t left = (uint64_t)value;
    uint32_t rest;
    if (value == 0) { /* the commonest value */
        memcpy(at, "0.000000", 8);
        return at + 8;
    }
    if (value < 0) {
        *at++ = '-';
        left = UINT64_C(0) - left;
    }
    at = zn_digits_put(at, left / 1000000);
    rest = (uint32_t)(left % 1000000);
    *at++ = '.';
    at = zn_digits_pair(at, rest / 10000);
    at = zn_digits_pair(at, rest / 100 % 100);
    return zn_digits_pair(at, rest % 100);
}

/*
 * ---- a growing buffer ----
 * Only growth can fail: the buffer then sets `failed` and ignores further text, and its owner ends
 * the run; no line is ever cut.
 */

typedef struct zn_text {
    char *bytes;
    size_t n, cap;
    bool failed;
} zn_text;

/* Frees the bytes. A zn_text of zeros is an empty buffer. */
void zn_text_fini(zn_text *t);
/* The slow path of zn_text_reserve: there is no space yet. */
char *zn_text_grow(zn_text *t, size_t more);

/* Returns t->bytes + t->n, where space for `more` bytes is then; NULL, with `failed` set, when
 * memory is out. */
static inline char *zn_text_reserve(zn_text *t, size_t more)
{
    if (ZN_LIKELY(!t->failed && more <= t->cap - t->n && t->bytes != NULL))
        return t->bytes + t->n;
    return zn_text_grow(t, more);
}

static inline void zn_text_char(zn_text *t, char c)
{
    char *at = zn_text_reserve(t, 1);
    if (at != NULL) {
        *at = c;
        t->n++;
    }
}

static inline void zn_text_bytes(zn_text *t, const char *bytes, size_t n)
{
    char *at = zn_text_reserve(t, n);
    if (at != NULL && n != 0) {
        memcpy(at, bytes, n);
        t->n += n;
    }
}

/* Appends the n (0 .. 8) lowest bytes of a number, least significant first. */
static inline void zn_text_le(zn_text *t, uint64_t value, size_t n)
{
    char *at = zn_text_reserve(t, n);
    if (at != NULL) {
        (void)zn_le_put((uint8_t *)at, value, n);
        t->n += n;
    }
}

/* Append a number in decimal digits. */
void zn_text_u64(zn_text *t, uint64_t value);
void zn_text_i64(zn_text *t, int64_t value);
/* Appends value / 10^decimals with exactly `decimals` (1 .. 9) digits after the point. */
void zn_text_fixed(zn_text *t, int64_t value, unsigned decimals);

/* Appends a string literal. */
#define zn_text_literal(t, s) zn_text_bytes((t), "" s, sizeof(s) - 1)

static inline void zn_text_span(zn_text *t, zn_span s)
{
    zn_text_bytes(t, (const char *)s.p, s.n);
}

/*
 * ---- UTF-8 ----
 * Check that text from outside is UTF-8 (RFC 3629, with no overlong forms, no surrogates, at most
 * U+10FFFF) and has no control characters, which could steer a terminal or end a line.
 */

typedef enum zn_utf8 {
    ZN_UTF8_FINE,
    ZN_UTF8_CONTROL, /* holds U+0000-001F other than tab, LF and CR, or U+007F-009F */
    ZN_UTF8_INVALID
} zn_utf8;

zn_utf8 zn_utf8_check(zn_span text);

/* Writes `code` (no surrogate, at most U+10FFFF) in 1 to 4 bytes; returns how many. */
size_t zn_utf8_put(uint8_t out[4], uint32_t code);

#endif
