/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two layers: tokens (strings, numbers, literals, values of any depth by a stack of bits, without
 * recursion), each of which moves `p` past itself or fails; and the members of the one object.
 */
#include "rows/json.h"

#include "util/text.h"

typedef struct reader {
    uint8_t *p, *end;
    bool controls; /* the row holds control characters, perhaps in a value */
} reader;

/* A string's content between its quotes. */
typedef struct string {
    uint8_t *p;
    size_t n;
    bool escapes;
} string;

static uint8_t peek(const reader *r)
{
    return r->p != r->end ? *r->p : 0;
}

static void skip_blanks(reader *r)
{
    while (r->p != r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r' || *r->p == '\n'))
        r->p++;
}

static bool accept(reader *r, char wanted)
{
    if (peek(r) != (uint8_t)wanted)
        return false;
    r->p++;
    return true;
}

/* The value of a hexadecimal digit, or 16. */
static uint32_t hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - (uint32_t)'0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - (uint32_t)'a' + 10 : 16;
}

/* Takes an escape after its backslash: a letter, or u and four digits. */
static bool skip_escape(reader *r)
{
    uint8_t kind = peek(r);
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

static bool take_string(reader *r, string *out)
{
    if (!accept(r, '"'))
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
static bool unescape(string *s)
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

static bool skip_digits(reader *r)
{
    const uint8_t *start = r->p;
    while (peek(r) >= '0' && peek(r) <= '9')
        r->p++;
    return r->p != start;
}

static bool skip_number(reader *r)
{
    (void)accept(r, '-');
    if (!accept(r, '0') && !skip_digits(r))
        return false;
    if (accept(r, '.') && !skip_digits(r))
        return false;
    if (accept(r, 'e') || accept(r, 'E')) {
        if (!accept(r, '+'))
            (void)accept(r, '-');
        return skip_digits(r);
    }
    return true;
}

static bool skip_word(reader *r, const char *word, size_t n)
{
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

static bool skip_scalar(reader *r)
{
    string ignored;
    switch (peek(r)) {
    case '"':
        return take_string(r, &ignored);
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
static bool take_name(reader *r, string *name)
{
    skip_blanks(r);
    if (!take_string(r, name))
        return false;
    skip_blanks(r);
    if (!accept(r, ':'))
        return false;
    skip_blanks(r);
    return true;
}

/* The objects and arrays that are open: one bit each, set for an object. */
typedef struct nesting {
    uint64_t objects;
    unsigned depth;
} nesting;

/* At a value: takes a scalar, or opens an object or array and comes to its first value. *done is
 * set when a value has ended. */
static bool enter_value(reader *r, nesting *open, bool *done)
{
    bool object = peek(r) == '{';
    string ignored;
    *done = true;
    if (!object && peek(r) != '[')
        return skip_scalar(r);
    if (open->depth == ZN_JSON_DEPTH_MAX)
        return false;
    r->p++;
    skip_blanks(r);
    if (accept(r, object ? '}' : ']'))
        return true;
    open->objects = open->objects << 1 | object;
    open->depth++;
    *done = false;
    return !object || take_name(r, &ignored);
}

/* After a value: closes what ends here, or comes to the next value (then *done is false). */
static bool leave_value(reader *r, nesting *open, bool *done)
{
    string ignored;
    while (open->depth != 0) {
        bool object = (open->objects & 1) != 0;
        skip_blanks(r);
        if (accept(r, ',')) {
            *done = false;
            if (object)
                return take_name(r, &ignored);
            skip_blanks(r);
            return true;
        }
        if (!accept(r, object ? '}' : ']'))
            return false;
        open->objects >>= 1;
        open->depth--;
    }
    return true;
}

static bool skip_value(reader *r)
{
    nesting open = {0, 0};
    bool done;
    do {
        if (!enter_value(r, &open, &done) || (done && !leave_value(r, &open, &done)))
            return false;
    } while (!done);
    return true;
}

/* A value that is wanted must be free of control characters, also of escaped ones. */
static zn_row_fault check_text(const reader *r, zn_span text, bool escapes)
{
    if ((escapes || r->controls) && zn_utf8_check(text) != ZN_UTF8_FINE)
        return ZN_FAULT_CONTROL;
    return ZN_FAULT_GOOD;
}

/* The value of a wanted column; scalar: no object or array. */
static zn_row_fault take_value(reader *r, bool scalar, zn_value *out)
{
    uint8_t kind = peek(r), *start = r->p;
    string text;
    if (kind == '"') {
        if (!take_string(r, &text) || !unescape(&text))
            return ZN_FAULT_JSON;
        out->text = (zn_span){text.p, text.n};
        out->kind = ZN_VALUE_TEXT;
        return check_text(r, out->text, text.escapes);
    }
    if (!skip_value(r))
        return ZN_FAULT_JSON;
    out->text = (zn_span){start, (size_t)(r->p - start)};
    out->kind = kind == 'n' ? ZN_VALUE_NONE : ZN_VALUE_JSON;
    if ((kind == '{' || kind == '[') && scalar)
        return ZN_FAULT_MISSING;
    return check_text(r, out->text, false);
}

static size_t index_of(zn_span name, const zn_row_columns *wanted)
{
    size_t i = 0;
    while (i < wanted->count && !zn_span_equal(name, wanted->name[i]))
        i++;
    return i;
}

/* Reads a member, from its name on; each wanted column has a bit in *seen. */
static zn_row_fault take_member(reader *r, const zn_row_columns *wanted, zn_row *out,
                                uint32_t *seen)
{
    string name;
    size_t i;
    if (!take_name(r, &name) || !unescape(&name))
        return ZN_FAULT_JSON;
    i = index_of((zn_span){name.p, name.n}, wanted);
    if (i == wanted->count)
        return skip_value(r) ? ZN_FAULT_GOOD : ZN_FAULT_JSON;
    if ((*seen >> i & 1) != 0)
        return ZN_FAULT_TWICE;
    *seen |= UINT32_C(1) << i;
    return take_value(r, i < wanted->scalars, &out->value[i]);
}

static zn_row_fault take_object(reader *r, const zn_row_columns *wanted, zn_row *out)
{
    uint32_t seen = 0;
    skip_blanks(r);
    if (!accept(r, '{'))
        return ZN_FAULT_JSON;
    skip_blanks(r);
    if (!accept(r, '}')) {
        do {
            zn_row_fault fault = take_member(r, wanted, out, &seen);
            if (fault != ZN_FAULT_GOOD)
                return fault;
            skip_blanks(r);
        } while (accept(r, ','));
        if (!accept(r, '}'))
            return ZN_FAULT_JSON;
    }
    skip_blanks(r);
    return r->p == r->end ? ZN_FAULT_GOOD : ZN_FAULT_JSON;
}

zn_row_fault zn_json_row(uint8_t *row, size_t n, const zn_row_columns *wanted, zn_row *out)
{
    reader r = {row, n == 0 ? row : row + n, false};
    zn_utf8 found = zn_utf8_check((zn_span){row, n});
    for (size_t i = 0; i < wanted->count; i++) {
        out->value[i].kind = ZN_VALUE_NONE;
        out->value[i].text = (zn_span){row, 0};
    }
    if (found == ZN_UTF8_INVALID)
        return ZN_FAULT_UTF8;
    r.controls = found == ZN_UTF8_CONTROL;
    return take_object(&r, wanted, out);
}
