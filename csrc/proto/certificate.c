/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The first DNS name and the issuer of a certificate (RFC 5280 4.1). */
#include "proto/attribute_readers.h"
#include "proto/der.h"

#define NAMES_MAX 32u  /* relative names of an issuer */
#define DNS_NAME 0x82u /* GeneralName of a host: the tag [2], IA5String */
#define ARC_BITS 7u

/* Parts of a certificate; each cursor has failed if the part is damaged. */
typedef struct certificate {
    zn_cursor issuer, extensions;
} certificate;

/* Reads a certificate. Returns false if it is damaged. */
static bool read_certificate(zn_span message, certificate *out)
{
    zn_cursor c = zn_cursor_over_span(message, true);
    zn_cursor outer = zn_der_take(&c, ZN_DER_SEQUENCE);
    zn_cursor inner = zn_der_take(&outer, ZN_DER_SEQUENCE);
    uint8_t tag;
    (void)zn_der_any(&inner, &tag); /* the version, or already the serial number */
    if (tag == ZN_DER_CONTEXT_0)
        (void)zn_der_any(&inner, &tag);
    (void)zn_der_take(&inner, ZN_DER_SEQUENCE); /* signature algorithm */
    out->issuer = zn_der_take(&inner, ZN_DER_SEQUENCE);
    (void)zn_der_take(&inner, ZN_DER_SEQUENCE); /* validity */
    (void)zn_der_take(&inner, ZN_DER_SEQUENCE); /* subject */
    (void)zn_der_take(&inner, ZN_DER_SEQUENCE); /* public key */
    out->extensions = zn_cursor_over(NULL, 0, true);
    while (zn_cursor_left(&inner) > 0) {
        zn_cursor part = zn_der_any(&inner, &tag);
        if (tag != ZN_DER_CONTEXT_3)
            continue;
        out->extensions = zn_der_take(&part, ZN_DER_SEQUENCE);
        if (!zn_cursor_ok(&part) || zn_cursor_left(&part) + zn_cursor_left(&inner) > 0)
            return false;
    }
    return zn_cursor_ok(&c) && zn_cursor_ok(&outer) && zn_cursor_ok(&inner) &&
           zn_cursor_left(&c) == 0;
}

static bool is_oid(zn_span oid, const uint8_t *known, size_t n)
{
    return oid.n == n && memcmp(oid.p, known, n) == 0;
}

/* ---- the DNS name ---------------------------------------------------------------------------- */

/* Reads the first DNS name of a subjectAltName. */
static zn_parse read_names(zn_cursor value, zn_attribute_text *out)
{
    zn_cursor names = zn_der_take(&value, ZN_DER_SEQUENCE);
    zn_parse found = ZN_OTHER;
    while (zn_cursor_left(&names) > 0) {
        uint8_t tag;
        zn_cursor name = zn_der_any(&names, &tag);
        zn_span text = zn_cursor_rest(&name);
        if (tag != DNS_NAME || found != ZN_OTHER || !zn_cursor_ok(&names))
            continue;
        if (text.n == 0)
            return ZN_MALFORMED;
        out->is_host = true;
        out->place = text;
        zn_attribute_text_put(out, text);
        found = ZN_DONE;
    }
    if (!zn_cursor_ok(&names) || !zn_cursor_ok(&value) || zn_cursor_left(&value) > 0)
        return ZN_MALFORMED;
    return found;
}

zn_parse zn_read_cert_san(zn_span message, zn_attribute_text *out)
{
    static const uint8_t alt_name[] = {0x55, 0x1d, 0x11}; /* 2.5.29.17 */
    certificate c;
    zn_parse found = ZN_OTHER;
    bool is_read = false;
    if (!read_certificate(message, &c))
        return ZN_MALFORMED;
    while (zn_cursor_left(&c.extensions) > 0) {
        zn_cursor extension = zn_der_take(&c.extensions, ZN_DER_SEQUENCE), value;
        zn_cursor oid = zn_der_take(&extension, ZN_DER_OID);
        uint8_t tag;
        value = zn_der_any(&extension, &tag);
        if (tag != ZN_DER_OCTETS) /* whether the extension is critical */
            value = zn_der_take(&extension, ZN_DER_OCTETS);
        if (!zn_cursor_ok(&extension) || zn_cursor_left(&extension) > 0)
            return ZN_MALFORMED;
        if (!is_oid(zn_cursor_rest(&oid), alt_name, sizeof alt_name))
            continue;
        if (is_read) /* RFC 5280 4.2 allows one */
            return ZN_MALFORMED;
        is_read = true;
        found = read_names(value, out);
    }
    return zn_cursor_ok(&c.extensions) ? found : ZN_MALFORMED;
}

/* ---- the issuer ------------------------------------------------------------------------------ */

static void put_number(zn_attribute_text *out, uint32_t value)
{
    static const uint8_t digits[] = "0123456789";
    uint32_t unit = 1000000000;
    for (; unit > 1 && value < unit; unit /= 10)
        continue;
    for (; unit != 0; unit /= 10)
        zn_attribute_text_byte(out, digits[value / unit % 10]);
}

/* Puts an object identifier in numbers and dots. Returns false if it is damaged, or has a number of
 * more than 28 bits. */
