/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two steps. First the handshake message is found: in place when the first record holds all of it,
 * or else its fragments are gathered from the records into the scratch buffer. Every byte that has
 * to be a certain value is tested as soon as it is there, so that a stream of another protocol is
 * recognised early. Then the message is read down as RFC 8446 4.1.2 prints it.
 */
#include "proto/tls.h"

#include "proto/ascii.h"
#include "proto/der.h"

#define RECORD_HEADER_BYTES 5u
#define RECORD_MAX (16384u + 256u) /* RFC 8446 5.2: the longest record that any version allows */
#define EMPTY_RECORDS_MAX 32u      /* in a row; OpenSSL accepts as many */
#define DETAILS_RECORD_MAX (16384u + 2048u) /* RFC 5246 6.2.3: of old versions */
#define MESSAGE_HEADER_BYTES 4u
#define EXTENSION_HEADER_BYTES 4u /* type and length */
#define V2_FIXED_BYTES 9u         /* of a hello of SSL 2.0: type, version, three lengths */
#define V2_SUITE_BYTES 3u
#define HELLO_MIN 38u                /* version, random, and three empty vectors */
#define HELLO_PLAUSIBLE_MAX 0x1ffffu /* beyond, it is no ClientHello: servers stop at 128 KiB */
#define SESSION_ID_MAX 32u
#define PROTOCOLS_MAX 20    /* of a list of NPN or ALPN that are looked at */
#define ATTRIBUTES_MAX 64   /* of a certificate's subject that are looked at */
#define DATAGRAM_MAJOR 254u /* DTLS counts its versions down from 255 */

enum {
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_ALPN = 16,
    EXTENSION_PRE_SHARED_KEY = 41,
    EXTENSION_EARLY_DATA = 42,
    EXTENSION_SUPPORTED_VERSIONS = 43,
    EXTENSION_NPN = 0x3374, /* never more than a draft */
    EXTENSION_TRANSPORT_PARAMETERS = 0x39,
    EXTENSION_TRANSPORT_PARAMETERS_DRAFT = 0xffa5, /* before RFC 9001 */
    EXTENSION_ENCRYPTED_CLIENT_HELLO = 0xfe0d,
    NAME_TYPE_HOST = 0
};

enum {
    MESSAGE_CLIENT_HELLO = 1,
    MESSAGE_SERVER_HELLO = 2,
    MESSAGE_CERTIFICATE = 11,
    MESSAGE_SERVER_KEY_EXCHANGE = 12,
    MESSAGE_SERVER_HELLO_DONE = 14
};

static const uint8_t common_name_oid[3] = {0x55, 0x04, 0x03}; /* 2.5.4.3 */

/* The random of a HelloRetryRequest (RFC 8446 4.1.3). */
static const uint8_t retry_random[32] = {
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

/* A handshake message, or the beginning of one: its bytes after the 4-byte header. */
typedef struct hello_message {
    zn_span body;    /* what is there of it */
    size_t declared; /* its length as the header gives it */
    /* bytes of the stream up to the end of the message, or to the last byte captured */
    size_t consumed;
} hello_message;

static zn_tls_hello nothing_read(zn_span input)
{
    zn_span none = {input.p, 0};
    return (zn_tls_hello){.name = none, .cookie = none, .transport_parameters = none};
}

/* Reads a record header. NEED_MORE when it is cut, OTHER when it is not a handshake record's.
 * Servers ignore the minor version of the records around a hello (RFC 8446 5.1). */
static zn_parse read_record_header(zn_cursor *c, size_t *length)
{
    size_t left = zn_cursor_left(c);
    uint8_t type = zn_cursor_u8(c);
    uint8_t major = zn_cursor_u8(c);
    zn_cursor_skip(c, 1);
    *length = zn_cursor_be16(c);
    if ((left >= 1 && type != ZN_TLS_CONTENT_HANDSHAKE) || (left >= 2 && major != 3))
        return ZN_OTHER;
    if (left < RECORD_HEADER_BYTES)
        return ZN_NEED_MORE;
    return *length <= RECORD_MAX ? ZN_DONE : ZN_OTHER;
}

/* Reads the headers of empty records and of the next record, whose length is not 0. */
static zn_parse read_next_record_header(zn_cursor *c, size_t *length)
{
    zn_parse state = read_record_header(c, length);
    for (unsigned i = 0; state == ZN_DONE && *length == 0; i++)
        state = i < EMPTY_RECORDS_MAX ? read_record_header(c, length) : ZN_OTHER;
    return state;
}

/* Tests what is there of a message's first bytes; DONE when its length is known. */
static zn_parse read_message_header(zn_span bytes, size_t *length)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    bool there = bytes.n >= MESSAGE_HEADER_BYTES;
    uint8_t type = zn_cursor_u8(&c);
    *length = zn_cursor_be24(&c);
    if (bytes.n >= 1 && type != MESSAGE_CLIENT_HELLO)
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
        zn_span part;
        if (record_left == 0) {
            zn_parse record = read_next_record_header(c, &record_left);
            if (record == ZN_OTHER)
                return gathered.n == 0 ? ZN_OTHER : ZN_MALFORMED;
            if (record == ZN_NEED_MORE)
                break;
        }
        n = n < record_left ? n : record_left;
        n = n < zn_cursor_left(c) ? n : zn_cursor_left(c);
        if (n == 0)
            break;
        part = zn_cursor_take(c, n);
        memcpy(scratch->bytes + gathered.n, part.p, n);
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
    size_t length, start;
    zn_parse state = read_next_record_header(&c, &length);

    if (state != ZN_DONE)
        return state;
    start = head.n - zn_cursor_left(&c);
    fragment = zn_cursor_take(&c, length < zn_cursor_left(&c) ? length : zn_cursor_left(&c));
    state = read_message_header(fragment, &out->declared);
    if (state == ZN_OTHER || state == ZN_MALFORMED)
        return state;
    if (state == ZN_DONE && MESSAGE_HEADER_BYTES + out->declared <= length) {
        out->body = body_of(fragment, out->declared);
        out->consumed = start + MESSAGE_HEADER_BYTES + out->body.n;
        return ZN_DONE;
    }
    return gather(&records, head.n, scratch, out);
}

