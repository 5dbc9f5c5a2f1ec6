/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefixes that a client may send before its ClientHello or request: the PROXY protocol, SOCKS
 * 4, 4a and 5, and the requests for TLS of other protocols (SMTP, IMAP, POP3, FTP, NNTP, XMPP,
 * LDAP, PostgreSQL, MySQL, RDP, TDS); and before its second ClientHello: TLS's change_cipher_spec.
 * Each is recognised by its own form, so that a hello is never looked for in the middle of bytes
 * that mean something else.
 */
#ifndef ZN_PROTO_PROXY_STARTTLS_PREFIX_H
#define ZN_PROTO_PROXY_STARTTLS_PREFIX_H

#include "util/cursor.h"

/*
 * ZN_DONE when the bytes start with one whole prefix: *used (>= 1) is its length, which can be more
 * than there are bytes. Else ZN_OTHER.
 */
zn_parse zn_proxy_or_starttls_prefix_skip(zn_span bytes, size_t *used);

#endif
