/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each form below reads the bytes down as its specification prints them and gives the length of the
 * prefix, or 0 when the bytes are something else.
 */
#include "proto/proxy_starttls_prefix.h"

#include "proto/ascii.h"
#include "proto/tls.h"

#define PROXY_LINE_MAX 107u /* HAProxy's PROXY protocol 2.1 */
#define PROXY_HEADER_BYTES 16u
#define SOCKS_TEXT_MAX 255u
#define TEXT_MAX 1024u /* commands before a hello that are looked through */

#define STARTS_WITH(c, literal) starts_with((c), literal, sizeof(literal) - 1)

/* Takes the bytes of a literal; false, and the cursor where it was, when others are there. */
static bool starts_with(zn_cursor *c, const char *literal, size_t n)
{
    zn_cursor at = *c;
    zn_span there = zn_cursor_take(&at, n);
    if (there.n != n || memcmp(there.p, literal, n) != 0)
        return false;
    *c = at;
    return true;
}

static size_t taken(const zn_cursor *c, zn_span bytes)
{
    return zn_cursor_ok(c) ? bytes.n - zn_cursor_left(c) : 0;
}

/* "PROXY TCP4 source destination port port" CRLF (PROXY protocol 2.1). */
static size_t proxy_line(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    zn_span line;
    if (!STARTS_WITH(&c, "PROXY "))
        return 0;
    if (!STARTS_WITH(&c, "TCP4 ") && !STARTS_WITH(&c, "TCP6 ") && !STARTS_WITH(&c, "UNKNOWN"))
        return 0;
    line = zn_ascii_take_until(&c, '\r');
    return line.n < PROXY_LINE_MAX && STARTS_WITH(&c, "\r\n") ? taken(&c, bytes) : 0;
}

/* The signature, version and command, family, and the length of the rest (PROXY protocol 2.2). */
static size_t proxy_header(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t version;
    size_t rest;
    if (!STARTS_WITH(&c, "\r\n\r\n\0\r\nQUIT\n"))
        return 0;
    version = zn_cursor_u8(&c) & 0xf0;
    zn_cursor_skip(&c, 1);
    rest = zn_cursor_be16(&c);
    return zn_cursor_ok(&c) && version == 0x20 ? PROXY_HEADER_BYTES + rest : 0;
}

/* Takes bytes up to and with a zero byte. */
static void skip_text(zn_cursor *c)
{
    zn_span text = zn_ascii_take_until(c, '\0');
    if (text.n > SOCKS_TEXT_MAX)
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    zn_cursor_skip(c, 1);
}

/* A CONNECT or BIND with an IPv4 address, a user, and in 4a a host (an address 0.0.0.x). */
static size_t socks4(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t number = zn_cursor_u8(&c), command = zn_cursor_u8(&c);
    uint16_t port = zn_cursor_be16(&c);
    uint32_t address = zn_cursor_be32(&c);
    skip_text(&c);
    if (address != 0 && address <= 0xff)
        skip_text(&c);
    if (number != 4 || command < 1 || command > 2 || port == 0)
        return 0;
    return taken(&c, bytes);
}

/* A SOCKS 5 request (RFC 1928 4). */
static size_t socks5_request(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t number = zn_cursor_u8(&c), command = zn_cursor_u8(&c), reserved = zn_cursor_u8(&c);
    switch (zn_cursor_u8(&c)) {
    case 1:
        zn_cursor_skip(&c, 4);
        break;
    case 3:
        zn_cursor_skip(&c, zn_cursor_u8(&c));
        break;
    case 4:
        zn_cursor_skip(&c, 16);
        break;
    default:
        return 0;
    }
    zn_cursor_skip(&c, 2); /* port */
    if (number != 5 || command < 1 || command > 3 || reserved != 0)
        return 0;
    return taken(&c, bytes);
}

/* The methods a SOCKS 5 client offers (RFC 1928 3). */
static size_t socks5_greeting(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t number = zn_cursor_u8(&c), methods = zn_cursor_u8(&c);
    zn_cursor_skip(&c, methods);
    return number == 5 && methods != 0 ? taken(&c, bytes) : 0;
}

/* User name and password for SOCKS 5 (RFC 1929), if a SOCKS 5 request or nothing follows. */
static size_t socks5_password(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t number = zn_cursor_u8(&c), user = zn_cursor_u8(&c);
    uint8_t next;
    size_t used;
    zn_cursor_skip(&c, user);
    zn_cursor_skip(&c, zn_cursor_u8(&c));
    used = taken(&c, bytes);
    next = zn_cursor_left(&c) > 0 ? zn_cursor_u8(&c) : 5;
    return number == 1 && user != 0 && next == 5 ? used : 0;
}

/* SSLRequest and GSSENCRequest (PostgreSQL 55.7). */
static size_t postgresql(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint32_t length = zn_cursor_be32(&c), code = zn_cursor_be32(&c);
    return length == 8 && (code == 0x04d2162f || code == 0x04d21630) ? taken(&c, bytes) : 0;
}

