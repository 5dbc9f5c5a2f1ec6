/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The DNS message in a request of DNS over HTTPS (RFC 8484), as a proxy that ends TLS shows it. */
#ifndef ZN_PROTO_DOH_H
#define ZN_PROTO_DOH_H

#include "util/cursor.h"

/* Bytes of a message that are looked at; a header and a question have at most 271. */
#define ZN_DOH_MESSAGE_MAX 1024u

/* Returns true if the value of a Content-Type field means a DNS message. */
bool zn_doh_is_media_type(zn_span value);

/* Decodes the parameter `dns` of a request's target (RFC 8484 4.1), base64url without padding
 * (RFC 4648 5), into `message`, which has room for ZN_DOH_MESSAGE_MAX bytes. Returns the decoded
 * bytes; none if there is no such parameter, or if it is no base64url. *whole is false if the
 * message is longer than the room. */
zn_span zn_doh_parameter(zn_span target, uint8_t *message, bool *whole);

#endif
