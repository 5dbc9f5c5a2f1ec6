/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/hello_fields.h"

#define RANDOM_BYTES 32u

zn_parse zn_hello_fields_read(zn_span body, zn_hello_fields *out)
{
    zn_cursor c = zn_cursor_over_span(body, true);
    out->version = zn_cursor_be16(&c);
    zn_cursor_skip(&c, RANDOM_BYTES);
    zn_cursor_skip(&c, zn_cursor_u8(&c)); /* session ID */
    if (zn_hello_is_datagram(out))
        zn_cursor_skip(&c, zn_cursor_u8(&c)); /* cookie */
    out->suites = zn_cursor_take(&c, zn_cursor_be16(&c));
    zn_cursor_skip(&c, zn_cursor_u8(&c)); /* compression methods */
    out->extensions = c;
    if (zn_cursor_ok(&c) && zn_cursor_left(&c) > 0)
        out->extensions = zn_cursor_sub(&c, zn_cursor_be16(&c));
    return zn_cursor_ok(&c) && zn_cursor_left(&c) == 0 ? ZN_DONE : ZN_MALFORMED;
}

bool zn_hello_extension(zn_cursor *extensions, uint16_t *type, zn_cursor *data)
{
    if (zn_cursor_left(extensions) == 0)
        return false;
    *type = zn_cursor_be16(extensions);
    *data = zn_cursor_sub(extensions, zn_cursor_be16(extensions));
    return zn_cursor_ok(extensions);
}
