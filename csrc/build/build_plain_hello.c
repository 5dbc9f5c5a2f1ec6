/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build_plain_hello.h"

#include "build/build_name.h"

#define RANDOM_BYTES 32u

enum {
    VERSION_1_2 = 0x0303,
    DATAGRAM_VERSION_1_2 = 0xfefd,
    GREASE_SUITE = 0x0a0a, /* RFC 8701 */
    SERVER_NAME = 0,       /* types of extensions */
    PADDING = 21           /* RFC 7685 */
};

/* Lengths in bytes. */
enum {
    /* version, random, empty session ID, one cipher suite, one compression method */
    FIXED = 2 + RANDOM_BYTES + 1 + 4 + 2,
    LIST_LENGTH = 2, /* length of the extensions */
    EXTENSION_HEADER = 4,
    NAME_HEADERS = 9 /* bytes of server_name in front of the name */
};

static uint8_t *put_be16(uint8_t *out, size_t value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
    return out + 2;
}

/* Writes n bytes: the length of the extensions, server_name unless the name is empty, and padding
 * if there is room. */
static void put_extensions(zn_span name, bool disclosed, size_t n, uint8_t *out)
{
    const uint8_t *end = out + n;
    out = put_be16(out, n - LIST_LENGTH);
    if (name.n != 0) {
        out = put_be16(out, SERVER_NAME);
        out = put_be16(out, name.n + 5);
        out = put_be16(out, name.n + 3);
        out = put_be16(out + 1, name.n); /* behind the name type host_name, which is 0 */
        zn_build_host_name(name, disclosed, out);
        out += name.n;
    }
    if (out == end)
        return;
    out = put_be16(out, PADDING);
    (void)put_be16(out, (size_t)(end - out) - 2);
}

bool zn_build_plain_hello(zn_span name, bool disclosed, bool datagram, size_t n, uint8_t *out)
{
    size_t fixed = datagram ? FIXED + 1 : FIXED, rest = n - fixed, listed = rest;
    size_t named = name.n == 0 ? 0 : NAME_HEADERS + name.n;
    size_t least = LIST_LENGTH + (named == 0 ? EXTENSION_HEADER : named);
    if (n < fixed || (named != 0 && rest < least))
        return false;
    if (rest < least)
        listed = 0;
    else if (named != 0 && rest - least < EXTENSION_HEADER)
        listed = least;
    out = put_be16(out, datagram ? DATAGRAM_VERSION_1_2 : VERSION_1_2);
    out += RANDOM_BYTES + (datagram ? 2 : 1); /* session ID and cookie are empty */
    out = put_be16(out, 2);
    out = put_be16(out, GREASE_SUITE);
    *out = (uint8_t)(1 + rest - listed); /* compression methods, each 0 */
    out += 2 + rest - listed;
    if (listed != 0)
        put_extensions(name, disclosed, listed, out);
    return true;
}
