/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/dns.h"

#define LABEL_MAX 63u      /* longer length bytes are pointers or reserved (RFC 1035 4.1.4) */
#define POINTER 0xc0u      /* and beyond: the first byte of a compression pointer */
#define FIRST_NAME 0xc00cu /* a pointer to the byte after the header */
#define TYPE_AND_CLASS 4
#define LENGTH_BYTES 2u  /* in front of a message over TCP */
#define MESSAGE_MIN 17u  /* a header and the question for the root */
#define ANSWERS_MAX 256u /* aliases and addresses looked at in one message */
#define QR_AND_RCODE 0x800fu
#define RESPONSE_WITHOUT_ERROR 0x8000u

enum {
    OPCODE_QUERY = 0,
    OPCODE_INVERSE = 1,
    OPCODE_STATUS = 2,
    OPCODE_NOTIFY = 4,
    OPCODE_UPDATE = 5
};

enum { TYPE_A = 1, TYPE_AAAA = 28, TYPE_OPT = 41, CLASS_IN = 1 };
enum { CLASS_BITS = 0x7fff }; /* the other bit is a flag of mDNS (RFC 6762 10.2) */

typedef struct dns_counts {
    uint16_t questions, answers, authorities, additionals;
} dns_counts;

/* The opcodes that carry a question (IANA's list; the zone of an UPDATE has the same form). */
static bool is_opcode(uint8_t opcode)
{
    switch (opcode) {
    case OPCODE_QUERY:
    case OPCODE_INVERSE:
    case OPCODE_STATUS:
    case OPCODE_NOTIFY:
    case OPCODE_UPDATE:
        return true;
    default:
        return false;
    }
}

/* Returns true if a query has more records than EDNS's and a signature, as the probes of mDNS and
 * some dynamic clients send it. */
static bool has_more_records(const dns_counts *counts, const zn_dns_question *q)
{
    return !q->response && q->opcode == OPCODE_QUERY &&
           (counts->answers != 0 || counts->authorities > 1);
}

/* Returns whether a header can be DNS's at all. A bit that is reserved (Z), and an error in a
 * query, are ignored by servers (RFC 6895 2.1, RFC 1035 4.1.1): they count only where the message
 * has more than the one question that clients send, and EDNS's record. */
static bool is_plausible(uint16_t flags, const dns_counts *counts, const zn_dns_question *q)
{
    bool query = !q->response && q->opcode == OPCODE_QUERY;
    bool strange = (flags & (query ? 0x004f : 0x0040)) != 0;
    if (!is_opcode(q->opcode) || counts->questions == 0 || counts->questions > ZN_DNS_QUESTIONS_MAX)
        return false;
    if (has_more_records(counts, q))
        return !strange && counts->questions == 1;
    if (!strange)
        return true;
    return counts->questions == 1 &&
           (q->response || (query && counts->authorities == 0 && counts->additionals <= 1));
}

/* IN, CSNET, CHAOS, Hesiod, NONE and ANY. */
static bool is_class(uint16_t class)
{
    return (class >= 1 && class <= 4) || class == 254 || class == 255;
}

/* Appends a label to the name; false when the name gets too long. */
static bool append_label(zn_span label, zn_dns_question *out)
{
    zn_cursor c = zn_cursor_over_span(label, true);
    size_t at = out->name_bytes;
    if (at + (at != 0) + label.n > ZN_DNS_NAME_MAX)
        return false;
    if (at != 0)
        out->name[at++] = '.';
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < 0x21 || byte > 0x7e || byte == '.')
            out->name_odd = true;
        out->name[at++] = byte;
    }
    out->name_bytes = (uint8_t)at;
    return true;
}

/* Reads a name; *pointer: it ends in a compression pointer, and the cursor stands after that. */
static zn_parse parse_name(zn_cursor *c, zn_dns_question *out, bool *pointer)
{
    *pointer = false;
    for (;;) {
        uint8_t length = zn_cursor_u8(c);
        zn_span label;
        if (length >= POINTER) {
            zn_cursor_skip(c, 1);
            *pointer = zn_cursor_ok(c);
        }
        if (length > LABEL_MAX)
            return ZN_MALFORMED;
        label = zn_cursor_take(c, length);
        if (!zn_cursor_ok(c))
            return zn_cursor_parse(c);
        if (length == 0)
            return ZN_DONE;
        if (!append_label(label, out))
            return ZN_MALFORMED;
    }
}

