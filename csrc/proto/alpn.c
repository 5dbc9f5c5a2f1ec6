/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The protocols that a ClientHello offers (RFC 7301 3.1), joined by commas. */
#include "proto/attribute_readers.h"
#include "proto/hello_fields.h"

#define EXTENSION_ALPN 16u

/* Returns true for a protocol that a client invents for RFC 8701. It differs between hellos of one
 * client. */
static bool is_invented(zn_span protocol)
{
    return protocol.n == 2 && zn_is_grease(zn_header_be16(protocol, 0));
}

static zn_parse read_list(zn_cursor *data, zn_attribute_text *out)
{
    zn_cursor list = zn_cursor_sub(data, zn_cursor_be16(data)), all = list;
    out->place = zn_cursor_rest(&all);
    while (zn_cursor_left(&list) > 0) {
        zn_span protocol = zn_cursor_take(&list, zn_cursor_u8(&list));
        if (protocol.n == 0)
            return ZN_MALFORMED;
        if (is_invented(protocol))
            continue;
        if (out->n != 0)
            zn_attribute_text_byte(out, ',');
        zn_attribute_text_put(out, protocol);
    }
    if (!zn_cursor_ok(&list) || !zn_cursor_ok(data) || zn_cursor_left(data) > 0)
        return ZN_MALFORMED;
    return out->n != 0 ? ZN_DONE : ZN_OTHER;
}

zn_parse zn_read_alpn(zn_span message, zn_attribute_text *out)
{
    zn_hello_fields hello;
    zn_parse found = ZN_OTHER;
    zn_cursor data;
    uint16_t type;
    if (zn_hello_fields_read(message, &hello) != ZN_DONE)
        return ZN_MALFORMED;
    while (zn_hello_extension(&hello.extensions, &type, &data)) {
        if (type != EXTENSION_ALPN)
            continue;
        if (found != ZN_OTHER) /* two lists: which one counts cannot be known */
            return ZN_MALFORMED;
        found = read_list(&data, out);
    }
    return zn_cursor_ok(&hello.extensions) ? found : ZN_MALFORMED;
}