/* A handshake response that ends before the user name, because the capability SSL is set. */
static size_t mysql(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    size_t length = zn_cursor_le16(&c);
    uint16_t number = zn_cursor_be16(&c); /* length's high byte, sequence number */
    uint16_t capabilities = zn_cursor_le16(&c);
    if ((length != 32 && length != 5) || number == 0 || number > 2 || (capabilities & 0x0800) == 0)
        return 0;
    zn_cursor_skip(&c, length == 32 ? 7 : 3); /* more capabilities, packet size, character set */
    for (unsigned i = 0; i < 19 && length == 32; i++)
        if (zn_cursor_u8(&c) != 0)
            return 0;
    zn_cursor_skip(&c, length == 32 ? 4 : 0); /* MariaDB's capabilities */
    return taken(&c, bytes);
}

/* An X.224 connection request in a TPKT (RFC 1006, MS-RDPBCGR 2.2.1.1). */
static size_t rdp(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint16_t version = zn_cursor_be16(&c);
    size_t length = zn_cursor_be16(&c);
    size_t header = zn_cursor_u8(&c);
    uint8_t kind = zn_cursor_u8(&c);
    if (!zn_cursor_ok(&c) || version != 0x0300 || length < 11 || header + 5 > length)
        return 0;
    return kind == 0xe0 ? length : 0;
}

/* TDS packets carry the records of the handshake (MS-TDS 2.2.3.1); only a hello in one is
 * looked for. */
static size_t tds(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint16_t start = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 6);
    if ((start != 0x1200 && start != 0x1201) || zn_cursor_left(&c) == 0)
        return 0;
    return zn_cursor_u8(&c) == ZN_TLS_CONTENT_HANDSHAKE ? taken(&c, bytes) - 1 : 0;
}

/* A BER length of at most two bytes (X.690 8.1.3). */
static size_t ber_length(zn_cursor *c)
{
    uint8_t first = zn_cursor_u8(c);
    if (first < 0x80)
        return first;
    if (first == 0x81)
        return zn_cursor_u8(c);
    return first == 0x82 ? zn_cursor_be16(c) : SIZE_MAX;
}

/* The extended request StartTLS (RFC 4511 4.12, 4.14.1). */
static size_t ldap(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true), message, request;
    if (zn_cursor_u8(&c) != 0x30)
        return 0;
    message = zn_cursor_sub(&c, ber_length(&c));
    if (zn_cursor_u8(&message) != 2)
        return 0;
    zn_cursor_skip(&message, ber_length(&message));
    if (zn_cursor_u8(&message) != 0x77)
        return 0;
    request = zn_cursor_sub(&message, ber_length(&message));
    if (zn_cursor_u8(&request) != 0x80 || ber_length(&request) != 22)
        return 0;
    return STARTS_WITH(&request, "1.3.6.1.4.1.1466.20037") ? taken(&c, bytes) : 0;
}

/* True when the text asks for TLS, in whichever of the protocols that do it by a word. */
static bool asks_for_tls(zn_span text)
{
    static const struct {
        const char *text;
        size_t n;
    } words[] = {{"STARTTLS", 8}, {"STLS", 4}, {"AUTH TLS", 8}, {"AUTH SSL", 8}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        zn_span word = {(const uint8_t *)words[i].text, words[i].n};
        for (size_t at = 0; at + word.n <= text.n; at++)
            if (zn_ascii_equal(zn_ascii_part(text, at, at + word.n), word))
                return true;
    }
    return false;
}

/* Commands in plain text, the last of which asks for TLS, right before a record. */
static size_t text_commands(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    size_t n = 0, line = 0; /* bytes of text; where its last line or element begins */
    uint8_t byte = 0, before = 0;
    while (zn_cursor_left(&c) > 0 && n < TEXT_MAX) {
        byte = zn_cursor_u8(&c);
        if (byte == ZN_TLS_CONTENT_HANDSHAKE || byte >= 0x7f ||
            (byte < 0x20 && byte != '\r' && byte != '\n'))
            break;
        if ((before == '\n' && byte != '\r' && byte != '\n') || byte == '<')
            line = n;
        before = byte;
        n++;
    }
    if (byte != ZN_TLS_CONTENT_HANDSHAKE || n == 0 || (before != '\n' && before != '>'))
        return 0;
    return asks_for_tls(zn_ascii_part(bytes, line, n)) ? n : 0;
}

static size_t socks5(zn_span bytes)
{
    size_t used = socks5_request(bytes);
    return used != 0 ? used : socks5_greeting(bytes);
}

/* The record before the second hello of TLS 1.3 (RFC 8446 D.4), which is the first hello of a
 * stream whose start was not captured. */
static size_t change_cipher(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    return STARTS_WITH(&c, "\x14\3\3\0\1\1") ? taken(&c, bytes) : 0;
}

/* The forms whose first byte is always the same. */
static size_t binary(zn_span bytes)
{
    switch (zn_ascii_first(bytes)) {
    case 0:
        return postgresql(bytes);
    case 1:
        return socks5_password(bytes);
    case 3:
        return rdp(bytes);
    case 4:
        return socks4(bytes);
    case 5:
        return socks5(bytes);
    case '\r':
        return proxy_header(bytes);
    case 0x12:
        return tds(bytes);
    case 0x14:
        return change_cipher(bytes);
    case 0x30:
        return ldap(bytes);
    case 'P':
        return proxy_line(bytes);
    default:
        return 0;
    }
}

zn_parse zn_proxy_or_starttls_prefix_skip(zn_span bytes, size_t *used)
{
    *used = mysql(bytes);
    if (*used == 0)
        *used = binary(bytes);
    if (*used == 0)
        *used = text_commands(bytes);
    return *used != 0 ? ZN_DONE : ZN_OTHER;
}
