/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/text.h"

#include "util/arena.h"

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

/* Writes the last n digits of value, two at a time, to the bytes before `end`. */
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

/* Writes eight digits, leading zeros included. */
static char *put_eight(char *at, uint32_t value)
{
    uint32_t first = value / 10000, last = value % 10000;
    at = zn_digits_pair(at, first / 100);
    at = zn_digits_pair(at, first % 100);
    at = zn_digits_pair(at, last / 100);
    return zn_digits_pair(at, last % 100);
}

char *zn_digits_several(char *at, uint64_t value)
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
    /* To divide by a constant takes a fraction of the time; logs have six decimals. */
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

/* ---- UTF-8 ---- */

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* Returns true when all eight bytes are from 0x20 to 0x7e. May return false for such a word, never
 * true for another one: borrows between bytes only set high bits. */
static inline bool plain_word(uint64_t word)
{
    uint64_t below_space = word - ONES * 0x20, above_tilde = word + ONES;
    return ((word | below_space | above_tilde) & HIGHS) == 0;
}

/* Returns the length of the sequence that `lead` begins, 0 when it begins none; *least: the
 * smallest code point that needs this length. */
static size_t sequence_bytes(uint8_t lead, uint32_t *least)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;
    *least = smallest[n];
    return n;
}

/* Takes one character that is not ASCII. */
static zn_utf8 check_long(zn_cursor *c)
{
    uint8_t lead = zn_cursor_u8(c);
    uint32_t least, code;
    size_t n = sequence_bytes(lead, &least);
    if (n == 0)
        return ZN_UTF8_INVALID;
    code = lead & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        uint8_t next = zn_cursor_u8(c); /* 0 at the end, which is no continuation byte */
        if ((next & 0xc0) != 0x80)
            return ZN_UTF8_INVALID;
        code = code << 6 | (next & 0x3f);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return ZN_UTF8_INVALID;
    return code < 0xa0 ? ZN_UTF8_CONTROL : ZN_UTF8_FINE;
}

static inline bool is_control(uint8_t byte)
{
    return (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f;
}

zn_utf8 zn_utf8_check(zn_span text)
{
    zn_cursor c = zn_cursor_over_span(text, true);
    zn_utf8 worst = ZN_UTF8_FINE;
    while (zn_cursor_left(&c) != 0) {
        uint64_t word;
        zn_utf8 next = ZN_UTF8_FINE;
        if (zn_cursor_left(&c) >= sizeof word) {
            memcpy(&word, c.p, sizeof word);
            if (ZN_LIKELY(plain_word(word))) {
                zn_cursor_skip(&c, sizeof word);
                continue;
            }
        }
        if (*c.p >= 0x80)
            next = check_long(&c);
        else if (is_control(zn_cursor_u8(&c)))
            next = ZN_UTF8_CONTROL;
        if (next == ZN_UTF8_INVALID)
            return next;
        if (next == ZN_UTF8_CONTROL)
            worst = next;
    }
    return worst;
}

size_t zn_utf8_put(uint8_t out[4], uint32_t code)
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (uint8_t)(0x80 | (code & 0x3f));
    out[0] = (uint8_t)(lead[n] | code);
    return n;
}
