/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unread flows: flows without a name that may have named a host.
 *
 * This file alone decides which flow may be recorded as a flow without a name. There are three
 * kinds: the client sent no bytes; the client's bytes were read from the flow's opening on, until a
 * message without a name or a protocol without names was recognised; or the server's port is not in
 * the list below, the opening was seen, and the client's first bytes neither begin a message of an
 * analyzer nor resemble it. All other flows without a name are unread: their records are coarse,
 * and their packets do not leave.
 */
#ifndef ZN_ANALYZER_UNREAD_H
#define ZN_ANALYZER_UNREAD_H

#include "analyzer/names.h"

/*
 * X(transport, port): ports that servers of an analyzer's protocol usually have, in addition to the
 * ports in the table of analyzers. An unknown first message on these ports is more likely a damaged
 * or unusual message than another protocol.
 */
#define ZN_ANALYZER_PORTS(X)                                                                       \
    X(TCP, 80)   /* HTTP */                                                                        \
    X(TCP, 443)  /* HTTPS */                                                                       \
    X(TCP, 465)  /* SMTP over TLS */                                                               \
    X(TCP, 636)  /* LDAP over TLS */                                                               \
    X(TCP, 853)  /* DNS over TLS */                                                                \
    X(TCP, 990)  /* FTP over TLS */                                                                \
    X(TCP, 993)  /* IMAP over TLS */                                                               \
    X(TCP, 995)  /* POP3 over TLS */                                                               \
    X(TCP, 3128) /* HTTP proxies */                                                                \
    X(TCP, 8000) /* HTTP */                                                                        \
    X(TCP, 8080) /* HTTP */                                                                        \
    X(TCP, 8443) /* HTTPS */                                                                       \
    X(TCP, 8888) /* HTTP */                                                                        \
    X(UDP, 80)   /* QUIC */                                                                        \
    X(UDP, 443)  /* QUIC */                                                                        \
    X(UDP, 853)  /* DNS over QUIC and over DTLS */                                                 \
    X(UDP, 4433) /* QUIC and DTLS */                                                               \
    X(UDP, 8443) /* QUIC */

/* Notes what a packet shows of bytes that the client sent, before analyzers look at the packet.
 * Called while the client is ZN_CLIENT_SILENT. */
void zn_unread_see(const zn_packet_context *s);
/* Notes that the packet's bytes are not read at all: anybody may have sent them. */
void zn_unread_disregard(const zn_packet_context *s);

/* Notes that a message of the client was read whole, or that it names no host. */
static inline void zn_unread_message_read(zn_flow *f)
{
    if (ZN_FACTS(f)->client_bytes < ZN_CLIENT_NAMELESS)
        ZN_FACTS(f)->client_bytes = ZN_CLIENT_NAMELESS;
}

/* Notes that another protocol may begin with the client's next bytes. */
static inline void zn_unread_begin_again(zn_flow *f)
{
    if (ZN_FACTS(f)->client_bytes == ZN_CLIENT_NAMELESS)
        ZN_FACTS(f)->client_bytes = ZN_CLIENT_OPEN;
}

/* Notes that no analyzer recognised bytes of the client, where a message may start. The first such
 * bytes decide, unless later bytes look like a hello. cut: the bytes behind were not captured. */
void zn_unread_segment(const zn_packet_context *s, zn_span bytes, bool cut);
/* Notes that no analyzer recognised the packet, a datagram of the client. The first one decides. */
void zn_unread_datagram(const zn_packet_context *s);

/* Returns true if the flow has no name so far, and belongs to no kind above. */
bool zn_unread(const zn_flow *f);
/* Returns true if the client's bytes were read and name no host. */
static inline bool zn_unread_is_nameless(const zn_flow *f)
{
    return ZN_FACTS(f)->client_bytes == ZN_CLIENT_NAMELESS && !zn_unread(f);
}

#endif
