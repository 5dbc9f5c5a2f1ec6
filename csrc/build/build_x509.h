/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic certificate (RFC 5280 4.1, in DER, X.690) of a given length, which replaces a real
 * certificate. Only its length, and a name if the caller gives it, come from the real certificate:
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

/* Least bytes of a certificate. There is a certificate of every length from here on, except for
 * 65,540. DER has no element of this length, because a content of 65,536 bytes has a longer length
 * field than a content of 65,535 bytes. */
#define ZN_BUILD_X509_MIN(name_bytes) ((size_t)260 + (name_bytes))

/*
 * Writes a certificate of exactly n bytes to out[n], which is all zeros. common_name is the common
 * name of its subject, printable ASCII of at most ZN_BUILD_X509_NAME_MAX bytes, or empty. Returns
 * false, and writes nothing, for any other name or if no certificate has this length.
 */
bool zn_build_x509(uint8_t *out, size_t n, zn_span common_name);

#endif
