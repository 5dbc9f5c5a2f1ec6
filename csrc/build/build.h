/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builders: from the bytes of a message to what an anonymized packet has in their place, of the
 * same length. A builder gets an output that is all zeros and writes only the fields that its
 * comment lists, each read by a parser: a byte that nobody listed stays zero. What it cannot read
 * it leaves zero. Builders know no flow and keep nothing.
 */
#ifndef ZN_BUILD_BUILD_H
#define ZN_BUILD_BUILD_H

#include "util/cursor.h"

/* What may be shown of a message. */
typedef struct zn_build_choice {
    bool name;        /* its names, in lower case; false: each is masked (zn_build_masked_name) */
    bool fingerprint; /* TLS: versions, cipher suites, extension types, groups, ALPN; false: GREASE
                         values (RFC 8701) in their place */
} zn_build_choice;

/* Fills out[n] with a name that stands for a masked one: "x...x.invalid", or, below 10 bytes, all
 * 'x'. A run of 'x' longer than a label may be (RFC 1035 2.3.4) has dots in it, the first after
 * 62. */
void zn_build_masked_name(uint8_t *out, size_t n);

#endif
