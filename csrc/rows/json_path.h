/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path of a JSON member: the names of the objects around it and its own name, with dots between
 * them. A member whose own name holds dots has the same path as a member of objects.
 */
#ifndef ZN_ROWS_JSON_PATH_H
#define ZN_ROWS_JSON_PATH_H

#include "rows/json_token.h"

#define ZN_JSON_PATH_MAX 256 /* bytes; a longer path matches no column */

typedef struct zn_json_path {
    uint8_t text[ZN_JSON_PATH_MAX];
    size_t n;    /* of the whole path; more than ZN_JSON_PATH_MAX: it is too long */
    size_t base; /* of the object that is open */
} zn_json_path;

/* Sets the path to a member of the open object. */
static inline void zn_json_path_enter(zn_json_path *path, zn_span name)
{
    size_t dot = path->base != 0;
    path->n = ZN_JSON_PATH_MAX + 1;
    if (name.n + path->base + dot > ZN_JSON_PATH_MAX)
        return;
    if (dot != 0)
        path->text[path->base] = '.';
    if (name.n != 0)
        memcpy(path->text + path->base + dot, name.p, name.n);
    path->n = path->base + dot + name.n;
}

/* Returns the path; empty if it is too long. */
static inline zn_span zn_json_path_span(const zn_json_path *path)
{
    return (zn_span){path->text, path->n > ZN_JSON_PATH_MAX ? 0 : path->n};
}

/* Returns true if `name` is the path of a member inside the path's object. */
static inline bool zn_json_path_holds(const zn_json_path *path, zn_span name)
{
    zn_span own = zn_json_path_span(path);
    return own.n != 0 && name.n > own.n && name.p[own.n] == '.' &&
           memcmp(name.p, own.p, own.n) == 0;
}

#endif
