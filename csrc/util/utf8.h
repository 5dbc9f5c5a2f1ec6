/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that came from outside: is it UTF-8 (RFC 3629: no overlong forms, no surrogates, at most
 * U+10FFFF), and free of control characters that could steer a terminal or end a line?
 */
#ifndef ZN_UTIL_UTF8_H
#define ZN_UTIL_UTF8_H

#include "util/cursor.h"

typedef enum zn_utf8 {
    ZN_UTF8_FINE,
    ZN_UTF8_CONTROL, /* holds U+0000-001F other than tab, LF and CR, or U+007F-009F */
    ZN_UTF8_INVALID
} zn_utf8;

zn_utf8 zn_utf8_check(zn_span text);

/* Writes `code` (no surrogate, at most U+10FFFF) in 1 to 4 bytes; returns how many. */
size_t zn_utf8_put(uint8_t out[4], uint32_t code);

#endif
