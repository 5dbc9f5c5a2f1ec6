/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/sip.h"

#include "proto/ascii.h"
#include "proto/attribute_readers.h"

#define IS(text, literal)                                                                          \
    zn_ascii_equal((text), (zn_span){(const uint8_t *)(literal), sizeof(literal) - 1})

/* Takes the bytes before the next blank, and the blank. */
static zn_span take_word(zn_cursor *c)
{
    zn_span word = zn_ascii_take_until(c, ' ');
    zn_cursor_skip(c, 1);
    return word;
}

static bool is_method(zn_span method)
{
    zn_cursor c = zn_cursor_over_span(method, true);
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < 'A' || byte > 'Z')
            return false;
    }
    return method.n != 0;
}

/* Returns true for a method of a request that is not sent within a call: the URI of a request
 * within a call is the address of a telephone. */
static bool begins_call(zn_span method)
{
    return IS(method, "REGISTER") || IS(method, "INVITE") || IS(method, "OPTIONS") ||
           IS(method, "SUBSCRIBE") || IS(method, "MESSAGE") || IS(method, "PUBLISH");
}

/* ---- the request line ------------------------------------------------------------------------ */

/* Returns the bytes before the first of the bytes that end the host of a URI. */
static zn_span host_part(zn_span rest)
{
    static const uint8_t ends[] = {':', ';', '?'};
    size_t n = rest.n;
    if (zn_ascii_first(rest) == '[') /* an IPv6 address has colons */
        return zn_span_first(rest, zn_span_find(rest, ']') + 1);
    for (size_t i = 0; i < sizeof ends; i++) {
        size_t at = zn_span_find(rest, ends[i]);
        n = at < n ? at : n;
    }
    return zn_span_first(rest, n);
}

/* Finds the host of a URI (RFC 3261 19.1.1). A second '@' leaves open where the user ends. */
static zn_parse host_of(zn_span uri, zn_span *host)
{
    size_t colon = zn_span_find(uri, ':'), at;
    zn_span scheme = zn_span_first(uri, colon), rest;
    if (!IS(scheme, "sip") && !IS(scheme, "sips"))
        return ZN_OTHER;
    if (colon == uri.n)
        return ZN_MALFORMED;
    rest = zn_span_after(uri, colon + 1);
    at = zn_span_find(rest, '@');
    if (at != rest.n) {
        rest = zn_span_after(rest, at + 1);
        if (zn_span_find(rest, '@') != rest.n)
            return ZN_MALFORMED;
    }
    *host = host_part(rest);
    return host->n != 0 ? ZN_DONE : ZN_MALFORMED;
}

zn_parse zn_sip_request_host(zn_span bytes, zn_span *host)
{
    zn_cursor c = zn_cursor_over_span(bytes, true), words;
    zn_span line, method, uri;
    bool whole = zn_ascii_take_line(&c, &line);
    words = zn_cursor_over_span(line, true);
    method = take_word(&words);
    if (!is_method(method) || !begins_call(method))
        return ZN_OTHER;
    uri = take_word(&words);
    if (!zn_cursor_ok(&words))
        return ZN_MALFORMED;
    if (!IS(zn_cursor_rest(&words), "SIP/2.0"))
        return ZN_OTHER;
    return whole ? host_of(uri, host) : ZN_MALFORMED;
}

zn_parse zn_read_sip(zn_span message, zn_attribute_text *out)
{
    zn_span host;
    zn_parse result = zn_sip_request_host(message, &host);
    if (result != ZN_DONE)
        return result;
    out->is_host = true;
    out->place = host;
    zn_attribute_text_put(out, host);
    return ZN_DONE;
}

/* ---- the head -------------------------------------------------------------------------------- */

/* Returns true if a line begins a message: a request line or a status line. */
static bool begins_message(zn_span line, bool *is_response)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    zn_span first = take_word(&c);
    *is_response = IS(first, "SIP/2.0");
    if (*is_response)
        return zn_cursor_ok(&c);
    (void)take_word(&c); /* URI */
    return zn_cursor_ok(&c) && is_method(first) && IS(zn_cursor_rest(&c), "SIP/2.0");
}

/* Sets a value that the head may have once. */
static bool set_once(zn_span *value, zn_span found)
{
    if (value->n != 0 || found.n == 0)
        return false;
    *value = found;
    return true;
}

zn_parse zn_sip_read(zn_span bytes, zn_sip_message *out)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    zn_span line;
    memset(out, 0, sizeof *out);
    if (!zn_ascii_take_line(&c, &line) || !begins_message(line, &out->is_response))
        return ZN_OTHER;
    while (zn_ascii_take_line(&c, &line)) {
        zn_cursor field = zn_cursor_over_span(line, true);
        zn_span name = zn_ascii_trim(zn_ascii_take_until(&field, ':')), value;
        bool fits = true;
        if (line.n == 0)
            return out->call_id.n != 0 && out->sequence.n != 0 ? ZN_DONE : ZN_MALFORMED;
        zn_cursor_skip(&field, zn_cursor_left(&field) > 0);
        value = zn_ascii_trim(zn_cursor_rest(&field));
        if (IS(name, "Call-ID") || IS(name, "i"))
            fits = set_once(&out->call_id, value);
        else if (IS(name, "CSeq"))
            fits = set_once(&out->sequence, value);
        if (!fits)
            return ZN_MALFORMED;
    }
    return ZN_MALFORMED;
}
