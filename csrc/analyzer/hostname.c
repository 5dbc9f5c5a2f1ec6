/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/hostname.h"

#include "util/arena.h"

#include <arpa/inet.h>

#define LABEL_MAX 63

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Normalised byte for each byte of a name; 0 if the byte may not occur. */
#define LETTER(upper)                                                                              \
    [upper] = (upper) + ('a' - 'A'), [(upper) + ('a' - 'A')] = (upper) + ('a' - 'A')
static const uint8_t lower_of[256] = {
    LETTER('A'), LETTER('B'), LETTER('C'), LETTER('D'), LETTER('E'), LETTER('F'), LETTER('G'),
    LETTER('H'), LETTER('I'), LETTER('J'), LETTER('K'), LETTER('L'), LETTER('M'), LETTER('N'),
    LETTER('O'), LETTER('P'), LETTER('Q'), LETTER('R'), LETTER('S'), LETTER('T'), LETTER('U'),
    LETTER('V'), LETTER('W'), LETTER('X'), LETTER('Y'), LETTER('Z'), ['0'] = '0', ['1'] = '1',
    ['2'] = '2', ['3'] = '3', ['4'] = '4', ['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8',
    ['9'] = '9', ['-'] = '-', ['_'] = '_', ['.'] = '.',
};

/* The text without a port: everything before a single colon that only digits follow. */
static zn_span without_port(zn_span raw)
{
    size_t colon = raw.n;
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] != ':')
            continue;
        if (colon != raw.n)
            return raw; /* two colons: an IPv6 literal, or nothing valid */
        colon = i;
    }
    for (size_t i = colon + 1; i < raw.n; i++)
        if (!is_digit(raw.p[i]))
            return raw;
    raw.n = colon;
    return raw;
}

/* The content of "[...]" with or without a port after it; an empty span for anything else. */
static zn_span bracketed(zn_span raw)
{
    zn_span none = {raw.p, 0};
    size_t close = 0;
    if (raw.n < 2 || raw.p[0] != '[')
        return none;
    while (close < raw.n && raw.p[close] != ']')
        close++;
    if (close == raw.n)
        return none;
    for (size_t i = close + 1; i < raw.n; i++)
        if (i == close + 1 ? raw.p[i] != ':' : !is_digit(raw.p[i]))
            return none;
    return (zn_span){raw.p + 1, close - 1};
}

static bool is_ipv6(zn_span text)
{
    char copy[ZN_ADDR_TEXT_MAX];
    uint8_t address[16];
    if (text.n == 0 || text.n >= sizeof copy || memchr(text.p, '\0', text.n) != NULL)
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    return inet_pton(AF_INET6, copy, address) == 1;
}

/* Returns whether the bytes from..to - 1 have a label's length, and no hyphen at either end. */
static bool is_label(zn_span text, size_t from, size_t to)
{
    return to - from - 1 < LABEL_MAX && text.p[from] != '-' && text.p[to - 1] != '-';
}

/* Copies `text` in lower case; false unless it is dot-separated LDH labels of legal length. */
static bool copy_labels(zn_span text, zn_hostname *out)
{
    const size_t n = text.n;
    size_t label = 0; /* where it starts */
    for (size_t i = 0; i < n; i++) {
        uint8_t lower = lower_of[text.p[i]];
        out->text[i] = lower;
        if (ZN_LIKELY(lower > '.')) /* a letter, a digit or an underscore */
            continue;
        if (lower == 0 || (lower == '.' && !is_label(text, label, i)))
            return false;
        if (lower == '.')
            label = i + 1;
    }
    out->n = (uint8_t)text.n;
    return is_label(text, label, text.n);
}

static bool ends_with(const zn_hostname *name, const char *suffix, size_t n)
{
    if (name->n < n || memcmp(name->text + name->n - n, suffix, n) != 0)
        return false;
    return name->n == n || name->text[name->n - n - 1] == '.';
}

#define ENDS_WITH(name, literal) ends_with((name), literal, sizeof(literal) - 1)

