/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message is read in the order of RFC 8446, and each disclosed field is written at the same
 * offset of the output. Every written field that is neither a length nor a name enters the
 * fingerprint by the same call. So the output discloses nothing that the fingerprint lacks.
 *
 * A message in several records is built as a whole, and then divided among the records.
 */
#include "build/build_tls.h"

#include "build/build_name.h"
#include "build/build_plain_hello.h"
#include "build/build_x509.h"

#define RECORD_HEADER_BYTES 5u
#define RECORD_MAX (16384u + 2048u) /* RFC 5246 6.2.3 */
#define VERSION_MINOR_MAX 4u
#define MESSAGE_HEADER_BYTES 4u
#define MESSAGE_MAX 0x1ffffu
#define RANDOM_BYTES 32u
#define GREASE_VALUES 16u

enum { CONTENT_FIRST = 20, CONTENT_LAST = 24 };

enum {
    MESSAGE_SERVER_HELLO = 2,
    MESSAGE_CERTIFICATE = 11,
};

enum { EXTENSION_SERVER_NAME = 0, NAME_TYPE_HOST = 0, NAME_TYPE_OTHER = 255 };

/* Shape of the data of an extension. */
typedef enum shape {
    ZEROS,       /* nothing is disclosed */
    LIST_8_16,   /* a length of one byte, and values of two */
    LIST_16_16,  /* a length of two bytes, and values of two */
    LIST_8_8,    /* a length of one byte, and values of one */
    MODES,       /* PSK modes in the form of LIST_8_8 (RFC 8446 4.2.9) */
    VALUE_8,     /* one byte */
    VALUE_16,    /* two bytes */
    PROTOCOLS,   /* a length of two bytes, and names */
    NAMES,       /* names */
    KEY_SHARES,  /* RFC 8446 4.2.8 */
    KEY_SHARE,   /* key share of the server, or only the group that it requests */
    IDENTITIES,  /* RFC 8446 4.2.11 */
    OPAQUE_8,    /* a length of one byte, and data */
    OPAQUE_16,   /* a length of two bytes, and data */
    ITEMS_16,    /* a length of two bytes, and items of OPAQUE_16 */
    SRTP,        /* RFC 5764 4.1.1 */
    STATUS,      /* RFC 6066 8 */
    STATUS_LIST, /* RFC 6961 2.2 */
    PARAMETERS   /* RFC 9000 18 */
} shape;

typedef struct extension {
    uint16_t type;
    uint8_t of_client, of_server; /* shapes */
} extension;

static const extension extensions[] = {
    {1, VALUE_8, VALUE_8},          /* max_fragment_length */
    {5, STATUS, ZEROS},             /* status_request */
    {10, LIST_16_16, LIST_16_16},   /* supported_groups */
    {11, LIST_8_8, LIST_8_8},       /* ec_point_formats */
    {13, LIST_16_16, ZEROS},        /* signature_algorithms */
    {14, SRTP, SRTP},               /* use_srtp */
    {15, VALUE_8, VALUE_8},         /* heartbeat */
    {16, PROTOCOLS, PROTOCOLS},     /* application_layer_protocol_negotiation */
    {17, STATUS_LIST, ZEROS},       /* status_request_v2 */
    {18, ZEROS, ITEMS_16},          /* signed_certificate_timestamp */
    {19, LIST_8_8, VALUE_8},        /* client_certificate_type */
    {20, LIST_8_8, VALUE_8},        /* server_certificate_type */
    {27, LIST_8_16, ZEROS},         /* compress_certificate */
    {28, VALUE_16, VALUE_16},       /* record_size_limit */
    {34, LIST_16_16, ZEROS},        /* delegated_credential */
    {40, KEY_SHARES, KEY_SHARE},    /* key_share, of drafts */
    {41, IDENTITIES, ZEROS},        /* pre_shared_key */
    {43, LIST_8_16, VALUE_16},      /* supported_versions */
    {44, OPAQUE_16, OPAQUE_16},     /* cookie */
    {45, MODES, ZEROS},             /* psk_key_exchange_modes */
    {47, ITEMS_16, ZEROS},          /* certificate_authorities */
    {50, LIST_16_16, ZEROS},        /* signature_algorithms_cert */
    {51, KEY_SHARES, KEY_SHARE},    /* key_share */
    {54, OPAQUE_8, OPAQUE_8},       /* connection_id */
    {57, PARAMETERS, ZEROS},        /* quic_transport_parameters */
    {0x3374, NAMES, NAMES},         /* next_protocol_negotiation, of a draft */
    {0x4469, PROTOCOLS, PROTOCOLS}, /* application_settings, of a draft, and of a later one */
    {0x44cd, PROTOCOLS, PROTOCOLS},
    {0xff01, OPAQUE_8, OPAQUE_8}, /* renegotiation_info */
    {0xffa5, PARAMETERS, ZEROS},  /* transport parameters before RFC 9001 */
};

