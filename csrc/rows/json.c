/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the one object, and of objects inside it that hold a wanted member. */
#include "rows/json.h"

#include "rows/json_path.h"
#include "util/text.h"

#define OBJECTS_MAX 16 /* around a wanted member */

/* A value that is wanted must be free of control characters, also of escaped ones. */
static zn_row_fault check_text(const zn_json_reader *r, zn_span text, bool escapes)
{
    if ((escapes || r->controls) && zn_utf8_check(text) != ZN_UTF8_FINE)
        return ZN_FAULT_CONTROL;
    return ZN_FAULT_GOOD;
}

/* The value of a wanted column; scalar: no object or array. */
static zn_row_fault take_value(zn_json_reader *r, bool scalar, zn_value *out)
{
    uint8_t kind = zn_json_peek(r), *start = r->p;
    zn_json_string text;
    if (kind == '"') {
        if (!zn_json_take_string(r, &text) || !zn_json_unescape(&text))
            return ZN_FAULT_JSON;
        out->text = (zn_span){text.p, text.n};
        out->kind = ZN_VALUE_TEXT;
        return check_text(r, out->text, text.escapes);
    }
    if (!zn_json_skip_value(r))
        return ZN_FAULT_JSON;
    out->text = (zn_span){start, kind == 'n' ? 0 : (size_t)(r->p - start)};
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

/* The objects around the current member. */
typedef struct place {
    zn_json_path path;
    size_t base[OBJECTS_MAX]; /* of path, outside of each open object */
    size_t open;
} place;

/* Returns true if the member is an object that holds a wanted member. */
static bool is_way(const zn_json_reader *r, const place *at, const zn_row_columns *wanted)
{
    if (zn_json_peek(r) != '{' || at->open == OBJECTS_MAX)
        return false;
    for (size_t i = 0; i < wanted->count; i++)
        if (zn_json_path_holds(&at->path, wanted->name[i]))
            return true;
    return false;
}

/* Reads a member, from its name on; each wanted column has a bit in *seen. Opens an object that
 * holds a wanted member, and sets *entered. */
static zn_row_fault take_member(zn_json_reader *r, place *at, const zn_row_columns *wanted,
                                zn_row *out, uint32_t *seen, bool *entered)
{
    zn_json_string name;
    size_t i;
    *entered = false;
    if (!zn_json_take_name(r, &name) || !zn_json_unescape(&name))
        return ZN_FAULT_JSON;
    zn_json_path_enter(&at->path, (zn_span){name.p, name.n});
    i = at->path.n > ZN_JSON_PATH_MAX ? wanted->count
                                      : index_of(zn_json_path_span(&at->path), wanted);
    if (i == wanted->count && is_way(r, at, wanted)) {
        r->p++;
        at->base[at->open++] = at->path.base;
        at->path.base = at->path.n;
        *entered = true;
        return ZN_FAULT_GOOD;
    }
    if (i == wanted->count)
        return zn_json_skip_value(r) ? ZN_FAULT_GOOD : ZN_FAULT_JSON;
    if ((*seen >> i & 1) != 0)
        return ZN_FAULT_TWICE;
    *seen |= UINT32_C(1) << i;
    return take_value(r, i < wanted->scalars, &out->value[i]);
}

static zn_row_fault take_object(zn_json_reader *r, const zn_row_columns *wanted, zn_row *out)
{
    place at;
    uint32_t seen = 0;
    bool fresh = true; /* an object was opened, and has no member yet */
    at.path.n = at.path.base = 0;
    at.open = 0;
    zn_json_skip_blanks(r);
    if (!zn_json_accept(r, '{'))
        return ZN_FAULT_JSON;
    for (;;) {
        zn_row_fault fault;
        zn_json_skip_blanks(r);
        if (zn_json_accept(r, '}')) {
            if (at.open == 0)
                break;
            at.path.base = at.base[--at.open];
            fresh = false;
            continue;
        }
        if (!fresh && !zn_json_accept(r, ','))
            return ZN_FAULT_JSON;
        fault = take_member(r, &at, wanted, out, &seen, &fresh);
        if (fault != ZN_FAULT_GOOD)
            return fault;
    }
    zn_json_skip_blanks(r);
    return r->p == r->end ? ZN_FAULT_GOOD : ZN_FAULT_JSON;
}

zn_row_fault zn_json_row(uint8_t *row, size_t n, const zn_row_columns *wanted, zn_row *out)
{
    zn_json_reader r = {row, n == 0 ? row : row + n, false};
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
