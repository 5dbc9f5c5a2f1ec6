/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head is read line by line, as in RFC 9112 2: the request line, fields, an empty line.
 * Deviations that receivers accept are accepted (several spaces, bare LF, blanks around a field
 * name). If receivers could disagree about the host, the head is malformed.
 */
#include "proto/http.h"

#include "proto/ascii.h"
#include "proto/doh.h"

#define DIGITS_MAX 18u      /* of a Content-Length: what fits uint64_t whatever the digits */
#define EMPTY_LINES_MAX 8u  /* before a request; RFC 9112 2.2 asks servers to forgive one */
#define CHUNK_DIGITS_MAX 7u /* a larger chunk is not followed */
#define CHUNK_LINE_MAX 256u /* a size and its extensions */
#define CHUNK_TRAILERS_MAX 4096u
#define CRLF_BYTES 2u
#define FIELD_MAX 1024u /* longest field that is read behind the first ZN_HTTP_HEAD_MAX bytes */
#define METHOD_MAX 64u  /* longest word taken for a method before its line is whole */

typedef struct http_token {
    const char *text;
    size_t n;
} http_token;

#define TOKEN(text) {text, sizeof(text) - 1}

/* The methods of IANA's registry (RFC 9110 16.1.1), the common ones first; without "*" and PRI,
 * which begin no request of HTTP/1. Any other word may be the rest of a request whose start is
 * missing, unless a request surely begins at the word. */
static const char methods[] =
    "GET POST HEAD PUT DELETE CONNECT OPTIONS TRACE PATCH PROPFIND PROPPATCH MKCOL COPY MOVE "
    "LOCK UNLOCK VERSION-CONTROL REPORT CHECKOUT CHECKIN UNCHECKOUT MKWORKSPACE UPDATE LABEL "
    "MERGE BASELINE-CONTROL MKACTIVITY ORDERPATCH ACL SEARCH BIND REBIND UNBIND "
    "MKREDIRECTREF UPDATEREDIRECTREF MKCALENDAR LINK UNLINK QUERY";

static const http_token get = TOKEN("GET"), head_only = TOKEN("HEAD"), post = TOKEN("POST"),
                        connect = TOKEN("CONNECT"), version = TOKEN("HTTP/1."),
                        chunked = TOKEN("chunked");

typedef enum field_kind {
    FIELD_OTHER,
    FIELD_HOST,
    FIELD_CONTENT_LENGTH,
    FIELD_TRANSFER_ENCODING,
    FIELD_UPGRADE,
    FIELD_CONTENT_TYPE
} field_kind;

static const struct {
    http_token name;
    field_kind kind;
} fields[] = {
    {TOKEN("host"), FIELD_HOST},
    {TOKEN("content-length"), FIELD_CONTENT_LENGTH},
    {TOKEN("transfer-encoding"), FIELD_TRANSFER_ENCODING},
    {TOKEN("upgrade"), FIELD_UPGRADE},
    {TOKEN("content-type"), FIELD_CONTENT_TYPE},
};

/* The content of the fields read so far. */
typedef struct head_state {
    zn_span authority; /* of the request line; may be empty */
    zn_span host;
    bool host_seen, host_conflict;
    bool cut;
    bool length_seen, length_unknown;
    bool coding_seen;
    field_kind last; /* the field that a folded line would continue */
} head_state;

static bool equals(zn_span s, http_token token)
{
    return s.n == token.n && memcmp(s.p, token.text, token.n) == 0;
}

/* A byte that cannot stand in a request line. Those beyond ASCII are tolerated, as servers do. */
static bool is_control(uint8_t byte)
{
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

static bool is_text(zn_span s)
{
    zn_cursor c = zn_cursor_over_span(s, true);
    while (zn_cursor_left(&c) > 0)
        if (is_control(zn_cursor_u8(&c)))
            return false;
    return true;
}

/* Passes over line ends. */
static void skip_empty_lines(zn_cursor *c)
{
    for (unsigned i = 0; i < EMPTY_LINES_MAX && zn_cursor_left(c) > 0; i++) {
        zn_cursor line = *c;
        uint8_t first = zn_cursor_u8(&line);
        if (first != '\n' && (first != '\r' || zn_cursor_u8(&line) != '\n'))
            return;
        *c = line;
    }
}

/* Every method starts with three capitals; bytes that are no request hardly ever do. */
static bool starts_with_capitals(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    for (size_t i = 0; i < 3 && zn_cursor_left(&c) > 0; i++) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < 'A' || byte > 'Z')
            return false;
    }
    return true;
}

