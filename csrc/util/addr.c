/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/addr.h"

#include "util/text.h"

#include <arpa/inet.h>
#include <endian.h>

#define V4_ADDRESS 12u /* offset of an IPv4 address in a zn_addr */

/* Returns true when the first `bits` bits of both addresses are equal. */
static bool same_prefix(const zn_addr *a, const zn_addr *b, unsigned bits)
{
    uint64_t left[2], right[2], first, second; /* a call of memcmp costs more than this */
    memcpy(left, a->byte, sizeof left);
    memcpy(right, b->byte, sizeof right);
    first = be64toh(left[0] ^ right[0]);
    second = be64toh(left[1] ^ right[1]);
    if (bits <= 64)
        return bits == 0 || first >> (64 - bits) == 0;
    return first == 0 && second >> (128 - bits) == 0;
}

static bool v4_is_special(const uint8_t *four)
{
    if (four[0] == 0 || four[0] == 127 || (four[0] == 169 && four[1] == 254))
        return true; /* RFC 791, RFC 1122, RFC 3927 */
    if (four[0] >= 224 && four[0] <= 239)
        return true; /* RFC 5771 */
    return four[0] == 255 && four[1] == 255 && four[2] == 255 && four[3] == 255;
}

bool zn_addr_is_special(const zn_addr *a)
{
    static const zn_addr unspecified = {{0}};
    static const zn_addr loopback = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    if (zn_addr_is_v4(a))
        return v4_is_special(a->byte + 12);
    if (zn_addr_equal(a, &unspecified) || zn_addr_equal(a, &loopback))
        return true;
    return a->byte[0] == 0xff || (a->byte[0] == 0xfe && (a->byte[1] & 0xc0) == 0x80);
}

bool zn_addr_is_group(const zn_addr *a)
{
    if (zn_addr_is_v4(a))
        return (a->byte[V4_ADDRESS] & 0xf0) == 224;
    return a->byte[0] == 0xff;
}

/* Returns true for 224.0.0.0/24, and in 224.0.1.0/24 for the groups that IANA has registered. */
static bool v4_is_known_group(const uint8_t *four)
{
    if (four[0] != 224 || four[1] != 0 || four[2] > 1)
        return false;
    return four[2] == 0 || (four[3] != 38 && four[3] != 124 && four[3] <= 190);
}

bool zn_addr_is_known_group(const zn_addr *a)
{
    static const uint8_t node[12] = {0xff, 1}, link[12] = {0xff, 2};
    uint32_t group;
    if (zn_addr_is_v4(a))
        return v4_is_known_group(a->byte + V4_ADDRESS);
    if (memcmp(a->byte, node, sizeof node) != 0 && memcmp(a->byte, link, sizeof link) != 0)
        return false;
    memcpy(&group, a->byte + V4_ADDRESS, sizeof group);
    group = be32toh(group);
    return (group >= 1 && group <= 0xff) || (group >= 0x10001 && group <= 0x10007);
}

