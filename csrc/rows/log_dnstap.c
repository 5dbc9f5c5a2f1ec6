/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnstap: frames of Frame Streams, each with a DNS message and its addresses and times. A frame
 * becomes a line of the values that may be written, and a gated row becomes a new frame. Nothing
 * else of a frame is kept: no other part of the DNS message, no name or version of the server, no
 * zone and no policy.
 *
 * A message of type AUTH_* or CLIENT_* is about a client. A response shows that the server
 * answered.
 */
#include "proto/dns.h"
#include "proto/dnstap.h"
#include "rows/log_fixed.h"

#define FRAME_MAX ((size_t)1 << 20)
#define OUT_MAX 512 /* bytes of a frame that is written */
#define DNS_HEADER 12
#define NS_PER_S 1000000000

/* Columns, as the preset has them. */
enum {
    TAP_TYPE,
    TAP_PROTOCOL,
    TAP_CLIENT,
    TAP_SERVER,
    TAP_SERVER_PORT,
    TAP_TIME,       /* of a query, or of a response */
    TAP_QUERY_TIME, /* of a response */
    TAP_NAME,
    TAP_QTYPE,
    TAP_QCLASS,
    TAP_FLAGS, /* the second 16 bits of the DNS header */
    TAP_ANSWERED,
    TAP_COLUMNS
};

/* ---- frames to lines ---- */

static void put_address(zn_text *line, bool has, const zn_addr *address)
{
    char text[ZN_ADDR_TEXT_MAX];
    if (has)
        zn_text_bytes(line, text, zn_addr_text(address, text));
    zn_text_char(line, '\t');
}

static void put_number(zn_text *line, bool has, uint64_t value)
{
    if (has)
        zn_text_u64(line, value);
    zn_text_char(line, '\t');
}

static bool is_response(uint64_t type)
{
    return type == ZN_DNSTAP_AUTH_RESPONSE || type == ZN_DNSTAP_CLIENT_RESPONSE;
}

static bool is_about_client(uint64_t type)
{
    return is_response(type) || type == ZN_DNSTAP_AUTH_QUERY || type == ZN_DNSTAP_CLIENT_QUERY;
}

/* Reads the DNS message of a frame. Returns false unless it is a standard query with a question. */
static bool read_question(const zn_dnstap *tap, zn_dns_question *question, uint16_t *flags)
{
    zn_span message = is_response(tap->type) ? tap->response : tap->query;
    zn_cursor c = zn_cursor_over_span(message, true);
    zn_cursor_skip(&c, 2);
    *flags = zn_cursor_be16(&c);
    return zn_dns_question_parse(message, true, question) == ZN_DONE && question->opcode == 0;
}

/* Appends the line of a frame. "-" is a frame that is not about a query of a client. */
static void put_line(zn_span frame, zn_text *line)
{
    zn_dnstap tap;
    zn_dns_question question;
    uint16_t flags;
    bool known = zn_dnstap_parse(frame, &tap) == ZN_DONE && is_about_client(tap.type) &&
                 tap.has_client && read_question(&tap, &question, &flags);
    bool response = known && is_response(tap.type);
    int64_t t_ns = response ? tap.response_ns : known ? tap.query_ns : ZN_DNSTAP_NO_TIME;
    if (!known || t_ns == ZN_DNSTAP_NO_TIME) {
        zn_text_literal(line, "-\n");
        return;
    }
    put_number(line, true, tap.type);
    put_number(line, tap.socket_protocol != 0, tap.socket_protocol);
    put_address(line, true, &tap.client);
    put_address(line, tap.has_server, &tap.server);
    put_number(line, tap.server_port != 0, tap.server_port);
    put_number(line, true, (uint64_t)t_ns);
    put_number(line, response && tap.query_ns != ZN_DNSTAP_NO_TIME, (uint64_t)tap.query_ns);
    if (question.name_odd || question.more)
        zn_text_char(line, '?'); /* no name */
    else
        zn_text_bytes(line, (const char *)question.name, question.name_bytes);
    zn_text_char(line, '\t');
    put_number(line, true, question.type);
    put_number(line, true, question.class);
    put_number(line, true, flags);
    zn_text_bytes(line, "1", response);
    zn_text_char(line, '\n');
}

