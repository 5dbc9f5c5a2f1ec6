/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/dns_answers.h"

#include "proto/dns.h"

#define ANSWERS_MAX 256u /* aliases and addresses looked at in one message */
#define QR_AND_RCODE 0x800fu
#define RESPONSE_WITHOUT_ERROR 0x8000u

enum { TYPE_A = 1, TYPE_AAAA = 28, CLASS_IN = 1 };

/* Behind a name: labels up to the root or to a pointer (RFC 1035 4.1.4), which ends it. */
static void skip_name(zn_cursor *c)
{
    while (zn_cursor_ok(c)) {
        uint8_t length = zn_cursor_u8(c);
        if (length >= 0xc0) {
            zn_cursor_skip(c, 1);
            return;
        }
        if (length == 0)
            return;
        if (length > 63)
            zn_cursor_fail(c, ZN_CURSOR_BAD);
        else
            zn_cursor_skip(c, length);
    }
}

static void read_record(zn_cursor *c, zn_dns_addresses *out)
{
    uint16_t type, class;
    zn_span data;
    skip_name(c);
    type = zn_cursor_be16(c);
    class = zn_cursor_be16(c);
    zn_cursor_skip(c, 4); /* time to live */
    data = zn_cursor_take(c, zn_cursor_be16(c));
    if (!zn_cursor_ok(c) || class != CLASS_IN || out->n == ZN_DNS_ADDRESSES)
        return;
    if (type == TYPE_A && data.n == 4)
        out->at[out->n++] = zn_addr_from_v4(data.p);
    else if (type == TYPE_AAAA && data.n == sizeof out->at->byte)
        memcpy(out->at[out->n++].byte, data.p, data.n);
}

zn_parse zn_dns_read_addresses(zn_span message, bool whole, zn_dns_addresses *out)
{
    zn_cursor c = zn_cursor_over_span(message, whole);
    uint16_t flags, questions, answers;
    out->n = 0;
    zn_cursor_skip(&c, 2);
    flags = zn_cursor_be16(&c);
    questions = zn_cursor_be16(&c);
    answers = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 4);
    if (zn_cursor_ok(&c) && ((flags & QR_AND_RCODE) != RESPONSE_WITHOUT_ERROR ||
                             questions > ZN_DNS_QUESTIONS_MAX || answers > ANSWERS_MAX))
        return ZN_OTHER;
    for (unsigned i = 0; i < questions && zn_cursor_ok(&c); i++) {
        skip_name(&c);
        zn_cursor_skip(&c, 4);
    }
    for (unsigned i = 0; i < answers && zn_cursor_ok(&c); i++)
        read_record(&c, out);
    if (!zn_cursor_ok(&c))
        out->n = 0;
    return zn_cursor_parse(&c);
}
