/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Records and released names that outlive their flows. */
#ifndef ZN_RELEASE_RECORD_COPY_H
#define ZN_RELEASE_RECORD_COPY_H

#include "analyzer/hostname.h"
#include "release/record.h"

/* The texts that a record borrows: a name, one from DNS, one in a certificate, a user agent, an
 * HTTP status, the attributes. */
typedef struct zn_record_texts {
    uint8_t text[4 + ZN_ATTRIBUTE_COUNT][ZN_HOSTNAME_MAX];
    uint8_t status[4];
} zn_record_texts;

/* Copies the texts that the record borrows into *texts, which it then borrows instead. */
void zn_record_copy(zn_record *r, zn_record_texts *texts);

/* Most bytes that zn_record_pack and zn_release_pack write. */
#define ZN_RECORD_PACKED_MAX (sizeof(zn_record) + sizeof(zn_record_texts))

/*
 * Members of a coarse record that can be other than zero: X(argument, form, name, member). `form`
 * says how a packed record contains the member:
 *
 *   SMALL   a byte
 *   TEXT    a byte for its length; its bytes follow the record
 *   COUNT   a byte for the power that coarse counts are rounded to
 *   MINUTE  32 bits for a time that is a multiple of ZN_COARSE_TIME_NS
 *   WHOLE   the member as it is
 */
#define ZN_COARSE_MEMBERS(X, a)                                                                    \
    X(a, SMALL, proto, proto)                                                                      \
    X(a, SMALL, complete, complete)                                                                \
    X(a, SMALL, midstream, midstream)                                                              \
    X(a, SMALL, unmeasured, unmeasured)                                                            \
    X(a, SMALL, source, source)                                                                    \
    X(a, SMALL, status, status)                                                                    \
    X(a, SMALL, name_level, name_level)                                                            \
    X(a, SMALL, client_disclosure, client.disclosure)                                              \
    X(a, SMALL, client_internal, client.internal)                                                  \
    X(a, SMALL, server_internal, server.internal)                                                  \
    X(a, SMALL, client_udp_type, client.udp_type)                                                  \
    X(a, SMALL, server_udp_type, server.udp_type)                                                  \
    X(a, TEXT, name, name)                                                                         \
    X(a, TEXT, fqdn, fqdn)                                                                         \
    X(a, COUNT, client_packets, client.packets)                                                    \
    X(a, COUNT, server_packets, server.packets)                                                    \
    X(a, COUNT, client_packets_data, client.packets_data)                                          \
    X(a, COUNT, server_packets_data, server.packets_data)                                          \
    X(a, COUNT, client_bytes_all, client.bytes_all)                                                \
    X(a, COUNT, server_bytes_all, server.bytes_all)                                                \
    X(a, COUNT, client_bytes_unique, client.bytes_unique)                                          \
    X(a, COUNT, server_bytes_unique, server.bytes_unique)                                          \
    X(a, WHOLE, client_port, client.port)                                                          \
    X(a, WHOLE, server_port, server.port)                                                          \
    X(a, MINUTE, first, first_ns)                                                                  \
    X(a, MINUTE, last, last_ns)                                                                    \
    X(a, MINUTE, closed, closed_ns)                                                                \
    X(a, WHOLE, epoch, epoch)                                                                      \
    X(a, WHOLE, client_addr, client.addr)

/* Writes the record and its texts to `to`, without the parts of its sides that are zero. A coarse
 * record takes one cache line without its texts. Returns the number of bytes. */
size_t zn_record_pack(const zn_record *r, uint8_t *to);
/* Reads into *r what zn_record_pack wrote to `from`; *r borrows its texts from there. *r holds a
 * record, or zeros, before. */
void zn_record_unpack(const uint8_t *from, zn_record *r);

/* Pack and unpack a released name in the same way as a record. */
size_t zn_release_pack(const zn_release *r, uint8_t *to);
void zn_release_unpack(const uint8_t *from, zn_release *r);

#endif
