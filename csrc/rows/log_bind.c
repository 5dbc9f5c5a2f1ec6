/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query logs of BIND 9 (category `queries`), for example, on one line:
 *
 *   29-May-2026 10:00:00.123 queries: info: client @0x7f 192.0.2.1#5353 (a.example): view v:
 *   query: a.example IN A +E(0)K (192.0.2.53)
 *
 * The time is local or ISO 8601. Category, severity, the address of the client's object
 * and the view may be absent. The log has no answers, so a row shows only that a client is real if
 * the query came over TCP (T) or with a cookie of the server (V). The view and EDNS Client Subnet
 * are about the client, and are left out.
 */
#include "rows/log_fixed.h"

/* Columns, as the preset has them. */
enum {
    BIND_TIME,
    BIND_PREFIX, /* "queries: info: " or a part of it */
    BIND_OBJECT, /* the line has the address of the client's object */
    BIND_CLIENT,
    BIND_CLIENT_PORT,
    BIND_NAME,
    BIND_CLASS,
    BIND_TYPE,
    BIND_FLAGS,
    BIND_PROOF, /* of a client that received packets of the server */
    BIND_SERVER
};

enum { LOCAL_BYTES = 24, ISO_BYTES = 23 }; /* of "29-May-2026 10:00:00.123" */

static const zn_span LOCAL = ZN_LOG_LITERAL("local"); /* the form of a time, in its cell's name */

/* Reads a local time, which has no offset, and writes it as ISO 8601 over the line. */
static bool read_local(uint8_t *line, zn_cursor *c, zn_log_line *out)
{
    zn_cursor rest = *c;
    unsigned day = zn_log_fixed_take_two(&rest), month;
    zn_span year, clock;
    if (!zn_log_fixed_take(&rest, ZN_LOG_LITERAL("-")))
        return false;
    month = zn_log_fixed_take_month(&rest);
    if (month == 0 || !zn_log_fixed_take(&rest, ZN_LOG_LITERAL("-")))
        return false;
    year = zn_cursor_take(&rest, 4);
    clock = zn_cursor_take(&rest, LOCAL_BYTES - 11);
    if (!zn_cursor_ok(&rest))
        return false;
    *c = rest;
    memmove(line, year.p, year.n);
    line[4] = line[7] = '-';
    line[5] = (uint8_t)('0' + month / 10);
    line[6] = (uint8_t)('0' + month % 10);
    line[8] = (uint8_t)('0' + day / 10);
    line[9] = (uint8_t)('0' + day % 10);
    memmove(line + 10, clock.p, clock.n);
    zn_log_fixed_set(out, BIND_TIME, (zn_span){line, ISO_BYTES});
    out->cells[BIND_TIME].name = LOCAL;
    return true;
}

static bool read_time(uint8_t *line, zn_cursor *c, zn_log_line *out)
{
    zn_span iso;
    if (read_local(line, c, out))
        return zn_log_fixed_take(c, ZN_LOG_LITERAL(" "));
    if (!zn_log_fixed_until(c, ' ', &iso) || !zn_log_fixed_is_word(iso, ZN_LOG_LITERAL("-:.+")))
        return false;
    zn_log_fixed_set(out, BIND_TIME, iso);
    return zn_span_find(iso, '-') == 4; /* a category or a severity is no time */
}

/* Reads the category and the severity. */
static void read_prefix(zn_cursor *c, zn_log_line *out)
{
    zn_span prefix = {c->p, 0};
    if (zn_log_fixed_take(c, ZN_LOG_LITERAL("queries: ")))
        prefix.n += sizeof "queries: " - 1;
    if (zn_log_fixed_take(c, ZN_LOG_LITERAL("info: ")))
        prefix.n += sizeof "info: " - 1;
    if (prefix.n != 0)
        zn_log_fixed_set(out, BIND_PREFIX, prefix);
}

/* Reads "client @0x7f 192.0.2.1#5353 (a.example): view v: ". */
static bool read_client(zn_cursor *c, zn_log_line *out, zn_span *name)
{
    zn_span object, client, port, view;
    if (!zn_log_fixed_take(c, ZN_LOG_LITERAL("client ")))
        return false;
    if (zn_log_fixed_take(c, ZN_LOG_LITERAL("@"))) {
        if (!zn_log_fixed_until(c, ' ', &object) ||
            !zn_log_fixed_is_word(object, ZN_LOG_LITERAL("")))
            return false;
        zn_log_fixed_set(out, BIND_OBJECT, ZN_LOG_LITERAL("@0x0 "));
    }
    if (!zn_log_fixed_until(c, '#', &client) || !zn_log_fixed_is_address(client) ||
        !zn_log_fixed_until(c, ' ', &port) || !zn_log_fixed_is_word(port, ZN_LOG_LITERAL("")))
        return false;
    zn_log_fixed_set(out, BIND_CLIENT, client);
    zn_log_fixed_set(out, BIND_CLIENT_PORT, port);
    if (!zn_log_fixed_take(c, ZN_LOG_LITERAL("(")) || !zn_log_fixed_until(c, ')', name) ||
        !zn_log_fixed_take(c, ZN_LOG_LITERAL(": ")))
        return false;
    return !zn_log_fixed_take(c, ZN_LOG_LITERAL("view ")) ||
           (zn_log_fixed_until(c, ':', &view) && zn_log_fixed_take(c, ZN_LOG_LITERAL(" ")));
}