bool zn_addr_is_derived_group(const zn_addr *a)
{
    static const uint8_t solicited[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
    static const uint8_t queried[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xff};
    if (zn_addr_is_v4(a))
        return a->byte[V4_ADDRESS] == 234;
    return a->byte[0] == 0xff &&
           ((a->byte[1] & 0x60) != 0 || memcmp(a->byte, solicited, sizeof solicited) == 0 ||
            memcmp(a->byte, queried, sizeof queried) == 0);
}

zn_addr zn_addr_carried(const zn_addr *a)
{
    static const struct {
        zn_net net;
        uint8_t at, flipped;
    } forms[] = {
        {{{{0, 0x64, 0xff, 0x9b}}, 96}, 12, 0},
        {{{{0, 0x64, 0xff, 0x9b, 0, 1}}, 48}, 12, 0},
        {{{{0x20, 0x02}}, 16}, 2, 0},
        {{{{0x20, 0x01}}, 32}, 12, 0xff},
        {{{{0}}, 96}, 12, 0},
        {{{{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}, 96}, 12, 0},
    };
    static const uint8_t isatap[3] = {0, 0x5e, 0xfe};
    uint8_t four[4];
    if (zn_addr_is_v4(a))
        return *a;
    if ((a->byte[8] & 0xfd) == 0 && memcmp(a->byte + 9, isatap, sizeof isatap) == 0)
        return zn_addr_from_v4(a->byte + 12);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (!same_prefix(&forms[i].net.prefix, a, forms[i].net.bits))
            continue;
        for (unsigned k = 0; k < sizeof four; k++)
            four[k] = (uint8_t)(a->byte[forms[i].at + k] ^ forms[i].flipped);
        return zn_addr_from_v4(four);
    }
    return *a;
}

/* The first `bits` bits of the address, and zeros. */
static zn_addr first_bits(const zn_addr *a, unsigned bits)
{
    zn_addr cut = {{0}};
    memcpy(cut.byte, a->byte, bits / 8);
    if (bits % 8 != 0)
        cut.byte[bits / 8] = (uint8_t)(a->byte[bits / 8] & 0xff << (8 - bits % 8));
    return cut;
}

zn_addr zn_addr_cut(const zn_addr *a, unsigned v4_bits, unsigned v6_bits)
{
    return first_bits(a, zn_addr_is_v4(a) ? 96 + v4_bits : v6_bits);
}

static size_t v4_text(const uint8_t *four, char *out)
{
    char *at = out;
    for (int i = 0; i < 4; i++) {
        uint32_t value = four[i];
        if (i != 0)
            *at++ = '.';
        if (value >= 100) {
            *at++ = (char)('0' + value / 100);
            at = zn_digits_pair(at, value % 100);
        } else {
            at = zn_digits_put(at, value);
        }
    }
    *at = '\0';
    return (size_t)(at - out);
}

/* Returns where the longest run of zero groups starts, the first of equal ones; 8, with *n == 0,
 * when no run has two groups (RFC 5952 4.2). */
static unsigned longest_zeros(const uint16_t group[8], unsigned *n)
{
    unsigned best = 8;
    *n = 0;
    for (unsigned i = 0; i < 8;) {
        unsigned end = i;
        while (end < 8 && group[end] == 0)
            end++;
        if (end - i >= 2 && end - i > *n) {
            best = i;
            *n = end - i;
        }
        i = end + 1;
    }
    return best;
}

/* Writes a group of an IPv6 address in hexadecimal, without leading zeros; returns how many digits
 * it has. Always writes four bytes. */
static size_t put_group(char *out, uint32_t group)
{
    /* One nibble in each byte, the first in the lowest byte; digits of 10 and above get 'a' - '9' -
     * 1 more. */
    uint32_t spread =
        group >> 12 | (group >> 8 & 15) << 8 | (group >> 4 & 15) << 16 | (group & 15) << 24;
    uint32_t letters = (spread + 0x06060606u) >> 4 & 0x01010101u;
    uint32_t text = spread + 0x30303030u + letters * ('a' - '9' - 1);
    unsigned zeros = group >= 0x1000 ? 0 : group >= 0x100 ? 1 : group >= 0x10 ? 2 : 3;
    text = htole32(text >> (8 * zeros));
    memcpy(out, &text, sizeof text);
    return sizeof text - zeros;
}

static size_t v6_text(const zn_addr *a, char *out)
{
    uint16_t group[8];
    unsigned zeros, zeros_at;
    size_t n = 0;
    for (unsigned i = 0; i < 8; i++)
        group[i] = (uint16_t)(a->byte[2 * i] << 8 | a->byte[2 * i + 1]);
    zeros_at = longest_zeros(group, &zeros);
    for (unsigned i = 0; i < 8; i++) {
        if (i == zeros_at) {
            out[n++] = ':';
            i += zeros - 1;
            if (i == 7)
                out[n++] = ':';
            continue;
        }
        if (i != 0)
            out[n++] = ':';
        n += put_group(out + n, group[i]);
    }
    out[n] = '\0';
    return n;
}

/* Returns true when the first 96 bits are zero: inet_ntop writes the rest like an IPv4 address,
 * unless it is small. */
static bool is_v4_compatible(const zn_addr *a)
{
    static const uint8_t none[12] = {0};
    return memcmp(a->byte, none, sizeof none) == 0;
}

size_t zn_addr_text(const zn_addr *a, char *out)
{
    if (zn_addr_is_v4(a))
        return v4_text(a->byte + 12, out);
    if (ZN_LIKELY(!is_v4_compatible(a)))
        return v6_text(a, out);
    if (inet_ntop(AF_INET6, a->byte, out, ZN_ADDR_TEXT_MAX) == NULL)
        out[0] = '\0';
    return strnlen(out, ZN_ADDR_TEXT_MAX);
}

/* Reads four decimal numbers below 256, without leading zeros. */
static bool parse_v4(zn_span text, uint8_t four[4])
{
    unsigned part = 0, digits = 0, value = 0;
    for (size_t i = 0; i <= text.n; i++) {
        uint8_t byte = i < text.n ? text.p[i] : '.';
        if (byte == '.') {
            if (digits == 0 || part == 4)
                return false;
            four[part++] = (uint8_t)value;
            value = digits = 0;
            continue;
        }
        if (byte < '0' || byte > '9' || (digits != 0 && value == 0))
            return false;
        value = 10 * value + byte - '0';
        digits++;
        if (value > UINT8_MAX)
            return false;
    }
    return part == 4;
}

bool zn_addr_parse(zn_span text, zn_addr *a)
{
    char copy[ZN_ADDR_TEXT_MAX];
    uint8_t four[4];
    if (parse_v4(text, four)) {
        *a = zn_addr_from_v4(four);
        return true;
    }
    if (text.n >= sizeof copy || zn_span_find(text, ':') == text.n ||
        zn_span_find(text, 0) != text.n)
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    return inet_pton(AF_INET6, copy, a->byte) == 1;
}

bool zn_nets_contain(const zn_net *nets, size_t n, const zn_addr *a)
{
    for (size_t i = 0; i < n; i++)
        if (same_prefix(&nets[i].prefix, a, nets[i].bits))
            return true;
    return false;
}

/* Returns the prefix length that the text is, from 0 to `most`, or -1. */
static int parse_bits(const char *text, int most)
{
    int bits = 0;
    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        bits = bits * 10 + (*text - '0');
        if (bits > most)
            return -1;
    }
    return bits;
}

