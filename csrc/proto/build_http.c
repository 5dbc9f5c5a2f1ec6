/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and fields are taken apart exactly as proto/http.c reads them, so that it reads the same
 * from what is built: the same body, and the same host or a masked one.
 */
#include "proto/build_http.h"

#include "proto/ascii.h"
#include "proto/build_name.h"
#include "proto/http.h"

#define VERSION_BYTES 8u      /* "HTTP/1." and a digit */
#define LENGTH_DIGITS_MAX 18u /* of a Content-Length behind zeros, as proto/http.c reads it */
#define PORT_DIGITS_MAX 5u
#define STATUS_DIGITS 3u

typedef struct known_text {
    const char *text;
    size_t n;
} known_text;

#define TEXT(literal) {literal, sizeof(literal) - 1}

typedef enum value_kind {
    VALUE_OTHER,
    VALUE_HOST,
    VALUE_LENGTH,
    VALUE_CODINGS,
    VALUE_OPTIONS
} value_kind;

/* Names of IANA's field registry that browsers and servers send, whatever they talk about. */
static const struct {
    known_text name;
    value_kind kind;
} fields[] = {
    {TEXT("Host"), VALUE_HOST},
    {TEXT("Content-Length"), VALUE_LENGTH},
    {TEXT("Transfer-Encoding"), VALUE_CODINGS},
    {TEXT("Connection"), VALUE_OPTIONS},
    {TEXT("Accept"), VALUE_OTHER},
    {TEXT("Accept-Charset"), VALUE_OTHER},
    {TEXT("Accept-Encoding"), VALUE_OTHER},
    {TEXT("Accept-Language"), VALUE_OTHER},
    {TEXT("Accept-Ranges"), VALUE_OTHER},
    {TEXT("Access-Control-Allow-Origin"), VALUE_OTHER},
    {TEXT("Age"), VALUE_OTHER},
    {TEXT("Allow"), VALUE_OTHER},
    {TEXT("Authorization"), VALUE_OTHER},
    {TEXT("Cache-Control"), VALUE_OTHER},
    {TEXT("Content-Disposition"), VALUE_OTHER},
    {TEXT("Content-Encoding"), VALUE_OTHER},
    {TEXT("Content-Language"), VALUE_OTHER},
    {TEXT("Content-Location"), VALUE_OTHER},
    {TEXT("Content-Range"), VALUE_OTHER},
    {TEXT("Content-Type"), VALUE_OTHER},
    {TEXT("Cookie"), VALUE_OTHER},
    {TEXT("Date"), VALUE_OTHER},
    {TEXT("ETag"), VALUE_OTHER},
    {TEXT("Expect"), VALUE_OTHER},
    {TEXT("Expires"), VALUE_OTHER},
    {TEXT("If-Match"), VALUE_OTHER},
    {TEXT("If-Modified-Since"), VALUE_OTHER},
    {TEXT("If-None-Match"), VALUE_OTHER},
    {TEXT("If-Range"), VALUE_OTHER},
    {TEXT("If-Unmodified-Since"), VALUE_OTHER},
    {TEXT("Keep-Alive"), VALUE_OTHER},
    {TEXT("Last-Modified"), VALUE_OTHER},
    {TEXT("Location"), VALUE_OTHER},
    {TEXT("Origin"), VALUE_OTHER},
    {TEXT("Pragma"), VALUE_OTHER},
    {TEXT("Range"), VALUE_OTHER},
    {TEXT("Referer"), VALUE_OTHER},
    {TEXT("Retry-After"), VALUE_OTHER},
    {TEXT("Server"), VALUE_OTHER},
    {TEXT("Set-Cookie"), VALUE_OTHER},
    {TEXT("Strict-Transport-Security"), VALUE_OTHER},
    {TEXT("Trailer"), VALUE_OTHER},
    {TEXT("Upgrade"), VALUE_OTHER},
    {TEXT("User-Agent"), VALUE_OTHER},
    {TEXT("Vary"), VALUE_OTHER},
    {TEXT("Via"), VALUE_OTHER},
    {TEXT("WWW-Authenticate"), VALUE_OTHER},
};

/* IANA's codings of transfer (RFC 9112 7); options of a connection (RFC 9110 7.6.1, RFC 7540 3.2);
 * schemes before an authority. */
static const known_text codings[] = {TEXT("chunked"), TEXT("compress"),  TEXT("deflate"),
                                     TEXT("gzip"),    TEXT("identity"),  TEXT("trailers"),
                                     TEXT("x-gzip"),  TEXT("x-compress")},
                        options[] = {TEXT("close"), TEXT("keep-alive"), TEXT("upgrade"),
                                     TEXT("http2-settings")},
                        schemes[] = {TEXT("http"), TEXT("https"), TEXT("ws"), TEXT("wss"),
                                     TEXT("ftp")};

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

/* A head that is read, and what is built of it at the same offsets. */
typedef struct head_builder {
    zn_span head;
    uint8_t *out;
    zn_span host;    /* of a request, with its port: what may be released, or the message's name */
    bool host_clear; /* it may be written */
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

/* A host with its port. */
static void put_host(const head_builder *b, zn_span host)
{
    if (b->host_clear && zn_ascii_equal(host, b->host))
        put_lower(b, host);
    else if (host.n != 0)
        zn_build_masked_name(b->out + zn_span_offset(b->head, host), host.n);
}

/* One of the known texts in lower case, or 'x'. */
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

/* Returns whether proto/http.c reads the value as a length. */
static bool is_length(zn_span value)
{
    zn_cursor c = zn_cursor_over_span(value, true);
    size_t digits = 0; /* behind zeros */
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < '0' || byte > '9')
            return false;
        digits += digits != 0 || byte != '0';
    }
    return value.n != 0 && digits <= LENGTH_DIGITS_MAX;
}

