/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HPACK, the header compression of HTTP/2 (RFC 7541): a decoder whose dynamic table has the size
 * that a connection starts with. A peer may announce a larger one in its header blocks; the
 * connection cannot be followed from there on.
 */
#ifndef ZN_PROTO_HPACK_H
#define ZN_PROTO_HPACK_H

#include "util/cursor.h"

#define ZN_HPACK_BYTES 4096u                    /* SETTINGS_HEADER_TABLE_SIZE as it starts */
#define ZN_HPACK_ENTRIES (ZN_HPACK_BYTES / 32u) /* each counts 32 bytes and its text */

/* A field of the dynamic table: lengths of its name and value, which follow each other in the
 * text. */
typedef struct zn_hpack_entry {
    uint16_t name_bytes, value_bytes;
} zn_hpack_entry;

/* Dynamic table of a connection. For a new connection, zero it and call zn_hpack_start. */
typedef struct zn_hpack {
    uint32_t link; /* for the slab that holds it */
    uint16_t count;
    uint16_t text_bytes;
    uint16_t max_bytes;                     /* as the header blocks set it */
    zn_hpack_entry entry[ZN_HPACK_ENTRIES]; /* oldest first */
    uint8_t text[ZN_HPACK_BYTES];           /* names and values in the same order */
} zn_hpack;

/* Room for decoded text: one a parser thread, reused. */
typedef struct zn_hpack_scratch {
    uint8_t name[ZN_HPACK_BYTES], value[ZN_HPACK_BYTES];
} zn_hpack_scratch;

typedef struct zn_hpack_field {
    zn_span name, value; /* borrow the block, the scratch or the table until the next call */
} zn_hpack_field;

/* Empties the table. */
void zn_hpack_start(zn_hpack *table);

/*
 * Decodes the next field of a whole header block. ZN_DONE with *out, whose texts are cut after
 * ZN_HPACK_BYTES; ZN_OTHER at the block's end; ZN_MALFORMED when it is no HPACK, or the table was
 * made larger than ZN_HPACK_BYTES: its state is then lost.
 */
zn_parse zn_hpack_next(zn_hpack *table, zn_cursor *block, zn_hpack_scratch *scratch,
                       zn_hpack_field *out);

#endif