static bool put_dotted(zn_attribute_text *out, zn_span oid)
{
    zn_cursor c = zn_cursor_over_span(oid, true);
    bool is_first = true;
    while (zn_cursor_left(&c) > 0) {
        uint32_t arc = 0, root = 0;
        uint8_t byte;
        do {
            if (arc >> 3 * ARC_BITS != 0)
                return false;
            byte = zn_cursor_u8(&c);
            arc = arc << ARC_BITS | (byte & 0x7fu);
        } while ((byte & 0x80) != 0 && zn_cursor_left(&c) > 0);
        if ((byte & 0x80) != 0)
            return false;
        if (is_first) { /* the first two numbers are one (X.690 8.19.4) */
            root = arc < 80 ? arc / 40 : 2;
            put_number(out, root);
        }
        zn_attribute_text_byte(out, '.');
        put_number(out, arc - root * 40);
        is_first = false;
    }
    return !is_first;
}

/* Puts the type of an attribute: a word of RFC 4514 3, or an object identifier. */
static bool put_type(zn_attribute_text *out, zn_span oid)
{
    static const struct {
        uint8_t word[6];
        uint8_t n;
        uint8_t oid[10];
    } known[] = {
        {"CN", 3, {0x55, 4, 3}},
        {"C", 3, {0x55, 4, 6}},
        {"L", 3, {0x55, 4, 7}},
        {"ST", 3, {0x55, 4, 8}},
        {"STREET", 3, {0x55, 4, 9}},
        {"O", 3, {0x55, 4, 10}},
        {"OU", 3, {0x55, 4, 11}},
        {"UID", 10, {0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1}},
        {"DC", 10, {0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!is_oid(oid, known[i].oid, known[i].n))
            continue;
        for (size_t at = 0; at < sizeof known[i].word && known[i].word[at] != 0; at++)
            zn_attribute_text_byte(out, known[i].word[at]);
        return true;
    }
    return put_dotted(out, oid);
}

/* Puts a character of a value. '+' is escaped, because it separates attributes. */
static void put_character(zn_attribute_text *out, const uint8_t *utf8, size_t n)
{
    static const uint8_t plus[] = "%2B";
    if (n == 1 && utf8[0] == '+')
        for (size_t i = 0; i < sizeof plus - 1; i++)
            zn_attribute_text_byte(out, plus[i]);
    else
        zn_attribute_text_put(out, (zn_span){utf8, n});
}

/* Puts a string of two bytes a character as UTF-8. Returns false if a character is damaged or not
 * of the Basic Multilingual Plane. */
static bool put_wide(zn_attribute_text *out, zn_cursor value)
{
    while (zn_cursor_left(&value) > 0) {
        uint16_t point = zn_cursor_be16(&value);
        uint8_t utf8[3] = {(uint8_t)(0xe0 | point >> 12), (uint8_t)(0x80 | (point >> 6 & 0x3f)),
                           (uint8_t)(0x80 | (point & 0x3f))};
        if (point >> 11 == 0xd800 >> 11)
            return false;
        if (point < 0x80)
            put_character(out, (const uint8_t[]){(uint8_t)point}, 1);
        else if (point < 0x800)
            put_character(out, (const uint8_t[]){(uint8_t)(0xc0 | point >> 6), utf8[2]}, 2);
        else
            put_character(out, utf8, sizeof utf8);
    }
    return zn_cursor_ok(&value);
}

/* Puts the value of an attribute. Returns false if it is not a known kind of string. */
static bool put_value(zn_attribute_text *out, uint8_t tag, zn_cursor value)
{
    switch (tag) {
    case ZN_DER_BMP:
        return put_wide(out, value);
    case ZN_DER_UTF8:
    case ZN_DER_NUMERIC:
    case ZN_DER_PRINTABLE:
    case ZN_DER_TELETEX:
    case ZN_DER_IA5:
    case ZN_DER_VISIBLE:
        while (zn_cursor_left(&value) > 0) {
            uint8_t byte = zn_cursor_u8(&value);
            put_character(out, &byte, 1);
        }
        return true;
    default:
        return false;
    }
}

/* Puts the attributes of a relative name, joined by '+'. Returns false if the name is damaged. */
static bool put_relative_name(zn_attribute_text *out, zn_cursor set)
{
    for (bool is_first = true; zn_cursor_left(&set) > 0; is_first = false) {
        zn_cursor attribute = zn_der_take(&set, ZN_DER_SEQUENCE);
        zn_cursor oid = zn_der_take(&attribute, ZN_DER_OID), value;
        uint8_t tag;
        value = zn_der_any(&attribute, &tag);
        if (!zn_cursor_ok(&set) || !zn_cursor_ok(&attribute) || zn_cursor_left(&attribute) > 0)
            return false;
        if (!is_first)
            zn_attribute_text_byte(out, '+');
        if (!put_type(out, zn_cursor_rest(&oid)))
            return false;
        zn_attribute_text_byte(out, '=');
        if (!put_value(out, tag, value))
            return false;
    }
    return zn_cursor_ok(&set);
}

zn_parse zn_read_cert_issuer(zn_span message, zn_attribute_text *out)
{
    certificate c;
    zn_cursor names[NAMES_MAX], issuer;
    size_t n = 0;
    if (!read_certificate(message, &c))
        return ZN_MALFORMED;
    issuer = c.issuer;
    out->place = zn_cursor_rest(&issuer);
    while (zn_cursor_left(&c.issuer) > 0) {
        if (n == NAMES_MAX)
            return ZN_MALFORMED;
        names[n] = zn_der_take(&c.issuer, ZN_DER_SET);
        if (zn_cursor_left(&names[n++]) == 0)
            return ZN_MALFORMED;
    }
    if (!zn_cursor_ok(&c.issuer))
        return ZN_MALFORMED;
    for (size_t i = n; i-- > 0;) { /* the last name is first (RFC 4514 2.1) */
        if (!put_relative_name(out, names[i]))
            return ZN_MALFORMED;
        if (i != 0)
            zn_attribute_text_byte(out, ',');
    }
    return n != 0 ? ZN_DONE : ZN_OTHER;
}