/* Takes a control frame. "#" is the line of the start of a stream. */
static int take_control(zn_log_source *s, zn_span payload, zn_text *lines, zn_error *err)
{
    uint32_t type;
    bool dnstap;
    if (zn_fstrm_control_parse(payload, &type, &dnstap) != ZN_DONE)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "a control frame of Frame Streams is malformed");
    if (!dnstap)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "the Frame Streams data is not of dnstap");
    if (type == ZN_FSTRM_START)
        zn_text_literal(lines, "#\n");
    s->framed = type == ZN_FSTRM_START || (s->framed && type != ZN_FSTRM_STOP);
    return 0;
}

/* Takes the next frame from the cursor. Returns 0 with *done if the frame is not complete. */
static int take_frame(zn_log_source *s, zn_cursor *c, zn_text *lines, bool *done, zn_error *err)
{
    zn_cursor next = *c;
    uint32_t n = zn_cursor_be32(&next);
    bool control = n == 0;
    zn_span payload;
    if (control)
        n = zn_cursor_be32(&next);
    if (zn_cursor_ok(&next) && (n > FRAME_MAX || (!control && !s->framed)))
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       s->framed ? "a frame is longer than 1 MiB"
                                 : "no control frame of Frame Streams begins the data; it is no "
                                   "dnstap");
    payload = zn_cursor_take(&next, n);
    *done = !zn_cursor_ok(&next);
    if (*done)
        return 0;
    *c = next;
    if (control)
        return take_control(s, payload, lines, err);
    put_line(payload, lines);
    return 0;
}

static int decode(zn_log_source *s, zn_span bytes, bool final, zn_text *lines, zn_error *err)
{
    zn_cursor c;
    bool done = false;
    int rc = 0;
    zn_text_span(&s->partial, bytes);
    c = zn_cursor_over((const uint8_t *)s->partial.bytes, s->partial.n, false);
    while (rc == 0 && !done && zn_cursor_left(&c) != 0)
        rc = take_frame(s, &c, lines, &done, err);
    if (s->partial.n != 0)
        memmove(s->partial.bytes, c.p, zn_cursor_left(&c));
    s->partial.n = zn_cursor_left(&c);
    if (final && s->partial.n != 0 && rc == 0)
        zn_text_literal(lines, "-\n"); /* the last frame is cut */
    if (final) {
        s->partial.n = 0;
        s->framed = false;
    }
    if (rc == 0 && (s->partial.failed || lines->failed))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a frame");
    return rc;
}

/* ---- lines to cells ---- */

/* Control frames that begin and end the output. */
static const uint8_t START[] = {0,   0,   0,   0,   0,   0,   0,   34,  0,   0,   0,
                                2,   0,   0,   0,   1,   0,   0,   0,   22,  'p', 'r',
                                'o', 't', 'o', 'b', 'u', 'f', ':', 'd', 'n', 's', 't',
                                'a', 'p', '.', 'D', 'n', 's', 't', 'a', 'p'};
static const uint8_t STOP[] = {0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3};

static int read_line(zn_log_source *s, uint8_t *line, size_t n, zn_log_line *out, zn_error *err)
{
    zn_cursor c = zn_cursor_over(line, n, true);
    bool more = true;
    (void)err;
    if (zn_log_fixed_take(&c, ZN_LOG_LITERAL("#"))) {
        s->head.n = s->closed.n = 0;
        zn_text_bytes(&s->head, (const char *)START, sizeof START);
        zn_text_bytes(&s->closed, (const char *)STOP, sizeof STOP);
        return 0;
    }
    out->is_row = true;
    zn_log_fixed_begin(s, out);
    if (zn_log_fixed_take(&c, ZN_LOG_LITERAL("-")))
        out->fault = ZN_FAULT_OTHER;
    for (size_t i = 0; i < TAP_COLUMNS && more && out->fault == ZN_FAULT_GOOD; i++) {
        zn_span value = zn_log_take_field(&c, '\t', &more);
        if (value.n != 0)
            zn_log_fixed_set(out, i, value);
    }
    return 0;
}

/* ---- cells to frames ---- */

/* A frame that is written. Every field has a bound, so that all fields have space. */
typedef struct frame {
    uint8_t byte[OUT_MAX];
    size_t n;
} frame;

static void put_byte(frame *f, uint64_t byte)
{
    ZN_ASSERT(f->n < sizeof f->byte);
    f->byte[f->n++] = (uint8_t)byte;
}

static void put_be16(frame *f, uint64_t value)
{
    put_byte(f, value >> 8);
    put_byte(f, value);
}

static void put_varint(frame *f, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(f, value | 0x80);
    put_byte(f, value);
}

/* Writes the key of a field with a number of its own encoding. */
static void put_key(frame *f, unsigned number, unsigned wire)
{
    put_varint(f, (uint64_t)number << 3 | wire);
}