/* Reads a ClientHello in the form of SSL 2.0, with the version of a later protocol (RFC 5246 E.2).
 * It has no extensions, so it names no host. */
static zn_parse read_v2_hello(zn_span head, zn_tls_hello *out)
{
    zn_cursor c = zn_cursor_over_span(head, false);
    size_t length = zn_cursor_be16(&c) & 0x7fff;
    uint8_t type = zn_cursor_u8(&c);
    uint16_t version = zn_cursor_be16(&c);
    size_t suites = zn_cursor_be16(&c), session = zn_cursor_be16(&c), random = zn_cursor_be16(&c);
    if ((head.n >= 3 && type != MESSAGE_CLIENT_HELLO) ||
        (head.n >= 4 && zn_header_u8(head, 3) != 3))
        return ZN_OTHER;
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    if (suites == 0 || suites % V2_SUITE_BYTES != 0 || (session != 0 && session != 16) ||
        random < 16 || random > 32 || length != V2_FIXED_BYTES + suites + session + random)
        return ZN_OTHER;
    zn_cursor_skip(&c, suites + session + random);
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    out->consumed = head.n - zn_cursor_left(&c);
    out->details.versions = 1;
    out->details.version[0] = version;
    out->details.session_id = session != 0;
    return ZN_DONE;
}

/* The server_name extension's data (RFC 6066 3), all of which is there. */
static zn_parse parse_server_name(zn_span data, zn_span *name)
{
    zn_cursor c = zn_cursor_over_span(data, true);
    bool seen = false;
    size_t list_bytes;
    if (data.n == 0)
        return ZN_DONE;
    list_bytes = zn_cursor_be16(&c);
    if (list_bytes != zn_cursor_left(&c))
        return ZN_MALFORMED;
    while (zn_cursor_left(&c) > 0) {
        uint8_t type = zn_cursor_u8(&c);
        zn_span value = zn_cursor_take(&c, zn_cursor_be16(&c));
        if (type != NAME_TYPE_HOST)
            continue;
        if (seen)
            return ZN_MALFORMED;
        seen = true;
        *name = value;
    }
    return zn_cursor_parse(&c);
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

/* A client sends a list after a length of one byte, a server its choice. */
static void read_versions(zn_cursor *c, bool client, zn_tls_details *out)
{
    if (client)
        zn_cursor_skip(c, 1);
    if (zn_cursor_left(c) >= 2)
        out->versions = 0;
    while (zn_cursor_left(c) >= 2 && out->versions < ZN_TLS_VERSIONS)
        out->version[out->versions++] = zn_cursor_be16(c);
}

/* Adds the details of an extension, except the name. */
static void read_extension(uint16_t type, zn_span data, bool client, zn_tls_details *out)
{
    zn_cursor c = zn_cursor_over_span(data, true);
    switch (type) {
    case EXTENSION_ALPN:
        if (data.n > 0)
            zn_cursor_skip(&c, 2);
        out->protocols |= read_protocols(&c, false);
        break;
    case EXTENSION_NPN:
        out->protocols |= read_protocols(&c, true);
        break;
    case EXTENSION_SUPPORTED_VERSIONS:
        read_versions(&c, client, out);
        break;
    case EXTENSION_PRE_SHARED_KEY:
        out->pre_shared_key = true;
        break;
    case EXTENSION_EARLY_DATA:
        out->early_data = true;
        break;
    default:
        break;
    }
}

/* The extension block. DONE as well when it is cut or damaged after a whole server_name
 * extension. */
static zn_parse parse_extensions(zn_cursor *c, zn_tls_hello *out)
{
    bool named = false;
    zn_span header;
    while (zn_cursor_left(c) > 0 && (header = zn_cursor_take(c, EXTENSION_HEADER_BYTES)).n != 0) {
        uint16_t type = zn_header_be16(header, 0);
        zn_span data = zn_cursor_take(c, zn_header_be16(header, 2));
        if (!zn_cursor_ok(c))
            break;
        switch (type) {
        case EXTENSION_SERVER_NAME:
            if (named || parse_server_name(data, &out->name) != ZN_DONE)
                return ZN_MALFORMED;
            named = true;
            break;
        case EXTENSION_ENCRYPTED_CLIENT_HELLO:
            out->ech_offered = true;
            out->ech_bytes = (uint16_t)data.n;
            break;
        case EXTENSION_TRANSPORT_PARAMETERS:
        case EXTENSION_TRANSPORT_PARAMETERS_DRAFT:
            out->transport_parameters = data;
            break;
        case EXTENSION_ALPN:
        case EXTENSION_PRE_SHARED_KEY:
        case EXTENSION_EARLY_DATA:
        case EXTENSION_SUPPORTED_VERSIONS:
        case EXTENSION_NPN:
            read_extension(type, data, true, &out->details);
            break;
        default:
            break;
        }
    }
    if (zn_cursor_ok(c) && !named && !c->whole)
        return ZN_NEED_MORE;
    if (!zn_cursor_ok(c))
        out->details.versions = 0; /* damage hides some of the details */
    return named ? ZN_DONE : zn_cursor_parse(c);
}

/* Parses a ClientHello from its version to its end or, in a cut capture, to the last captured byte.
 * DTLS has a cookie between the session ID and the cipher suites. */
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
    else
        out->body = hello->body;
    return state;
}