/* Returns whether any of the next `left` questions is about another name than the first one's. */
static bool asks_more(zn_cursor c, unsigned left)
{
    for (; left > 0; left--) {
        if (zn_cursor_be16(&c) != FIRST_NAME)
            return true;
        zn_cursor_skip(&c, TYPE_AND_CLASS);
    }
    return false;
}

/* Passes over a name: labels up to the root or to a pointer (RFC 1035 4.1.4), which ends it. */
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

/* Returns true if the records that a query counts, and nothing else, follow its question. */
static bool has_counted_records(zn_cursor c, const dns_counts *counts)
{
    uint32_t left = (uint32_t)counts->answers + counts->authorities + counts->additionals;
    for (; left > 0 && zn_cursor_ok(&c); left--) {
        uint16_t type, class;
        skip_name(&c);
        type = zn_cursor_be16(&c);
        class = zn_cursor_be16(&c) & CLASS_BITS;
        zn_cursor_skip(&c, 4); /* time to live */
        zn_cursor_skip(&c, zn_cursor_be16(&c));
        if (zn_cursor_ok(&c) && type != TYPE_OPT && !is_class(class))
            return false;
    }
    return c.state != ZN_CURSOR_BAD && zn_cursor_left(&c) == 0;
}

/* The first of the questions whose name is spelled out. A pointer could lead forward only, and
 * receivers differ about its meaning; they all read the question that it leads to. */
static zn_parse parse_questions(zn_cursor *c, unsigned questions, zn_dns_question *out)
{
    unsigned left = questions;
    zn_parse state;
    bool pointer;
    do {
        out->name_bytes = 0;
        out->name_odd = false;
        state = parse_name(c, out, &pointer);
        out->type = zn_cursor_be16(c);
        out->class = zn_cursor_be16(c);
    } while (--left > 0 && pointer && zn_cursor_ok(c));
    out->more = left > 0 && (left + 1 != questions || asks_more(*c, left));
    return state == ZN_DONE ? zn_cursor_parse(c) : state;
}

zn_parse zn_dns_question_parse(zn_span message, bool whole, zn_dns_question *out)
{
    zn_cursor c = zn_cursor_over_span(message, whole);
    dns_counts counts;
    uint16_t flags;
    zn_parse state = ZN_OTHER;

    memset(out, 0, sizeof *out);
    out->id = zn_cursor_be16(&c);
    flags = zn_cursor_be16(&c);
    counts.questions = zn_cursor_be16(&c);
    counts.answers = zn_cursor_be16(&c);
    counts.authorities = zn_cursor_be16(&c);
    counts.additionals = zn_cursor_be16(&c);
    if (!zn_cursor_ok(&c)) {
        memset(out, 0, sizeof *out);
        return whole ? ZN_OTHER : ZN_NEED_MORE;
    }
    out->response = (flags & 0x8000) != 0;
    out->opcode = (flags >> 11) & 0x0f;
    if (is_plausible(flags, &counts, out))
        state = parse_questions(&c, counts.questions, out);
    out->end = (uint16_t)(message.n - zn_cursor_left(&c));
    if (state == ZN_DONE && (!is_class(out->class) ||
                             (has_more_records(&counts, out) && !has_counted_records(c, &counts))))
        state = ZN_OTHER;
    if (state != ZN_DONE)
        memset(out, 0, sizeof *out);
    return state;
}

zn_parse zn_dns_tcp_question_parse(zn_span bytes, zn_dns_question *out, size_t *used)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    size_t length = zn_cursor_be16(&c), left = zn_cursor_left(&c);
    *used = 0;
    memset(out, 0, sizeof *out);
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    *used = LENGTH_BYTES + length;
    if (length < MESSAGE_MIN)
        return ZN_OTHER;
    return zn_dns_question_parse(zn_cursor_take(&c, left < length ? left : length), left >= length,
                                 out);
}

/* ---- answers --------------------------------------------------------------------------------- */

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
