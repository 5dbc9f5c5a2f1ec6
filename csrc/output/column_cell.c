/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/column_cell.h"

#define MS_DECIMALS 6
#define SECOND_DECIMALS 6
#define NS_PER_US 1000
#define WORD_MAX_BYTES 64

static const char *const source_words[] = {
    [ZN_SOURCE_NONE] = NULL,   [ZN_SOURCE_TLS] = "tls", [ZN_SOURCE_QUIC] = "quic",
    [ZN_SOURCE_HTTP] = "http", [ZN_SOURCE_DNS] = "dns",
};

static const char *const status_words[] = {
    [ZN_NAME_NONE] = "none",
    [ZN_NAME_RELEASED] = "released",
    [ZN_NAME_SUPPRESSED] = "suppressed",
    [ZN_NAME_UNCONFIRMED] = "unconfirmed",
    [ZN_NAME_INVALID] = "invalid",
    [ZN_NAME_GENERALIZED] = "generalized",
};

static const char *const name_level_words[] = {
    [ZN_NAME_LEVEL_NONE] = NULL,
    [ZN_NAME_LEVEL_NAME] = "name",
    [ZN_NAME_LEVEL_DOMAIN] = "domain",
    [ZN_NAME_LEVEL_CATEGORY] = "category",
};

static const char *const server_level_words[] = {
    [ZN_SERVER_LEVEL_NONE] = NULL,
    [ZN_SERVER_LEVEL_ADDRESS] = "address",
    [ZN_SERVER_LEVEL_AS] = "as",
    [ZN_SERVER_LEVEL_COUNTRY] = "country",
};

static const char *const ech_words[] = {[ZN_ECH_NONE] = "none", [ZN_ECH_OFFERED] = "offered"};

const char *const *zn_column_words(const zn_column *c, size_t *n)
{
    switch (c->kind) {
    case ZN_COLUMN_NAME_SOURCE:
        *n = sizeof source_words / sizeof source_words[0];
        return source_words;
    case ZN_COLUMN_NAME_STATUS:
        *n = sizeof status_words / sizeof status_words[0];
        return status_words;
    case ZN_COLUMN_NAME_LEVEL:
        *n = sizeof name_level_words / sizeof name_level_words[0];
        return name_level_words;
    case ZN_COLUMN_SERVER_LEVEL:
        *n = sizeof server_level_words / sizeof server_level_words[0];
        return server_level_words;
    case ZN_COLUMN_ECH:
        *n = sizeof ech_words / sizeof ech_words[0];
        return ech_words;
    default:
        *n = 0;
        return NULL;
    }
}

const char *zn_name_source_word(zn_name_source source)
{
    return source_words[source];
}

const char *zn_name_level_word(zn_name_level level)
{
    return name_level_words[level];
}

const char *zn_space_word(zn_space space)
{
    if (space >= ZN_SPACE_ATTRIBUTE)
        return zn_attribute_word(space - ZN_SPACE_ATTRIBUTE);
    return space == ZN_SPACE_NONE ? NULL : space == ZN_SPACE_DNS ? "dns" : "name";
}

/* The column's member in the record. */
static const char *member_of(const zn_column *c, const zn_record *r)
{
    return (const char *)r + c->offset;
}

/* The side that holds the column's member; the sides are a record's end. */
static const zn_record_side *side_of(const zn_column *c, const zn_record *r)
{
    return c->offset < offsetof(zn_record, server) ? &r->client : &r->server;
}

uint64_t zn_column_number(const zn_column *c, const zn_record *r)
{
    uint32_t in_32;
    uint16_t in_16;
    uint64_t in_64;
    switch (c->size) {
    case 1:
        return (uint8_t)*member_of(c, r);
    case sizeof in_16:
        memcpy(&in_16, member_of(c, r), sizeof in_16);
        return in_16;
    case sizeof in_32:
        memcpy(&in_32, member_of(c, r), sizeof in_32);
        return in_32;
    default:
        memcpy(&in_64, member_of(c, r), sizeof in_64);
        return in_64;
    }
}

static void set_number(zn_cell *v, uint64_t number)
{
    v->kind = ZN_CELL_NUMBER;
    v->number = number;
}

static void set_ns(zn_cell *v, zn_cell_kind kind, int64_t ns)
{
    v->kind = kind;
    v->ns = ns;
}

