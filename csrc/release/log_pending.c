/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/log_pending.h"

#include "release/policy.h"

#define LITERAL(text) {(const uint8_t *)(text), sizeof(text) - 1}
#define IS_ONE_OF(span, words) is_one_of(span, words, sizeof(words) / sizeof((words)[0]))

static bool has_text(const zn_log_cell *cell)
{
    return (cell->kind == ZN_LOG_CELL_TEXT || cell->kind == ZN_LOG_CELL_JSON) && cell->text.n != 0;
}

static bool is_one_of(zn_span text, const zn_span *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (zn_span_equal(text, words[i]))
            return true;
    return false;
}

/* Reads a whole number of at most 20 digits. */
static bool read_number(zn_span text, uint64_t *out)
{
    zn_cursor c = zn_cursor_over_span(text, true);
    uint64_t value = 0;
    if (text.n == 0 || text.n > 20)
        return false;
    while (zn_cursor_left(&c) != 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < '0' || byte > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(byte - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

/* ---- reading ---- */

static zn_row_fault read_time(const zn_log_rules *rules, const zn_log_cell *cell, zn_log_pending *p)
{
    zn_timestamp timestamp;
    if (!zn_timestamp_parse(cell->text, rules->unit, &timestamp) &&
        !zn_timestamp_parse(cell->text, ZN_TIME_ISO, &timestamp))
        return ZN_FAULT_TIME;
    p->t_ns = timestamp.t_ns;
    return ZN_FAULT_GOOD;
}

static void read_end(const zn_log_rules *rules, const zn_log_cell *cell, zn_log_end *end)
{
    zn_addr carried;
    if (!zn_addr_parse(cell->text, &end->address))
        return;
    carried = zn_addr_carried(&end->address);
    end->known = true;
    end->special = zn_addr_is_special(&end->address);
    end->internal = zn_nets_contain(rules->internal, rules->internal_count, &carried) ||
                    (!zn_addr_equal(&carried, &end->address) &&
                     zn_nets_contain(rules->internal, rules->internal_count, &end->address));
}

static uint16_t read_port(const zn_log_cell *cell)
{
    uint64_t port = 0;
    return read_number(cell->text, &port) && port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* Returns the reason why a name must not be released, or RELEASED. */
static zn_log_reason judge(const zn_log_rules *rules, zn_span raw, zn_hostname *name)
{
    zn_host_kind kind = zn_hostname_normalize(raw, name);
    if (kind == ZN_HOST_HOME && !rules->release_all)
        return ZN_LOG_HOME;
    if (kind != ZN_HOST_NAME && kind != ZN_HOST_HOME)
        return ZN_LOG_INVALID;
    return zn_never_list_has(&rules->never, name) ? ZN_LOG_NEVER : ZN_LOG_RELEASED;
}

static void read_name(const zn_log_rules *rules, zn_log_cell *cell, zn_log_pending *p)
{
    zn_hostname *name = &p->name[p->names];
    if (p->names == ZN_LOG_NAMES_MAX) {
        p->more_names = true;
        return;
    }
    p->dns |= cell->role == ZN_LOG_DNS_NAME;
    memmove(&p->item[p->names + 1], &p->item[p->names],
            (p->items - p->names) * sizeof p->item[0]); /* names come first */
    p->item[p->names] = (zn_log_item){
        .cell = cell,
        .domain = cell->role == ZN_LOG_DNS_NAME ? ZN_LOG_IN_DNS : ZN_LOG_IN_NAMES,
        .reason = (uint8_t)judge(rules, cell->text, name),
    };
    p->item[p->names].text = zn_hostname_span(name);
    p->names++;
    p->items++;
}

static void read_text(zn_log_cell *cell, zn_log_pending *p)
{
    if (p->items - p->names == ZN_LOG_TEXTS_MAX)
        return;
    p->item[p->items++] = (zn_log_item){
        .cell = cell,
        .text = cell->text,
        .domain = cell->role == ZN_LOG_AGENT ? ZN_LOG_IN_AGENTS : ZN_LOG_IN_CERTIFICATES,
    };
}

/* Returns true if the state of a connection shows packets of both sides: of TCP a handshake. */
static bool is_established(zn_span state)
{
    static const zn_span states[] = {LITERAL("SF"), LITERAL("S1"),   LITERAL("S2"),
                                     LITERAL("S3"), LITERAL("RSTO"), LITERAL("RSTR")};
    return IS_ONE_OF(state, states);
}

static bool is_true(zn_span text)
{
    static const zn_span words[] = {LITERAL("T"), LITERAL("true")};
    return IS_ONE_OF(text, words);
}

/* Returns true if the cell shows that the server answered. */
static bool shows_answer(const zn_log_cell *cell)
{
    uint64_t number = 0;
    switch (cell->role) {
    case ZN_LOG_ANSWERED:
        return true;
    case ZN_LOG_ESTABLISHED:
        return is_true(cell->text);
    case ZN_LOG_STATE:
        return is_established(cell->text);
    case ZN_LOG_HANDSHAKE: /* the server's Initial, and the client's Handshake packet after it */
        return zn_span_find(cell->text, 'i') < cell->text.n &&
               zn_span_find(cell->text, 'H') < cell->text.n;
    case ZN_LOG_VERSION: {
        zn_span start = zn_span_first(cell->text, 3);
        static const zn_span words[] = {LITERAL("TLS"), LITERAL("SSL")};
        return IS_ONE_OF(start, words);
    }
    case ZN_LOG_ANSWERS:
        return read_number(cell->text, &number) && number != 0;
    default:
        return false;
    }
}

static void read_event(const zn_log_cell *cell, zn_log_pending *p)
{
    static const zn_span directed[] = {LITERAL("tls"), LITERAL("http"), LITERAL("quic"),
                                       LITERAL("dns")};
    p->events = true;
    p->directed = IS_ONE_OF(cell->text, directed);
}

static zn_row_fault read_cell(const zn_log_rules *rules, zn_log_cell *cell, zn_log_pending *p)
{
    switch (cell->role) {
    case ZN_LOG_TIME:
        return read_time(rules, cell, p);
    case ZN_LOG_CLIENT:
        read_end(rules, cell, &p->client);
        break;
    case ZN_LOG_SERVER:
        read_end(rules, cell, &p->server);
        break;
    case ZN_LOG_CLIENT_PORT:
        p->client_port = read_port(cell);
        break;
    case ZN_LOG_SERVER_PORT:
        p->server_port = read_port(cell);
        break;
    case ZN_LOG_NAME:
    case ZN_LOG_DNS_NAME:
        read_name(rules, cell, p);
        break;
    case ZN_LOG_AGENT:
    case ZN_LOG_CERTIFICATE:
        read_text(cell, p);
        break;
    case ZN_LOG_EVENT:
        read_event(cell, p);
        break;
    default:
        p->answered |= shows_answer(cell);
    }
    return ZN_FAULT_GOOD;
}

/* Swaps both ends of a row whose first address is the server's. */
static void swap_ends(zn_log_pending *p)
{
    static const uint8_t other[ZN_LOG_ROLE_COUNT] = {
        [ZN_LOG_CLIENT] = ZN_LOG_SERVER,
        [ZN_LOG_SERVER] = ZN_LOG_CLIENT,
        [ZN_LOG_CLIENT_PORT] = ZN_LOG_SERVER_PORT,
        [ZN_LOG_SERVER_PORT] = ZN_LOG_CLIENT_PORT,
    };
    zn_log_end end = p->client;
    uint16_t port = p->client_port;
    p->client = p->server;
    p->server = end;
    p->client_port = p->server_port;
    p->server_port = port;
    for (size_t i = 0; i < p->row.count; i++)
        if (other[p->row.cells[i].role] != 0)
            p->row.cells[i].role = other[p->row.cells[i].role];
}

/* Counts the names of a row about the port of DNS as names of questions. */
static void mark_dns(zn_log_pending *p)
{
    p->dns |= p->server_port == 53;
    for (size_t i = 0; i < p->names && p->dns; i++)
        p->item[i].domain = ZN_LOG_IN_DNS;
}

/* Finds out which end is the client, if the row's event does not say so: the end whose port is no
 * server's. */
static void guess_client(zn_log_pending *p)
{
    bool first = zn_port_is_common(p->client_port), second = zn_port_is_common(p->server_port);
    if (!p->events)
        p->directed = true;
    else if (first && !second)
        swap_ends(p);
    p->directed |= first != second;
}

/* Returns the reason why no value of the row may vote, or RELEASED. */
static zn_log_reason refuse(const zn_log_rules *rules, const zn_log_pending *p)
{
    bool outside = p->client.internal ? false : p->server.internal || rules->internal_is_set;
    if (p->names == 0 && !rules->server_decides)
        return ZN_LOG_NO_ATTRIBUTE;
    if (p->more_names)
        return ZN_LOG_INVALID;
    if (rules->server_decides && !p->server.known)
        return ZN_LOG_NO_ATTRIBUTE;
    if ((outside || !p->directed) && !rules->release_all)
        return ZN_LOG_OUTSIDE;
    if (rules->established && rules->has_evidence && !p->answered)
        return ZN_LOG_UNCONFIRMED;
    return ZN_LOG_RELEASED;
}

zn_row_fault zn_log_pending_read(const zn_log_rules *rules, zn_log_pending *p)
{
    bool timed = false, named;
    for (size_t i = 0; i < p->row.count; i++) {
        zn_log_cell *cell = &p->row.cells[i];
        zn_row_fault fault;
        if (cell->role <= ZN_LOG_DETAIL || !has_text(cell))
            continue;
        fault = read_cell(rules, cell, p);
        if (fault != ZN_FAULT_GOOD)
            return fault;
        timed |= cell->role == ZN_LOG_TIME;
    }
    if (!timed)
        return ZN_FAULT_MISSING;
    guess_client(p);
    mark_dns(p);
    named = p->names != 0 || rules->server_decides;
    if (named && !p->client.known)
        return ZN_FAULT_ADDRESS;
    p->reason = (uint8_t)refuse(rules, p);
    return ZN_FAULT_GOOD;
}

/* ---- writing ---- */

static void hide(zn_log_cell *cell)
{
    cell->kind = ZN_LOG_CELL_NONE;
}

static void replace(zn_log_cell *cell, const char *text, size_t n)
{
    if (n == 0) {
        hide(cell);
        return;
    }
    cell->text = (zn_span){(const uint8_t *)text, n};
}

/* Replaces a number by one digit. A value that is absent stays absent. */
static void put_digit(zn_log_cell *cell, bool one)
{
    if (cell->kind != ZN_LOG_CELL_NONE)
        replace(cell, one ? "1" : "0", 1);
}

/* Replaces a count by the smallest power of 4 that is at least as large; 0 stays 0. */
static void round_count(zn_log_cell *cell)
{
    static const zn_span powers[] = {
        LITERAL("1"),
        LITERAL("4"),
        LITERAL("16"),
        LITERAL("64"),
        LITERAL("256"),
        LITERAL("1024"),
        LITERAL("4096"),
        LITERAL("16384"),
        LITERAL("65536"),
        LITERAL("262144"),
        LITERAL("1048576"),
        LITERAL("4194304"),
        LITERAL("16777216"),
        LITERAL("67108864"),
        LITERAL("268435456"),
        LITERAL("1073741824"),
        LITERAL("4294967296"),
        LITERAL("17179869184"),
        LITERAL("68719476736"),
        LITERAL("274877906944"),
        LITERAL("1099511627776"),
        LITERAL("4398046511104"),
        LITERAL("17592186044416"),
        LITERAL("70368744177664"),
        LITERAL("281474976710656"),
        LITERAL("1125899906842624"),
        LITERAL("4503599627370496"),
        LITERAL("18014398509481984"),
        LITERAL("72057594037927936"),
        LITERAL("288230376151711744"),
        LITERAL("1152921504606846976"),
        LITERAL("4611686018427387904"),
        LITERAL("18446744073709551615"),
    };
    uint64_t value;
    unsigned bits;
    if (!read_number(cell->text, &value)) {
        hide(cell);
        return;
    }
    if (value == 0)
        return;
    bits = value == 1 ? 0 : 64 - (unsigned)__builtin_clzll(value - 1);
    cell->text = powers[(bits + 1) / 2];
}

/* Writes a number of `unit` down to the minute, with as many decimals as the log has, all 0. */
static void floor_number(zn_log_pending *p, zn_span text, zn_time_unit unit)
{
    static const int64_t unit_ns[] = {
        [ZN_TIME_S] = ZN_NS_PER_S, [ZN_TIME_MS] = 1000000, [ZN_TIME_US] = 1000, [ZN_TIME_NS] = 1};
    int64_t minute = zn_policy_time(p->t_ns, 60 * ZN_NS_PER_S);
    char *end = zn_digits_put(p->time_text, (uint64_t)(minute / unit_ns[unit]));
    size_t point = zn_span_find(text, '.');
    for (size_t i = point; i < text.n && i - point < 10; i++)
        *end++ = i == point ? '.' : '0';
    p->time_n = (size_t)(end - p->time_text);
}

/* Writes ISO 8601 down to the minute, in the form that it has in the log: every digit between the
 * minute and the offset becomes 0. */
static void floor_iso(zn_log_pending *p, zn_span text)
{
    enum { MINUTE_END = 16 }; /* of YYYY-MM-DDTHH:MM */
    bool in_offset = false;
    p->time_n = text.n < sizeof p->time_text ? text.n : 0;
    for (size_t i = 0; i < p->time_n; i++) {
        uint8_t c = text.p[i];
        in_offset |= i >= MINUTE_END && (c == '+' || c == '-');
        p->time_text[i] = i < MINUTE_END || in_offset || c < '0' || c > '9' ? (char)c : '0';
    }
}

static void floor_time(zn_log_pending *p, zn_log_cell *cell, zn_time_unit unit)
{
    if (zn_timestamp_is_number(cell->text))
        floor_number(p, cell->text, unit);
    else
        floor_iso(p, cell->text);
    replace(cell, p->time_text, p->time_n);
}

/* Writes a value of a row whose names are not released. */
static void blank(zn_log_pending *p, zn_log_cell *cell, zn_time_unit unit)
{
    switch (cell->role) {
    case ZN_LOG_ALWAYS:
    case ZN_LOG_EVENT:
        break;
    case ZN_LOG_TIME:
        floor_time(p, cell, unit);
        break;
    case ZN_LOG_COUNT:
    case ZN_LOG_ANSWERS:
        round_count(cell);
        break;
    case ZN_LOG_SERVER_PORT:
        if (!zn_port_is_common(p->server_port))
            put_digit(cell, false);
        break;
    case ZN_LOG_CLIENT_PORT:
    case ZN_LOG_CLIENT_CODED:
    case ZN_LOG_SERVER_CODED:
        put_digit(cell, false);
        break;
    default:
        hide(cell);
    }
}

/* Writes a value of a row whose names are released; values that vote follow. */
static void show(zn_log_pending *p, zn_log_cell *cell)
{
    switch (cell->role) {
    case ZN_LOG_CORRELATE:
    case ZN_LOG_NAME:
    case ZN_LOG_DNS_NAME:
    case ZN_LOG_AGENT:
    case ZN_LOG_CERTIFICATE:
        hide(cell);
        break;
    case ZN_LOG_CLIENT:
        replace(cell, p->client.text, p->client.linked ? p->client.n : 0);
        break;
    case ZN_LOG_SERVER:
        if (p->server.linked)
            replace(cell, p->server.text, p->server.n);
        else if (p->server_reason != ZN_LOG_RELEASED)
            hide(cell);
        break;
    case ZN_LOG_CLIENT_PORT:
        put_digit(cell, false);
        break;
    case ZN_LOG_CLIENT_CODED:
        put_digit(cell, p->client.linked);
        break;
    case ZN_LOG_SERVER_CODED:
        put_digit(cell, p->server.linked);
        break;
    default:
        break;
    }
}

void zn_log_pending_disclose(zn_log_pending *p, zn_time_unit unit)
{
    for (size_t i = 0; i < p->row.count; i++) {
        zn_log_cell *cell = &p->row.cells[i];
        if (p->exact && (cell->role == ZN_LOG_ALWAYS || cell->role == ZN_LOG_DETAIL))
            continue; /* as most cells */
        if (cell->kind == ZN_LOG_CELL_OPEN || cell->kind == ZN_LOG_CELL_CLOSE)
            continue;
        if (cell->kind == ZN_LOG_CELL_EMPTY && cell->role != ZN_LOG_ALWAYS &&
            cell->role != ZN_LOG_DETAIL)
            hide(cell);
        else if (p->exact)
            show(p, cell);
        else
            blank(p, cell, unit);
    }
    for (size_t i = 0; i < p->items && p->exact; i++)
        if (p->item[i].reason == ZN_LOG_RELEASED) {
            p->item[i].cell->kind = ZN_LOG_CELL_TEXT;
            p->item[i].cell->text = p->item[i].text;
        }
}
