/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "io/json_log.h"

#include "base/packet.h"

static const char *const source_names[] = {
    [ZN_SOURCE_NONE] = "null",     [ZN_SOURCE_TLS] = "\"tls\"", [ZN_SOURCE_QUIC] = "\"quic\"",
    [ZN_SOURCE_HTTP] = "\"http\"", [ZN_SOURCE_DNS] = "\"dns\"",
};

static const char *const status_names[] = {
    [ZN_NAME_NONE] = "none",
    [ZN_NAME_RELEASED] = "released",
    [ZN_NAME_SUPPRESSED] = "suppressed",
    [ZN_NAME_UNCONFIRMED] = "unconfirmed",
    [ZN_NAME_INVALID] = "invalid",
};

static void put_word(zn_text *out, const char *word)
{
    zn_text_bytes(out, word, strnlen(word, 32));
}

static void put_address(zn_text *out, const zn_addr *addr, zn_shown shown)
{
    char *at;
    if (shown == ZN_SHOWN_NOT) {
        zn_text_literal(out, "null");
        return;
    }
    zn_text_char(out, '"');
    at = zn_text_reserve(out, ZN_ADDR_TEXT_MAX);
    if (at != NULL)
        out->n += zn_addr_text(addr, at);
    zn_text_char(out, '"');
}

static void put_name(zn_text *out, zn_span name)
{
    if (name.n == 0) {
        zn_text_literal(out, "null");
        return;
    }
    zn_text_char(out, '"');
    zn_text_span(out, name);
    zn_text_char(out, '"');
}

/* Columns behind the addresses and ports, as members. */
static void put_columns(zn_text *out, const zn_log_columns *columns, const zn_record *r)
{
    for (size_t i = 0; i < columns->n; i++) {
        const zn_column *c = columns->at[i];
        if (c->kind == ZN_COLUMN_ADDRESS || c->kind == ZN_COLUMN_PORT)
            continue;
        zn_text_literal(out, ",\"");
        zn_column_put_word(out, c->name);
        zn_text_literal(out, "\":");
        if (zn_column_is_text(c))
            zn_text_char(out, '"');
        zn_column_put(out, c, r);
        if (zn_column_is_text(c))
            zn_text_char(out, '"');
    }
}

void zn_json_record(zn_text *out, const zn_log_columns *tcp, const zn_record *r)
{
    zn_text_literal(out, "{\"t_start_ns\":");
    zn_text_i64(out, r->first_ns);
    zn_text_literal(out, ",\"t_end_ns\":");
    zn_text_i64(out, r->last_ns);
    zn_text_literal(out, ",\"proto\":");
    zn_text_u64(out, r->proto);
    zn_text_literal(out, ",\"client\":");
    put_address(out, &r->client.addr, r->client.shown);
    zn_text_literal(out, ",\"server\":");
    put_address(out, &r->server.addr, r->server.shown);
    zn_text_literal(out, ",\"client_port\":");
    zn_text_u64(out, r->client.port);
    zn_text_literal(out, ",\"server_port\":");
    zn_text_u64(out, r->server.port);
    zn_text_literal(out, ",\"name\":");
    put_name(out, r->name);
    zn_text_literal(out, ",\"name_source\":");
    put_word(out, source_names[r->source]);
    zn_text_literal(out, ",\"name_status\":\"");
    put_word(out, status_names[r->status]);
    zn_text_literal(out, "\",\"ech\":\"");
    put_word(out, r->ech_offered ? "offered" : "none");
    zn_text_literal(out, "\",\"epoch\":");
    zn_text_i64(out, r->epoch);
    zn_text_literal(out, ",\"c_pkts\":");
    zn_text_u64(out, r->client.packets);
    zn_text_literal(out, ",\"s_pkts\":");
    zn_text_u64(out, r->server.packets);
    zn_text_literal(out, ",\"c_bytes\":");
    zn_text_u64(out, r->client.bytes_all);
    zn_text_literal(out, ",\"s_bytes\":");
    zn_text_u64(out, r->server.bytes_all);
    if (r->proto == ZN_PROTO_TCP)
        put_columns(out, tcp, r);
    zn_text_literal(out, "}\n");
}

void zn_json_release(zn_text *out, const zn_release *release)
{
    zn_text_literal(out, "{\"t_ns\":");
    zn_text_i64(out, release->t_ns);
    zn_text_literal(out, ",\"client\":");
    put_address(out, &release->client, release->client_shown);
    zn_text_literal(out, ",\"name\":");
    put_name(out, release->name);
    zn_text_literal(out, ",\"name_source\":");
    put_word(out, source_names[release->source]);
    zn_text_literal(out, "}\n");
}
