/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/resemblance.h"

#include "proto/ascii.h"

/* Content types of TLS records: change_cipher_spec to heartbeat (RFC 8446 5.1, RFC 6520 3); of
 * DTLS also tls12_cid and ACK (RFC 9146 3, RFC 9147 7). */
#define CONTENT_TYPE_MIN 20
#define CONTENT_TYPE_HANDSHAKE 22
#define CONTENT_TYPE_TLS_MAX 24
#define CONTENT_TYPE_DTLS_MAX 26
#define LINE_MAX 512 /* bytes of a first line that are looked at */

static bool resembles_tls(zn_span bytes, uint8_t type_min, uint8_t type_max)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t type = zn_cursor_u8(&c), major = zn_cursor_u8(&c);
    return zn_cursor_ok(&c) && type >= type_min && type <= type_max && major == 3;
}

bool zn_resembles_tls_handshake(zn_span bytes)
{
    return resembles_tls(bytes, CONTENT_TYPE_HANDSHAKE, CONTENT_TYPE_HANDSHAKE);
}

/* Passes over a byte order mark, line ends and blanks. */
static void skip_before_line(zn_cursor *c)
{
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf};
    zn_cursor next = *c;
    zn_span start = zn_cursor_take(&next, sizeof mark);
    if (start.n != 0 && memcmp(start.p, mark, sizeof mark) == 0)
        *c = next;
    for (next = *c; zn_cursor_left(&next) > 0; *c = next) {
        uint8_t byte = zn_cursor_u8(&next);
        if (byte != '\r' && byte != '\n' && !zn_ascii_is_blank(byte))
            return;
    }
}

/* Returns true if the text holds `http/`, in any case. */
static bool names_http(zn_span text)
{
    static const uint8_t version[] = {'h', 't', 't', 'p', '/'};
    for (size_t at = 0; at + sizeof version <= text.n; at++)
        if (zn_ascii_equal(zn_ascii_part(text, at, at + sizeof version),
                           (zn_span){version, sizeof version}))
            return true;
    return false;
}

/* Returns true if the text is one of the methods of RFC 9110 9.3 or PATCH, in any case. */
static bool is_method(zn_span text)
{
    static const char methods[] = "GET POST HEAD PUT DELETE OPTIONS CONNECT TRACE PATCH ";
    zn_cursor c = zn_cursor_over((const uint8_t *)methods, sizeof methods - 1, true);
    while (zn_cursor_left(&c) > 0) {
        if (zn_ascii_equal(text, zn_ascii_take_until(&c, ' ')))
            return true;
        zn_cursor_skip(&c, 1);
    }
    return false;
}

/* Returns the bytes after the last blank of a line. */
static zn_span last_word(zn_span line)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    size_t start = 0;
    for (size_t i = 1; zn_cursor_left(&c) > 0; i++)
        if (zn_ascii_is_blank(zn_cursor_u8(&c)))
            start = i;
    return zn_ascii_part(line, start, line.n);
}

/* Returns true if the last word of a line is the version of another protocol with HTTP's syntax,
 * such as RTSP/1.0 or SIP/2.0: capitals, a slash and a digit. */
static bool ends_with_other_version(zn_span line)
{
    zn_cursor c = zn_cursor_over_span(last_word(zn_ascii_trim(line)), true);
    zn_span word = zn_ascii_take_until(&c, '/');
    zn_cursor letters = zn_cursor_over_span(word, true);
    while (zn_cursor_left(&letters) > 0) {
        uint8_t byte = zn_cursor_u8(&letters);
        if (byte < 'A' || byte > 'Z')
            return false;
    }
    zn_cursor_skip(&c, 1);
    return word.n > 0 && zn_cursor_left(&c) > 0 && (uint8_t)(zn_cursor_u8(&c) - '0') <= 9;
}

/* Returns the bytes before the first blank of a line; *more: there is one. */
static zn_span first_word(zn_span line, bool *more)
{
    zn_cursor c = zn_cursor_over_span(line, true);
    for (size_t i = 0; zn_cursor_left(&c) > 0; i++) {
        *more = zn_ascii_is_blank(zn_cursor_u8(&c));
        if (*more)
            return zn_ascii_part(line, 0, i);
    }
    *more = false;
    return line;
}

/* Takes the first line of the bytes, or as much of the line as is looked at. Returns true if the
 * line is whole. */
static bool take_first_line(zn_span bytes, zn_span *line)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    skip_before_line(&c);
    c = zn_cursor_over_span(zn_span_first(zn_cursor_rest(&c), LINE_MAX), true);
    return zn_ascii_take_line(&c, line);
}

/* Returns true if the text starts with one of the words, each of which ends with a blank, in any
 * case. */
static bool starts_with_one(zn_span text, const char *words, size_t n)
{
    zn_cursor c = zn_cursor_over((const uint8_t *)words, n, true);
    while (zn_cursor_left(&c) > 0) {
        zn_span word = zn_ascii_take_until(&c, ' ');
        if (zn_ascii_equal(zn_span_first(text, word.n), word))
            return true;
        zn_cursor_skip(&c, 1);
    }
    return false;
}

/* Returns true if a whole line ends with the version of SIP, RTSP or ICAP. */
static bool is_other_request(zn_span line)
{
    static const char versions[] = "SIP/ RTSP/ ICAP/ ";
    return ends_with_other_version(line) &&
           starts_with_one(last_word(zn_ascii_trim(line)), versions, sizeof versions - 1);
}

/* Returns true if the second word of a line is an address of SIP, RTSP or ICAP. */
static bool has_other_target(zn_span line)
{
    static const char schemes[] = "sip: sips: tel: rtsp: rtsps: rtspu: icap: icaps: ";
    zn_cursor c = zn_cursor_over_span(line, true);
    bool more;
    zn_cursor_skip(&c, first_word(line, &more).n);
    return more && starts_with_one(zn_ascii_trim(zn_cursor_rest(&c)), schemes, sizeof schemes - 1);
}

bool zn_resembles_other_request(zn_span bytes)
{
    zn_span line;
    return take_first_line(bytes, &line) ? is_other_request(line) : has_other_target(line);
}

static bool resembles_request(zn_span bytes)
{
    zn_span line, word;
    bool more;
    if (take_first_line(bytes, &line) && is_other_request(line))
        return false;
    if (names_http(line))
        return true;
    word = first_word(line, &more);
    return more && is_method(word) && !ends_with_other_version(line);
}

bool zn_resembles_tcp_message(zn_span bytes)
{
    return resembles_tls(bytes, CONTENT_TYPE_MIN, CONTENT_TYPE_TLS_MAX) || resembles_request(bytes);
}

bool zn_resembles_dtls(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t type = zn_cursor_u8(&c), major = zn_cursor_u8(&c), minor = zn_cursor_u8(&c);
    return zn_cursor_ok(&c) && type >= CONTENT_TYPE_MIN && type <= CONTENT_TYPE_DTLS_MAX &&
           major == 0xfe && minor >= 0xfc;
}
