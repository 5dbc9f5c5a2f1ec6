/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/attribute_text.h"

void zn_attribute_text_byte(zn_attribute_text *out, uint8_t byte)
{
    if (out->n == ZN_ATTRIBUTE_TEXT_MAX)
        out->is_cut = true;
    else
        out->text[out->n++] = byte;
}

/* Returns true for a byte that no format of logs escapes. */
static bool is_plain(uint8_t byte)
{
    return byte > 0x20 && byte < 0x7f && byte != '%' && byte != '"' && byte != ',' && byte != '\\';
}

void zn_attribute_text_put(zn_attribute_text *out, zn_span bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    zn_cursor c = zn_cursor_over_span(bytes, true);
    while (zn_cursor_left(&c) > 0 && !out->is_cut) {
        uint8_t byte = zn_cursor_u8(&c);
        if (is_plain(byte)) {
            zn_attribute_text_byte(out, byte);
        } else {
            zn_attribute_text_byte(out, '%');
            zn_attribute_text_byte(out, (uint8_t)digits[byte >> 4]);
            zn_attribute_text_byte(out, (uint8_t)digits[byte & 15]);
        }
    }
}