bool zn_http_is_known_method(zn_span bytes)
{
    zn_cursor known = zn_cursor_over((const uint8_t *)methods, sizeof methods - 1, true);
    if (!starts_with_capitals(bytes))
        return false;
    while (zn_cursor_left(&known) > 0) {
        zn_span method = zn_ascii_take_until(&known, ' ');
        zn_cursor c = zn_cursor_over_span(bytes, false);
        size_t n = bytes.n < method.n ? bytes.n : method.n;
        if (memcmp(zn_cursor_take(&c, n).p, method.p, n) == 0 &&
            (zn_cursor_left(&c) == 0 || zn_cursor_u8(&c) == ' '))
            return true;
        if (zn_cursor_left(&known) > 0)
            zn_cursor_skip(&known, 1);
    }
    return false;
}

static bool is_method(zn_span word)
{
    zn_cursor known = zn_cursor_over((const uint8_t *)methods, sizeof methods - 1, true);
    while (zn_cursor_left(&known) > 0) {
        zn_span method = zn_ascii_take_until(&known, ' ');
        if (method.n == word.n && memcmp(method.p, word.p, word.n) == 0)
            return true;
        if (zn_cursor_left(&known) > 0)
            zn_cursor_skip(&known, 1);
    }
    return false;
}

bool zn_http_is_token_byte(uint8_t byte)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    uint8_t lower = zn_ascii_lower(byte);
    return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') ||
           memchr(others, byte, sizeof others - 1) != NULL;
}

static bool is_token(zn_span word)
{
    zn_cursor c = zn_cursor_over_span(word, true);
    while (zn_cursor_left(&c) > 0)
        if (!zn_http_is_token_byte(zn_cursor_u8(&c)))
            return false;
    return word.n != 0;
}

/* A scheme has the characters of RFC 3986 3.1. */
static bool is_scheme(zn_span s)
{
    zn_cursor c = zn_cursor_over_span(s, true);
    bool letter = false, other = false;
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_ascii_lower(zn_cursor_u8(&c));
        bool more = (byte >= '0' && byte <= '9') || byte == '+' || byte == '-' || byte == '.';
        if (byte >= 'a' && byte <= 'z')
            letter = true;
        else if (!letter || !more)
            other = true;
    }
    return letter && !other;
}

/* An authority without what follows it and without its userinfo. */
static zn_span trim_authority(zn_span s)
{
    zn_cursor c = zn_cursor_over_span(s, true);
    size_t userinfo = 0, n = 0;
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte == '/' || byte == '?' || byte == '#')
            break;
        n++;
        if (byte == '@')
            userinfo = n;
    }
    return zn_ascii_part(s, userinfo, n);
}

/* The authority of an absolute-form target (RFC 9112 3.2.2); empty for another form. */
static zn_span target_authority(zn_span target)
{
    zn_cursor c = zn_cursor_over_span(target, true);
    zn_span scheme = zn_ascii_take_until(&c, ':');
    if (is_scheme(scheme) && zn_cursor_be24(&c) == 0x3a2f2f) /* "://" */
        return trim_authority(zn_cursor_rest(&c));
    return (zn_span){target.p, 0};
}

/* "HTTP/1." and a digit. */
static bool is_version(zn_span s)
{
    zn_cursor c = zn_cursor_over_span(s, true);
    zn_span start = zn_cursor_take(&c, version.n);
    uint8_t minor = zn_cursor_u8(&c);
    return s.n == version.n + 1 && equals(start, version) && minor >= '0' && minor <= '9';
}

/* Splits WORD SP target SP HTTP/1.x; returns false for any other line. The target may be missing,
 * as in the OPTIONS of some clients. */
