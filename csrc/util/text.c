/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/text.h"

#include "util/arena.h"
#include "util/digits.h"

#define FIRST_CAP ((size_t)64 << 10)
#define EIGHT_DIGITS 100000000u

const char zn_digit_pairs[201] = {"0001020304050607080910111213141516171819202122232425262728293031"
                                  "3233343536373839404142434445464748"
                                  "4950515253545556575859606162636465666768697071727374757677787980"
                                  "8182838485868788899091929394959697"
                                  "9899"};

void zn_text_fini(zn_text *t)
{
    zn_heap_free(t->bytes);
    memset(t, 0, sizeof *t);
}

char *zn_text_grow(zn_text *t, size_t more)
{
    size_t cap = t->cap == 0 ? FIRST_CAP : t->cap;
    char *bytes;
    if (t->failed)
        return NULL;
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

/* The last n digits of value, two at a time, the last one before `end`. */
static void put_digits(char *end, uint32_t value, unsigned n)
{
    for (; n >= 2; n -= 2) {
        end -= 2;
        (void)zn_digits_pair(end, value % 100);
        value /= 100;
    }
    if (n != 0)
        end[-1] = (char)('0' + value % 10);
}

/* Eight digits, of which the first may be zeros. */
static char *put_eight(char *at, uint32_t value)
{
    uint32_t first = value / 10000, last = value % 10000;
    at = zn_digits_pair(at, first / 100);
    at = zn_digits_pair(at, first % 100);
    at = zn_digits_pair(at, last / 100);
    return zn_digits_pair(at, last % 100);
}

char *zn_digits_many(char *at, uint64_t value)
{
    uint32_t small;
    unsigned n;
    if (value >= EIGHT_DIGITS)
        return put_eight(zn_digits_put(at, value / EIGHT_DIGITS), (uint32_t)(value % EIGHT_DIGITS));
    small = (uint32_t)value;
    n = 3u + (small >= 1000) + (small >= 10000) + (small >= 100000) + (small >= 1000000) +
        (small >= 10000000);
    put_digits(at + n, small, n);
    return at + n;
}

void zn_text_u64(zn_text *t, uint64_t value)
{
    char *at = zn_text_reserve(t, ZN_DIGITS_MAX);
    if (at != NULL)
        t->n += (size_t)(zn_digits_put(at, value) - at);
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
    static const uint64_t powers[] = {1,      10,      100,      1000,      10000,
                                      100000, 1000000, 10000000, 100000000, 1000000000};
    uint64_t left = magnitude(t, value);
    /* Dividing by what the compiler knows takes a fraction of the time; six is what logs have. */
    uint64_t whole = decimals == 6 ? left / 1000000 : left / powers[decimals];
    char *at;
    zn_text_u64(t, whole);
    at = zn_text_reserve(t, decimals + 1);
    if (at != NULL) {
        at[0] = '.';
        put_digits(at + decimals + 1, (uint32_t)(left - whole * powers[decimals]), decimals);
        t->n += decimals + 1;
    }
}