/* Returns whether a name, which is not empty, is a ZN_HOST_HOME. */
static bool is_home(const zn_hostname *name)
{
    uint8_t last = name->text[name->n - 1];
    if (ZN_LIKELY(last != 'a' && last != 'l'))
        return false;
    return ENDS_WITH(name, "in-addr.arpa") || ENDS_WITH(name, "ip6.arpa") ||
           ENDS_WITH(name, "local") || ENDS_WITH(name, "home.arpa");
}

/* Returns whether each label is a number: decimal, octal, or hexadecimal after 0x. In a URL such a
 * host is an IPv4 address in one of its spellings (WHATWG URL, 3.5), or invalid, but no name. */
static bool is_all_numbers(const zn_hostname *name)
{
    const uint8_t *text = name->text;
    size_t label = 0; /* where it starts */
    for (size_t i = 0; i < name->n; i++) {
        uint8_t c = text[i];
        bool hex = i != label && text[label] == '0' && text[label + 1] == 'x';
        if (c == '.')
            label = i + 1;
        else if (!is_digit(c) && !(hex && (i == label + 1 || (c >= 'a' && c <= 'f'))))
            return false;
    }
    return true;
}

/* Normalises a host without brackets and port: an IPv4 literal, a name, or nothing valid. */
static zn_host_kind normalize_name(zn_span raw, zn_hostname *out)
{
    if (raw.n != 0 && raw.p[raw.n - 1] == '.')
        raw.n--;
    if (raw.n == 0)
        return ZN_HOST_EMPTY;
    if (raw.n > ZN_HOSTNAME_MAX || !copy_labels(raw, out)) {
        out->n = 0;
        return ZN_HOST_INVALID;
    }
    if (ZN_UNLIKELY(is_all_numbers(out))) {
        out->n = 0;
        return ZN_HOST_ADDRESS;
    }
    return is_home(out) ? ZN_HOST_HOME : ZN_HOST_NAME;
}

zn_host_kind zn_hostname_normalize(zn_span raw, zn_hostname *out)
{
    zn_span inner;
    out->n = 0;
    if (raw.n == 0 || (raw.p[0] != '[' && memchr(raw.p, ':', raw.n) == NULL))
        return normalize_name(raw, out);
    inner = bracketed(raw);
    if (inner.n != 0 || is_ipv6(raw))
        return inner.n == 0 || is_ipv6(inner) ? ZN_HOST_ADDRESS : ZN_HOST_INVALID;
    return normalize_name(without_port(raw), out);
}

int zn_never_list_init(zn_never_list *list, uint32_t cap, zn_error *err)
{
    uint32_t slots = 16;
    memset(list, 0, sizeof *list);
    while (slots < 2 * (uint64_t)cap && slots < UINT32_C(1) << 31)
        slots *= 2;
    list->slots = zn_block_alloc(slots * sizeof *list->slots);
    if (list->slots == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a list of %u suffixes", cap);
    list->mask = slots - 1;
    return zn_hash_key_random(&list->key, err);
}

void zn_never_list_fini(zn_never_list *list)
{
    if (list->slots != NULL)
        zn_block_free(list->slots, ((size_t)list->mask + 1) * sizeof *list->slots);
    memset(list, 0, sizeof *list);
}

/* The slot that holds the suffix's hash, or the empty one where it belongs. */
static uint64_t *slot_of(const zn_never_list *list, const uint8_t *p, size_t n)
{
    uint64_t hash = zn_hash64(&list->key, p, n) | 1;
    uint32_t at = (uint32_t)(hash >> 32) & list->mask;
    while (list->slots[at] != 0 && list->slots[at] != hash)
        at = (at + 1) & list->mask;
    return &list->slots[at];
}

void zn_never_list_add(zn_never_list *list, zn_span suffix)
{
    uint64_t *slot = slot_of(list, suffix.p, suffix.n);
    if (*slot != 0)
        return;
    *slot = zn_hash64(&list->key, suffix.p, suffix.n) | 1;
    list->members++;
}

bool zn_never_list_has(const zn_never_list *list, const zn_hostname *name)
{
    if (list->members == 0)
        return false;
    for (size_t from = 0; from < name->n; from++)
        if ((from == 0 || name->text[from - 1] == '.') &&
            *slot_of(list, name->text + from, name->n - from) != 0)
            return true;
    return false;
}
