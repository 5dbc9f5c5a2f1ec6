/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of DER (X.690), as far as certificates need them. */
#ifndef ZN_PROTO_DER_H
#define ZN_PROTO_DER_H

#include "util/cursor.h"

enum {
    ZN_DER_OCTETS = 0x04,
    ZN_DER_OID = 0x06,
    ZN_DER_UTF8 = 0x0c,
    ZN_DER_NUMERIC = 0x12,
    ZN_DER_PRINTABLE = 0x13,
    ZN_DER_TELETEX = 0x14,
    ZN_DER_IA5 = 0x16,
    ZN_DER_VISIBLE = 0x1a,
    ZN_DER_BMP = 0x1e,
    ZN_DER_SEQUENCE = 0x30,
    ZN_DER_SET = 0x31,
    ZN_DER_CONTEXT_0 = 0xa0, /* constructed, with the tag [0] */
    ZN_DER_CONTEXT_3 = 0xa3
};

/* Reads a length (X.690 8.1.3): short, or long in up to three bytes, because no certificate has a
 * longer length. Any other length fails the cursor. */
static inline size_t zn_der_length(zn_cursor *c)
{
    uint8_t first = zn_cursor_u8(c);
    switch (first) {
    case 0x81:
        return zn_cursor_u8(c);
    case 0x82:
        return zn_cursor_be16(c);
    case 0x83:
        return zn_cursor_be24(c);
    default:
        if (first < 0x80)
            return first;
        zn_cursor_fail(c, ZN_CURSOR_BAD);
        return 0;
    }
}

/* Takes the next element, and returns a cursor over its content. */
static inline zn_cursor zn_der_any(zn_cursor *c, uint8_t *tag)
{
    *tag = zn_cursor_u8(c);
    return zn_cursor_sub(c, zn_der_length(c));
}

/* Takes the next element, and returns a cursor over its content. Both cursors fail if the element
 * has another tag. */
static inline zn_cursor zn_der_take(zn_cursor *c, uint8_t tag)
{
    uint8_t actual;
    zn_cursor content = zn_der_any(c, &actual);
    if (actual != tag) {
        zn_cursor_fail(c, ZN_CURSOR_BAD);
        zn_cursor_fail(&content, ZN_CURSOR_BAD);
    }
    return content;
}

#endif
