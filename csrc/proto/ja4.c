/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JA4 fingerprint of a TLS client, as FoxIO specifies it under the BSD 3-Clause License:
 * https://github.com/FoxIO-LLC/ja4/blob/main/technical_details/JA4.md
 *
 * A hello is taken for QUIC's if it has transport parameters, which no other client may send
 * (RFC 9001 8.2), and for DTLS's by its version.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "proto/attribute_readers.h"
#include "proto/hello_fields.h"
#include "proto/tls.h"

#include <openssl/sha.h>

#define VALUES_MAX (ZN_TLS_HELLO_MAX / 2u)
#define COUNT_MAX 99u
#define HASH_BYTES 6u /* of SHA-256 that a fingerprint shows */

enum {
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_SIGNATURE_ALGORITHMS = 13,
    EXTENSION_ALPN = 16,
    EXTENSION_SUPPORTED_VERSIONS = 43,
    EXTENSION_TRANSPORT_PARAMETERS = 0x39,
    EXTENSION_TRANSPORT_PARAMETERS_DRAFT = 0xffa5
};

/* Cipher suites or types of extensions, without the values of GREASE. */
typedef struct values {
    uint16_t at[VALUES_MAX];
    size_t n;
} values;

/* Contents of a hello that the fingerprint shows. */
typedef struct client {
    uint16_t version;
    bool is_quic, has_name;
    zn_span protocol;     /* first value of ALPN; may be empty */
    zn_cursor algorithms; /* signature algorithms, two bytes each */
    values suites, extensions;
} client;

/* ---- the hello ------------------------------------------------------------------------------- */

static void add_value(values *to, uint16_t value)
{
    if (!zn_is_grease(value) && to->n < VALUES_MAX)
        to->at[to->n++] = value;
}

/* Sorts values in place, in n^1.5 steps at most (Shell's method). */
static void sort_values(values *v)
{
    size_t gap = 1;
    while (gap < v->n / 3)
        gap = 3 * gap + 1;
    for (; gap != 0; gap /= 3) {
        for (size_t i = gap; i < v->n; i++) {
            uint16_t moved = v->at[i];
            size_t j = i;
            for (; j >= gap && v->at[j - gap] > moved; j -= gap)
                v->at[j] = v->at[j - gap];
            v->at[j] = moved;
        }
    }
}

/* Reads the highest version of supported_versions. */
static void read_versions(zn_cursor *data, uint16_t *highest)
{
    zn_cursor list = zn_cursor_sub(data, zn_cursor_u8(data));
    *highest = 0;
    while (zn_cursor_left(&list) > 0) {
        uint16_t version = zn_cursor_be16(&list);
        if (!zn_is_grease(version) && version > *highest)
            *highest = version;
    }
    if (!zn_cursor_ok(&list))
        zn_cursor_fail(data, ZN_CURSOR_BAD);
}

/* Reads the first protocol of ALPN that is not a value of GREASE. */
static void read_protocol(zn_cursor *data, zn_span *protocol)
{
    zn_cursor list = *data;
    if (zn_cursor_left(data) > 0)
        list = zn_cursor_sub(data, zn_cursor_be16(data));
    while (zn_cursor_left(&list) > 0) {
        *protocol = zn_cursor_take(&list, zn_cursor_u8(&list));
        if (protocol->n != 2 || !zn_is_grease(zn_header_be16(*protocol, 0)))
            break;
        protocol->n = 0;
    }
    if (!zn_cursor_ok(&list))
        zn_cursor_fail(data, ZN_CURSOR_BAD);
}

/* Reads an extension. Returns false if its data is damaged. */
static bool read_extension(uint16_t type, zn_cursor *data, client *out)
{
    switch (type) {
    case EXTENSION_SERVER_NAME:
        out->has_name = true;
        break;
    case EXTENSION_ALPN:
        read_protocol(data, &out->protocol);
        break;
    case EXTENSION_SIGNATURE_ALGORITHMS:
        out->algorithms = zn_cursor_sub(data, zn_cursor_be16(data));
        break;
    case EXTENSION_SUPPORTED_VERSIONS:
        read_versions(data, &out->version);
        break;
    case EXTENSION_TRANSPORT_PARAMETERS:
    case EXTENSION_TRANSPORT_PARAMETERS_DRAFT:
        out->is_quic = true;
        break;
    default:
        break;
    }
    add_value(&out->extensions, type);
    return zn_cursor_ok(data);
}

/* Returns true if two of the sorted values are equal. */
static bool has_repeated(const values *v)
{
    for (size_t i = 1; i < v->n; i++)
        if (v->at[i] == v->at[i - 1])
            return true;
    return false;
}

/* Reads a hello. Returns false if it is damaged, or has an extension twice, which RFC 8446 4.2
 * forbids. */
static bool read_client(zn_span message, zn_hello_fields *hello, client *out)
{
    zn_cursor suites, data;
    uint16_t type;
    out->is_quic = out->has_name = false;
    out->protocol = (zn_span){NULL, 0};
    out->algorithms = zn_cursor_over(NULL, 0, true);
    out->suites.n = out->extensions.n = 0;
    if (message.n > ZN_TLS_HELLO_MAX || zn_hello_fields_read(message, hello) != ZN_DONE)
        return false;
    out->version = hello->version;
    suites = zn_cursor_over_span(hello->suites, true);
    while (zn_cursor_left(&suites) > 0)
        add_value(&out->suites, zn_cursor_be16(&suites));
    while (zn_hello_extension(&hello->extensions, &type, &data))
        if (!read_extension(type, &data, out))
            return false;
    sort_values(&out->suites);
    sort_values(&out->extensions);
    return zn_cursor_ok(&suites) && zn_cursor_ok(&hello->extensions) &&
           !has_repeated(&out->extensions);
}

