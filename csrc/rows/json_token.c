/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Values of any depth are skipped with a stack of bits, without recursion. */
#include "rows/json_token.h"

#include "util/text.h"

/* The value of a hexadecimal digit, or 16. */
static uint32_t hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - (uint32_t)'0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - (uint32_t)'a' + 10 : 16;
}

/* Takes an escape after its backslash: a letter, or u and four digits. */
static bool skip_escape(zn_json_reader *r)
{
    uint8_t kind = zn_json_peek(r);
    if (kind == 0 || memchr("\"\\/bfnrtu", kind, 9) == NULL)
        return false;
    r->p++;
    if (kind != 'u')
        return true;
    for (int i = 0; i < 4; i++, r->p++)
        if (r->p == r->end || hex_digit(*r->p) == 16)
            return false;
    return true;
}

bool zn_json_take_string(zn_json_reader *r, zn_json_string *out)
{
    if (!zn_json_accept(r, '"'))
        return false;
    out->p = r->p;
    out->escapes = false;
    while (r->p != r->end && *r->p >= 0x20) {
        uint8_t byte = *r->p++;
        if (byte == '"') {
            out->n = (size_t)(r->p - 1 - out->p);
            return true;
        }
        if (byte == '\\') {
            out->escapes = true;
            if (!skip_escape(r))
                return false;
        }
    }
    return false;
}

static uint32_t four_digits(const uint8_t *p)
{
    return hex_digit(p[0]) << 12 | hex_digit(p[1]) << 8 | hex_digit(p[2]) << 4 | hex_digit(p[3]);
}

/* The character of an escape, whose form is known to be right, from the byte after its backslash;
 * moves *from after it. False for half a surrogate pair. */
static bool resolve(const uint8_t **from, const uint8_t *end, uint32_t *code)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const uint8_t *p = *from;
    const char *letter = memchr(letters, *p, sizeof letters - 1);
    uint32_t low;
    *from = p + 1;
    *code = letter != NULL ? (uint32_t)meant[letter - letters] : *p;
    if (*p != 'u')
        return true;
    *code = four_digits(p + 1);
    *from = p + 5;
    if (*code < 0xd800 || *code > 0xdfff)
        return true;
    if (*code > 0xdbff || end - *from < 6 || p[5] != '\\' || p[6] != 'u')
        return false;
    low = four_digits(p + 7);
    *from = p + 11;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return low >= 0xdc00 && low <= 0xdfff;
}

/* Resolves a string's escapes in place; UTF-8 is never longer than its escape. */
bool zn_json_unescape(zn_json_string *s)
{
    const uint8_t *from = s->p, *end = s->p + s->n;
    uint8_t *to = s->p;
    if (!s->escapes)
        return true;
    while (from != end) {
        uint32_t code;
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        from++;
        if (!resolve(&from, end, &code))
            return false;
        to += zn_utf8_put(to, code);
    }
    s->n = (size_t)(to - s->p);
    return true;
}

static bool skip_digits(zn_json_reader *r)
{
    const uint8_t *start = r->p;
    while (zn_json_peek(r) >= '0' && zn_json_peek(r) <= '9')
        r->p++;
    return r->p != start;
}

static bool skip_number(zn_json_reader *r)
{
    (void)zn_json_accept(r, '-');
    if (!zn_json_accept(r, '0') && !skip_digits(r))
        return false;
    if (zn_json_accept(r, '.') && !skip_digits(r))
        return false;
    if (zn_json_accept(r, 'e') || zn_json_accept(r, 'E')) {
        if (!zn_json_accept(r, '+'))
            (void)zn_json_accept(r, '-');
        return skip_digits(r);
    }
    return true;
}

static bool skip_word(zn_json_reader *r, const char *word, size_t n)
{
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

static bool skip_scalar(zn_json_reader *r)
{
    zn_json_string ignored;
    switch (zn_json_peek(r)) {
    case '"':
        return zn_json_take_string(r, &ignored);
    case 't':
        return skip_word(r, "true", 4);
    case 'f':
        return skip_word(r, "false", 5);
    case 'n':
        return skip_word(r, "null", 4);
    default:
        return skip_number(r);
    }
}

/* A member's name and its colon, with blanks around. */
bool zn_json_take_name(zn_json_reader *r, zn_json_string *name)
{
    zn_json_skip_blanks(r);
    if (!zn_json_take_string(r, name))
        return false;
    zn_json_skip_blanks(r);
    if (!zn_json_accept(r, ':'))
        return false;
    zn_json_skip_blanks(r);
    return true;
}

/* The objects and arrays that are open: one bit each, set for an object. */
typedef struct nesting {
    uint64_t objects;
    unsigned depth;
} nesting;

/* At a value: takes a scalar, or opens an object or array and comes to its first value. *done is
 * set when a value has ended. */
static bool enter_value(zn_json_reader *r, nesting *open, bool *done)
{
    bool object = zn_json_peek(r) == '{';
    zn_json_string ignored;
    *done = true;
    if (!object && zn_json_peek(r) != '[')
        return skip_scalar(r);
    if (open->depth == ZN_JSON_DEPTH_MAX)
        return false;
    r->p++;
    zn_json_skip_blanks(r);
    if (zn_json_accept(r, object ? '}' : ']'))
        return true;
    open->objects = open->objects << 1 | object;
    open->depth++;
    *done = false;
    return !object || zn_json_take_name(r, &ignored);
}

/* After a value: closes what ends here, or comes to the next value (then *done is false). */
static bool leave_value(zn_json_reader *r, nesting *open, bool *done)
{
    zn_json_string ignored;
    while (open->depth != 0) {
        bool object = (open->objects & 1) != 0;
        zn_json_skip_blanks(r);
        if (zn_json_accept(r, ',')) {
            *done = false;
            if (object)
                return zn_json_take_name(r, &ignored);
            zn_json_skip_blanks(r);
            return true;
        }
        if (!zn_json_accept(r, object ? '}' : ']'))
            return false;
        open->objects >>= 1;
        open->depth--;
    }
    return true;
}

bool zn_json_skip_value(zn_json_reader *r)
{
    nesting open = {0, 0};
    bool done;
    do {
        if (!enter_value(r, &open, &done) || (done && !leave_value(r, &open, &done)))
            return false;
    } while (!done);
    return true;
}