/* A list of tokens with ',' between them (RFC 9110 5.6.1); blanks are there. */
static void put_list(const head_builder *b, zn_span value, const known_text *known, size_t n)
{
    zn_cursor c = zn_cursor_over_span(value, true);
    for (;;) {
        put_known(b, zn_ascii_trim(zn_ascii_take_until(&c, ',')), known, n);
        if (zn_cursor_left(&c) == 0)
            return;
        put_byte(b, zn_cursor_take(&c, 1), ',');
    }
}

static void put_value(const head_builder *b, zn_span value, value_kind kind)
{
    zn_span trimmed = zn_ascii_trim(value);
    if (kind == VALUE_OTHER) {
        put_byte(b, value, 'x');
        if (zn_ascii_is_blank(zn_ascii_first(value)))
            put_byte(b, zn_span_first(value, 1), ' ');
        return;
    }
    put_byte(b, value, ' ');
    if (kind == VALUE_HOST)
        put_host(b, trimmed);
    else if (kind == VALUE_CODINGS)
        put_list(b, trimmed, codings, sizeof codings / sizeof codings[0]);
    else if (kind == VALUE_OPTIONS)
        put_list(b, trimmed, options, sizeof options / sizeof options[0]);
    else if (is_length(trimmed))
        put_text(b, trimmed, trimmed);
    else
        put_byte(b, trimmed, 'x');
}

static void put_field(const head_builder *b, zn_span line, bool request)
{
    size_t colon = zn_span_find(line, ':');
    zn_span name = zn_span_first(line, colon), trimmed = zn_ascii_trim(name);
    value_kind kind = VALUE_OTHER;

    put_byte(b, line, 'x');
    if (zn_ascii_is_blank(zn_ascii_first(line)))
        put_byte(b, zn_span_first(line, 1), ' ');
    if (zn_ascii_is_blank(zn_ascii_first(line)) || colon == line.n)
        return;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (zn_ascii_equal(trimmed, text_span(fields[i].name))) {
            put_byte(b, name, ' ');
            put_text(b, trimmed, text_span(fields[i].name));
            kind = fields[i].kind;
        }
    put_byte(b, zn_span_part(line, colon, colon + 1), ':');
    put_value(b, zn_span_after(line, colon + 1),
              kind == VALUE_HOST && !request ? VALUE_OTHER : kind);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Takes a line, and writes its end; false when that is not there. */
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

/* The fields, up to the empty line. */
static void put_fields(const head_builder *b, zn_cursor *c, bool request)
{
    zn_span line;
    while (take_line(b, c, &line) && line.n != 0)
        put_field(b, line, request);
}

/* The span without blanks at its end. */
static zn_span trim_end(zn_span s)
{
    while (s.n != 0 && zn_ascii_is_blank(zn_ascii_first(zn_span_after(s, s.n - 1))))
        s.n--;
    return s;
}

/* A path, or a query without one. */
static void put_path(const head_builder *b, zn_span path)
{
    put_byte(b, path, 'x');
    put_byte(b, zn_span_first(path, 1), '/');
}

/* The target, which has the request's host in it or not. */
static void put_target(const head_builder *b, zn_span target)
{
    size_t at = zn_span_offset(target, b->host);
    zn_span start;
    if (b->host.n == 0 || at == target.n) {
        put_path(b, target);
        return;
    }
    start = zn_span_first(target, at);
    if (at != 0) { /* what is neither a scheme nor an authority is user information */
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

/* A request line, as proto/http.c has split it. */
static void put_request_line(const head_builder *b, zn_span line)
{
    zn_span all = trim_end(line), before, target;
    zn_span method = zn_span_first(all, zn_span_find(all, ' '));
    put_byte(b, line, ' ');
    put_text(b, method, method);
    put_text(b, zn_span_after(all, all.n - VERSION_BYTES),
             zn_span_after(all, all.n - VERSION_BYTES));
    before = zn_span_part(all, method.n, all.n - VERSION_BYTES);
    target = zn_ascii_trim(before);
    put_target(b, target);
}

/* Returns whether the request's host may be written: a name, with or without a port. */
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

/* Returns whether a whole line is there that is not empty. */
static bool has_line(zn_span head)
{
    zn_cursor c = zn_cursor_over_span(head, false);
    zn_span line;
    while (zn_ascii_take_line(&c, &line))
        if (line.n != 0)
            return true;
    return false;
}

bool zn_build_http_request(zn_span head, const zn_build_choice *choice, uint8_t *out)
{
    zn_http_request request;
    zn_parse state = zn_http_request_head(head, true, &request);
    head_builder b = {.head = head, .out = out, .host = {head.p, 0}};
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
    put_fields(&b, &c, true);
    return true;
}

/* ---- responses ------------------------------------------------------------------------------- */

/* The status line (RFC 9112 4); false when the line is none. */
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
    zn_span line;
    if (!zn_ascii_take_line(&first, &line) || !put_status_line(&b, line))
        return false;
    (void)take_line(&b, &c, &line);
    put_fields(&b, &c, false);
    return true;
}
