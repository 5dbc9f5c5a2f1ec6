/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zones are the parts of a message to which a compression pointer may lead, in their order: names
 * as they were built, and RDATA that was not built. A name in the clear leads only to names in the
 * clear, so its text is known without the masked names.
 */
#include "build/build_dns.h"

#include "build/build_name.h"
#include "proto/ascii.h"
#include "proto/dns.h"

#define HEADER_BYTES 12u
#define TYPE_AND_CLASS 4u
#define RECORD_FIXED 10u /* type, class, TTL, RDLENGTH */
#define OPTION_FIXED 4u  /* code, length */
#define LABEL_MAX 63u
#define LABELS_BYTES_MAX 254u /* bytes of a name on the wire, without the root (RFC 1035 2.3.4) */
#define POINTER_BYTES 2u
#define POINTER 0xc0u
#define POINTERS_MAX 32u /* most pointers of one name; servers use one or two */
#define ZONES_MAX (2u * ZN_BUILD_DNS_PARTS_MAX) /* the name and the RDATA of each record */
#define TYPE_PRIVATE 65280u

enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_AAAA = 28, TYPE_OPT = 41, CLASS_IN = 1 };

typedef enum zone_kind { ZONE_CLEAR, ZONE_MASKED, ZONE_ZEROED } zone_kind;

typedef struct zone {
    uint16_t from, to; /* offsets in the message */
    uint16_t target;   /* target of pointers to a masked name */
    uint8_t kind;      /* zone_kind */
} zone;

typedef struct dns_name {
    size_t at, end;    /* offsets in the message */
    size_t bytes;      /* known bytes of its labels, including the labels behind its pointer */
    bool known;        /* true if all of its text is known */
    bool pointer;      /* true if it ends in a pointer */
    bool joins_masked; /* the pointer leads to the masked name at joins_at */
    uint16_t joins_at;
    uint8_t n, text[ZN_DNS_NAME_MAX]; /* lower case, without a final dot */
} dns_name;

typedef struct dns_builder {
    zn_span message;
    const zn_build_dns_choice *choice;
    uint8_t *out;
    uint16_t root; /* offset of the root after the first question's name */
    dns_name question;
    size_t zones;
    zone zone[ZONES_MAX];
} dns_builder;

static void put_be16(uint8_t *out, unsigned value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

/* Copies a part of the message. */
static void put_same(const dns_builder *b, zn_span part)
{
    if (part.n != 0)
        memcpy(b->out + zn_span_offset(b->message, part), part.p, part.n);
}

/* ---- zones ----------------------------------------------------------------------------------- */

static bool add_zone(dns_builder *b, size_t from, size_t to, zone_kind kind, uint16_t target)
{
    if (b->zones == ZONES_MAX)
        return false;
    b->zone[b->zones++] = (zone){(uint16_t)from, (uint16_t)to, target, (uint8_t)kind};
    return true;
}

/* Returns the zone in which an offset lies, or NULL. */
static const zone *zone_of(const dns_builder *b, uint16_t at)
{
    size_t low = 0, high = b->zones; /* the first zone beyond `at` is in low..high */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->zone[middle].from <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low != 0 && at < b->zone[low - 1].to ? &b->zone[low - 1] : NULL;
}

/* ---- reading names --------------------------------------------------------------------------- */

/* Appends a label. Returns false if the name gets too long. */
static bool append_label(dns_name *name, zn_span label)
{
    zn_cursor c = zn_cursor_over_span(label, true);
    name->bytes += 1 + label.n;
    if (name->bytes > LABELS_BYTES_MAX)
        return false;
    if (name->n != 0)
        name->text[name->n++] = '.';
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_ascii_lower(zn_cursor_u8(&c));
        name->known &= byte != '.'; /* the text would be that of two labels */
        name->text[name->n++] = byte;
    }
    return true;
}

/* Appends labels up to the root or through a pointer. */
static bool append_labels(zn_cursor *c, dns_name *name, bool *pointer, uint16_t *target)
{
    for (;;) {
        uint8_t length = zn_cursor_u8(c);
        zn_span label;
        *pointer = length >= POINTER;
        if (*pointer)
            *target = (uint16_t)((length & ~POINTER) << 8 | zn_cursor_u8(c));
        if (*pointer || length == 0)
            return zn_cursor_ok(c);
        if (length > LABEL_MAX)
            return false;
        label = zn_cursor_take(c, length);
        if (!zn_cursor_ok(c) || !append_label(name, label))
            return false;
    }
}

