/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/stun.h"

#include "proto/attribute_readers.h"

#define MAGIC_COOKIE UINT32_C(0x2112a442)
#define TRANSACTION_BYTES 12u
#define HEADER_BYTES 20u
#define TYPE_BITS 0x3fffu

enum { MESSAGE_INTEGRITY = 0x0008, MESSAGE_INTEGRITY_SHA256 = 0x001c, SOFTWARE = 0x8022 };

/* Reads the attributes. */
static zn_parse read_attributes(zn_cursor *c, zn_stun_message *out)
{
    bool found = false, ended = false;
    while (zn_cursor_left(c) > 0) {
        uint16_t type = zn_cursor_be16(c), n = zn_cursor_be16(c);
        zn_span value = zn_cursor_take(c, n);
        zn_cursor_skip(c, (4u - n % 4u) % 4u);
        if (type == SOFTWARE && !found && !ended) {
            out->software = value;
            found = true;
        }
        ended |= type == MESSAGE_INTEGRITY || type == MESSAGE_INTEGRITY_SHA256;
    }
    return zn_cursor_ok(c) ? ZN_DONE : ZN_MALFORMED;
}

zn_span zn_stun_first(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    size_t n;
    zn_cursor_skip(&c, sizeof(uint16_t)); /* type */
    n = HEADER_BYTES + zn_cursor_be16(&c);
    return zn_span_first(bytes, n < bytes.n ? n : bytes.n);
}

zn_parse zn_stun_read(zn_span bytes, zn_stun_message *out)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint16_t type = zn_cursor_be16(&c), length = zn_cursor_be16(&c);
    uint32_t cookie = zn_cursor_be32(&c);
    memset(out, 0, sizeof *out);
    out->transaction = zn_cursor_take(&c, TRANSACTION_BYTES);
    if (!zn_cursor_ok(&c) || (type & ~TYPE_BITS) != 0 || cookie != MAGIC_COOKIE)
        return ZN_OTHER;
    out->type = (zn_stun_class)((type >> 7 & 2u) | (type >> 4 & 1u));
    if (length != zn_cursor_left(&c) || length % 4u != 0)
        return ZN_MALFORMED;
    return read_attributes(&c, out);
}

zn_parse zn_read_stun(zn_span message, zn_attribute_text *out)
{
    zn_stun_message stun;
    zn_parse result = zn_stun_read(message, &stun);
    if (result != ZN_DONE)
        return result;
    if (stun.type != ZN_STUN_REQUEST || stun.software.n == 0)
        return ZN_OTHER;
    out->place = stun.software;
    zn_attribute_text_put(out, stun.software);
    return ZN_DONE;
}
