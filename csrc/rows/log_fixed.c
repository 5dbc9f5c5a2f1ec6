/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/log_fixed.h"

#define WORD_MAX 32u

static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

void zn_log_fixed_begin(const zn_log_source *s, zn_log_line *out)
{
    out->count = s->preset->count;
    memset(out->cells, 0, out->count * sizeof *out->cells);
    for (size_t i = 0; i < out->count; i++) {
        out->cells[i].role = (uint8_t)s->preset->columns[i].role;
        out->cells[i].kind = ZN_LOG_CELL_NONE;
    }
}

bool zn_log_fixed_take(zn_cursor *c, zn_span literal)
{
    zn_cursor next = *c;
    if (zn_cursor_left(c) < literal.n || !zn_span_equal(zn_cursor_take(&next, literal.n), literal))
        return false;
    *c = next;
    return true;
}

bool zn_log_fixed_until(zn_cursor *c, uint8_t end, zn_span *out)
{
    zn_span rest = {c->p, zn_cursor_left(c)};
    size_t n = zn_span_find(rest, end);
    if (n == 0 || n == rest.n)
        return false;
    *out = zn_cursor_take(c, n);
    zn_cursor_skip(c, 1);
    return true;
}

bool zn_log_fixed_is_word(zn_span text, zn_span others)
{
    zn_cursor c = zn_cursor_over_span(text, true);
    if (text.n == 0 || text.n > WORD_MAX)
        return false;
    while (zn_cursor_left(&c) != 0) {
        uint8_t byte = zn_cursor_u8(&c), letter = byte | 0x20;
        bool plain = (byte >= '0' && byte <= '9') || (letter >= 'a' && letter <= 'z');
        if (!plain && zn_span_find(others, byte) == others.n)
            return false;
    }
    return true;
}

bool zn_log_fixed_is_address(zn_span text)
{
    zn_addr address;
    return zn_addr_parse(text, &address);
}

unsigned zn_log_fixed_take_month(zn_cursor *c)
{
    zn_span name = zn_cursor_take(c, 3);
    for (unsigned month = 1; month <= 12 && name.n == 3; month++)
        if (zn_span_equal(name, zn_log_fixed_month(month)))
            return month;
    return 0;
}

zn_span zn_log_fixed_month(unsigned month)
{
    bool known = month >= 1 && month <= 12;
    return (zn_span){(const uint8_t *)MONTHS + (known ? 3 * (month - 1) : 0), 3};
}

unsigned zn_log_fixed_take_two(zn_cursor *c)
{
    uint8_t tens = zn_cursor_u8(c), ones = zn_cursor_u8(c);
    if (tens == ' ')
        tens = '0';
    if (tens < '0' || tens > '9' || ones < '0' || ones > '9')
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    return zn_cursor_ok(c) ? (unsigned)(tens - '0') * 10 + (unsigned)(ones - '0') : 0;
}

unsigned zn_log_fixed_two_at(zn_span text, size_t at)
{
    zn_cursor c = zn_cursor_over_span(text, true);
    zn_cursor_skip(&c, at);
    return zn_log_fixed_take_two(&c);
}

void zn_log_fixed_put(zn_text *out, const zn_gated_log *row, size_t column)
{
    if (zn_log_fixed_has(row, column))
        zn_text_span(out, row->cells[column].text);
    else
        zn_text_char(out, '-');
}
