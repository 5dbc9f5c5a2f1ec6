/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/utf8.h"

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* Eight bytes from 0x20 to 0x7e. May say no to a word that is fine, never yes to one that is not:
 * borrows between bytes only add high bits. */
static inline bool plain_word(uint64_t word)
{
    uint64_t below_space = word - ONES * 0x20, above_tilde = word + ONES;
    return ((word | below_space | above_tilde) & HIGHS) == 0;
}

/* The bytes of the sequence that `lead` begins, 0 when it begins none, and the smallest code point
 * that needs so many. */
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
        uint8_t next = zn_cursor_u8(c); /* 0, which is no continuation, at the end */
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
        zn_utf8 found = ZN_UTF8_FINE;
        if (zn_cursor_left(&c) >= sizeof word) {
            memcpy(&word, c.p, sizeof word);
            if (ZN_LIKELY(plain_word(word))) {
                zn_cursor_skip(&c, sizeof word);
                continue;
            }
        }
        if (*c.p >= 0x80)
            found = check_long(&c);
        else if (is_control(zn_cursor_u8(&c)))
            found = ZN_UTF8_CONTROL;
        if (found == ZN_UTF8_INVALID)
            return found;
        if (found == ZN_UTF8_CONTROL)
            worst = found;
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
