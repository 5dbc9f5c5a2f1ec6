/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/http_body.h"

#include "proto/ascii.h"

#define DIGITS_MAX 7u /* a larger chunk is not followed */
#define LINE_MAX 256u /* a size and its extensions */
#define TRAILERS_MAX 4096u
#define CRLF_BYTES 2u

/* The value of a hexadecimal digit, 16 of any other byte. */
static uint32_t digit_of(uint8_t byte)
{
    uint8_t lower = zn_ascii_lower(byte);
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    return lower >= 'a' && lower <= 'f' ? 10u + lower - 'a' : 16u;
}

/* A size, which an extension may follow behind ';', as far as the line is there. */
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
        if (++digits > DIGITS_MAX)
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
    if (state != ZN_DONE || line.n > LINE_MAX)
        return whole || state != ZN_NEED_MORE ? ZN_OTHER : ZN_NEED_MORE;
    if (!whole)
        return ZN_NEED_MORE;
    *last = size == 0;
    *used = (uint32_t)(bytes.n - zn_cursor_left(&c)) + size + (*last ? 0 : CRLF_BYTES);
    while (*last && line.n != 0) { /* at least a byte a turn */
        if (!zn_ascii_take_line(&c, &line))
            return bytes.n < TRAILERS_MAX ? ZN_NEED_MORE : ZN_OTHER;
        *used = (uint32_t)(bytes.n - zn_cursor_left(&c));
    }
    return ZN_DONE;
}
