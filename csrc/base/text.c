/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/arena.h"

#define FIRST_CAP ((size_t)64 << 10)
#define DIGITS_MAX 20u /* of a 64-bit number */

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";
static const char zero[] = "0.000000000";

void zn_text_fini(zn_text *t)
{
    zn_heap_free(t->bytes);
    memset(t, 0, sizeof *t);
}

char *zn_text_reserve(zn_text *t, size_t more)
{
    size_t cap = t->cap == 0 ? FIRST_CAP : t->cap;
    char *bytes;
    if (t->failed)
        return NULL;
    if (ZN_LIKELY(more <= t->cap - t->n))
        return t->bytes + t->n;
    while (cap - t->n < more) {
        if (cap > SIZE_MAX / 2) {
            t->failed = true;
            return NULL;
        }
        cap *= 2;
    }
    bytes = zn_heap_resize(t->bytes, cap);
    if (bytes == NULL) {
        t->failed = true;
        return NULL;
    }
    t->bytes = bytes;
    t->cap = cap;
    return t->bytes + t->n;
}

/* Digits of value, at least `least` of them, ending at digits[DIGITS_MAX]; returns where they begin. */
static unsigned digits_of(uint64_t value, unsigned least, char digits[DIGITS_MAX])
{
    unsigned at = DIGITS_MAX;
    while (value >= 100) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0 || DIGITS_MAX - at < least);
    return at;
}

void zn_text_u64(zn_text *t, uint64_t value)
{
    char digits[DIGITS_MAX];
    unsigned at;
    if (value < 10) { /* most are */
        zn_text_char(t, (char)('0' + value));
        return;
    }
    at = digits_of(value, 1, digits);
    zn_text_bytes(t, digits + at, DIGITS_MAX - at);
}

static uint64_t magnitude(zn_text *t, int64_t value)
{
    if (value >= 0)
        return (uint64_t)value;
    zn_text_char(t, '-');
    return UINT64_C(0) - (uint64_t)value;
}

void zn_text_i64(zn_text *t, int64_t value)
{
    zn_text_u64(t, magnitude(t, value));
}

void zn_text_fixed(zn_text *t, int64_t value, unsigned decimals)
{
    char digits[DIGITS_MAX + 1]; /* and the point */
    unsigned at, point = DIGITS_MAX - decimals;
    if (value == 0) { /* many are */
        zn_text_bytes(t, zero, 2 + decimals);
        return;
    }
    at = digits_of(magnitude(t, value), decimals + 1, digits);
    memmove(digits + point + 1, digits + point, decimals);
    digits[point] = '.';
    zn_text_bytes(t, digits + at, DIGITS_MAX + 1 - at);
}
