/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and fields are split exactly as proto/http.c splits them. So proto/http.c reads the same
 * body from the built head, and the same host or its mask.
 */
#include "build/build_http.h"

#include "build/build_name.h"
#include "proto/ascii.h"
#include "proto/http.h"

#define VERSION_BYTES 8u      /* "HTTP/1." and a digit */
#define LENGTH_DIGITS_MAX 18u /* most digits of a Content-Length behind zeros, as in proto/http.c */
#define PORT_DIGITS_MAX 5u
#define STATUS_DIGITS 3u

typedef struct known_text {
    const char *text;
    size_t n;
} known_text;

#define TEXT(literal) {literal, sizeof(literal) - 1}

/* Schemes before an authority. */
static const known_text schemes[] = {TEXT("http"), TEXT("https"), TEXT("ws"), TEXT("wss"),
                                     TEXT("ftp")};

/* Fields that are written, in this order. */
static const known_text host_field = TEXT("Host"), length_field = TEXT("Content-Length"),
                        coding_field = TEXT("Transfer-Encoding"), upgrade_field = TEXT("Upgrade"),
                        padding_field = TEXT("X-Padding"), chunked = TEXT("chunked");

/* IANA's registry of status codes. */
static const struct {
    unsigned status;
    known_text phrase;
} phrases[] = {
    {100, TEXT("Continue")},
    {101, TEXT("Switching Protocols")},
    {102, TEXT("Processing")},
    {103, TEXT("Early Hints")},
    {200, TEXT("OK")},
    {201, TEXT("Created")},
    {202, TEXT("Accepted")},
    {203, TEXT("Non-Authoritative Information")},
    {204, TEXT("No Content")},
    {205, TEXT("Reset Content")},
    {206, TEXT("Partial Content")},
    {207, TEXT("Multi-Status")},
    {208, TEXT("Already Reported")},
    {226, TEXT("IM Used")},
    {300, TEXT("Multiple Choices")},
    {301, TEXT("Moved Permanently")},
    {302, TEXT("Found")},
    {303, TEXT("See Other")},
    {304, TEXT("Not Modified")},
    {305, TEXT("Use Proxy")},
    {307, TEXT("Temporary Redirect")},
    {308, TEXT("Permanent Redirect")},
    {400, TEXT("Bad Request")},
    {401, TEXT("Unauthorized")},
    {402, TEXT("Payment Required")},
    {403, TEXT("Forbidden")},
    {404, TEXT("Not Found")},
    {405, TEXT("Method Not Allowed")},
    {406, TEXT("Not Acceptable")},
    {407, TEXT("Proxy Authentication Required")},
    {408, TEXT("Request Timeout")},
    {409, TEXT("Conflict")},
    {410, TEXT("Gone")},
    {411, TEXT("Length Required")},
    {412, TEXT("Precondition Failed")},
    {413, TEXT("Content Too Large")},
    {414, TEXT("URI Too Long")},
    {415, TEXT("Unsupported Media Type")},
    {416, TEXT("Range Not Satisfiable")},
    {417, TEXT("Expectation Failed")},
    {421, TEXT("Misdirected Request")},
    {422, TEXT("Unprocessable Content")},
    {423, TEXT("Locked")},
    {424, TEXT("Failed Dependency")},
    {425, TEXT("Too Early")},
    {426, TEXT("Upgrade Required")},
    {428, TEXT("Precondition Required")},
    {429, TEXT("Too Many Requests")},
    {431, TEXT("Request Header Fields Too Large")},
    {451, TEXT("Unavailable For Legal Reasons")},
    {500, TEXT("Internal Server Error")},
    {501, TEXT("Not Implemented")},
    {502, TEXT("Bad Gateway")},
    {503, TEXT("Service Unavailable")},
    {504, TEXT("Gateway Timeout")},
    {505, TEXT("HTTP Version Not Supported")},
    {506, TEXT("Variant Also Negotiates")},
    {507, TEXT("Insufficient Storage")},
    {508, TEXT("Loop Detected")},
    {511, TEXT("Network Authentication Required")},
};

