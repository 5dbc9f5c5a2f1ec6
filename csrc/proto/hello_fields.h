/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a whole ClientHello of TLS (RFC 8446 4.1.2) or DTLS (RFC 9147 5.3), for readers of
 * attributes. */
#ifndef ZN_PROTO_HELLO_FIELDS_H
#define ZN_PROTO_HELLO_FIELDS_H

#include "util/cursor.h"

typedef struct zn_hello_fields {
    uint16_t version;     /* legacy_version */
    zn_span suites;       /* two bytes each */
    zn_cursor extensions; /* to be read by zn_hello_extension */
} zn_hello_fields;

/* Reads the body of a ClientHello, from its version on. Returns ZN_DONE or ZN_MALFORMED. */
zn_parse zn_hello_fields_read(zn_span body, zn_hello_fields *out);

/* Returns true for a hello of DTLS, whose versions count down from 0xfeff. */
static inline bool zn_hello_is_datagram(const zn_hello_fields *hello)
{
    return hello->version >> 8 == 0xfe;
}

/* Reads the next extension; *data is a cursor over its data. Returns false at the end of the
 * extensions, and if an extension is damaged: *extensions has failed then. */
bool zn_hello_extension(zn_cursor *extensions, uint16_t *type, zn_cursor *data);

/* Returns true for a value that clients send so that servers ignore unknown values (RFC 8701). */
static inline bool zn_is_grease(uint16_t value)
{
    return (value & 0x0f0f) == 0x0a0a && value >> 8 == (value & 0xff);
}

#endif