zn_parse zn_tls_client_hello(zn_span head, bool cut, zn_tls_scratch *scratch, zn_tls_hello *out)
{
    hello_message hello = {{head.p, 0}, 0, 0};
    zn_parse state;

    *out = nothing_read(head);
    if ((zn_ascii_first(head) & ZN_TLS_V2_HEADER) != 0)
        return read_v2_hello(head, out);
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

/* ---- other details of a handshake ------------------------------------------------------------ */

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
            (zn_cursor_ok(&c) && (version >> 8 != 3 || length > DETAILS_RECORD_MAX))) {
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

size_t zn_tls_handshake_offset(zn_span head, size_t at)
{
    zn_cursor c = zn_cursor_over_span(head, false);
    for (;;) {
        size_t length;
        zn_cursor_skip(&c, RECORD_HEADER_BYTES - 2);
        length = zn_cursor_be16(&c);
        if (at < length) {
            zn_cursor_skip(&c, at);
            return head.n - zn_cursor_left(&c);
        }
        at -= length;
        zn_cursor_skip(&c, length);
        if (!zn_cursor_ok(&c))
            return head.n;
    }
}

static void read_extensions(zn_cursor *c, bool client, zn_tls_details *out)
{
    zn_span header;
    while ((header = zn_cursor_take(c, EXTENSION_HEADER_BYTES)).n != 0) {
        zn_cursor data = zn_cursor_sub(c, zn_header_be16(header, 2));
        read_extension(zn_header_be16(header, 0), zn_cursor_rest(&data), client, out);
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

/* ---- the name in a certificate --------------------------------------------------------------- */

/* An attribute's value when it is a common name in characters of one byte. */
static zn_span common_name(zn_cursor *attribute)
{
    zn_cursor oid = zn_der_take(attribute, ZN_DER_OID), value;
    zn_span id = zn_cursor_rest(&oid), none = {NULL, 0};
    uint8_t tag;
    if (id.n != sizeof common_name_oid || memcmp(id.p, common_name_oid, id.n) != 0)
        return none;
    value = zn_der_any(attribute, &tag);
    if (tag != ZN_DER_UTF8 && tag != ZN_DER_PRINTABLE && tag != ZN_DER_TELETEX && tag != ZN_DER_IA5)
        return none;
    return zn_cursor_rest(&value);
}

zn_parse zn_x509_common_name(zn_span certificate, zn_span *name)
{
    zn_cursor c = zn_cursor_over_span(certificate, true);
    zn_cursor outer = zn_der_take(&c, ZN_DER_SEQUENCE),
              inner = zn_der_take(&outer, ZN_DER_SEQUENCE), subject;
    uint8_t tag;
    (void)zn_der_any(&inner, &tag); /* the version, or already the serial number */
    if (tag == ZN_DER_CONTEXT_0)
        (void)zn_der_any(&inner, &tag);
    (void)zn_der_take(&inner, ZN_DER_SEQUENCE); /* signature algorithm */
    (void)zn_der_take(&inner, ZN_DER_SEQUENCE); /* issuer */
    (void)zn_der_take(&inner, ZN_DER_SEQUENCE); /* validity */
    subject = zn_der_take(&inner, ZN_DER_SEQUENCE);
    if (!zn_cursor_ok(&subject))
        return ZN_MALFORMED;
    for (unsigned i = 0; i < ATTRIBUTES_MAX && zn_cursor_left(&subject) > 0; i++) {
        zn_cursor set = zn_der_take(&subject, ZN_DER_SET),
                  attribute = zn_der_take(&set, ZN_DER_SEQUENCE);
        zn_span value;
        if (!zn_cursor_ok(&attribute))
            return ZN_MALFORMED;
        value = common_name(&attribute);
        if (value.n != 0) {
            *name = value;
            return ZN_DONE;
        }
    }
    return ZN_OTHER;
}
