/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build_dtls.h"

#include "proto/dtls.h"

#define RECORD_HEADER_BYTES 13u
#define FRAGMENT_HEADER_BYTES 12u
#define SEQUENCE_AT 9u /* offset of the last two bytes of a record's sequence number */
#define LENGTH_AT 11u

/* Returns the hello of the fragment, or NULL. */
static const zn_build_dtls_hello *hello_of(const zn_dtls_fragment *part,
                                           const zn_build_dtls_hello *hellos, size_t n)
{
    for (size_t i = 0; i < n && part->type == ZN_DTLS_CLIENT_HELLO && !part->cut; i++)
        if (hellos[i].message == part->message && hellos[i].body.n == part->length)
            return &hellos[i];
    return NULL;
}

/* Writes the header of the record that lies at the start of `header`: a handshake record of epoch 0
 * that zn_dtls_next_fragment has read. */
static void put_record(zn_span header, uint8_t *out)
{
    memcpy(out, header.p, 3);
    memcpy(out + SEQUENCE_AT, zn_span_after(header, SEQUENCE_AT).p,
           RECORD_HEADER_BYTES - SEQUENCE_AT);
}

/* Writes a fragment: its header, whose fields have been read, and its part of the hello. */
static void put_fragment(zn_span header, const zn_dtls_fragment *part, zn_span body, uint8_t *out)
{
    zn_span bytes = zn_span_part(body, part->offset, part->offset + part->bytes.n);
    memcpy(out, header.p, FRAGMENT_HEADER_BYTES);
    memcpy(out + FRAGMENT_HEADER_BYTES, bytes.p, bytes.n);
}

bool zn_build_dtls_datagram(zn_span datagram, const zn_build_dtls_hello *hellos, size_t n,
                            uint8_t *out)
{
    zn_dtls_reader reader = zn_dtls_read(datagram, true);
    zn_dtls_fragment part;
    size_t record_end = 0, at = 0; /* end of the entered record; end of the written bytes */
    while (zn_dtls_next_fragment(&reader, &part) == ZN_DONE) {
        const zn_build_dtls_hello *hello = hello_of(&part, hellos, n);
        bool enters = at == record_end;
        size_t start = at + (enters ? RECORD_HEADER_BYTES : 0);
        size_t end = zn_span_offset(datagram, part.bytes) + part.bytes.n;
        /* Other records may lie before this fragment. The place of an empty fragment is unknown. */
        if (hello == NULL || part.bytes.n == 0 ||
            end != start + FRAGMENT_HEADER_BYTES + part.bytes.n)
            break;
        if (enters) {
            put_record(zn_span_part(datagram, at, start), out + at);
            record_end = start + zn_header_be16(zn_span_part(datagram, at, start), LENGTH_AT);
        }
        put_fragment(zn_span_after(datagram, start), &part, hello->body, out + start);
        at = end;
    }
    return at != 0;
}
