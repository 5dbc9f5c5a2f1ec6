/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ClientHello that replaces one whose fingerprint is withheld: version 1.2, an empty session ID
 * and cookie, one cipher suite, one compression method, server_name, and padding.
 *
 * The name and two lengths decide each byte of the result: the length of the hello and of the name.
 */
#ifndef ZN_BUILD_BUILD_PLAIN_HELLO_H
#define ZN_BUILD_BUILD_PLAIN_HELLO_H

#include "util/cursor.h"

/*
 * Writes the body of a hello, from its version on, into out[n], which is all zeros. name: in the
 * hello, empty if the hello has no name; disclosed: the name may be written, else its mask is.
 * datagram: the body is of DTLS. Bytes that are too few for an extension become further compression
 * methods. Returns false, and writes nothing, if the name does not fit. A hello that was read whole
 * has room for it.
 */
bool zn_build_plain_hello(zn_span name, bool disclosed, bool datagram, size_t n, uint8_t *out);

#endif
