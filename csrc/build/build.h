/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builders turn the bytes of a message into bytes of the same length for an anonymized packet. A
 * builder gets an output of zeros and writes only the fields that its comment lists. A parser reads
 * each of these fields. Bytes of other fields, and bytes that cannot be read, stay zeros. Builders
 * know no flow and keep no state.
 */
#ifndef ZN_BUILD_BUILD_H
#define ZN_BUILD_BUILD_H

#include "util/cursor.h"

/* Parts of a message that may be shown. */
typedef struct zn_build_choice {
    bool name; /* names are shown in lower case; false: they are masked (zn_build_masked_name) */
    /* TLS versions, cipher suites, extension types, groups and ALPN are shown; false: a plain hello
     * (build/build_plain_hello.h) replaces the hello. */
    bool fingerprint;
} zn_build_choice;

/* Fills out[n] with the mask of a name: "x...x.invalid", or only 'x' below 10 bytes. Dots divide a
 * run of 'x' that is longer than a label may be (RFC 1035 2.3.4). The first dot comes after 62
 * bytes. */
void zn_build_masked_name(uint8_t *out, size_t n);

#endif
