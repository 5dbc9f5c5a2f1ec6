/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The User-Agent field of an HTTP request (RFC 9110 10.1.5), as sent. */
#include "proto/attribute_readers.h"

/* Returns true for a byte that no field may have (RFC 9110 5.5). */
static bool is_forbidden(uint8_t byte)
{
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

zn_parse zn_read_user_agent(zn_span message, zn_attribute_text *out)
{
    zn_cursor c = zn_cursor_over_span(message, true);
    while (zn_cursor_left(&c) > 0)
        if (is_forbidden(zn_cursor_u8(&c)))
            return ZN_MALFORMED;
    out->place = message;
    zn_attribute_text_put(out, message);
    return message.n != 0 ? ZN_DONE : ZN_OTHER;
}
