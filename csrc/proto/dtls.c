/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/dtls.h"

#define MAJOR 254u /* DTLS 1.0 is {254, 255}, 1.2 {254, 253}; 1.3 says 1.2 in its records */
#define MINOR_MIN 253u

enum { CONTENT_FIRST = 20, CONTENT_HANDSHAKE = 22, CONTENT_LAST = 26 };

zn_dtls_reader zn_dtls_read(zn_span datagram, bool whole)
{
    zn_dtls_reader r = {zn_cursor_over_span(datagram, whole), zn_cursor_over(datagram.p, 0, true)};
    return r;
}

/* Goes to the next handshake record of epoch 0. */
static zn_parse next_record(zn_dtls_reader *r)
{
    while (zn_cursor_left(&r->datagram) > 0) {
        zn_cursor *c = &r->datagram;
        uint8_t type = zn_cursor_u8(c);
        uint8_t major = zn_cursor_u8(c);
        uint8_t minor = zn_cursor_u8(c);
        uint16_t epoch = zn_cursor_be16(c);
        zn_cursor_skip(c, 6); /* sequence number */
        r->record = zn_cursor_sub(c, zn_cursor_be16(c));
        if (type < CONTENT_FIRST || type > CONTENT_LAST || major != MAJOR || minor < MINOR_MIN)
            return ZN_OTHER;
        if (c->state == ZN_CURSOR_BAD)
            return ZN_MALFORMED;
        if (type == CONTENT_HANDSHAKE && epoch == 0 && zn_cursor_left(&r->record) > 0)
            return ZN_DONE;
    }
    return zn_cursor_ok(&r->datagram) ? ZN_OTHER : zn_cursor_parse(&r->datagram);
}

zn_parse zn_dtls_next_fragment(zn_dtls_reader *r, zn_dtls_fragment *out)
{
    zn_cursor *c = &r->record;
    zn_cursor part;
    uint32_t bytes;
    memset(out, 0, sizeof *out);
    if (zn_cursor_left(c) == 0) {
        zn_parse state = next_record(r);
        if (state != ZN_DONE)
            return state;
    }
    out->type = zn_cursor_u8(c);
    out->length = zn_cursor_be24(c);
    out->message = zn_cursor_be16(c);
    out->offset = zn_cursor_be24(c);
    bytes = zn_cursor_be24(c);
    if (zn_cursor_ok(c) && (out->offset > out->length || bytes > out->length - out->offset))
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    if (!zn_cursor_ok(c))
        return zn_cursor_parse(c);
    part = zn_cursor_sub(c, bytes);
    out->bytes = zn_cursor_rest(&part);
    out->cut = !zn_cursor_ok(c);
    if (out->cut && c->state == ZN_CURSOR_BAD)
        return ZN_MALFORMED;
    return ZN_DONE;
}

zn_parse zn_dtls_verify_request(zn_span body, zn_span *cookie)
{
    zn_cursor c = zn_cursor_over_span(body, true);
    zn_cursor_skip(&c, 2); /* server_version */
    *cookie = zn_cursor_take(&c, zn_cursor_u8(&c));
    return zn_cursor_parse(&c);
}