/* ---- the text -------------------------------------------------------------------------------- */

static uint8_t digit(unsigned value)
{
    static const uint8_t digits[] = "0123456789abcdef";
    return digits[value & 15];
}

static void put_version(zn_attribute_text *out, uint16_t version)
{
    static const struct {
        uint16_t version;
        uint8_t text[2];
    } known[] = {
        {0x0304, {'1', '3'}}, {0x0303, {'1', '2'}}, {0x0302, {'1', '1'}},
        {0x0301, {'1', '0'}}, {0x0300, {'s', '3'}}, {0x0002, {'s', '2'}},
        {0xfeff, {'d', '1'}}, {0xfefd, {'d', '2'}}, {0xfefc, {'d', '3'}},
    };
    static const uint8_t unknown[2] = {'0', '0'};
    const uint8_t *text = unknown;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].version == version)
            text = known[i].text;
    zn_attribute_text_byte(out, text[0]);
    zn_attribute_text_byte(out, text[1]);
}

static void put_count(zn_attribute_text *out, size_t n)
{
    unsigned count = n < COUNT_MAX ? (unsigned)n : COUNT_MAX;
    zn_attribute_text_byte(out, digit(count / 10));
    zn_attribute_text_byte(out, digit(count % 10));
}

static bool is_alphanumeric(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z');
}

/* Puts the first and the last character of a protocol, or of its hexadecimal digits if one of the
 * two is neither a letter nor a digit. */
static void put_protocol(zn_attribute_text *out, zn_span protocol)
{
    uint8_t first = '0', last = '0';
    if (protocol.n != 0) {
        first = zn_header_u8(protocol, 0);
        last = zn_header_u8(protocol, protocol.n - 1);
        if (!is_alphanumeric(first) || !is_alphanumeric(last)) {
            first = digit(first >> 4);
            last = digit(last);
        }
    }
    zn_attribute_text_byte(out, first);
    zn_attribute_text_byte(out, last);
}

/* Adds a value to a hash, behind `separator` if that is not 0. */
static void hash_value(SHA256_CTX *sha, uint8_t separator, uint16_t value)
{
    const uint8_t text[] = {separator, digit(value >> 12), digit(value >> 8), digit(value >> 4),
                            digit(value)};
    size_t skipped = separator == 0;
    (void)SHA256_Update(sha, text + skipped, sizeof text - skipped);
}

/* Puts the first bytes of a hash, or zeros if it has no values. */
static void put_hash(zn_attribute_text *out, SHA256_CTX *sha, bool is_empty)
{
    uint8_t hash[SHA256_DIGEST_LENGTH] = {0};
    if (!is_empty)
        (void)SHA256_Final(hash, sha);
    zn_attribute_text_byte(out, '_');
    for (size_t i = 0; i < HASH_BYTES; i++) {
        zn_attribute_text_byte(out, digit(hash[i] >> 4));
        zn_attribute_text_byte(out, digit(hash[i]));
    }
}

static void put_suites(zn_attribute_text *out, const values *suites)
{
    SHA256_CTX sha;
    (void)SHA256_Init(&sha);
    for (size_t i = 0; i < suites->n; i++)
        hash_value(&sha, i == 0 ? 0 : ',', suites->at[i]);
    put_hash(out, &sha, suites->n == 0);
}

/* Puts the hash of the extensions, except server_name and ALPN, and of the signature algorithms, in
 * the order of the hello. Returns false if the list of algorithms is damaged. */
static bool put_extensions(zn_attribute_text *out, const values *extensions, zn_cursor algorithms)
{
    SHA256_CTX sha;
    uint8_t separator = 0;
    bool is_empty;
    (void)SHA256_Init(&sha);
    for (size_t i = 0; i < extensions->n; i++) {
        uint16_t type = extensions->at[i];
        if (type == EXTENSION_SERVER_NAME || type == EXTENSION_ALPN)
            continue;
        hash_value(&sha, separator, type);
        separator = ',';
    }
    is_empty = separator == 0;
    separator = '_';
    while (zn_cursor_left(&algorithms) > 0) {
        uint16_t algorithm = zn_cursor_be16(&algorithms);
        if (zn_is_grease(algorithm))
            continue;
        hash_value(&sha, separator, algorithm);
        separator = ',';
    }
    put_hash(out, &sha, is_empty);
    return zn_cursor_ok(&algorithms);
}

zn_parse zn_read_ja4(zn_span message, zn_attribute_text *out)
{
    zn_hello_fields hello;
    client c;
    if (!read_client(message, &hello, &c))
        return ZN_MALFORMED;
    zn_attribute_text_byte(out, zn_hello_is_datagram(&hello) ? 'd' : c.is_quic ? 'q' : 't');
    put_version(out, c.version);
    zn_attribute_text_byte(out, c.has_name ? 'd' : 'i');
    put_count(out, c.suites.n);
    put_count(out, c.extensions.n);
    put_protocol(out, c.protocol);
    put_suites(out, &c.suites);
    return put_extensions(out, &c.extensions, c.algorithms) ? ZN_DONE : ZN_MALFORMED;
}
