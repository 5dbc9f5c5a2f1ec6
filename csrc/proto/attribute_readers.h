/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of the attributes in util/attributes.h: each reads a whole message and writes the text of
 * its attribute.
 */
#ifndef ZN_PROTO_ATTRIBUTE_READERS_H
#define ZN_PROTO_ATTRIBUTE_READERS_H

#include "proto/attribute_text.h"
#include "util/attributes.h"
#include "util/cursor.h"

/* Read the attribute of a row. Return ZN_DONE with the text in *out, which is empty before;
 * ZN_OTHER if the message has no such attribute; or ZN_MALFORMED. */
#define ZN_ATTRIBUTE_READER(a, ID, word, column, message, reader, ...)                             \
    zn_parse zn_read_##reader(zn_span message, zn_attribute_text *out);
ZN_ATTRIBUTES(ZN_ATTRIBUTE_READER, )
#undef ZN_ATTRIBUTE_READER

/* Row of the table: a message, and the reader of its attribute. */
typedef struct zn_attribute_row {
    zn_exposing_message message;
    zn_parse (*read)(zn_span message, zn_attribute_text *out);
} zn_attribute_row;

/* Returns the row of an attribute. */
const zn_attribute_row *zn_attribute_row_of(unsigned attribute);

#endif
