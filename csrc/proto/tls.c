/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two steps. First the handshake message is found: in place when the first record holds all of it,
 * or else its fragments are gathered from the records into the scratch buffer. Every byte that has
 * to be a certain value is tested as soon as it is there, so that a stream of another protocol is
 * told apart early. Then the message is read down as RFC 8446 4.1.2 prints it.
 */
#include "proto/tls.h"

#define RECORD_HEADER_BYTES 5u
#define RECORD_MAX (16384u + 256u) /* RFC 8446 5.2: the longest record that any version allows */
#define MESSAGE_HEADER_BYTES 4u
#define EXTENSION_HEADER_BYTES 4u
#define HELLO_MIN 38u                /* version, random, and three empty vectors */
#define HELLO_PLAUSIBLE_MAX 0x1ffffu /* beyond, it is no ClientHello: servers stop at 128 KiB */
#define SESSION_ID_MAX 32u
#define DATAGRAM_MAJOR 254u /* DTLS counts its versions down from 255 */

enum {
    HANDSHAKE_CLIENT_HELLO = 1,
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_TRANSPORT_PARAMETERS = 0x39,
    EXTENSION_TRANSPORT_PARAMETERS_DRAFT = 0xffa5, /* before RFC 9001 */
    EXTENSION_ENCRYPTED_CLIENT_HELLO = 0xfe0d,
    NAME_TYPE_HOST = 0
};

/* A handshake message, or the beginning of one: its bytes behind the 4-byte header. */
typedef struct hello_message {
    zn_span body;    /* what is there of it */
    size_t declared; /* its length as the header gives it */
    size_t consumed; /* bytes of the stream up to its end, or to what is there of it */
} hello_message;

static zn_tls_hello nothing_read(zn_span input)
{
    zn_span none = {input.p, 0};
    return (zn_tls_hello){.name = none, .cookie = none, .transport_parameters = none};
}

/* Reads a record header. NEED_MORE when it is cut, OTHER when it is not a handshake record's. */
static zn_parse read_record_header(zn_cursor *c, size_t *length)
{
    size_t left = zn_cursor_left(c);
    uint8_t type = zn_cursor_u8(c);
    uint8_t major = zn_cursor_u8(c);
    uint8_t minor = zn_cursor_u8(c);
    *length = zn_cursor_be16(c);
    if ((left >= 1 && type != ZN_TLS_CONTENT_HANDSHAKE) || (left >= 2 && major != 3) || minor > 4)
        return ZN_OTHER;
    if (left < RECORD_HEADER_BYTES)
        return ZN_NEED_MORE;
    return *length != 0 && *length <= RECORD_MAX ? ZN_DONE : ZN_OTHER;
}

/* Tests what is there of a message's first bytes; DONE when its length is known. */
static zn_parse read_message_header(zn_span bytes, size_t *length)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    bool there = bytes.n >= MESSAGE_HEADER_BYTES;
    uint8_t type = zn_cursor_u8(&c);
    *length = zn_cursor_be24(&c);
    if (bytes.n >= 1 && type != HANDSHAKE_CLIENT_HELLO)
        return ZN_OTHER;
    if (there && (*length < HELLO_MIN || *length > HELLO_PLAUSIBLE_MAX))
        return ZN_OTHER;
    if (bytes.n > MESSAGE_HEADER_BYTES && zn_cursor_u8(&c) != 3)
        return ZN_OTHER;
    if (there && *length > ZN_TLS_HELLO_MAX - MESSAGE_HEADER_BYTES)
        return ZN_MALFORMED;
    return there ? ZN_DONE : ZN_NEED_MORE;
}

/* The message body among the bytes of a whole or cut message, header included. */
static zn_span body_of(zn_span message, size_t declared)
{
    zn_cursor c = zn_cursor_over_span(message, false);
    size_t there = message.n - MESSAGE_HEADER_BYTES;
    zn_cursor_skip(&c, MESSAGE_HEADER_BYTES);
    return zn_cursor_take(&c, there < declared ? there : declared);
}

/*
 * Gathers a message over the records at the cursor. DONE when its length is known, whether all of
 * it is there or not.
 */