/* Message that is read, and its output. */
typedef struct build {
    zn_span message;
    uint8_t *out; /* replacement of the message; NULL if only the fingerprint is wanted */
    zn_build_choice choice;
    bool client;
    zn_build_fingerprint *print; /* NULL: not wanted */
    bool print_full;             /* the fingerprint did not fit */
    unsigned grease;             /* values of the pattern used in the current list */
} build;

/* ---- output ---------------------------------------------------------------------------------- */

/* Returns the output at the place of a part of the message, or NULL without output. */
static uint8_t *place_of(const build *b, zn_span part)
{
    return b->out == NULL || part.n == 0 ? NULL : b->out + zn_span_offset(b->message, part);
}

/* Writes the replacement of the bytes at `at`, which has the same length. */
static void put(const build *b, zn_span at, const uint8_t *bytes)
{
    uint8_t *out = place_of(b, at);
    if (out != NULL)
        memcpy(out, bytes, at.n);
}

/* Clears the written bytes of a part. */
static void clear(const build *b, zn_span part)
{
    uint8_t *out = place_of(b, part);
    if (out != NULL)
        memset(out, 0, part.n);
}

static void note(build *b, const uint8_t *bytes, size_t n)
{
    zn_build_fingerprint *print = b->print;
    if (print == NULL || n == 0)
        return;
    if (n > sizeof print->bytes - print->n) {
        b->print_full = true;
        return;
    }
    memcpy(print->bytes + print->n, bytes, n);
    print->n += n;
}

/* Begins a part of the fingerprint, and reserves space for its length in front of it. */
static size_t note_begin(build *b)
{
    static const uint8_t length[2] = {0, 0};
    note(b, length, sizeof length);
    return b->print == NULL ? 0 : b->print->n;
}

static void note_end(const build *b, size_t begin)
{
    size_t n;
    if (b->print == NULL || b->print_full)
        return;
    n = b->print->n - begin;
    b->print->bytes[begin - 2] = (uint8_t)(n >> 8);
    b->print->bytes[begin - 1] = (uint8_t)n;
}

/* Writes a part of the fingerprint. */
static void disclose(build *b, zn_span at, const uint8_t *bytes)
{
    put(b, at, bytes);
    note(b, bytes, at.n);
}

static void keep_length_8(const build *b, zn_cursor *c, zn_cursor *content)
{
    zn_span length = zn_cursor_take(c, 1);
    put(b, length, length.p);
    *content = zn_cursor_sub(c, length.n == 0 ? 0 : zn_header_u8(length, 0));
}

static void keep_length_16(const build *b, zn_cursor *c, zn_cursor *content)
{
    zn_span length = zn_cursor_take(c, 2);
    put(b, length, length.p);
    *content = zn_cursor_sub(c, length.n == 0 ? 0 : zn_header_be16(length, 0));
}