/* Reads an address of either family from `text`; returns false if `text` is not an address. */
static bool parse_addr(zn_addr *out, const char *text, bool *v4)
{
    uint8_t four[4];
    *v4 = inet_pton(AF_INET, text, four) == 1;
    if (*v4)
        *out = zn_addr_from_v4(four);
    return *v4 || inet_pton(AF_INET6, text, out->byte) == 1;
}

int zn_net_parse(zn_net *out, const char *text, zn_error *err)
{
    char address[ZN_ADDR_TEXT_MAX] = "";
    zn_addr addr, cut;
    bool v4;
    int bits;
    size_t n = 0;
    while (text[n] != '\0' && text[n] != '/' && n < sizeof address - 1) {
        address[n] = text[n];
        n++;
    }
    if ((text[n] != '\0' && text[n] != '/') || !parse_addr(&addr, address, &v4))
        return zn_fail(err, ZN_ERR_CONFIG, 0, "not a network: an address, or one with /BITS");
    bits = text[n] == '\0' ? (v4 ? 32 : 128) : parse_bits(text + n + 1, v4 ? 32 : 128);
    if (bits < 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a network's prefix must have 0 to %d bits",
                       v4 ? 32 : 128);
    /* also of an IPv4 address written in IPv6 form */
    cut = first_bits(&addr, (unsigned)bits + (v4 ? 96 : 0));
    if (!zn_addr_equal(&addr, &cut))
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a network has bits set after its prefix of %d",
                       bits);
    out->prefix = addr;
    out->bits = (uint32_t)bits + (v4 ? 96 : 0);
    return 0;
}
