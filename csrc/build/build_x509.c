/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filler in the extension gives the certificate its length. The filler lies in five elements,
 * whose length fields grow with it. So the filler alone cannot reach some lengths. Then the
 * signature, which lies in the outermost element only, takes some bytes from the filler.
 */
#include "build/build_x509.h"

#define SIGNATURE_BYTES 65u /* the number of unused bits, and 64 bytes (RFC 8410 6) */
#define SPARE_MAX 7u        /* most bytes that the signature takes from the filler */

enum {
    TAG_BIT_STRING = 0x03,
    TAG_OCTET_STRING = 0x04,
    TAG_UTF8 = 0x0c,
    TAG_SEQUENCE = 0x30,
    TAG_SET = 0x31,
    TAG_EXTENSIONS = 0xa3
};

/* Fields in front of the subject: version, serial number, algorithm, issuer and validity. */
static const uint8_t front[] = {
    0xa0, 0x03, 0x02, 0x01, 0x02,                                     /* v3 */
    0x02, 0x01, 0x01,                                                 /* serial number 1 */
    0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70,                         /* Ed25519: 1.3.101.112 */
    0x30, 0x12, 0x31, 0x10, 0x30, 0x0e, 0x06, 0x03, 0x55, 0x04, 0x03, /* CN */
    0x0c, 0x07, 'i',  'n',  'v',  'a',  'l',  'i',  'd',              /* in UTF-8 */
    0x30, 0x1e,                                                       /* validity */
    0x17, 0x0d, '0',  '0',  '0',  '1',  '0',  '1',  '0',  '0',  '0',  '0', '0', '0', 'Z',
    0x17, 0x0d, '4',  '9',  '1',  '2',  '3',  '1',  '2',  '3',  '5',  '9', '5', '9', 'Z'};

/* Algorithm of the public key, and the start of its 32 bytes. */
static const uint8_t key_front[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                    0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
#define KEY_BYTES (sizeof key_front + 32)

static const uint8_t extension_type[] = {0x06, 0x03, 0x88, 0x37, 0x01};        /* 2.999.1 */
static const uint8_t algorithm[] = {0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70}; /* Ed25519 */
static const uint8_t common_name_type[] = {0x06, 0x03, 0x55, 0x04, 0x03};      /* 2.5.4.3 */

/* Bytes that each element contains. */
typedef struct plan {
    size_t certificate, to_be_signed, extensions, list, extension, filler, signature;
    size_t subject, set, attribute, name;
} plan;

/* Returns the bytes of a length field (X.690 10.1). */
static size_t length_bytes(size_t content)
{
    if (content < 0x80)
        return 1;
    return content <= 0xff ? 2 : content <= 0xffff ? 3 : content <= 0xffffff ? 4 : 5;
}

static size_t element_bytes(size_t content)
{
    return 1 + length_bytes(content) + content;
}

/* Finds the bytes that an element of `total` bytes contains. Returns false if no element has this
 * length. */
static bool content_of(size_t total, size_t *content)
{
    for (size_t header = 2; header <= 6 && header <= total; header++) {
        *content = total - header;
        if (element_bytes(*content) == total)
            return true;
    }
    return false;
}

/* Finds the content of an element. The element and `others` bytes in front of it take `total`
 * bytes. */
static bool content_after(size_t total, size_t others, size_t *content)
{
    return total >= others && content_of(total - others, content);
}

static void plan_subject(plan *p, size_t name)
{
    p->name = name;
    p->attribute = sizeof common_name_type + element_bytes(name);
    p->set = element_bytes(p->attribute);
    p->subject = name == 0 ? 0 : element_bytes(p->set);
}

/* Plans a certificate of n bytes with a signature of the given length. */
static bool plan_certificate(plan *p, size_t n, size_t signature)
{
    size_t fixed = sizeof front + element_bytes(p->subject) + KEY_BYTES;
    size_t after = sizeof algorithm + element_bytes(signature);
    p->signature = signature;
    return content_of(n, &p->certificate) &&
           content_after(p->certificate, after, &p->to_be_signed) &&
           content_after(p->to_be_signed, fixed, &p->extensions) &&
           content_of(p->extensions, &p->list) && content_of(p->list, &p->extension) &&
           content_after(p->extension, sizeof extension_type, &p->filler);
}

static uint8_t *put(uint8_t *at, const uint8_t *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

/* Begins an element. */
static uint8_t *put_header(uint8_t *at, uint8_t tag, size_t content)
{
    size_t more = length_bytes(content) - 1;
    *at++ = tag;
    if (more != 0)
        *at++ = (uint8_t)(0x80 | more);
    for (size_t i = more; i > 1; i--)
        *at++ = (uint8_t)(content >> 8 * (i - 1));
    *at++ = (uint8_t)content;
    return at;
}

static uint8_t *put_subject(uint8_t *at, const plan *p, zn_span name)
{
    at = put_header(at, TAG_SEQUENCE, p->subject);
    if (name.n == 0)
        return at;
    at = put_header(at, TAG_SET, p->set);
    at = put_header(at, TAG_SEQUENCE, p->attribute);
    at = put(at, common_name_type, sizeof common_name_type);
    at = put_header(at, TAG_UTF8, name.n);
    return put(at, name.p, name.n);
}

static void put_certificate(uint8_t *out, const plan *p, zn_span name)
{
    uint8_t *at = put_header(out, TAG_SEQUENCE, p->certificate);
    at = put_header(at, TAG_SEQUENCE, p->to_be_signed);
    at = put(at, front, sizeof front);
    at = put_subject(at, p, name);
    (void)put(at, key_front, sizeof key_front);
    at = put_header(at + KEY_BYTES, TAG_EXTENSIONS, p->extensions);
    at = put_header(at, TAG_SEQUENCE, p->list);
    at = put_header(at, TAG_SEQUENCE, p->extension);
    at = put(at, extension_type, sizeof extension_type);
    at = put_header(at, TAG_OCTET_STRING, p->filler) + p->filler;
    at = put(at, algorithm, sizeof algorithm);
    (void)put_header(at, TAG_BIT_STRING, p->signature);
}

static bool is_printable(zn_span name)
{
    zn_cursor c = zn_cursor_over_span(name, true);
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < 0x20 || byte > 0x7e)
            return false;
    }
    return name.n <= ZN_BUILD_X509_NAME_MAX;
}

bool zn_build_x509(uint8_t *out, size_t n, zn_span common_name)
{
    plan p;
    if (!is_printable(common_name))
        return false;
    plan_subject(&p, common_name.n);
    for (size_t spare = 0; spare <= SPARE_MAX; spare++) {
        if (plan_certificate(&p, n, SIGNATURE_BYTES + spare)) {
            put_certificate(out, &p, common_name);
            return true;
        }
    }
    return false;
}
