/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/tls_suite.h"

#define RANDOM_BYTES 32u

enum { MESSAGE_SERVER_HELLO = 2, EXTENSION_SUPPORTED_VERSIONS = 43, VERSION_1_3 = 0x0304 };

/* Reads the extensions for the version that the server selected (RFC 8446 4.2.1). */
static void read_version(zn_cursor *c, zn_tls_choice *out)
{
    while (zn_cursor_left(c) > 0) {
        uint16_t type = zn_cursor_be16(c);
        zn_cursor data = zn_cursor_sub(c, zn_cursor_be16(c));
        if (type == EXTENSION_SUPPORTED_VERSIONS && zn_cursor_left(&data) == 2)
            out->version_1_3 = zn_cursor_be16(&data) == VERSION_1_3;
    }
}

zn_parse zn_tls_server_choice(zn_span handshake, zn_tls_choice *out)
{
    zn_cursor c = zn_cursor_over_span(handshake, false), body, extensions;
    uint8_t type = zn_cursor_u8(&c);
    *out = (zn_tls_choice){0};
    if (zn_cursor_ok(&c) && type != MESSAGE_SERVER_HELLO)
        return ZN_OTHER;
    body = zn_cursor_sub(&c, zn_cursor_be24(&c));
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    out->message_bytes = handshake.n - zn_cursor_left(&c);
    zn_cursor_skip(&body, 2 + RANDOM_BYTES);
    zn_cursor_skip(&body, zn_cursor_u8(&body)); /* session ID */
    out->suite = zn_cursor_be16(&body);
    zn_cursor_skip(&body, 1); /* compression method */
    if (zn_cursor_ok(&body) && zn_cursor_left(&body) > 0) {
        extensions = zn_cursor_sub(&body, zn_cursor_be16(&body));
        read_version(&extensions, out);
        if (!zn_cursor_ok(&extensions))
            return ZN_MALFORMED;
    }
    return zn_cursor_ok(&body) && zn_cursor_left(&body) == 0 ? ZN_DONE : ZN_MALFORMED;
}

bool zn_tls_suite_encrypts(uint16_t suite)
{
    static const struct {
        uint16_t first, last;
    } ranges[] = {
        {0x0003, 0x001b}, {0x001e, 0x002b}, {0x002f, 0x003a}, {0x003c, 0x0046}, {0x0067, 0x006d},
        {0x0084, 0x00af}, {0x00b2, 0x00b3}, {0x00b6, 0x00b7}, {0x00ba, 0x00c7}, {0x1301, 0x1307},
        {0xc002, 0xc005}, {0xc007, 0xc00a}, {0xc00c, 0xc00f}, {0xc011, 0xc014}, {0xc016, 0xc038},
        {0xc03c, 0xc0b3}, {0xc100, 0xc106}, {0xcca8, 0xccae}, {0xd001, 0xd003}, {0xd005, 0xd005},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (suite >= ranges[i].first && suite <= ranges[i].last)
            return true;
    return false;
}