static bool split_request_line(zn_span line, zn_span *word, zn_span *target)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    zn_span rest;
    size_t last = 0; /* where the last word starts: a target may hold blanks */

    *word = zn_ascii_take_until(&c, ' ');
    rest = zn_ascii_trim(zn_cursor_rest(&c));
    c = zn_cursor_over_span(rest, true);
    for (size_t i = 1; zn_cursor_left(&c) > 0; i++) {
        uint8_t byte = zn_cursor_u8(&c);
        if (zn_ascii_is_blank(byte))
            last = i;
        else if (is_control(byte))
            return false;
    }
    *target = zn_ascii_trim(zn_ascii_part(rest, 0, last));
    return is_version(zn_ascii_part(rest, last, rest.n));
}

/* Returns true if the bytes may be the start of a request's target: a path, "*" or an absolute
 * URI. */
static bool may_be_target(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t first = zn_ascii_first(bytes);
    zn_span scheme = zn_ascii_take_until(&c, ':'), rest = zn_cursor_rest(&c);
    zn_span slashes = {(const uint8_t *)"://", 3};
    size_t n = rest.n < slashes.n ? rest.n : slashes.n;
    if (first == '/' || first == '*' || bytes.n == 0)
        return true;
    return is_scheme(scheme) && zn_span_equal(zn_span_first(rest, n), zn_span_first(slashes, n));
}

/* Returns true if the start of a line may become a request line with any method. */
static bool may_be_request_line(zn_span line)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    zn_span word = zn_ascii_take_until(&c, ' ');
    return is_token(word) && word.n <= METHOD_MAX &&
           may_be_target(zn_ascii_trim(zn_cursor_rest(&c)));
}

/* Reads METHOD SP target SP HTTP/1.x; returns false for any other line. */
static bool parse_request_line(zn_span line, zn_http_methods allowed, head_state *state,
                               zn_http_request *out)
{
    zn_span method, target;
    bool any = allowed == ZN_HTTP_ANY;
    if (!split_request_line(line, &method, &target) ||
        !(is_method(method) || (any && target.n != 0 && is_token(method))))
        return false;
    out->target = target;
    out->method = equals(method, post) ? 2 : 1;
    out->switches = equals(method, connect);
    out->no_content = out->switches || equals(method, get) || equals(method, head_only);
    state->authority = equals(method, connect) ? trim_authority(target) : target_authority(target);
    return true;
}

bool zn_http_looks_like_request(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    zn_span start;
    skip_empty_lines(&c);
    start = zn_cursor_rest(&c);
    return start.n == 0 ? bytes.n == 0 : zn_http_is_known_method(start);
}

bool zn_http_has_request_line(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    head_state state;
    zn_http_request request;
    zn_span line;
    return zn_ascii_take_line(&c, &line) &&
           parse_request_line(line, ZN_HTTP_REGISTERED, &state, &request);
}

bool zn_http_has_other_method(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    zn_span line, word, target;
    skip_empty_lines(&c);
    return zn_ascii_take_line(&c, &line) && split_request_line(line, &word, &target) &&
           word.n != 0 && target.n != 0 && is_text(word) && !is_method(word);
}

static field_kind kind_of(zn_span name)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        zn_span known = {(const uint8_t *)fields[i].name.text, fields[i].name.n};
        if (zn_ascii_equal(name, known))
            return fields[i].kind;
    }
    return FIELD_OTHER;
}

static void set_content_length(zn_span value, head_state *state, zn_http_request *out)
{
    zn_cursor c = zn_cursor_over_span(value, true);
    uint64_t length = 0;
    bool number = value.n > 0;
    unsigned digits = 0; /* behind leading zeros */
    while (number && zn_cursor_left(&c) > 0) {
        uint8_t digit = zn_cursor_u8(&c);
        digits += digits != 0 || digit != '0';
        number = digit >= '0' && digit <= '9' && digits <= DIGITS_MAX;
        length = length * 10 + (uint64_t)(digit & 0x0f);
    }
    if (!number || (state->length_seen && length != out->body_bytes))
        state->length_unknown = true;
    state->length_seen = true;
    out->body_bytes = length;
}

