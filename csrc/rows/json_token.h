/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of JSON (RFC 8259): strings, names and values of any depth. Each function moves the reader
 * past what it takes, or returns false if the bytes are not JSON.
 */
#ifndef ZN_ROWS_JSON_TOKEN_H
#define ZN_ROWS_JSON_TOKEN_H

#include "util/cursor.h"

#define ZN_JSON_DEPTH_MAX 64 /* objects and arrays in each other */

typedef struct zn_json_reader {
    uint8_t *p, *end;
    bool controls; /* the row holds control characters, perhaps in a value */
} zn_json_reader;

/* A string's content between its quotes. */
typedef struct zn_json_string {
    uint8_t *p;
    size_t n;
    bool escapes;
} zn_json_string;

static inline uint8_t zn_json_peek(const zn_json_reader *r)
{
    return r->p != r->end ? *r->p : 0;
}

static inline void zn_json_skip_blanks(zn_json_reader *r)
{
    while (r->p != r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r' || *r->p == '\n'))
        r->p++;
}

static inline bool zn_json_accept(zn_json_reader *r, char wanted)
{
    if (zn_json_peek(r) != (uint8_t)wanted)
        return false;
    r->p++;
    return true;
}

/* Takes a string, with its quotes. */
bool zn_json_take_string(zn_json_reader *r, zn_json_string *out);
/* Resolves a string's escapes in place. Returns false for half a surrogate pair. */
bool zn_json_unescape(zn_json_string *s);
/* Takes a member's name and its colon, with blanks around. */
bool zn_json_take_name(zn_json_reader *r, zn_json_string *name);
/* Takes a value of any kind. */
bool zn_json_skip_value(zn_json_reader *r);

#endif