static zn_parse gather(zn_cursor *c, size_t head_bytes, zn_tls_scratch *scratch, hello_message *out)
{
    zn_span gathered = {scratch->bytes, 0};
    zn_parse state = ZN_NEED_MORE;
    size_t want = MESSAGE_HEADER_BYTES; /* until the header says more */
    size_t record_left = 0;

    while (gathered.n < want) {
        size_t n = want - gathered.n;
        zn_span segment;
        if (record_left == 0) {
            zn_parse record = read_record_header(c, &record_left);
            if (record == ZN_OTHER)
                return gathered.n == 0 ? ZN_OTHER : ZN_MALFORMED;
            if (record == ZN_NEED_MORE)
                break;
        }
        n = n < record_left ? n : record_left;
        n = n < zn_cursor_left(c) ? n : zn_cursor_left(c);
        if (n == 0)
            break;
        segment = zn_cursor_take(c, n);
        memcpy(scratch->bytes + gathered.n, segment.p, n);
        gathered.n += n;
        record_left -= n;
        state = read_message_header(gathered, &out->declared);
        if (state == ZN_OTHER || state == ZN_MALFORMED)
            return state;
        if (state == ZN_DONE)
            want = MESSAGE_HEADER_BYTES + out->declared;
    }
    if (state == ZN_DONE)
        out->body = body_of(gathered, out->declared);
    out->consumed = head_bytes - zn_cursor_left(c);
    return state;
}

/* Finds the ClientHello at the start of a stream. DONE when its length is known. */
static zn_parse find_message(zn_span head, zn_tls_scratch *scratch, hello_message *out)
{
    zn_cursor c = zn_cursor_over_span(head, false);
    zn_cursor records = c;
    zn_span fragment;
    size_t length;
    zn_parse state = read_record_header(&c, &length);

    if (state != ZN_DONE)
        return state;
    fragment = zn_cursor_take(&c, length < zn_cursor_left(&c) ? length : zn_cursor_left(&c));
    state = read_message_header(fragment, &out->declared);
    if (state == ZN_OTHER || state == ZN_MALFORMED)
        return state;
    if (state == ZN_DONE && MESSAGE_HEADER_BYTES + out->declared <= length) {
        out->body = body_of(fragment, out->declared);
        out->consumed = RECORD_HEADER_BYTES + MESSAGE_HEADER_BYTES + out->body.n;
        return ZN_DONE;
    }
    return gather(&records, head.n, scratch, out);
}

/* The server_name extension's data (RFC 6066 3), all of which is there. */
static zn_parse parse_server_name(zn_cursor *c, zn_span *name)
{
    bool seen = false;
    size_t list_bytes;
    if (zn_cursor_left(c) == 0)
        return ZN_DONE;
    list_bytes = zn_cursor_be16(c);
    if (list_bytes != zn_cursor_left(c))
        return ZN_MALFORMED;
    while (zn_cursor_left(c) > 0) {
        uint8_t type = zn_cursor_u8(c);
        zn_span value = zn_cursor_take(c, zn_cursor_be16(c));
        if (type != NAME_TYPE_HOST)
            continue;
        if (seen)
            return ZN_MALFORMED;
        seen = true;
        *name = value;
    }
    return zn_cursor_parse(c);
}

/* The extension block. DONE as well when it is cut behind a whole server_name extension. */
static zn_parse parse_extensions(zn_cursor *c, zn_tls_hello *out)
{
    bool named = false;
    zn_span header;
    while (zn_cursor_left(c) > 0 && (header = zn_cursor_take(c, EXTENSION_HEADER_BYTES)).n != 0) {
        uint16_t type = zn_header_be16(header, 0);
        zn_cursor data = zn_cursor_sub(c, zn_header_be16(header, 2));
        if (!zn_cursor_ok(c))
            break;
        switch (type) {
        case EXTENSION_SERVER_NAME:
            if (named || parse_server_name(&data, &out->name) != ZN_DONE)
                return ZN_MALFORMED;
            named = true;
            break;
        case EXTENSION_ENCRYPTED_CLIENT_HELLO:
            out->ech_offered = true;
            out->ech_bytes = (uint16_t)zn_cursor_left(&data);
            break;
        case EXTENSION_TRANSPORT_PARAMETERS:
        case EXTENSION_TRANSPORT_PARAMETERS_DRAFT:
            out->transport_parameters = zn_cursor_rest(&data);
            break;
        case ZN_TLS_ALPN:
        case ZN_TLS_PRE_SHARED_KEY:
        case ZN_TLS_EARLY_DATA:
        case ZN_TLS_SUPPORTED_VERSIONS:
        case ZN_TLS_NPN:
            zn_tls_read_extension(type, &data, true, &out->details);
            break;
        default:
            break;
        }
    }
    if (zn_cursor_ok(c) || (named && c->state == ZN_CURSOR_SHORT))
        return named || c->whole ? ZN_DONE : ZN_NEED_MORE;
    return zn_cursor_parse(c);
}