/* The last of the codings says whether the body comes in chunks (RFC 9112 6.3). */
static void set_transfer_encoding(zn_span value, head_state *state, zn_http_request *out)
{
    zn_cursor c = zn_cursor_over_span(value, true);
    zn_span last = zn_ascii_take_until(&c, ',');
    while (zn_cursor_left(&c) > 0) {
        zn_cursor_skip(&c, 1);
        last = zn_ascii_take_until(&c, ',');
    }
    out->chunked =
        zn_ascii_equal(zn_ascii_trim(last), (zn_span){(const uint8_t *)chunked.text, chunked.n});
    state->coding_seen = true;
}

static void parse_field(zn_span line, head_state *state, zn_http_request *out)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    zn_span name = zn_ascii_take_until(&c, ':');
    zn_span value;

    state->last = FIELD_OTHER;
    if (zn_cursor_left(&c) == 0)
        return; /* no field: receivers skip or reject it */
    zn_cursor_skip(&c, 1);
    value = zn_ascii_trim(zn_cursor_rest(&c));
    state->last = kind_of(zn_ascii_trim(name));
    switch (state->last) {
    case FIELD_HOST:
        if (state->host_seen && !zn_ascii_equal(value, state->host))
            state->host_conflict = true;
        state->host_seen = true;
        state->host = value;
        break;
    case FIELD_CONTENT_LENGTH:
        set_content_length(value, state, out);
        break;
    case FIELD_TRANSFER_ENCODING:
        set_transfer_encoding(value, state, out);
        break;
    case FIELD_UPGRADE:
        out->switches = true;
        break;
    case FIELD_CONTENT_TYPE:
        out->dns_body = zn_doh_is_media_type(value);
        break;
    case FIELD_OTHER:
        break;
    }
}

/* Takes a folded line (RFC 9112 5.2). It is not read; the field that it continues is then not
 * known. */
static void parse_fold(head_state *state)
{
    if (state->last == FIELD_HOST)
        state->host_conflict = true;
    if (state->last == FIELD_CONTENT_LENGTH || state->last == FIELD_TRANSFER_ENCODING)
        state->length_unknown = true;
}

/* Takes the beginning of a line, at which a cut head ends: it may contradict the lines before
 * it. */
static void parse_unfinished(zn_span line, head_state *state)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    zn_span name = zn_ascii_take_until(&c, ':');
    if (line.n == 0)
        return;
    if (zn_ascii_is_blank(zn_ascii_first(line)))
        parse_fold(state);
    else if (state->host_seen && zn_cursor_left(&c) > 0 &&
             kind_of(zn_ascii_trim(name)) == FIELD_HOST)
        state->host_conflict = true;
}

/* Reads the fields up to the empty line; false when that is not there. */
static bool parse_fields(zn_cursor *c, head_state *state, zn_http_request *out)
{
    zn_cursor start = *c;
    zn_span line;
    for (; zn_ascii_take_line(c, &line); start = *c) {
        if (line.n == 0)
            return true;
        if (zn_ascii_is_blank(zn_ascii_first(line)))
            parse_fold(state);
        else
            parse_field(line, state, out);
    }
    if ((!state->cut && !out->too_long) || (!state->host_seen && state->authority.n == 0))
        return false;
    parse_unfinished(line, state);
    out->goes_on = !state->cut;
    if (out->goes_on)
        *c = start;
    out->no_content &= !state->length_seen && !state->coding_seen;
    state->length_unknown |= !out->no_content;
    return true;
}

/* Sets how the body ends, by the fields read. */
static void set_body(const head_state *state, zn_http_request *out)
{
    out->body_unknown = state->length_unknown || (state->coding_seen && !out->chunked);
    out->chunked &= !out->body_unknown;
    if (out->body_unknown || out->chunked)
        out->body_bytes = 0;
}

/* Returns the state of a head whose request line is not whole. `rest`: the line, maybe with a CR at
 * its end. `unfinished`: the state if the line may become a request line. */
static zn_parse parse_unfinished_request_line(zn_span line, zn_span rest, zn_http_methods allowed,
                                              zn_parse unfinished)
{
    bool may_be_any = allowed == ZN_HTTP_ANY && unfinished == ZN_NEED_MORE;
    if (line.n == 0 || !is_text(line))
        return ZN_OTHER;
    return zn_http_is_known_method(rest) || (may_be_any && may_be_request_line(line)) ? unfinished
                                                                                      : ZN_OTHER;
}

