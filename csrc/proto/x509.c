/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/x509.h"

#define ATTRIBUTES_MAX 64 /* of a subject that are looked at */

enum {
    TAG_OID = 0x06,
    TAG_UTF8 = 0x0c,
    TAG_PRINTABLE = 0x13,
    TAG_TELETEX = 0x14,
    TAG_IA5 = 0x16,
    TAG_SEQUENCE = 0x30,
    TAG_SET = 0x31,
    TAG_VERSION = 0xa0
};

static const uint8_t common_name_oid[3] = {0x55, 0x04, 0x03}; /* 2.5.4.3 */

/* A length (X.690 8.1.3): short, or long in up to three bytes; what is behind them is no
 * certificate. Anything else fails the cursor. */
static size_t take_length(zn_cursor *c)
{
    uint8_t first = zn_cursor_u8(c);
    switch (first) {
    case 0x81:
        return zn_cursor_u8(c);
    case 0x82:
        return zn_cursor_be16(c);
    case 0x83:
        return zn_cursor_be24(c);
    default:
        if (first < 0x80)
            return first;
        zn_cursor_fail(c, ZN_CURSOR_BAD);
        return 0;
    }
}

/* The next element's content, whatever its tag. */
static zn_cursor take_any(zn_cursor *c, uint8_t *tag)
{
    *tag = zn_cursor_u8(c);
    return zn_cursor_sub(c, take_length(c));
}

/* The next element's content; another tag than `tag` fails both. */
static zn_cursor take(zn_cursor *c, uint8_t tag)
{
    uint8_t found;
    zn_cursor content = take_any(c, &found);
    if (found != tag) {
        zn_cursor_fail(c, ZN_CURSOR_BAD);
        zn_cursor_fail(&content, ZN_CURSOR_BAD);
    }
    return content;
}

/* An attribute's value when it is a common name in characters of one byte. */
static zn_span common_name(zn_cursor *attribute)
{
    zn_cursor oid = take(attribute, TAG_OID), value;
    zn_span id = zn_cursor_rest(&oid), none = {NULL, 0};
    uint8_t tag;
    if (id.n != sizeof common_name_oid || memcmp(id.p, common_name_oid, id.n) != 0)
        return none;
    value = take_any(attribute, &tag);
    if (tag != TAG_UTF8 && tag != TAG_PRINTABLE && tag != TAG_TELETEX && tag != TAG_IA5)
        return none;
    return zn_cursor_rest(&value);
}

zn_parse zn_x509_common_name(zn_span certificate, zn_span *name)
{
    zn_cursor c = zn_cursor_over_span(certificate, true);
    zn_cursor outer = take(&c, TAG_SEQUENCE), inner = take(&outer, TAG_SEQUENCE), subject;
    uint8_t tag;
    (void)take_any(&inner, &tag); /* the version, or already the serial number */
    if (tag == TAG_VERSION)
        (void)take_any(&inner, &tag);
    (void)take(&inner, TAG_SEQUENCE); /* signature algorithm */
    (void)take(&inner, TAG_SEQUENCE); /* issuer */
    (void)take(&inner, TAG_SEQUENCE); /* validity */
    subject = take(&inner, TAG_SEQUENCE);
    if (!zn_cursor_ok(&subject))
        return ZN_MALFORMED;
    for (unsigned i = 0; i < ATTRIBUTES_MAX && zn_cursor_left(&subject) > 0; i++) {
        zn_cursor set = take(&subject, TAG_SET), attribute = take(&set, TAG_SEQUENCE);
        zn_span found;
        if (!zn_cursor_ok(&attribute))
            return ZN_MALFORMED;
        found = common_name(&attribute);
        if (found.n != 0) {
            *name = found;
            return ZN_DONE;
        }
    }
    return ZN_OTHER;
}
