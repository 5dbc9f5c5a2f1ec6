/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Records that outlive their flows. */
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

#endif