static void set_text(zn_cell *v, zn_span text)
{
    v->kind = text.n != 0 ? ZN_CELL_TEXT : ZN_CELL_NONE;
    v->text = text;
}

static zn_span span_of(const zn_column *c, const zn_record *r)
{
    zn_span text;
    memcpy(&text, member_of(c, r), sizeof text);
    return text;
}

static void set_name(zn_cell *v, const zn_column *c, const zn_record *r, zn_name_source source)
{
    set_text(v, r->source == source ? span_of(c, r) : (zn_span){NULL, 0});
}

static void set_word(zn_cell *v, const zn_column *c, const zn_record *r)
{
    size_t n;
    const char *word = zn_column_words(c, &n)[zn_column_number(c, r)];
    set_text(v, (zn_span){(const uint8_t *)word, word == NULL ? 0 : strnlen(word, WORD_MAX_BYTES)});
}

/* The member behind an address says how it is disclosed. */
static void set_address(zn_cell *v, const zn_column *c, const zn_record *r)
{
    zn_disclosure disclosure;
    memcpy(&disclosure, member_of(c, r) + sizeof(zn_addr), sizeof disclosure);
    v->kind = disclosure == ZN_DISCLOSURE_NONE ? ZN_CELL_NONE : ZN_CELL_ADDRESS;
    v->address = (const zn_addr *)(const void *)member_of(c, r);
}

static uint8_t hex_digit(uint32_t nibble)
{
    static const char digits[] = "0123456789abcdef";
    return (uint8_t)digits[nibble & 15];
}

/* "0304,0303": a comma before each version but the first. */
static void set_versions(zn_cell *v, const zn_record_side *side)
{
    size_t n = 0;
    for (unsigned i = 0; i < side->tls_versions; i++) {
        if (i != 0)
            v->buffer[n++] = ',';
        for (unsigned shift = 16; shift != 0; shift -= 4)
            v->buffer[n++] = hex_digit(side->tls_version[i] >> (shift - 4));
    }
    set_text(v, (zn_span){v->buffer, n});
}

/* "0x00000001" */
static void set_quic_version(zn_cell *v, uint32_t version)
{
    size_t n = 0;
    v->buffer[n++] = '0';
    v->buffer[n++] = 'x';
    for (unsigned shift = 32; shift != 0; shift -= 4)
        v->buffer[n++] = hex_digit(version >> (shift - 4));
    set_text(v, (zn_span){v->buffer, version == 0 ? 0 : n});
}

/* "as:3269" or "country:IT" */
static void set_server_label(zn_cell *v, const zn_record *r)
{
    static const char as_prefix[] = "as:", country_prefix[] = "country:";
    char *at = (char *)v->buffer;
    if (r->server_level == ZN_SERVER_LEVEL_AS && r->server_label != 0) {
        memcpy(at, as_prefix, sizeof as_prefix - 1);
        at = zn_digits_put(at + sizeof as_prefix - 1, r->server_label);
    } else if (r->server_level == ZN_SERVER_LEVEL_COUNTRY && r->server_label != 0) {
        memcpy(at, country_prefix, sizeof country_prefix - 1);
        at += sizeof country_prefix - 1;
        *at++ = (char)(r->server_label >> 8);
        *at++ = (char)r->server_label;
    }
    set_text(v, (zn_span){v->buffer, (size_t)(at - (char *)v->buffer)});
}

static void set_time(zn_cell *v, const zn_column *c, const zn_record *r)
{
    const zn_record_side *side = side_of(c, r);
    switch (c->kind) {
    case ZN_COLUMN_NS:
        set_ns(v, ZN_CELL_NS, (int64_t)zn_column_number(c, r));
        break;
    case ZN_COLUMN_TIME:
    case ZN_COLUMN_MS:
        set_ns(v, ZN_CELL_MS, (int64_t)zn_column_number(c, r));
        break;
    case ZN_COLUMN_WHEN:
        set_ns(v, ZN_CELL_MS, (int64_t)zn_column_number(c, r));
        v->kind = v->ns == 0 ? ZN_CELL_NONE : v->kind;
        break;
    case ZN_COLUMN_DURATION_MS:
        set_ns(v, ZN_CELL_MS, r->last_ns - r->first_ns);
        break;
    case ZN_COLUMN_SIDE_START:
        if (side->packets != 0)
            set_ns(v, ZN_CELL_MS, r->first_ns + side->first_data_ns);
        break;
    case ZN_COLUMN_SIDE_DURATION:
        set_ns(v, ZN_CELL_SECONDS, side->last_data_ns - side->first_data_ns);
        break;
    default:
        break;
    }
}