/* Skips the labels in the next n bytes. Returns false if no label ends there. */
static bool skip_labels(zn_cursor *c, size_t n)
{
    while (n > 0) {
        size_t length = zn_cursor_u8(c);
        if (length == 0 || length > LABEL_MAX || length + 1 > n)
            return false;
        zn_cursor_skip(c, length);
        n -= length + 1;
    }
    return zn_cursor_ok(c);
}

/* Appends the target of a pointer. Returns false if the target is neither a name nor RDATA that was
 * not built. The loop ends because each zone leads to an earlier zone only. */
static bool follow_pointer(const dns_builder *b, uint16_t target, dns_name *name)
{
    bool pointer = true;
    for (unsigned i = 0; pointer && i < POINTERS_MAX; i++) {
        const zone *z = zone_of(b, target);
        zn_cursor c;
        if (z == NULL)
            return false;
        if (z->kind != ZONE_CLEAR) {
            name->known = false;
            name->joins_masked = z->kind == ZONE_MASKED;
            name->joins_at = z->target;
            return true;
        }
        c = zn_cursor_over_span(zn_span_part(b->message, z->from, z->to), true);
        if (!skip_labels(&c, (size_t)target - z->from) ||
            !append_labels(&c, name, &pointer, &target))
            return false;
    }
    return !pointer;
}

/* Reads a name at the cursor, which covers the message. */
static bool read_name(const dns_builder *b, zn_cursor *c, dns_name *name)
{
    uint16_t target = 0;
    name->at = b->message.n - zn_cursor_left(c);
    name->bytes = 0;
    name->known = true;
    name->joins_masked = false;
    name->joins_at = 0;
    name->n = 0;
    if (!append_labels(c, name, &name->pointer, &target))
        return false;
    name->end = b->message.n - zn_cursor_left(c);
    return !name->pointer || follow_pointer(b, target, name);
}

/* ---- writing names --------------------------------------------------------------------------- */

static zn_span text_of(const dns_name *name)
{
    return (zn_span){name->text, name->n};
}

static bool may_show(const dns_builder *b, const dns_name *name)
{
    const zn_build_dns_choice *choice = b->choice;
    if (!name->known || name->n == 0) /* the root discloses nothing */
        return name->known;
    if (!zn_build_name_allowed(text_of(name)))
        return false;
    if (b->question.known && zn_span_equal(text_of(name), text_of(&b->question)))
        return choice->name;
    return choice->shared != NULL && choice->shared(choice->context, text_of(name));
}

/* Fills n bytes, 2 or more, with labels of 'x'. */
static void put_labels_of_x(uint8_t *out, size_t n)
{
    while (n > 0) {
        size_t length = n - 1 < LABEL_MAX ? n - 1 : LABEL_MAX;
        if (n - 1 - length == 1) /* one byte is too short for a label */
            length--;
        *out++ = (uint8_t)length;
        memset(out, 'x', length);
        out += length;
        n -= length + 1;
    }
}

static bool put_clear(dns_builder *b, const dns_name *name)
{
    size_t labels = name->end - (name->pointer ? POINTER_BYTES : 1);
    zn_cursor c = zn_cursor_over_span(zn_span_part(b->message, name->at, labels), true);
    for (uint8_t *out = b->out + name->at; zn_cursor_left(&c) > 0; out++)
        *out = zn_ascii_lower(zn_cursor_u8(&c)); /* lengths are below all letters */
    put_same(b, zn_span_part(b->message, labels, name->end));
    return add_zone(b, name->at, name->end, ZONE_CLEAR, 0);
}

static bool put_masked(dns_builder *b, const dns_name *name)
{
    size_t bytes = name->end - name->at, target = name->at;
    if (bytes > LABELS_BYTES_MAX + 1)
        return false;
    if (bytes == POINTER_BYTES) {
        target = name->joins_masked ? name->joins_at : b->root;
        put_be16(b->out + name->at, POINTER << 8 | (unsigned)target);
    } else {
        put_labels_of_x(b->out + name->at, bytes - 1); /* the root is zero */
    }
    return add_zone(b, name->at, name->end, ZONE_MASKED, (uint16_t)target);
}

static bool put_name(dns_builder *b, const dns_name *name, bool show)
{
    bool root = name->end - name->at == 1;
    return show || root ? put_clear(b, name) : put_masked(b, name);
}

/* ---- questions and records ------------------------------------------------------------------- */