/* Head that is read, and the built head with the same offsets. */
typedef struct head_builder {
    zn_span head;
    uint8_t *out;
    zn_span host;    /* host of a request with its port */
    bool host_clear; /* the host may be written */
} head_builder;

static zn_span text_span(known_text known)
{
    return (zn_span){(const uint8_t *)known.text, known.n};
}

/* ---- writing over a part of the head --------------------------------------------------------- */

static void put_byte(const head_builder *b, zn_span part, uint8_t byte)
{
    if (part.n != 0)
        memset(b->out + zn_span_offset(b->head, part), byte, part.n);
}

static void put_text(const head_builder *b, zn_span part, zn_span text)
{
    ZN_ASSERT(part.n >= text.n);
    if (text.n != 0)
        memcpy(b->out + zn_span_offset(b->head, part), text.p, text.n);
}

static void put_lower(const head_builder *b, zn_span part)
{
    zn_cursor c = zn_cursor_over_span(part, true);
    for (uint8_t *out = b->out + zn_span_offset(b->head, part); zn_cursor_left(&c) > 0; out++)
        *out = zn_ascii_lower(zn_cursor_u8(&c));
}

/* Writes a host with its port. */
static void write_host(const head_builder *b, zn_span host, uint8_t *out)
{
    zn_cursor c = zn_cursor_over_span(host, true);
    if (!b->host_clear || !zn_ascii_equal(host, b->host)) {
        zn_build_masked_name(out, host.n);
        return;
    }
    while (zn_cursor_left(&c) > 0)
        *out++ = zn_ascii_lower(zn_cursor_u8(&c));
}

static void put_host(const head_builder *b, zn_span host)
{
    if (host.n != 0)
        write_host(b, host, b->out + zn_span_offset(b->head, host));
}

/* Writes one of the known texts in lower case, or 'x'. */
static void put_known(const head_builder *b, zn_span part, const known_text *known, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (zn_ascii_equal(part, text_span(known[i]))) {
            put_lower(b, part);
            return;
        }
    put_byte(b, part, 'x');
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Fields of a head that are written, and the range of all its fields. */
typedef struct head_fields {
    size_t from, end; /* offsets in the head of the first field and behind the last field */
    bool has_host, has_length, has_upgrade, is_chunked;
    bool frames;    /* true if a field sets, or should set, the end of the body */
    zn_span host;   /* value of the first Host field */
    zn_span length; /* digits of Content-Length; empty: a reader finds no length */
} head_fields;

/* Returns true if proto/http.c reads the value as a length. */
static bool is_length(zn_span value)
{
    zn_cursor c = zn_cursor_over_span(value, true);
    size_t digits = 0; /* digits behind zeros */
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < '0' || byte > '9')
            return false;
        digits += digits != 0 || byte != '0';
    }
    return value.n != 0 && digits <= LENGTH_DIGITS_MAX;
}

/* Returns the digits without leading zeros. */
static zn_span without_zeros(zn_span digits)
{
    while (digits.n > 1 && zn_ascii_first(digits) == '0')
        digits = zn_span_after(digits, 1);
    return digits;
}

/* Returns true if the last coding of a list is chunked. */
static bool ends_chunked(zn_span value)
{
    zn_cursor c = zn_cursor_over_span(value, true);
    zn_span last = zn_ascii_take_until(&c, ',');
    while (zn_cursor_left(&c) > 0) {
        zn_cursor_skip(&c, 1);
        last = zn_ascii_take_until(&c, ',');
    }
    return zn_ascii_equal(zn_ascii_trim(last), text_span(chunked));
}

