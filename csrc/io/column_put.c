/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Values of columns, as Tstat prints them. */
#include "io/columns.h"

void zn_column_put_word(zn_text *out, const char *word)
{
    zn_text_bytes(out, word, strnlen(word, 64));
}

static void put_ms(zn_text *out, int64_t ns)
{
    zn_text_fixed(out, ns, 6);
}

static void put_address(zn_text *out, const zn_addr *addr, zn_shown shown)
{
    char *at;
    if (shown == ZN_SHOWN_NOT) {
        zn_text_char(out, '-');
        return;
    }
    at = zn_text_reserve(out, ZN_ADDR_TEXT_MAX);
    if (at != NULL)
        out->n += zn_addr_text(addr, at);
}

static void put_text(zn_text *out, zn_span text, const char *missing)
{
    if (text.n != 0)
        zn_text_span(out, text);
    else
        zn_column_put_word(out, missing);
}

static void put_name(zn_text *out, const zn_record *r, zn_name_source source)
{
    zn_span none = {NULL, 0};
    put_text(out, r->source == source ? r->name : none, "-");
}

static void put_versions(zn_text *out, const zn_record_side *side)
{
    static const char digits[] = "0123456789abcdef";
    if (side->tls_versions == 0)
        zn_text_char(out, '-');
    for (unsigned i = 0; i < side->tls_versions; i++) {
        if (i != 0)
            zn_text_char(out, ',');
        for (unsigned shift = 16; shift != 0; shift -= 4)
            zn_text_char(out, digits[side->tls_version[i] >> (shift - 4) & 15]);
    }
}

static void put_when(zn_text *out, int64_t ns, const char *missing)
{
    if (ns != 0)
        put_ms(out, ns);
    else
        zn_column_put_word(out, missing);
}

static uint64_t count_at(const void *base, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)base + offset, sizeof value);
    return value;
}

static void put_of_side(zn_text *out, const zn_column *c, const zn_record *r)
{
    const zn_record_side *side = c->side == 'c' ? &r->client : &r->server;
    switch (c->kind) {
    case ZN_COLUMN_ADDRESS:
        put_address(out, &side->addr, side->shown);
        break;
    case ZN_COLUMN_PORT:
        zn_text_u64(out, side->port);
        break;
    case ZN_COLUMN_MS:
        put_ms(out, (int64_t)count_at(side, c->offset));
        break;
    case ZN_COLUMN_INTERNAL:
        zn_text_u64(out, side->internal);
        break;
    case ZN_COLUMN_ENCRYPTED:
        zn_text_u64(out, side->shown == ZN_SHOWN_PSEUDONYM);
        break;
    case ZN_COLUMN_VERSIONS:
        put_versions(out, side);
        break;
    case ZN_COLUMN_SIDE_START_MS:
        put_ms(out, side->started ? r->first_ns + side->first_data_ns : 0);
        break;
    case ZN_COLUMN_SIDE_DURATION_S: /* ns to microseconds: Tstat's six decimals of a second */
        zn_text_fixed(out, (side->last_data_ns - side->first_data_ns) / 1000, 6);
        break;
    case ZN_COLUMN_UDP_TYPE:
        zn_text_u64(out, side->started ? side->udp_type : ZN_UDP_OTHER);
        break;
    default:
        break;
    }
}

static void put_of_flow(zn_text *out, const zn_column *c, const zn_record *r)
{
    switch (c->kind) {
    case ZN_COLUMN_TOTAL:
        zn_text_u64(out, count_at(r, c->offset));
        break;
    case ZN_COLUMN_START_MS:
        put_ms(out, r->first_ns);
        break;
    case ZN_COLUMN_END_MS:
        put_ms(out, r->last_ns);
        break;
    case ZN_COLUMN_DURATION_MS:
        put_ms(out, r->last_ns - r->first_ns);
        break;
    case ZN_COLUMN_CONNECTION:
        zn_text_u64(out, r->connection_type);
        break;
    case ZN_COLUMN_METHOD:
        zn_text_u64(out, r->http_method);
        break;
    case ZN_COLUMN_STATUS:
        put_text(out, r->http_status, c->missing);
        break;
    case ZN_COLUMN_NAME_TLS:
        put_name(out, r, ZN_SOURCE_TLS);
        break;
    case ZN_COLUMN_NAME_HTTP:
        put_name(out, r, ZN_SOURCE_HTTP);
        break;
    case ZN_COLUMN_FQDN:
        put_text(out, r->fqdn, "-");
        break;
    case ZN_COLUMN_RESOLVER:
        put_address(out, &r->resolver, r->resolver_shown);
        break;
    case ZN_COLUMN_RESOLVER_ENCRYPTED:
        zn_text_u64(out, r->resolver_shown == ZN_SHOWN_PSEUDONYM);
        break;
    case ZN_COLUMN_WHEN:
        put_when(out, (int64_t)count_at(r, c->offset), c->missing);
        break;
    case ZN_COLUMN_NAME_QUIC:
        put_name(out, r, ZN_SOURCE_QUIC);
        break;
    case ZN_COLUMN_CERTIFICATE:
        put_text(out, r->certificate, c->missing);
        break;
    case ZN_COLUMN_FIXED:
        zn_column_put_word(out, c->missing);
        break;
    default:
        break;
    }
}

void zn_column_put(zn_text *out, const zn_column *c, const zn_record *r)
{
    if (c->kind == ZN_COLUMN_COUNT) /* most of them */
        zn_text_u64(out, count_at(c->side == 'c' ? &r->client : &r->server, c->offset));
    else if (c->side != 0)
        put_of_side(out, c, r);
    else
        put_of_flow(out, c, r);
}

bool zn_column_is_text(const zn_column *c)
{
    switch (c->kind) {
    case ZN_COLUMN_ADDRESS:
    case ZN_COLUMN_STATUS:
    case ZN_COLUMN_VERSIONS:
    case ZN_COLUMN_NAME_TLS:
    case ZN_COLUMN_NAME_HTTP:
    case ZN_COLUMN_FQDN:
    case ZN_COLUMN_RESOLVER:
    case ZN_COLUMN_NAME_QUIC:
    case ZN_COLUMN_CERTIFICATE:
        return true;
    case ZN_COLUMN_FIXED:
        return c->missing[0] == '-';
    default:
        return false;
    }
}