static bool put_questions(dns_builder *b, zn_cursor *c, unsigned questions)
{
    for (unsigned i = 0; i < questions; i++) {
        dns_name name;
        if (!read_name(b, c, &name))
            return false;
        if (i == 0) {
            b->question = name;
            b->root = (uint16_t)(name.end - 1);
        }
        if (!put_name(b, &name, i == 0 && may_show(b, &name)))
            return false;
        put_same(b, zn_cursor_take(c, TYPE_AND_CLASS));
    }
    return zn_cursor_ok(c);
}

/* Writes the address of an A or AAAA record. */
static void put_address(const dns_builder *b, zn_span data)
{
    uint8_t *out = b->out + zn_span_offset(b->message, data);
    zn_addr real, mapped;
    if (b->choice->map == NULL)
        return;
    memset(&mapped, 0, sizeof mapped);
    if (data.n == sizeof real.byte)
        memcpy(real.byte, data.p, sizeof real.byte);
    else
        real = zn_addr_from_v4(data.p);
    b->choice->map(b->choice->context, &real, &mapped);
    if (zn_addr_is_v4(&mapped) == zn_addr_is_v4(&real))
        memcpy(out, mapped.byte + (sizeof mapped.byte - data.n), data.n);
}

/* Registered codes (IANA) that do not identify a device or a network. */
static bool is_registered_option(uint16_t code)
{
    return (code >= 1 && code <= 3) || (code >= 5 && code <= 19);
}

/* Writes the options of an OPT record. */
static bool put_options(const dns_builder *b, zn_span data)
{
    zn_cursor c = zn_cursor_over_span(data, true);
    while (zn_cursor_left(&c) > 0) {
        zn_span option = zn_cursor_take(&c, OPTION_FIXED);
        if (option.n == 0)
            return false;
        zn_cursor_skip(&c, zn_header_be16(option, 2));
        put_same(b, zn_span_after(option, is_registered_option(zn_header_be16(option, 0)) ? 0 : 2));
    }
    return zn_cursor_ok(&c);
}

/* Writes the name in the RDATA of a CNAME record, at the cursor. */
static bool put_cname(dns_builder *b, zn_cursor c, size_t bytes)
{
    dns_name name;
    return read_name(b, &c, &name) && name.end - name.at == bytes &&
           put_name(b, &name, may_show(b, &name));
}

static bool put_record(dns_builder *b, zn_cursor *c)
{
    dns_name owner;
    zn_span fixed, data;
    zn_cursor at_data;
    uint16_t type, class;
    size_t at;

    if (!read_name(b, c, &owner) || !put_name(b, &owner, may_show(b, &owner)))
        return false;
    fixed = zn_cursor_take(c, RECORD_FIXED);
    if (fixed.n == 0)
        return false;
    type = zn_header_be16(fixed, 0);
    class = zn_header_be16(fixed, 2);
    at_data = *c;
    at = b->message.n - zn_cursor_left(c);
    data = zn_cursor_take(c, zn_header_be16(fixed, RECORD_FIXED - 2));
    if (!zn_cursor_ok(c))
        return false;
    put_same(b, fixed);
    if (class == CLASS_IN &&
        ((type == TYPE_A && data.n == 4) || (type == TYPE_AAAA && data.n == sizeof(zn_addr)))) {
        put_address(b, data);
        return true;
    }
    if (class == CLASS_IN && type == TYPE_CNAME)
        return put_cname(b, at_data, data.n);
    if (type != TYPE_OPT || owner.end - owner.at != 1)
        put_be16(b->out + (at - RECORD_FIXED), TYPE_PRIVATE);
    else if (!put_options(b, data))
        return false;
    return add_zone(b, at, at + data.n, ZONE_ZEROED, 0);
}

static bool put_message(dns_builder *b)
{
    zn_cursor c = zn_cursor_over_span(b->message, true);
    zn_span header = zn_cursor_take(&c, HEADER_BYTES);
    unsigned records;
    put_same(b, header);
    if (!put_questions(b, &c, zn_header_be16(header, 4)))
        return false;
    records = zn_header_be16(header, 6);
    records += zn_header_be16(header, 8);
    records += zn_header_be16(header, 10);
    for (unsigned i = 0; i < records; i++)
        if (!put_record(b, &c))
            return false;
    return true;
}

bool zn_build_dns(zn_span message, const zn_build_dns_choice *choice, uint8_t *out)
{
    zn_dns_question question;
    dns_builder b;
    if (message.n > UINT16_MAX || zn_dns_question_parse(message, true, &question) != ZN_DONE ||
        question.opcode != 0)
        return false;
    b.message = message;
    b.choice = choice;
    b.out = out;
    b.zones = 0;
    if (put_message(&b))
        return true;
    memset(out, 0, message.n);
    return false;
}