static void set_text_or_time(zn_cell *v, const zn_column *c, const zn_record *r)
{
    switch (c->kind) {
    case ZN_COLUMN_NAME_SOURCE:
    case ZN_COLUMN_NAME_STATUS:
    case ZN_COLUMN_NAME_LEVEL:
    case ZN_COLUMN_SERVER_LEVEL:
    case ZN_COLUMN_ECH:
        set_word(v, c, r);
        break;
    case ZN_COLUMN_SERVER_LABEL:
        set_server_label(v, r);
        break;
    case ZN_COLUMN_TEXT:
    case ZN_COLUMN_DIGITS:
        set_text(v, span_of(c, r));
        break;
    case ZN_COLUMN_NAME_TLS:
        set_name(v, c, r, ZN_SOURCE_TLS);
        break;
    case ZN_COLUMN_NAME_HTTP:
        set_name(v, c, r, ZN_SOURCE_HTTP);
        break;
    case ZN_COLUMN_NAME_QUIC:
        set_name(v, c, r, ZN_SOURCE_QUIC);
        break;
    case ZN_COLUMN_VERSIONS:
        set_versions(v, side_of(c, r));
        break;
    case ZN_COLUMN_QUIC_VERSION:
        set_quic_version(v, (uint32_t)zn_column_number(c, r));
        break;
    default:
        set_time(v, c, r);
        break;
    }
}

void zn_column_cell(const zn_column *c, const zn_record *r, zn_cell *v)
{
    v->kind = ZN_CELL_NONE;
    switch (c->kind) {
    case ZN_COLUMN_NUMBER:
    case ZN_COLUMN_CODE:
        set_number(v, zn_column_number(c, r));
        break;
    case ZN_COLUMN_UNMEASURED:
        set_number(v, 0);
        break;
    case ZN_COLUMN_ADDRESS:
        set_address(v, c, r);
        break;
    case ZN_COLUMN_PSEUDONYM:
        set_number(v, zn_column_number(c, r) == ZN_DISCLOSURE_PSEUDONYM);
        break;
    case ZN_COLUMN_FLAG:
        if (zn_column_number(c, r) != ZN_FLAG_UNKNOWN)
            set_number(v, zn_column_number(c, r) == ZN_FLAG_YES);
        break;
    case ZN_COLUMN_UDP_TYPE:
        set_number(v, side_of(c, r)->packets != 0 ? zn_column_number(c, r) : ZN_UDP_OTHER);
        break;
    default:
        set_text_or_time(v, c, r);
        break;
    }
}

static void put_address(zn_text *out, const zn_addr *addr)
{
    char *at = zn_text_reserve(out, ZN_ADDR_TEXT_MAX);
    if (at != NULL)
        out->n += zn_addr_text(addr, at);
}

void zn_cell_put(zn_text *out, const zn_cell *v)
{
    switch (v->kind) {
    case ZN_CELL_NONE:
        break;
    case ZN_CELL_NUMBER:
        zn_text_u64(out, v->number);
        break;
    case ZN_CELL_NS:
        zn_text_i64(out, v->ns);
        break;
    case ZN_CELL_MS:
        zn_text_fixed(out, v->ns, MS_DECIMALS);
        break;
    case ZN_CELL_SECONDS:
        zn_text_fixed(out, v->ns / NS_PER_US, SECOND_DECIMALS);
        break;
    case ZN_CELL_TEXT:
        zn_text_span(out, v->text);
        break;
    case ZN_CELL_ADDRESS:
        put_address(out, v->address);
        break;
    }
}

void zn_cell_store(uint8_t *to, size_t bytes, uint64_t number)
{
    uint32_t in_32 = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    uint16_t in_16 = number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
    if (bytes == sizeof number)
        memcpy(to, &number, sizeof number);
    else if (bytes == sizeof in_32)
        memcpy(to, &in_32, sizeof in_32);
    else if (bytes == sizeof in_16)
        memcpy(to, &in_16, sizeof in_16);
    else if (bytes == 1)
        *to = number < UINT8_MAX ? (uint8_t)number : UINT8_MAX;
}

void zn_column_put_word(zn_text *out, const char *word)
{
    zn_text_bytes(out, word, strnlen(word, WORD_MAX_BYTES));
}
