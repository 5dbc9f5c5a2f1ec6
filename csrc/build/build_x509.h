/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A synthetic certificate (RFC 5280 4.1, in DER, X.690) of a given length, in the place of a real
 * one. Nothing in it comes from the real one but its length and, where the caller says so, a name:
 *
 *   version         v3            validity     2000-01-01 to 2049-12-31
 *   serial number   1             subject      the common name, or empty
 *   signature       Ed25519,      public key   Ed25519, zeros
 *                   zeros         extensions   one, of type 2.999.1 (an arc for examples), zeros
 *   issuer          CN=invalid
 */
#ifndef ZN_BUILD_BUILD_X509_H
#define ZN_BUILD_BUILD_X509_H

#include "util/cursor.h"

#define ZN_BUILD_X509_NAME_MAX 255

/* Bytes from which on there is a certificate of every length, but 65,540: DER has no element that
 * long, as a content of 65,536 bytes has a longer length field than one of 65,535. */
#define ZN_BUILD_X509_MIN(name_bytes) ((size_t)260 + (name_bytes))

/*
 * Writes a certificate of exactly n bytes to out[n], which is all zeros. common_name: of its
 * subject, printable ASCII of at most ZN_BUILD_X509_NAME_MAX bytes; empty: the subject has none.
 * Returns false, and writes nothing, for another name and where none is that long.
 */
bool zn_build_x509(uint8_t *out, size_t n, zn_span common_name);

#endif