/* Reads "query: a.example IN A +E(0)K (192.0.2.53) [ECS 192.0.2.0/24/0]". */
static bool read_query(zn_cursor *c, zn_log_line *out, zn_span expected)
{
    zn_span name, class, type, flags, server, subnet;
    if (!zn_log_fixed_take(c, ZN_LOG_LITERAL("query: ")) || !zn_log_fixed_until(c, ' ', &name) ||
        !zn_span_equal(name, expected) || !zn_log_fixed_until(c, ' ', &class) ||
        !zn_log_fixed_until(c, ' ', &type) || !zn_log_fixed_until(c, ' ', &flags) ||
        !zn_log_fixed_take(c, ZN_LOG_LITERAL("(")) || !zn_log_fixed_until(c, ')', &server))
        return false;
    if (zn_log_fixed_take(c, ZN_LOG_LITERAL(" [ECS ")) && !zn_log_fixed_until(c, ']', &subnet))
        return false;
    if (zn_cursor_left(c) != 0 || !zn_log_fixed_is_word(class, ZN_LOG_LITERAL("-")) ||
        !zn_log_fixed_is_word(type, ZN_LOG_LITERAL("-")) ||
        !zn_log_fixed_is_word(flags, ZN_LOG_LITERAL("+-()")) || !zn_log_fixed_is_address(server))
        return false;
    zn_log_fixed_set(out, BIND_NAME, name);
    zn_log_fixed_set(out, BIND_CLASS, class);
    zn_log_fixed_set(out, BIND_TYPE, type);
    zn_log_fixed_set(out, BIND_FLAGS, flags);
    zn_log_fixed_set(out, BIND_SERVER, server);
    if (zn_span_find(flags, 'T') != flags.n || zn_span_find(flags, 'V') != flags.n)
        zn_log_fixed_set(out, BIND_PROOF, flags);
    return true;
}

static int read_line(zn_log_source *s, uint8_t *line, size_t n, zn_log_line *out, zn_error *err)
{
    zn_cursor c = zn_cursor_over(line, n, true);
    zn_span name;
    (void)err;
    out->is_row = n != 0;
    zn_log_fixed_begin(s, out);
    if (!read_time(line, &c, out))
        out->fault = ZN_FAULT_OTHER;
    else {
        read_prefix(&c, out);
        if (!read_client(&c, out, &name) || !read_query(&c, out, name))
            out->fault = ZN_FAULT_OTHER;
    }
    return 0;
}

static void put_time(zn_text *out, const zn_log_cell *cell)
{
    zn_span t = cell->text;
    if (cell->name.n == 0 || t.n != ISO_BYTES) {
        zn_text_span(out, t);
        return;
    }
    zn_text_bytes(out, (const char *)t.p + 8, 2);
    zn_text_char(out, '-');
    zn_text_span(out, zn_log_fixed_month(zn_log_fixed_two_at(t, 5)));
    zn_text_char(out, '-');
    zn_text_bytes(out, (const char *)t.p, 4);
    zn_text_bytes(out, (const char *)t.p + 10, ISO_BYTES - 10);
}

static void write_row(const zn_log_source *s, zn_text *out, const zn_gated_log *row)
{
    (void)s;
    put_time(out, &row->cells[BIND_TIME]);
    zn_text_char(out, ' ');
    if (zn_log_fixed_has(row, BIND_PREFIX))
        zn_text_span(out, row->cells[BIND_PREFIX].text);
    zn_text_literal(out, "client ");
    if (zn_log_fixed_has(row, BIND_OBJECT))
        zn_text_span(out, row->cells[BIND_OBJECT].text);
    zn_log_fixed_put(out, row, BIND_CLIENT);
    zn_text_literal(out, "#0 (");
    zn_log_fixed_put(out, row, BIND_NAME);
    zn_text_literal(out, "): query: ");
    for (size_t i = BIND_NAME; i <= BIND_FLAGS; i++) {
        zn_log_fixed_put(out, row, i);
        zn_text_char(out, ' ');
    }
    zn_text_char(out, '(');
    zn_log_fixed_put(out, row, BIND_SERVER);
    zn_text_literal(out, ")\n");
}

const zn_log_form zn_log_form_bind = {
    .format = ZN_ROWS_CSV, .separator = ' ', .read = read_line, .put = write_row};
