/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/tls_handshake.h"

#include "proto/ascii.h"

#define RECORD_BYTES_MAX (16384u + 2048u) /* RFC 5246 6.2.3 */
#define EXTENSION_HEADER_BYTES 4u         /* type and length */
#define PROTOCOLS_MAX 20                  /* of a list that are looked at */

enum {
    MESSAGE_CLIENT_HELLO = 1,
    MESSAGE_SERVER_HELLO = 2,
    MESSAGE_CERTIFICATE = 11,
    MESSAGE_SERVER_KEY_EXCHANGE = 12,
    MESSAGE_SERVER_HELLO_DONE = 14
};

/* The random of a HelloRetryRequest (RFC 8446 4.1.3). */
static const uint8_t retry_random[32] = {
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

zn_span zn_tls_handshake_bytes(zn_span head, uint8_t *scratch, size_t cap, bool *ended)
{
    zn_cursor c = zn_cursor_over_span(head, false);
    zn_span bytes = {scratch, 0};
    *ended = false;
    while (zn_cursor_left(&c) > 0 && bytes.n < cap) {
        uint8_t type = zn_cursor_u8(&c);
        uint16_t version = zn_cursor_be16(&c);
        size_t length = zn_cursor_be16(&c);
        zn_span part;
        if (type != ZN_TLS_CONTENT_HANDSHAKE ||
            (zn_cursor_ok(&c) && (version >> 8 != 3 || length == 0 || length > RECORD_BYTES_MAX))) {
            *ended = true;
            break;
        }
        if (length > zn_cursor_left(&c))
            length = zn_cursor_left(&c);
        if (bytes.n == 0 && length == zn_cursor_left(&c) && length <= cap)
            return zn_cursor_take(&c, length);
        if (length > cap - bytes.n)
            length = cap - bytes.n;
        part = zn_cursor_take(&c, length);
        if (part.n != 0)
            memcpy(scratch + bytes.n, part.p, part.n);
        bytes.n += part.n;
    }
    return bytes;
}

/* A name of NPN or ALPN as one of Tstat's bits. */
static uint8_t protocol_bit(zn_span name, bool npn)
{
    static const uint8_t spdy[] = "spdy/", http[] = "http/", h2[] = "h2";
    if (name.n >= sizeof spdy - 1 && memcmp(name.p, spdy, sizeof spdy - 1) == 0)
        return npn ? ZN_NPN_SPDY : ZN_ALPN_SPDY;
    if (name.n >= sizeof http - 1 && memcmp(name.p, http, sizeof http - 1) == 0)
        return npn ? ZN_NPN_HTTP : ZN_ALPN_HTTP;
    if (name.n >= sizeof h2 - 1 && memcmp(name.p, h2, sizeof h2 - 1) == 0 &&
        (name.n == 2 || zn_ascii_first(zn_ascii_part(name, 2, 3)) == '-'))
        return npn ? ZN_NPN_H2 : ZN_ALPN_H2;
    return 0;
}

static uint8_t read_protocols(zn_cursor *c, bool npn)
{
    uint8_t bits = zn_cursor_left(c) == 0 ? (npn ? ZN_NPN_EMPTY : ZN_ALPN_EMPTY) : 0;
    for (unsigned i = 0; i < PROTOCOLS_MAX && zn_cursor_left(c) > 0; i++)
        bits |= protocol_bit(zn_cursor_take(c, zn_cursor_u8(c)), npn);
    return bits;
}

/* A client sends a list behind a length of one byte, a server its choice. */
static void read_versions(zn_cursor *c, bool client, zn_tls_details *out)
{
    if (client)
        zn_cursor_skip(c, 1);
    if (zn_cursor_left(c) >= 2)
        out->versions = 0;
    while (zn_cursor_left(c) >= 2 && out->versions < ZN_TLS_VERSIONS)
        out->version[out->versions++] = zn_cursor_be16(c);
}

void zn_tls_read_extension(uint16_t type, zn_cursor *data, bool client, zn_tls_details *out)
{
    switch (type) {
    case ZN_TLS_ALPN:
        if (zn_cursor_left(data) > 0)
            zn_cursor_skip(data, 2);
        out->protocols |= read_protocols(data, false);
        break;
    case ZN_TLS_NPN:
        out->protocols |= read_protocols(data, true);
        break;
    case ZN_TLS_SUPPORTED_VERSIONS:
        read_versions(data, client, out);
        break;
    case ZN_TLS_PRE_SHARED_KEY:
        out->pre_shared_key = true;
        break;
    case ZN_TLS_EARLY_DATA:
        out->early_data = true;
        break;
    default:
        break;
    }
}

static void read_extensions(zn_cursor *c, bool client, zn_tls_details *out)
{
    zn_span header;
    while ((header = zn_cursor_take(c, EXTENSION_HEADER_BYTES)).n != 0) {
        zn_cursor data = zn_cursor_sub(c, zn_header_be16(header, 2));
        zn_tls_read_extension(zn_header_be16(header, 0), &data, client, out);
    }
}

void zn_tls_read_details(zn_span handshake, zn_tls_details *out)
{
    zn_cursor c = zn_cursor_over_span(handshake, false);
    uint8_t type = zn_cursor_u8(&c);
    bool client = type == MESSAGE_CLIENT_HELLO;
    zn_cursor body = zn_cursor_sub(&c, zn_cursor_be24(&c)), extensions;
    zn_span random;
    *out = (zn_tls_details){{0}, 0, 0, false, false, false, false};
    if (!client && type != MESSAGE_SERVER_HELLO)
        return;
    out->version[0] = zn_cursor_be16(&body);
    random = zn_cursor_take(&body, sizeof retry_random);
    if (random.n == 0)
        return;
    out->versions = 1;
    out->retry = !client && memcmp(random.p, retry_random, random.n) == 0;
    out->session_id = zn_cursor_take(&body, zn_cursor_u8(&body)).n != 0;
    if (client) {
        zn_cursor_skip(&body, zn_cursor_be16(&body)); /* cipher suites */
        zn_cursor_skip(&body, zn_cursor_u8(&body));   /* compression methods */
    } else {
        zn_cursor_skip(&body, 2 + 1);
    }
    extensions = zn_cursor_sub(&body, zn_cursor_be16(&body));
    if (zn_cursor_ok(&extensions))
        read_extensions(&extensions, client, out);
}

/* The list's first entry; a list that is cut will do when the entry is whole. */
static zn_parse first_of_list(zn_cursor *body, zn_span *certificate)
{
    size_t list = zn_cursor_be24(body), length;
    if (zn_cursor_ok(body) && list == 0)
        return ZN_OTHER;
    length = zn_cursor_be24(body);
    if (!zn_cursor_ok(body))
        return ZN_NEED_MORE;
    if (length == 0 || length + 3 > list)
        return ZN_OTHER;
    *certificate = zn_cursor_take(body, length);
    return certificate->n != 0 ? ZN_DONE : ZN_NEED_MORE;
}

zn_parse zn_tls_first_certificate(zn_span handshake, zn_span *certificate)
{
    zn_cursor c = zn_cursor_over_span(handshake, false);
    while (zn_cursor_left(&c) > 0) {
        uint8_t type = zn_cursor_u8(&c);
        zn_cursor body = zn_cursor_sub(&c, zn_cursor_be24(&c));
        if (body.state != ZN_CURSOR_OK && zn_cursor_left(&body) == 0)
            return ZN_NEED_MORE;
        body.state = ZN_CURSOR_OK;
        if (type == MESSAGE_CERTIFICATE)
            return first_of_list(&body, certificate);
        if (type == MESSAGE_SERVER_KEY_EXCHANGE || type == MESSAGE_SERVER_HELLO_DONE)
            return ZN_OTHER;
    }
    return ZN_NEED_MORE;
}