zn_parse zn_http_request_head(zn_span head, bool cut, zn_http_methods allowed, zn_http_request *out)
{
    zn_span bounded = {head.p, head.n < ZN_HTTP_HEAD_MAX ? head.n : ZN_HTTP_HEAD_MAX};
    zn_parse unfinished = head.n < ZN_HTTP_HEAD_MAX ? ZN_NEED_MORE : ZN_MALFORMED;
    zn_cursor c = zn_cursor_over_span(bounded, false);
    zn_http_request request = {.host = {head.p, 0}, .target = {head.p, 0}};
    head_state state = {.authority = {head.p, 0}, .host = {head.p, 0}, .cut = cut};
    zn_cursor start;
    zn_span line;

    request.too_long = head.n >= ZN_HTTP_HEAD_MAX;
    *out = request;
    skip_empty_lines(&c);
    start = c;
    if (!zn_ascii_take_line(&c, &line))
        return head.n == 0 ? unfinished
                           : parse_unfinished_request_line(line, zn_cursor_rest(&start), allowed,
                                                           unfinished);
    if (!parse_request_line(line, allowed, &state, &request))
        return ZN_OTHER;
    if (!parse_fields(&c, &state, &request))
        return unfinished;
    out->too_long = false;
    if (state.host_conflict)
        return ZN_MALFORMED;
    set_body(&state, &request);
    request.too_long = false;
    request.host = state.authority.n > 0 ? state.authority : state.host;
    request.head_bytes = bounded.n - zn_cursor_left(&c);
    *out = request;
    return ZN_DONE;
}

/* Returns true if a field says nothing about the host, or about where the request ends. */
static bool does_not_matter(zn_span name)
{
    field_kind kind = kind_of(zn_ascii_trim(name));
    return kind == FIELD_OTHER || kind == FIELD_CONTENT_TYPE;
}

/* Reads a line of which the end is not there. The content of most fields does not matter. */
static zn_parse read_begun_field(zn_span line, zn_http_rest *kind)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    zn_span name = zn_ascii_take_until(&c, ':');
    *kind = zn_ascii_is_blank(zn_ascii_first(line)) ? ZN_HTTP_REST_BODY : ZN_HTTP_REST_LINE;
    if (*kind == ZN_HTTP_REST_BODY || (zn_cursor_left(&c) > 0 && does_not_matter(name)))
        return ZN_DONE;
    if (line.n < FIELD_MAX)
        return ZN_NEED_MORE;
    if (zn_cursor_left(&c) > 0)
        *kind = ZN_HTTP_REST_BODY;
    return ZN_DONE;
}

zn_parse zn_http_next_field(zn_span bytes, bool inside, size_t *used, zn_http_rest *kind,
                            zn_span *host)
{
    zn_cursor c = zn_cursor_over_span(bytes, false), field;
    zn_span line, name;
    bool whole = zn_ascii_take_line(&c, &line);
    *used = bytes.n - zn_cursor_left(&c);
    *kind = inside && !whole ? ZN_HTTP_REST_LINE : ZN_HTTP_REST_FIELDS;
    if (inside)
        return bytes.n != 0 ? ZN_DONE : ZN_NEED_MORE;
    if (!whole)
        return read_begun_field(line, kind);
    if (line.n == 0) {
        *kind = ZN_HTTP_REST_END;
        return ZN_DONE;
    }
    field = zn_cursor_over_span(line, true);
    name = zn_ascii_take_until(&field, ':');
    if (zn_ascii_is_blank(zn_ascii_first(line))) {
        *kind = ZN_HTTP_REST_BODY;
    } else if (zn_cursor_left(&field) > 0 && !does_not_matter(name)) {
        zn_cursor_skip(&field, 1);
        *host = zn_ascii_trim(zn_cursor_rest(&field));
        *kind = kind_of(zn_ascii_trim(name)) == FIELD_HOST ? ZN_HTTP_REST_HOST : ZN_HTTP_REST_BODY;
    }
    return ZN_DONE;
}

