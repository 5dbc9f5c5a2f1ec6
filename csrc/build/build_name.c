/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build_name.h"

#include "build/build.h"
#include "proto/ascii.h"

#define LABEL_MAX 63u
#define NAME_MAX_BYTES 253u

/* Names of addresses (RFC 1035 3.5, RFC 3596 2.5) or of home networks (RFC 6762 3, RFC 8375). */
static const struct {
    const char *text;
    size_t n;
} homes[] = {
    {"in-addr.arpa", sizeof "in-addr.arpa" - 1},
    {"ip6.arpa", sizeof "ip6.arpa" - 1},
    {"local", sizeof "local" - 1},
    {"home.arpa", sizeof "home.arpa" - 1},
};

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_label(zn_span label)
{
    zn_cursor c = zn_cursor_over_span(label, true);
    uint8_t byte = 0;
    if (label.n == 0 || label.n > LABEL_MAX || zn_ascii_first(label) == '-')
        return false;
    while (zn_cursor_left(&c) > 0) {
        byte = zn_ascii_lower(zn_cursor_u8(&c));
        if (!is_digit(byte) && (byte < 'a' || byte > 'z') && byte != '-' && byte != '_')
            return false;
    }
    return byte != '-';
}

/* Returns true if the last label makes the host an IPv4 address, valid or not: decimal digits, or
 * 0x and hexadecimal digits (WHATWG URL 3.5). */
static bool is_number(zn_span label)
{
    zn_cursor c = zn_cursor_over_span(label, true);
    bool decimal = true, hex = label.n > 1;
    for (size_t i = 0; zn_cursor_left(&c) > 0; i++) {
        uint8_t byte = zn_ascii_lower(zn_cursor_u8(&c));
        decimal &= is_digit(byte);
        if (i < 2)
            hex &= byte == (i == 0 ? '0' : 'x');
        else
            hex &= is_digit(byte) || (byte >= 'a' && byte <= 'f');
    }
    return decimal || hex;
}

static bool is_home(zn_span name)
{
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        zn_span home = {(const uint8_t *)homes[i].text, homes[i].n};
        size_t before = name.n < home.n ? 0 : name.n - home.n;
        bool whole = before == 0 || zn_ascii_first(zn_span_after(name, before - 1)) == '.';
        if (whole && zn_ascii_equal(zn_span_after(name, before), home))
            return true;
    }
    return false;
}

bool zn_build_name_allowed(zn_span name)
{
    zn_cursor c;
    zn_span label;
    if (name.n != 0 && zn_ascii_first(zn_span_after(name, name.n - 1)) == '.')
        name.n--;
    if (name.n > NAME_MAX_BYTES)
        return false;
    c = zn_cursor_over_span(name, true);
    for (;;) {
        label = zn_ascii_take_until(&c, '.');
        if (!is_label(label))
            return false;
        if (zn_cursor_left(&c) == 0)
            return !is_number(label) && !is_home(name);
        zn_cursor_skip(&c, 1);
    }
}

void zn_build_host_name(zn_span name, bool disclosed, uint8_t *out)
{
    zn_cursor c = zn_cursor_over_span(name, true);
    if (!disclosed || !zn_build_name_allowed(name)) {
        zn_build_masked_name(out, name.n);
        return;
    }
    while (zn_cursor_left(&c) > 0)
        *out++ = zn_ascii_lower(zn_cursor_u8(&c));
}
