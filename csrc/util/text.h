/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing text buffer for output lines. Growth is the only thing that can fail: the buffer then
 * remembers `failed`, ignores further text, and its owner ends the run; no line is ever cut.
 */
#ifndef ZN_UTIL_TEXT_H
#define ZN_UTIL_TEXT_H

#include "util/cursor.h"

typedef struct zn_text {
    char *bytes;
    size_t n, cap;
    bool failed;
} zn_text;

/* An empty buffer needs no initialisation beyond zeros. */
void zn_text_fini(zn_text *t);
/* As zn_text_reserve, when there is no room yet. */
char *zn_text_grow(zn_text *t, size_t more);

/* Room for `more` bytes at t->bytes + t->n; NULL (and failed) when memory is out. */
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

void zn_text_u64(zn_text *t, uint64_t value);
void zn_text_i64(zn_text *t, int64_t value);
/* value / 10^decimals with exactly `decimals` (1..9) digits behind the point. */
void zn_text_fixed(zn_text *t, int64_t value, unsigned decimals);

/* A string literal. */
#define zn_text_literal(t, s) zn_text_bytes((t), "" s, sizeof(s) - 1)

static inline void zn_text_span(zn_text *t, zn_span s)
{
    zn_text_bytes(t, (const char *)s.p, s.n);
}

#endif