/* A ClientHello from its version to its end, or, in a cut capture, to what is there of it. DTLS has
 * a cookie between the session ID and the cipher suites. */
static zn_parse parse_hello(const hello_message *hello, bool datagram, zn_tls_hello *out)
{
    zn_cursor c = zn_cursor_over_span(hello->body, hello->body.n == hello->declared);
    size_t missing = hello->declared - hello->body.n;
    size_t bytes;
    zn_cursor extensions;

    out->details.versions = 1;
    out->details.version[0] = zn_cursor_be16(&c); /* tested before */
    zn_cursor_skip(&c, 32);                       /* random */
    bytes = zn_cursor_u8(&c);
    out->details.session_id = bytes != 0;
    if (bytes > SESSION_ID_MAX)
        return ZN_MALFORMED;
    zn_cursor_skip(&c, bytes);
    if (datagram)
        out->cookie = zn_cursor_take(&c, zn_cursor_u8(&c));
    bytes = zn_cursor_be16(&c); /* cipher suites */
    if (zn_cursor_ok(&c) && (bytes == 0 || bytes % 2 != 0))
        return ZN_MALFORMED;
    zn_cursor_skip(&c, bytes);
    bytes = zn_cursor_u8(&c); /* compression methods */
    if (zn_cursor_ok(&c) && bytes == 0)
        return ZN_MALFORMED;
    zn_cursor_skip(&c, bytes);
    if (zn_cursor_ok(&c) && missing == 0 && zn_cursor_left(&c) == 0)
        return ZN_DONE; /* up to TLS 1.2 there may be no extensions */
    bytes = zn_cursor_be16(&c);
    if (!zn_cursor_ok(&c))
        return zn_cursor_parse(&c);
    if (bytes != zn_cursor_left(&c) + missing)
        return ZN_MALFORMED;
    extensions = zn_cursor_sub(&c, bytes);
    return parse_extensions(&extensions, out);
}

/* Parses a message whose length is known; *out says nothing unless it is DONE. */
static zn_parse read_hello(const hello_message *hello, bool datagram, zn_tls_hello *out)
{
    zn_parse state;
    out->consumed = hello->consumed;
    state = parse_hello(hello, datagram, out);
    if (state != ZN_DONE)
        *out = nothing_read(hello->body);
    else if (hello->body.n < hello->declared)
        out->details.versions = 0;
    return state;
}

zn_parse zn_tls_client_hello(zn_span head, bool cut, zn_tls_scratch *scratch, zn_tls_hello *out)
{
    hello_message hello = {{head.p, 0}, 0, 0};
    zn_parse state;

    *out = nothing_read(head);
    state = find_message(head, scratch, &hello);
    if (state != ZN_DONE)
        return state;
    if (hello.body.n < hello.declared && !cut)
        return ZN_NEED_MORE;
    return read_hello(&hello, false, out);
}

zn_parse zn_tls_bare_hello(zn_span head, zn_tls_hello *out)
{
    hello_message hello = {{head.p, 0}, 0, 0};
    zn_parse state;

    *out = nothing_read(head);
    state = read_message_header(head, &hello.declared);
    if (state != ZN_DONE)
        return state;
    hello.body = body_of(head, hello.declared);
    hello.consumed = MESSAGE_HEADER_BYTES + hello.body.n;
    if (hello.body.n < hello.declared)
        return ZN_NEED_MORE;
    return read_hello(&hello, false, out);
}

zn_parse zn_tls_datagram_hello(zn_span body, size_t declared, zn_tls_hello *out)
{
    hello_message hello = {body, declared, body.n};
    zn_cursor c = zn_cursor_over_span(body, false);

    *out = nothing_read(body);
    if (zn_cursor_u8(&c) != DATAGRAM_MAJOR && zn_cursor_ok(&c))
        return ZN_OTHER;
    if (declared <= HELLO_MIN || declared > ZN_TLS_HELLO_MAX || body.n > declared)
        return ZN_MALFORMED;
    return read_hello(&hello, true, out);
}