static void put_field(frame *f, unsigned number, uint64_t value)
{
    put_key(f, number, 0);
    put_varint(f, value);
}

static void put_bytes(frame *f, unsigned number, const uint8_t *bytes, size_t n)
{
    put_key(f, number, 2);
    put_varint(f, n);
    for (size_t i = 0; i < n; i++)
        put_byte(f, bytes[i]);
}

/* Returns the number in a column, or 0. */
static uint64_t number_of(const zn_gated_log *row, size_t column)
{
    uint64_t value = 0;
    zn_cursor c = zn_cursor_over_span(row->cells[column].text, true);
    while (zn_log_fixed_has(row, column) && zn_cursor_left(&c) != 0)
        value = value * 10 + (uint64_t)(zn_cursor_u8(&c) - '0');
    return value;
}

/* Writes an address into the field; sets *family to its address family, 1 for INET or 2 for
 * INET6. */
static void put_address_field(frame *f, unsigned number, const zn_gated_log *row, size_t column,
                              unsigned *family)
{
    zn_addr address;
    if (!zn_log_fixed_has(row, column) || !zn_addr_parse(row->cells[column].text, &address))
        return;
    *family = zn_addr_is_v4(&address) ? 1 : 2;
    if (*family == 1)
        put_bytes(f, number, address.byte + 12, 4);
    else
        put_bytes(f, number, address.byte, sizeof address.byte);
}

static void put_time(frame *f, unsigned number, const zn_gated_log *row, size_t column)
{
    uint64_t t_ns = number_of(row, column), ns = t_ns % NS_PER_S;
    if (!zn_log_fixed_has(row, column))
        return;
    put_field(f, number, t_ns / NS_PER_S);
    put_key(f, number + 1, 5);
    for (unsigned i = 0; i < 4; i++)
        put_byte(f, ns >> (8 * i));
}

/* Writes a DNS message of the released name's question. */
static void put_message(frame *f, unsigned number, const zn_gated_log *row)
{
    frame message = {.n = 0};
    zn_cursor c = zn_cursor_over_span(row->cells[TAP_NAME].text, true);
    bool more = true;
    put_be16(&message, 0);
    put_be16(&message, number_of(row, TAP_FLAGS));
    put_be16(&message, 1);
    while (message.n < DNS_HEADER)
        put_byte(&message, 0);
    while (more) {
        zn_span label = zn_log_take_field(&c, '.', &more);
        zn_cursor bytes = zn_cursor_over_span(label, true);
        put_byte(&message, label.n);
        while (zn_cursor_left(&bytes) != 0)
            put_byte(&message, zn_cursor_u8(&bytes));
    }
    put_byte(&message, 0);
    put_be16(&message, number_of(row, TAP_QTYPE));
    put_be16(&message, number_of(row, TAP_QCLASS));
    put_bytes(f, number, message.byte, message.n);
}

static void write_row(const zn_log_source *s, zn_text *out, const zn_gated_log *row)
{
    uint64_t type = number_of(row, TAP_TYPE);
    bool response = is_response(type);
    unsigned family = 0;
    frame body = {.n = 0}, tap = {.n = 0};
    (void)s;
    put_field(&body, 1, type);
    if (zn_log_fixed_has(row, TAP_PROTOCOL))
        put_field(&body, 3, number_of(row, TAP_PROTOCOL));
    put_address_field(&body, 5, row, TAP_SERVER, &family);
    put_address_field(&body, 4, row, TAP_CLIENT, &family);
    if (family != 0)
        put_field(&body, 2, family);
    put_field(&body, 6, 0);
    if (zn_log_fixed_has(row, TAP_SERVER_PORT))
        put_field(&body, 7, number_of(row, TAP_SERVER_PORT));
    put_time(&body, 8, row, response ? TAP_QUERY_TIME : TAP_TIME);
    if (response)
        put_time(&body, 12, row, TAP_TIME);
    if (zn_log_fixed_has(row, TAP_NAME))
        put_message(&body, response ? 14 : 10, row);
    put_field(&tap, 15, 1); /* MESSAGE */
    put_bytes(&tap, 14, body.byte, body.n);
    for (unsigned i = 4; i-- > 0;)
        zn_text_char(out, (char)(tap.n >> (8 * i)));
    zn_text_bytes(out, (const char *)tap.byte, tap.n);
}

const zn_log_form zn_log_form_dnstap = {.format = ZN_ROWS_CSV,
                                        .separator = '\t',
                                        .decode = decode,
                                        .read = read_line,
                                        .put = write_row};
