/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Records and released names that outlive their flows. */
#ifndef ZN_RELEASE_RECORD_COPY_H
#define ZN_RELEASE_RECORD_COPY_H

#include "analyzer/hostname.h"
#include "release/record.h"

/* The texts that a record borrows: a name, one from DNS, one in a certificate, a user agent, an
 * HTTP status. */
typedef struct zn_record_texts {
    uint8_t text[4][ZN_HOSTNAME_MAX];
    uint8_t status[4];
} zn_record_texts;

/* Copies the texts that the record borrows into *texts, which it then borrows instead. */
void zn_record_copy(zn_record *r, zn_record_texts *texts);

/* Most bytes that zn_record_pack and zn_release_pack write. */
#define ZN_RECORD_PACKED_MAX (sizeof(zn_record) + sizeof(zn_record_texts))

/* Writes the record and its texts to `to`, without the parts of its sides that are zero. Returns
 * the number of bytes. */
size_t zn_record_pack(const zn_record *r, uint8_t *to);
/* Reads into *r what zn_record_pack wrote to `from`; *r borrows its texts from there. *r holds a
 * record, or zeros, before. */
void zn_record_unpack(const uint8_t *from, zn_record *r);

/* Pack and unpack a released name in the same way as a record. */
size_t zn_release_pack(const zn_release *r, uint8_t *to);
void zn_release_unpack(const uint8_t *from, zn_release *r);

#endif
