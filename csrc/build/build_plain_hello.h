/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain ClientHello, which replaces a hello whose fingerprint is withheld: version 1.2, an empty
 * session ID and cookie, one cipher suite, one compression method, server_name, and padding. Each
 * byte depends only on the name, the length of the name, and the length of the hello.
 */
#ifndef ZN_BUILD_BUILD_PLAIN_HELLO_H
#define ZN_BUILD_BUILD_PLAIN_HELLO_H

#include "util/cursor.h"

/*
 * Writes the body of a hello, from its version on, into out[n], which is all zeros. name is the
 * name in the hello, or empty. The name is written if it is `disclosed`, or else its mask. With
 * `datagram`, the body is that of DTLS. Bytes that are too few for an extension become further
 * compression methods. Returns false, and writes nothing, if the name does not fit. A hello that
 * was read whole has room for its name.
 */
bool zn_build_plain_hello(zn_span name, bool disclosed, bool datagram, size_t n, uint8_t *out);

#endif
