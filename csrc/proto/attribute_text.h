/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Text of an attribute: bytes from 0x21 to 0x7e only, so that it needs no escape in a log. */
#ifndef ZN_PROTO_ATTRIBUTE_TEXT_H
#define ZN_PROTO_ATTRIBUTE_TEXT_H

#include "util/cursor.h"

#define ZN_ATTRIBUTE_TEXT_MAX 253

/* Text of an attribute. */
typedef struct zn_attribute_text {
    uint8_t text[ZN_ATTRIBUTE_TEXT_MAX];
    uint8_t n;
    /* Bytes of the message that the text was made of; empty if they have no one place. Borrows. */
    zn_span place;
    bool is_cut;  /* the text has more bytes than it may have; its bytes mean nothing */
    bool is_host; /* set by the reader: the text is a host, which is normalised like a name */
} zn_attribute_text;

/* Appends a byte as it is. */
void zn_attribute_text_byte(zn_attribute_text *out, uint8_t byte);
/* Appends bytes of a message. Blanks, '%', '"', ',', '\' and bytes outside of ASCII's printable
 * bytes become '%' and two hexadecimal digits. */
void zn_attribute_text_put(zn_attribute_text *out, zn_span bytes);

#endif