static void read_field(zn_span line, head_fields *fields)
{
    size_t colon = zn_span_find(line, ':');
    zn_span name = zn_ascii_trim(zn_span_first(line, colon)), value;
    if (zn_ascii_is_blank(zn_ascii_first(line)) || colon == line.n)
        return;
    value = zn_ascii_trim(zn_span_after(line, colon + 1));
    if (zn_ascii_equal(name, text_span(host_field)) && !fields->has_host) {
        fields->has_host = true;
        fields->host = value;
    } else if (zn_ascii_equal(name, text_span(length_field))) {
        fields->frames = true;
        fields->has_length |= is_length(value);
        fields->length = is_length(value) ? without_zeros(value) : fields->length;
    } else if (zn_ascii_equal(name, text_span(coding_field))) {
        fields->frames = true;
        fields->is_chunked = ends_chunked(value);
    } else if (zn_ascii_equal(name, text_span(upgrade_field))) {
        fields->has_upgrade = true;
    }
}

/* Form of the fields: a blank before the value and CRLF behind it, or as short as possible. */
typedef struct field_writer {
    const head_builder *b;
    uint8_t *at; /* NULL: bytes are only counted */
    size_t n;    /* bytes so far */
    bool wide;
    bool blank; /* true if there is one more byte for the first field */
} field_writer;

static void write_text(field_writer *w, const char *text, size_t n)
{
    if (w->at != NULL && n != 0)
        memcpy(w->at + w->n, text, n);
    w->n += n;
}

static void begin_field(field_writer *w, known_text name)
{
    write_text(w, name.text, name.n);
    write_text(w, ": ", w->wide || w->blank ? 2 : 1);
    w->blank = false;
}

static void end_field(field_writer *w)
{
    write_text(w, w->wide ? "\r\n" : "\n", w->wide ? 2 : 1);
}

static void write_fields(field_writer *w, const head_fields *fields)
{
    if (fields->has_host) {
        begin_field(w, host_field);
        if (w->at != NULL && fields->host.n != 0)
            write_host(w->b, fields->host, w->at + w->n);
        w->n += fields->host.n;
        end_field(w);
    }
    if (fields->has_length) {
        begin_field(w, length_field);
        write_text(w, (const char *)fields->length.p, fields->length.n);
        end_field(w);
    }
    if (fields->is_chunked) {
        begin_field(w, coding_field);
        write_text(w, chunked.text, chunked.n);
        end_field(w);
    }
    if (fields->has_upgrade) {
        begin_field(w, upgrade_field);
        end_field(w);
    }
}

/* Writes one field of n bytes, 2 or more, which replaces all other fields. */
static void write_padding(uint8_t *out, size_t n)
{
    size_t named = padding_field.n + 2;
    memset(out, 'x', n);
    out[n - 1] = '\n';
    if (n > 2)
        out[1] = ':';
    if (n < named + 2)
        return;
    memcpy(out, padding_field.text, padding_field.n);
    memcpy(out + padding_field.n, ": ", 2);
    out[n - 2] = '\r';
}

/* Writes the fields into the bytes that all fields had. The result depends only on these fields and
 * on the number of bytes. */