zn_parse zn_http_user_agent(zn_span head, zn_span *agent)
{
    static const http_token name = TOKEN("user-agent");
    zn_cursor c = zn_cursor_over_span(head, true);
    bool is_found = false, is_agent = false;
    zn_span line;
    skip_empty_lines(&c);
    (void)zn_ascii_take_line(&c, &line); /* the request line */
    while (zn_ascii_take_line(&c, &line)) {
        zn_cursor field = zn_cursor_over_span(line, true);
        zn_span word;
        if (line.n == 0)
            return is_found ? ZN_DONE : ZN_OTHER;
        if (zn_ascii_is_blank(zn_ascii_first(line))) {
            if (is_agent)
                return ZN_MALFORMED;
            continue;
        }
        word = zn_ascii_trim(zn_ascii_take_until(&field, ':'));
        is_agent = zn_cursor_left(&field) > 0 &&
                   zn_ascii_equal(word, (zn_span){(const uint8_t *)name.text, name.n});
        if (!is_agent)
            continue;
        if (is_found)
            return ZN_MALFORMED;
        is_found = true;
        zn_cursor_skip(&field, 1);
        *agent = zn_ascii_trim(zn_cursor_rest(&field));
    }
    return ZN_MALFORMED;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* The value of a hexadecimal digit, 16 of any other byte. */
static uint32_t digit_of(uint8_t byte)
{
    uint8_t lower = zn_ascii_lower(byte);
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    return lower >= 'a' && lower <= 'f' ? 10u + lower - 'a' : 16u;
}

/* Reads a chunk's size, which an extension may follow after ';', from as much of its line as is
 * there. */
static zn_parse read_size(zn_span line, uint32_t *size)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    unsigned digits = 0;
    uint8_t byte = 0;
    *size = 0;
    while (zn_cursor_left(&c) > 0) {
        byte = zn_cursor_u8(&c);
        if (digit_of(byte) > 15)
            break;
        digits++;
        if (*size >> 4 * (CHUNK_DIGITS_MAX - 1) != 0)
            return ZN_OTHER;
        *size = *size << 4 | digit_of(byte);
        byte = 0;
    }
    if (byte != 0 && byte != ';' && byte != '\r' && !zn_ascii_is_blank(byte))
        return ZN_OTHER;
    return digits != 0 ? ZN_DONE : line.n == 0 ? ZN_NEED_MORE : ZN_OTHER;
}

zn_parse zn_http_chunk(zn_span bytes, uint32_t *used, bool *last)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    zn_span line;
    uint32_t size;
    bool whole = zn_ascii_take_line(&c, &line);
    zn_parse state = read_size(line, &size);
    if (state != ZN_DONE || line.n > CHUNK_LINE_MAX)
        return whole || state != ZN_NEED_MORE ? ZN_OTHER : ZN_NEED_MORE;
    if (!whole)
        return ZN_NEED_MORE;
    *last = size == 0;
    *used = (uint32_t)(bytes.n - zn_cursor_left(&c)) + size + (*last ? 0 : CRLF_BYTES);
    while (*last && line.n != 0) { /* at least a byte a turn */
        if (!zn_ascii_take_line(&c, &line))
            return bytes.n < CHUNK_TRAILERS_MAX ? ZN_NEED_MORE : ZN_OTHER;
        *used = (uint32_t)(bytes.n - zn_cursor_left(&c));
    }
    return ZN_DONE;
}

zn_parse zn_http_join_chunks(zn_span bytes, uint8_t *room, size_t most, zn_span *content,
                             bool *whole)
{
    *content = (zn_span){room, 0};
    *whole = true;
    for (;;) {
        zn_cursor c = zn_cursor_over_span(bytes, false);
        uint32_t used;
        bool last;
        zn_span line, part;
        size_t n;
        zn_parse state = zn_http_chunk(bytes, &used, &last);
        if (state != ZN_DONE || last)
            return state;
        (void)zn_ascii_take_line(&c, &line);
        n = used - CRLF_BYTES - (bytes.n - zn_cursor_left(&c));
        n = n < zn_cursor_left(&c) ? n : zn_cursor_left(&c);
        part = zn_cursor_take(&c, n < most - content->n ? n : most - content->n);
        if (part.n != 0)
            memcpy(room + content->n, part.p, part.n);
        content->n += part.n;
        *whole = content->n < most;
        if (!*whole)
            return ZN_DONE;
        if (used > bytes.n)
            return ZN_NEED_MORE;
        bytes = zn_span_after(bytes, used);
    }
}
