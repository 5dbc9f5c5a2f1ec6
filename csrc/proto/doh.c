/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/doh.h"

#include "proto/ascii.h"

#define BITS_OF_DIGIT 6u
#define NO_DIGIT 64u

bool zn_doh_is_media_type(zn_span value)
{
    static const char dns[] = "application/dns-message";
    zn_cursor c = zn_cursor_over_span(value, true);
    return zn_ascii_equal(zn_ascii_trim(zn_ascii_take_until(&c, ';')),
                          (zn_span){(const uint8_t *)dns, sizeof dns - 1});
}

/* Returns the value of a digit of base64url, or NO_DIGIT. */
static uint32_t digit_of(uint8_t byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return byte - 'A';
    if (byte >= 'a' && byte <= 'z')
        return byte - 'a' + 26u;
    if (byte >= '0' && byte <= '9')
        return byte - '0' + 52u;
    return byte == '-' ? 62 : byte == '_' ? 63 : NO_DIGIT;
}

/* Decodes base64url. Padding ends the text. */
static zn_span decode(zn_cursor c, uint8_t *message, bool *whole)
{
    zn_span none = {message, 0};
    uint32_t word = 0, bits = 0;
    size_t n = 0;
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte == '=')
            break;
        if (digit_of(byte) == NO_DIGIT)
            return none;
        word = word << BITS_OF_DIGIT | digit_of(byte);
        bits += BITS_OF_DIGIT;
        if (bits < 8)
            continue;
        *whole = n < ZN_DOH_MESSAGE_MAX;
        if (!*whole)
            break;
        bits -= 8;
        message[n++] = (uint8_t)(word >> bits);
    }
    return (zn_span){message, n};
}

zn_span zn_doh_parameter(zn_span target, uint8_t *message, bool *whole)
{
    static const char name[] = "dns=";
    zn_span wanted = {(const uint8_t *)name, sizeof name - 1};
    zn_cursor c = zn_cursor_over_span(target, true);
    *whole = true;
    (void)zn_ascii_take_until(&c, '?');
    while (zn_cursor_left(&c) > 0) {
        zn_cursor parameter;
        zn_cursor_skip(&c, 1);
        parameter = zn_cursor_over_span(zn_ascii_take_until(&c, '&'), true);
        if (zn_span_equal(zn_cursor_take(&parameter, wanted.n), wanted))
            return decode(parameter, message, whole);
    }
    return (zn_span){message, 0};
}