static void put_fields(const head_builder *b, const head_fields *fields)
{
    field_writer w = {.b = b, .wide = true};
    size_t room = fields->end - fields->from;
    uint8_t *out = b->out + fields->from;
    write_fields(&w, fields);
    if (w.n > room || w.n + 1 == room) {
        w = (field_writer){.b = b};
        write_fields(&w, fields);
    }
    if (w.n > room) /* never: the head had each field with at least as many bytes */
        return;
    w = (field_writer){.b = b, .at = out, .wide = w.wide, .blank = w.n + 1 == room};
    write_fields(&w, fields);
    if (w.n < room)
        write_padding(out + w.n, room - w.n);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Takes a line and writes its end. Returns false if the line has no end. */
static bool take_line(const head_builder *b, zn_cursor *c, zn_span *line)
{
    zn_span rest, end;
    zn_cursor peek = *c;
    rest = zn_cursor_rest(&peek);
    if (!zn_ascii_take_line(c, line))
        return false;
    end = zn_span_part(rest, line->n, rest.n - zn_cursor_left(c));
    put_text(b, end, end);
    return true;
}

/* Reads the fields up to the empty line, whose end it writes, or up to the last whole line. */
static head_fields take_fields(const head_builder *b, zn_cursor *c)
{
    head_fields fields = {.host = {b->head.p, 0}, .length = {b->head.p, 0}};
    zn_span line;
    fields.from = fields.end = b->head.n - zn_cursor_left(c);
    for (;;) {
        zn_cursor next = *c;
        if (!zn_ascii_take_line(&next, &line))
            return fields;
        if (line.n == 0) {
            (void)take_line(b, c, &line);
            return fields;
        }
        *c = next;
        fields.end = b->head.n - zn_cursor_left(c);
        read_field(line, &fields);
    }
}

/* Returns the span without blanks at its end. */
static zn_span trim_end(zn_span s)
{
    while (s.n != 0 && zn_ascii_is_blank(zn_ascii_first(zn_span_after(s, s.n - 1))))
        s.n--;
    return s;
}

/* Writes a path, or a query without a path. */
static void put_path(const head_builder *b, zn_span path)
{
    put_byte(b, path, 'x');
    put_byte(b, zn_span_first(path, 1), '/');
}

/* Writes the target, with or without the request's host in it. */
static void put_target(const head_builder *b, zn_span target)
{
    size_t at = zn_span_offset(target, b->host);
    zn_span start;
    if (b->host.n == 0 || at == target.n) {
        put_path(b, target);
        return;
    }
    start = zn_span_first(target, at);
    if (at != 0) { /* text that is neither scheme nor authority is user information */
        size_t colon = zn_span_find(start, ':');
        zn_cursor c = zn_cursor_over_span(zn_span_after(start, colon), true);
        zn_span separator = zn_cursor_take(&c, 3), scheme = zn_span_first(start, colon);
        zn_span userinfo = start;
        if (separator.n != 0 && zn_span_equal(separator, (zn_span){(const uint8_t *)"://", 3})) {
            put_known(b, scheme, schemes, sizeof schemes / sizeof schemes[0]);
            put_text(b, separator, separator);
            userinfo = zn_cursor_rest(&c);
        }
        put_byte(b, userinfo, 'x');
        if (userinfo.n != 0)
            put_byte(b, zn_span_after(userinfo, userinfo.n - 1), '@');
    }
    put_host(b, b->host);
    put_path(b, zn_span_after(target, at + b->host.n));
}

/* Writes a request line that proto/http.c has split. */
static void put_request_line(const head_builder *b, zn_span line)
{
    zn_span all = trim_end(line), before, target;
    zn_span method = zn_span_first(all, zn_span_find(all, ' '));
    put_byte(b, line, ' ');
    if (zn_http_is_known_method(all))
        put_text(b, method, method);
    else
        put_byte(b, method, 'x');
    put_text(b, zn_span_after(all, all.n - VERSION_BYTES),
             zn_span_after(all, all.n - VERSION_BYTES));
    before = zn_span_part(all, method.n, all.n - VERSION_BYTES);
    target = zn_ascii_trim(before);
    put_target(b, target);
}

/* Returns true if the request's host may be written: a name, with or without a port. */
static bool is_name(zn_span host)
{
    size_t colon = zn_span_find(host, ':');
    zn_cursor c = zn_cursor_over_span(zn_span_after(host, colon), true);
    if (zn_cursor_left(&c) > 1 + PORT_DIGITS_MAX)
        return false;
    for (size_t i = 0; zn_cursor_left(&c) > 0; i++) {
        uint8_t byte = zn_cursor_u8(&c);
        if (i > 0 && (byte < '0' || byte > '9'))
            return false;
    }
    return zn_build_name_allowed(zn_span_first(host, colon));
}

/* Returns true if there is a whole line that is not empty. */
static bool has_line(zn_span head)
{
    zn_cursor c = zn_cursor_over_span(head, false);
    zn_span line;
    while (zn_ascii_take_line(&c, &line))
        if (line.n != 0)
            return true;
    return false;
}

/* Sets the fields after the request that proto/http.c read, so that proto/http.c reads the same
 * body again. An unknown length is written as an empty value. */
static void set_body(const zn_http_request *request, head_fields *fields)
{
    fields->is_chunked = request->chunked;
    fields->has_length = request->body_unknown ? fields->frames : request->body_bytes != 0;
    if (request->body_unknown)
        fields->length.n = 0;
}

bool zn_build_http_request(zn_span head, const zn_build_choice *choice, uint8_t *out)
{
    zn_http_request request;
    zn_parse state = zn_http_request_head(head, true, ZN_HTTP_ANY, &request);
    head_builder b = {.head = head, .out = out, .host = {head.p, 0}};
    head_fields fields;
    zn_cursor c;
    zn_span line;

    if (state == ZN_DONE) {
        b.head = zn_span_first(head, request.head_bytes);
        b.host = request.host;
        b.host_clear = choice->name && is_name(b.host);
    }
    if ((state != ZN_DONE && state != ZN_NEED_MORE) || !has_line(b.head))
        return false;
    c = zn_cursor_over_span(b.head, false);
    while (take_line(&b, &c, &line) && line.n == 0)
        continue;
    put_request_line(&b, line);
    fields = take_fields(&b, &c);
    if (state == ZN_DONE)
        set_body(&request, &fields);
    put_fields(&b, &fields);
    return true;
}

/* ---- responses ------------------------------------------------------------------------------- */

/* Writes the status line (RFC 9112 4). Returns false if the line is malformed. */
static bool put_status_line(const head_builder *b, zn_span line)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    zn_span version = zn_cursor_take(&c, VERSION_BYTES), space = zn_cursor_take(&c, 1);
    zn_span digits = zn_cursor_take(&c, STATUS_DIGITS), reason = zn_cursor_rest(&c);
    zn_cursor status_digits = zn_cursor_over_span(digits, true);
    unsigned status = 0;

    if (digits.n == 0 || zn_ascii_first(space) != ' ')
        return false;
    if (!zn_span_equal(zn_span_first(version, VERSION_BYTES - 1),
                       (zn_span){(const uint8_t *)"HTTP/1.", VERSION_BYTES - 1}) ||
        !is_length(zn_span_after(version, VERSION_BYTES - 1)) || !is_length(digits))
        return false;
    while (zn_cursor_left(&status_digits) > 0)
        status = status * 10 + (zn_cursor_u8(&status_digits) & 0x0fu);
    if (status < 100 || status > 599 || (reason.n != 0 && zn_ascii_first(reason) != ' '))
        return false;
    put_byte(b, line, ' ');
    put_text(b, version, version);
    put_text(b, digits, digits);
    if (reason.n < 2)
        return true;
    reason = zn_span_after(reason, 1);
    put_byte(b, reason, 'x');
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (phrases[i].status == status && zn_span_equal(reason, text_span(phrases[i].phrase)))
            put_text(b, reason, reason);
    return true;
}

bool zn_build_http_response(zn_span bytes, uint8_t *out)
{
    head_builder b = {.head = zn_span_first(bytes, ZN_HTTP_HEAD_MAX), .out = out};
    zn_cursor c = zn_cursor_over_span(b.head, false), first = c;
    head_fields fields;
    zn_span line;
    if (!zn_ascii_take_line(&first, &line) || !put_status_line(&b, line))
        return false;
    (void)take_line(&b, &c, &line);
    fields = take_fields(&b, &c);
    fields.has_host = fields.has_upgrade = false;
    put_fields(&b, &fields);
    return true;
}