static void keep_length_24(const build *b, zn_cursor *c, zn_cursor *content)
{
    zn_span length = zn_cursor_take(c, 3);
    zn_cursor value = zn_cursor_over_span(length, true);
    put(b, length, length.p);
    *content = zn_cursor_sub(c, zn_cursor_be24(&value));
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_grease(uint8_t first, uint8_t second)
{
    return first == second && (first & 0x0f) == 0x0a;
}

/* Returns the next of the sixteen values of the GREASE pattern. */
static uint8_t next_grease(build *b)
{
    return (uint8_t)(0x0a | (b->grease++ % GREASE_VALUES) << 4);
}

/* Discloses the next value of two bytes, or a value of the pattern if it is GREASE. */
static uint16_t value_16(build *b, zn_cursor *c)
{
    zn_span at = zn_cursor_take(c, 2);
    uint8_t bytes[2];
    if (at.n == 0)
        return 0;
    memcpy(bytes, at.p, sizeof bytes);
    if (is_grease(bytes[0], bytes[1]))
        bytes[0] = bytes[1] = next_grease(b);
    disclose(b, at, bytes);
    return zn_header_be16(at, 0);
}

static void values_16(build *b, zn_cursor *c)
{
    size_t begin = note_begin(b);
    b->grease = 0;
    while (zn_cursor_left(c) > 0)
        (void)value_16(b, c);
    note_end(b, begin);
}

static void values_8(build *b, zn_cursor *c)
{
    size_t begin = note_begin(b);
    zn_span all = zn_cursor_rest(c);
    disclose(b, all, all.p);
    note_end(b, begin);
}

/* PSK modes have GREASE values of their own (RFC 8701 2): 0x0b and further values in steps of
 * 0x1f. */
static void modes(build *b, zn_cursor *c)
{
    size_t begin = note_begin(b);
    while (zn_cursor_left(c) > 0) {
        zn_span at = zn_cursor_take(c, 1);
        uint8_t mode = zn_header_u8(at, 0);
        if (mode >= 0x0b && (mode - 0x0b) % 0x1f == 0)
            mode = 0x0b;
        disclose(b, at, &mode);
    }
    note_end(b, begin);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void put_host(const build *b, zn_span name)
{
    uint8_t *out = place_of(b, name);
    if (out != NULL)
        zn_build_host_name(name, b->choice.name, out);
}

/* Writes server_name (RFC 6066 3). Returns false if it does not parse. */
static bool server_name(const build *b, zn_cursor *c)
{
    static const uint8_t other = NAME_TYPE_OTHER;
    zn_cursor list, value;
    if (zn_cursor_left(c) == 0)
        return true;
    keep_length_16(b, c, &list);
    while (zn_cursor_left(&list) > 0) {
        zn_span type = zn_cursor_take(&list, 1);
        bool host = zn_header_u8(type, 0) == NAME_TYPE_HOST;
        if (!host)
            put(b, type, &other);
        keep_length_16(b, &list, &value);
        if (host)
            put_host(b, zn_cursor_rest(&value));
    }
    return zn_cursor_ok(&list) && zn_cursor_ok(c) && zn_cursor_left(c) == 0;
}

/* Names that IANA has registered for ALPN. */
#define PROTOCOL(text) {(const uint8_t *)(text), sizeof(text) - 1}
static const zn_span protocols[] = {PROTOCOL("http/0.9"),
                                    PROTOCOL("http/1.0"),
                                    PROTOCOL("http/1.1"),
                                    PROTOCOL("spdy/1"),
                                    PROTOCOL("spdy/2"),
                                    PROTOCOL("spdy/3"),
                                    PROTOCOL("stun.turn"),
                                    PROTOCOL("h2"),
                                    PROTOCOL("h2c"),
                                    PROTOCOL("webrtc"),
                                    PROTOCOL("c-webrtc"),
                                    PROTOCOL("ftp"),
                                    PROTOCOL("imap"),
                                    PROTOCOL("pop3"),
                                    PROTOCOL("managesieve"),
                                    PROTOCOL("coap"),
                                    PROTOCOL("co"),
                                    PROTOCOL("xmpp-client"),
                                    PROTOCOL("acme-tls/1"),
                                    PROTOCOL("xmpp-server"),
                                    PROTOCOL("mqtt"),
                                    PROTOCOL("dot"),
                                    PROTOCOL("ntske/1"),
                                    PROTOCOL("sunrpc"),
                                    PROTOCOL("h3"),
                                    PROTOCOL("smb"),
                                    PROTOCOL("irc"),
                                    PROTOCOL("nntp"),
                                    PROTOCOL("nnsp"),
                                    PROTOCOL("doq"),
                                    PROTOCOL("sip/2"),
                                    PROTOCOL("tds/8.0"),
                                    PROTOCOL("dicom"),
                                    PROTOCOL("postgresql"),
                                    PROTOCOL("radius/1.0"),
                                    PROTOCOL("radius/1.1"),
                                    PROTOCOL("stun.nat-discovery")};

static bool is_registered(zn_span name)
{
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (zn_span_equal(name, protocols[i]))
            return true;
    return false;
}

/* Writes names of application protocols (RFC 7301 3.1), each behind its length. */
static void names(build *b, zn_cursor *c)
{
    b->grease = 0;
    while (zn_cursor_left(c) > 0) {
        uint8_t text[UINT8_MAX];
        zn_cursor content;
        zn_span name;
        size_t begin;
        keep_length_8(b, c, &content);
        name = zn_cursor_rest(&content);
        memset(text, 'x', sizeof text);
        if (name.n == 2 && is_grease(zn_header_u8(name, 0), zn_header_u8(name, 1)))
            text[0] = text[1] = next_grease(b);
        else if (is_registered(name))
            memcpy(text, name.p, name.n);
        begin = note_begin(b);
        disclose(b, name, text);
        note_end(b, begin);
    }
}

/* ---- extensions ------------------------------------------------------------------------------ */

/* Writes a key share: its group, and zeros in place of the key. */
static void key_share(build *b, zn_cursor *c)
{
    zn_cursor key;
    (void)value_16(b, c);
    keep_length_16(b, c, &key);
}

static void key_shares(build *b, zn_cursor *c)
{
    size_t begin = note_begin(b);
    b->grease = 0;
    while (zn_cursor_left(c) > 0)
        key_share(b, c);
    note_end(b, begin);
}

/* Writes the lengths of identities and binders. Identities, ticket ages and binders are zeros. */
static void identities(const build *b, zn_cursor *c)
{
    zn_cursor list, content;
    keep_length_16(b, c, &list);
    while (zn_cursor_left(&list) > 0) {
        keep_length_16(b, &list, &content);
        zn_cursor_skip(&list, 4);
    }
    if (!zn_cursor_ok(&list))
        zn_cursor_fail(c, list.state);
    keep_length_16(b, c, &list);
    while (zn_cursor_left(&list) > 0)
        keep_length_8(b, &list, &content);
    if (!zn_cursor_ok(&list))
        zn_cursor_fail(c, list.state);
}

static void items_16(const build *b, zn_cursor *c)
{
    zn_cursor content;
    while (zn_cursor_left(c) > 0)
        keep_length_16(b, c, &content);
}

/* Writes SRTP protection profiles, and zeros in place of the identifier. */
static void srtp(build *b, zn_cursor *c)
{
    zn_cursor content;
    keep_length_16(b, c, &content);
    values_16(b, &content);
    if (!zn_cursor_ok(&content))
        zn_cursor_fail(c, content.state);
    keep_length_8(b, c, &content);
}

/* Writes the type of a status request, and lengths. The other data are zeros. */
static void status(build *b, zn_cursor *c)
{
    zn_span type = zn_cursor_take(c, 1);
    zn_cursor content;
    disclose(b, type, type.p);
    keep_length_16(b, c, &content); /* length of the responders */
    keep_length_16(b, c, &content); /* length of the extensions */
}

static void status_list(build *b, zn_cursor *c)
{
    size_t begin = note_begin(b);
    while (zn_cursor_left(c) > 0) {
        zn_span type = zn_cursor_take(c, 1);
        zn_cursor request, content;
        disclose(b, type, type.p);
        keep_length_16(b, c, &request);
        keep_length_16(b, &request, &content);
        keep_length_16(b, &request, &content);
        if (!zn_cursor_ok(&request) || zn_cursor_left(&request) != 0)
            zn_cursor_fail(c, ZN_CURSOR_BAD);
    }
    note_end(b, begin);
}

/* Reads a number of 1, 2, 4 or 8 bytes (RFC 9000 16), and sets *at to its bytes. */
static uint64_t varint(zn_cursor *c, zn_span *at)
{
    zn_cursor first = *c;
    uint8_t byte = zn_cursor_u8(&first);
    uint64_t value = byte & 0x3f;
    zn_cursor rest;
    *at = zn_cursor_take(c, (size_t)1 << (byte >> 6));
    rest = zn_cursor_over_span(*at, true);
    zn_cursor_skip(&rest, 1);
    while (zn_cursor_left(&rest) > 0)
        value = value << 8 | zn_cursor_u8(&rest);
    return value;
}

/* Writes the id of a parameter. 27, in the same number of bytes, replaces an id that is reserved as
 * GREASE (RFC 9000 18.1). */
static bool parameter_id(build *b, zn_cursor *c)
{
    zn_span at;
    uint8_t grease[8] = {0};
    bool reserved = varint(c, &at) % 31 == 27;
    if (!zn_cursor_ok(c) || at.n == 0)
        return false;
    if (!reserved) {
        disclose(b, at, at.p);
        return false;
    }
    memcpy(grease, at.p, 1);
    grease[0] &= 0xc0;
    grease[at.n - 1] |= 27;
    disclose(b, at, grease);
    return true;
}

/* Writes ids and lengths of transport parameters. A GREASE parameter has a random length, which
 * does not enter the fingerprint. */
static void parameters(build *b, zn_cursor *c)
{
    size_t begin = note_begin(b);
    while (zn_cursor_left(c) > 0) {
        bool grease = parameter_id(b, c);
        zn_span at;
        uint64_t length = varint(c, &at);
        put(b, at, at.p);
        if (!grease)
            note(b, at.p, at.n);
        zn_cursor_skip(c, length);
    }
    note_end(b, begin);
}

/* Writes data behind a length. */
static void build_content(build *b, shape s, zn_cursor *c)
{
    if (s == LIST_8_16 || s == LIST_16_16)
        values_16(b, c);
    else if (s == PROTOCOLS)
        names(b, c);
    else if (s == KEY_SHARES)
        key_shares(b, c);
    else if (s == STATUS_LIST)
        status_list(b, c);
    else if (s == ITEMS_16)
        items_16(b, c);
    else if (s == MODES)
        modes(b, c);
    else if (s == LIST_8_8)
        values_8(b, c);
    else
        (void)zn_cursor_rest(c);
}

/* Writes data of a shape that begins with the length of the rest. */
static void build_vector(build *b, shape s, zn_cursor *c)
{
    zn_cursor content;
    if (s == LIST_8_16 || s == LIST_8_8 || s == MODES || s == OPAQUE_8)
        keep_length_8(b, c, &content);
    else
        keep_length_16(b, c, &content);
    build_content(b, s, &content);
    if (!zn_cursor_ok(&content))
        zn_cursor_fail(c, content.state);
}

static void build_data(build *b, shape s, zn_cursor *c)
{
    zn_span value;
    b->grease = 0;
    switch (s) {
    case ZEROS:
        (void)zn_cursor_rest(c);
        break;
    case VALUE_8:
        value = zn_cursor_take(c, 1);
        disclose(b, value, value.p);
        break;
    case VALUE_16:
        (void)value_16(b, c);
        break;
    case KEY_SHARE:
        if (zn_cursor_left(c) == 2)
            (void)value_16(b, c);
        else
            key_share(b, c);
        break;
    case NAMES:
        names(b, c);
        break;
    case IDENTITIES:
        identities(b, c);
        break;
    case SRTP:
        srtp(b, c);
        break;
    case STATUS:
        status(b, c);
        break;
    case PARAMETERS:
        parameters(b, c);
        break;
    default:
        build_vector(b, s, c);
        break;
    }
}

static shape shape_of(const build *b, uint16_t type)
{
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (extensions[i].type == type)
            return (shape)(b->client ? extensions[i].of_client : extensions[i].of_server);
    return ZEROS;
}

/* Writes the data of an extension other than server_name. Data that do not parse are zeros. */
static void build_extension(build *b, uint16_t type, zn_cursor *data)
{
    zn_span all = {data->p, zn_cursor_left(data)};
    size_t begin = note_begin(b);
    if (all.n != 0)
        build_data(b, shape_of(b, type), data);
    if (!zn_cursor_ok(data) || zn_cursor_left(data) != 0) {
        clear(b, all);
        if (b->print != NULL && !b->print_full)
            b->print->n = begin;
    }
    note_end(b, begin);
}

static bool build_extensions(build *b, zn_cursor *c)
{
    unsigned grease = 0;
    while (zn_cursor_left(c) > 0) {
        zn_cursor type = *c, data;
        bool name = b->client && zn_cursor_be16(&type) == EXTENSION_SERVER_NAME;
        uint16_t number;
        b->grease = grease;
        number = value_16(b, c);
        grease = b->grease;
        keep_length_16(b, c, &data);
        if (!zn_cursor_ok(c) || (name && !server_name(b, &data)))
            return false;
        if (!name)
            build_extension(b, number, &data);
    }
    return zn_cursor_ok(c);
}

/* ---- a client's hello ------------------------------------------------------------------------ */

/* Writes a hello from the version to the end of the extensions. */
static bool build_client_body(build *b, zn_cursor *c, bool datagram)
{
    zn_span version = zn_cursor_take(c, 2), methods;
    zn_cursor content;
    size_t begin;
    disclose(b, version, version.p);
    zn_cursor_skip(c, RANDOM_BYTES);
    keep_length_8(b, c, &content); /* session ID */
    if (datagram)
        keep_length_8(b, c, &content); /* cookie */
    keep_length_16(b, c, &content);    /* cipher suites */
    values_16(b, &content);
    if (!zn_cursor_ok(&content))
        return false;
    keep_length_8(b, c, &content); /* compression methods */
    methods = zn_cursor_rest(&content);
    begin = note_begin(b);
    disclose(b, methods, methods.p);
    note_end(b, begin);
    if (zn_cursor_left(c) == 0)
        return zn_cursor_ok(c);
    keep_length_16(b, c, &content);
    return zn_cursor_ok(c) && zn_cursor_left(c) == 0 && build_extensions(b, &content);
}

/* Builds a hello that was read whole. Returns false, and leaves zeros, if it cannot be built. */
static bool build_client(build *b, zn_span message, bool datagram)
{
    zn_cursor c = zn_cursor_over_span(message, true), body;
    bool done;
    b->message = message;
    b->client = true;
    if (!datagram) {
        zn_span type = zn_cursor_take(&c, 1);
        put(b, type, type.p);
        keep_length_24(b, &c, &body);
        c = body;
    }
    done = build_client_body(b, &c, datagram) && !b->print_full;
    if (!done)
        clear(b, message);
    return done;
}

/* Returns the message of the ClientHello in records, or an empty span. Sets *part to its
 * records. */
static zn_span message_of(zn_span records, zn_tls_scratch *scratch, zn_span *part)
{
    zn_tls_hello hello;
    bool ended;
    *part = zn_span_first(records, 0);
    if (zn_tls_client_hello(records, false, scratch, &hello) != ZN_DONE)
        return *part;
    *part = zn_span_first(records, hello.consumed);
    return zn_tls_handshake_bytes(*part, scratch->bytes, sizeof scratch->bytes, &ended);
}

bool zn_build_client_hello_message(zn_span message, const zn_build_choice *choice, uint8_t *out)
{
    build b = {.out = out, .choice = *choice};
    zn_tls_hello hello;
    if (zn_tls_bare_hello(message, &hello) != ZN_DONE)
        return false;
    message = zn_span_first(message, hello.consumed);
    if (choice->fingerprint)
        return build_client(&b, message, false);
    if (!zn_build_plain_hello(hello.name, choice->name, false, message.n - MESSAGE_HEADER_BYTES,
                              out + MESSAGE_HEADER_BYTES))
        return false;
    memcpy(out, message.p, MESSAGE_HEADER_BYTES);
    return true;
}

bool zn_build_client_hello_datagram(zn_span body, const zn_build_choice *choice, uint8_t *out)
{
    build b = {.out = out, .choice = *choice};
    zn_tls_hello hello;
    if (zn_tls_datagram_hello(body, body.n, &hello) != ZN_DONE)
        return false;
    if (choice->fingerprint)
        return build_client(&b, body, true);
    return zn_build_plain_hello(hello.name, choice->name, true, body.n, out);
}

/* ---- fingerprints ---------------------------------------------------------------------------- */

static build for_print(zn_build_fingerprint *out)
{
    out->n = 0;
    return (build){.choice = {.fingerprint = true}, .print = out};
}

bool zn_build_tls_fingerprint_message(zn_span message, zn_build_fingerprint *out)
{
    build b = for_print(out);
    zn_tls_hello hello;
    if (zn_tls_bare_hello(message, &hello) != ZN_DONE)
        return false;
    return build_client(&b, zn_span_first(message, hello.consumed), false);
}

bool zn_build_tls_fingerprint_datagram(zn_span body, zn_build_fingerprint *out)
{
    build b = for_print(out);
    zn_tls_hello hello;
    return zn_tls_datagram_hello(body, body.n, &hello) == ZN_DONE && build_client(&b, body, true);
}

bool zn_build_tls_fingerprint(zn_span records, zn_tls_scratch *scratch, zn_build_fingerprint *out)
{
    zn_span part, message = message_of(records, scratch, &part);
    out->n = 0;
    return message.n != 0 && zn_build_tls_fingerprint_message(message, out);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Takes the next record, whose content may be cut. Returns false at the end of the records. Servers
 * ignore the minor version of the records around a hello (RFC 8446 5.1). */
static bool next_record(zn_cursor *c, unsigned minor_max, zn_span *header, zn_span *content)
{
    size_t length;
    if (zn_cursor_left(c) < RECORD_HEADER_BYTES)
        return false;
    *header = zn_cursor_take(c, RECORD_HEADER_BYTES);
    length = zn_header_be16(*header, 3);
    if (zn_header_u8(*header, 0) < CONTENT_FIRST || zn_header_u8(*header, 0) > CONTENT_LAST ||
        zn_header_u8(*header, 1) != 3 || zn_header_u8(*header, 2) > minor_max ||
        length > RECORD_MAX)
        return false;
    *content = zn_cursor_take(c, length < zn_cursor_left(c) ? length : zn_cursor_left(c));
    return true;
}

/* Writes the headers of records, the n bytes of the messages into handshake records, and
 * ChangeCipherSpecs. A minor version that no protocol has becomes that of TLS 1.3. `out` is all
 * zeros. */
static void put_records(zn_span records, unsigned minor_max, const uint8_t *messages, size_t n,
                        uint8_t *out)
{
    zn_cursor c = zn_cursor_over_span(records, false);
    zn_span header, content;
    while (next_record(&c, minor_max, &header, &content)) {
        uint8_t type = zn_header_u8(header, 0);
        uint8_t minor = zn_header_u8(header, 2);
        uint8_t *to = out + zn_span_offset(records, header), *at = to + RECORD_HEADER_BYTES;
        size_t part = content.n < n ? content.n : n;
        memcpy(to, header.p, RECORD_HEADER_BYTES);
        to[2] = minor <= VERSION_MINOR_MAX ? minor : VERSION_MINOR_MAX;
        if (type == ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC && content.n == 1)
            *at = 1;
        if (type != ZN_TLS_CONTENT_HANDSHAKE || part == 0)
            continue;
        memcpy(at, messages, part);
        messages += part;
        n -= part;
    }
}

/* Divides n bytes of messages at the start of `out` among the records. */
static void divide(zn_span records, unsigned minor_max, size_t n, zn_tls_scratch *scratch,
                   uint8_t *out)
{
    if (n != 0) {
        memcpy(scratch->bytes, out, n);
        memset(out, 0, n);
    }
    put_records(records, minor_max, scratch->bytes, n, out);
}

bool zn_build_client_hello(zn_span records, const zn_build_choice *choice, zn_tls_scratch *scratch,
                           uint8_t *out)
{
    zn_span part, message = message_of(records, scratch, &part);
    if (message.n == 0 || !zn_build_client_hello_message(message, choice, out))
        return false;
    divide(part, UINT8_MAX, message.n, scratch, out);
    return true;
}

/* ---- a server's flight ----------------------------------------------------------------------- */

/* Writes a ServerHello (RFC 8446 4.1.3, RFC 5246 7.4.1.3). */
static void build_server_hello(build *b, zn_cursor *c, bool retry)
{
    zn_span all = {c->p, zn_cursor_left(c)}, value = zn_cursor_take(c, 2);
    zn_cursor content;
    put(b, value, value.p); /* version */
    value = zn_cursor_take(c, RANDOM_BYTES);
    if (retry)
        put(b, value, value.p);
    keep_length_8(b, c, &content); /* session ID */
    value = zn_cursor_take(c, 3);  /* cipher suite, compression method */
    put(b, value, value.p);
    if (zn_cursor_left(c) > 0) {
        keep_length_16(b, c, &content);
        if (!build_extensions(b, &content))
            zn_cursor_fail(c, ZN_CURSOR_BAD);
    }
    if (!zn_cursor_ok(c) || zn_cursor_left(c) != 0)
        clear(b, all);
}

/* Writes a Certificate message (RFC 5246 7.4.2), whose list may be cut. */
static void build_certificates(const build *b, zn_cursor *c, zn_span common_name,
                               zn_build_certificates *made)
{
    zn_cursor list;
    keep_length_24(b, c, &list);
    while (zn_cursor_left(&list) > 0) {
        zn_cursor certificate;
        zn_span der;
        uint8_t *out;
        keep_length_24(b, &list, &certificate);
        der = zn_cursor_rest(&certificate);
        if (!zn_cursor_ok(&list) || der.n == 0)
            break;
        out = place_of(b, der);
        if (common_name.n != 0 && zn_build_x509(out, der.n, common_name))
            made->named++;
        else
            made->unnamed += zn_build_x509(out, der.n, (zn_span){der.p, 0});
        common_name.n = 0;
    }
}

/* Writes the messages that a server sends in the clear (RFC 5246 7.4, RFC 8446 B.3). */
static bool is_message_type(uint8_t type)
{
    return type == 0 || (type >= 2 && type <= 4) || type == 6 || type == 8 ||
           (type >= 11 && type <= 16) || (type >= 20 && type <= 24);
}

static bool is_retry(zn_span message)
{
    zn_tls_details details;
    zn_tls_read_details(message, &details);
    return details.retry;
}

static void build_messages(build *b, zn_span messages, zn_span common_name,
                           zn_build_certificates *made)
{
    zn_cursor c = zn_cursor_over_span(messages, false);
    b->message = messages;
    while (zn_cursor_left(&c) >= MESSAGE_HEADER_BYTES) {
        zn_span rest = {c.p, zn_cursor_left(&c)};
        zn_span header = zn_cursor_take(&c, MESSAGE_HEADER_BYTES);
        size_t length = zn_header_be32(header, 0) & 0xffffff;
        uint8_t type = zn_header_u8(header, 0);
        zn_cursor body;
        if (!is_message_type(type) || length > MESSAGE_MAX)
            break;
        put(b, header, header.p);
        body = zn_cursor_sub(&c, length);
        if (type == MESSAGE_SERVER_HELLO && zn_cursor_ok(&c)) /* not cut */
            build_server_hello(b, &body, is_retry(rest));
        if (type == MESSAGE_CERTIFICATE)
            build_certificates(b, &body, common_name, made);
    }
}

/* Returns true if the messages are one whole HelloRetryRequest. The ChangeCipherSpec behind it is
 * for middleboxes only (RFC 8446 D.4). */
static bool awaits_hello(zn_span messages)
{
    zn_cursor c = zn_cursor_over_span(messages, false);
    zn_cursor_skip(&c, 1);
    return is_retry(messages) && zn_cursor_be24(&c) == messages.n - MESSAGE_HEADER_BYTES;
}

/* Gathers the handshake messages in the clear. */
static zn_span gather_messages(zn_span records, zn_tls_scratch *scratch)
{
    zn_cursor c = zn_cursor_over_span(records, false);
    zn_span header, content, all = {scratch->bytes, 0};
    while (all.n < sizeof scratch->bytes && next_record(&c, VERSION_MINOR_MAX, &header, &content)) {
        uint8_t type = zn_header_u8(header, 0);
        if (type == ZN_TLS_CONTENT_APPLICATION_DATA ||
            (type == ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC && !awaits_hello(all)))
            break;
        if (type != ZN_TLS_CONTENT_HANDSHAKE || content.n == 0)
            continue;
        content = zn_span_first(content, sizeof scratch->bytes - all.n);
        memcpy(scratch->bytes + all.n, content.p, content.n);
        all.n += content.n;
    }
    return all;
}

bool zn_build_server_flight(zn_span records, zn_span common_name, zn_tls_scratch *scratch,
                            uint8_t *out, zn_build_certificates *made)
{
    build b = {.out = out, .choice = {.fingerprint = true}};
    zn_cursor c = zn_cursor_over_span(records, false);
    zn_span header, content, messages;
    *made = (zn_build_certificates){0, 0};
    if (!next_record(&c, VERSION_MINOR_MAX, &header, &content))
        return false;
    messages = gather_messages(records, scratch);
    build_messages(&b, messages, common_name, made);
    divide(records, VERSION_MINOR_MAX, messages.n, scratch, out);
    return true;
}
