/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Values of columns, and as what text they are printed. */
#include "output/columns.h"

#define MS_DECIMALS 6
#define SECOND_DECIMALS 6
#define NS_PER_US 1000

/* The eight bytes of a record that are a column's number. */
static uint64_t number_of(const zn_column *c, const zn_record *r)
{
    uint64_t value;
    memcpy(&value, (const char *)r + zn_column_place(c), sizeof value);
    return value;
}

static void set_count(zn_cell *v, uint64_t number)
{
    v->kind = ZN_CELL_COUNT;
    v->number = number;
}

static void set_flag(zn_cell *v, bool flag)
{
    v->kind = ZN_CELL_FLAG;
    v->number = flag;
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

static void set_address(zn_cell *v, const zn_addr *address, zn_disclosure disclosure)
{
    v->kind = disclosure == ZN_DISCLOSURE_NONE ? ZN_CELL_NONE : ZN_CELL_ADDRESS;
    v->address = address;
}

static void set_name(zn_cell *v, const zn_record *r, zn_name_source source)
{
    set_text(v, r->source == source ? r->name : (zn_span){NULL, 0});
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
            v->room[n++] = ',';
        for (unsigned shift = 16; shift != 0; shift -= 4)
            v->room[n++] = hex_digit(side->tls_version[i] >> (shift - 4));
    }
    set_text(v, (zn_span){v->room, n});
}

/* "0x00000001" */
static void set_quic_version(zn_cell *v, uint32_t version)
{
    size_t n = 0;
    v->room[n++] = '0';
    v->room[n++] = 'x';
    for (unsigned shift = 32; shift != 0; shift -= 4)
        v->room[n++] = hex_digit(version >> (shift - 4));
    set_text(v, (zn_span){v->room, version == 0 ? 0 : n});
}

static void value_of_side(const zn_column *c, const zn_record *r, zn_cell *v)
{
    const zn_record_side *side = c->side == 'c' ? &r->client : &r->server;
    switch (c->kind) {
    case ZN_COLUMN_COUNT:
    case ZN_COLUMN_BYTES:
        set_count(v, number_of(c, r));
        break;
    case ZN_COLUMN_ADDRESS:
        set_address(v, &side->addr, side->disclosure);
        break;
    case ZN_COLUMN_PORT:
        set_count(v, side->port);
        break;
    case ZN_COLUMN_MS:
        set_ns(v, ZN_CELL_MS, (int64_t)number_of(c, r));
        break;
    case ZN_COLUMN_INTERNAL:
        set_flag(v, side->internal);
        break;
    case ZN_COLUMN_ENCRYPTED:
        set_flag(v, side->disclosure == ZN_DISCLOSURE_PSEUDONYM);
        break;
    case ZN_COLUMN_VERSIONS:
        set_versions(v, side);
        break;
    case ZN_COLUMN_QUIC_VERSION:
        set_quic_version(v, side->quic_version);
        break;
    case ZN_COLUMN_SIDE_START_MS:
        if (side->started)
            set_ns(v, ZN_CELL_TIME, r->first_ns + side->first_data_ns);
        break;
    case ZN_COLUMN_SIDE_DURATION_S:
        set_ns(v, ZN_CELL_SECONDS, side->last_data_ns - side->first_data_ns);
        break;
    case ZN_COLUMN_UDP_TYPE:
        set_count(v, side->started ? side->udp_type : ZN_UDP_OTHER);
        break;
    default:
        break;
    }
}

static void text_of_flow(const zn_column *c, const zn_record *r, zn_cell *v)
{
    zn_span text;
    switch (c->kind) {
    case ZN_COLUMN_STATUS:
        set_text(v, r->http_status);
        break;
    case ZN_COLUMN_NAME_TLS:
        set_name(v, r, ZN_SOURCE_TLS);
        break;
    case ZN_COLUMN_NAME_HTTP:
        set_name(v, r, ZN_SOURCE_HTTP);
        break;
    case ZN_COLUMN_NAME_QUIC:
        set_name(v, r, ZN_SOURCE_QUIC);
        break;
    case ZN_COLUMN_TEXT:
        memcpy(&text, (const char *)r + zn_column_place(c), sizeof text);
        set_text(v, text);
        break;
    default:
        break;
    }
}

static void value_of_flow(const zn_column *c, const zn_record *r, zn_cell *v)
{
    switch (c->kind) {
    case ZN_COLUMN_TOTAL:
        set_count(v, number_of(c, r));
        break;
    case ZN_COLUMN_START_MS:
        set_ns(v, ZN_CELL_TIME, r->first_ns);
        break;
    case ZN_COLUMN_END_MS:
        set_ns(v, ZN_CELL_TIME, r->last_ns);
        break;
    case ZN_COLUMN_DURATION_MS:
        set_ns(v, ZN_CELL_MS, r->last_ns - r->first_ns);
        break;
    case ZN_COLUMN_WHEN:
        set_ns(v, ZN_CELL_TIME, (int64_t)number_of(c, r));
        v->kind = v->ns == 0 ? ZN_CELL_NONE : v->kind;
        break;
    case ZN_COLUMN_CONNECTION:
        set_count(v, r->connection_type);
        break;
    case ZN_COLUMN_METHOD:
        set_count(v, r->http_method);
        break;
    case ZN_COLUMN_RESOLVER:
        set_address(v, &r->resolver, r->resolver_disclosure);
        break;
    case ZN_COLUMN_RESOLVER_ENCRYPTED:
        set_flag(v, r->resolver_disclosure == ZN_DISCLOSURE_PSEUDONYM);
        break;
    case ZN_COLUMN_NO_COUNT:
        set_count(v, 0);
        break;
    default:
        text_of_flow(c, r, v);
        break;
    }
}

void zn_column_cell(const zn_column *c, const zn_record *r, zn_cell *v)
{
    v->kind = ZN_CELL_NONE;
    if (c->side != 0)
        value_of_side(c, r, v);
    else
        value_of_flow(c, r, v);
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
    case ZN_CELL_COUNT:
    case ZN_CELL_FLAG:
        zn_text_u64(out, v->number);
        break;
    case ZN_CELL_MS:
    case ZN_CELL_TIME:
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

void zn_column_put_word(zn_text *out, const char *word)
{
    zn_text_bytes(out, word, strnlen(word, 64));
}
