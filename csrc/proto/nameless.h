/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocols over TCP that are known to expose no name: from some point on, neither a ClientHello
 * nor an HTTP request can come in their connections.
 *
 * Each row gives the bytes by which its protocol is recognised: the opening, which is the first
 * bytes of one side. If the protocol can switch to TLS (STARTTLS, SSLRequest, ...), the row also
 * has a word that the client sends, at the start of a later segment, only if it continues in clear.
 * The table has no protocols whose first bytes another protocol may share, and no protocols that
 * may switch to TLS at any time.
 */
#ifndef ZN_PROTO_NAMELESS_H
#define ZN_PROTO_NAMELESS_H

#include "util/cursor.h"

/*
 * X(ID, side that opens, opening, word): functions of proto/nameless.c that recognise the opening
 * and the word. `never` as a word: after the opening alone, no name can come.
 *
 * Reasons why no name comes after the word: PostgreSQL, MySQL, RDP and TDS agree on encryption
 * before the client's first message of another kind. VNC agrees before the client has chosen its
 * login method; version 3.3 has no such choice. POP3 (RFC 2595 4), IMAP (RFC 9051 6.2.1), NNTP (RFC
 * 4642 2.2.2) and XMPP (RFC 6120 5.3.1) forbid TLS to a client that has logged in, and IRC servers
 * to a client that has registered. SMTP, FTP and LDAP do not forbid it; but a client that has sent
 * its password or a mail in clear does not switch to TLS.
 */
#define ZN_NAMELESS_PROTOCOLS(X)                                                                   \
    X(AMQP, CLIENT, amqp_header, never)                                                            \
    X(BGP, CLIENT, bgp_open, never)                                                                \
    X(BITCOIN, CLIENT, bitcoin_version, never)                                                     \
    X(BITTORRENT, CLIENT, bittorrent_handshake, never)                                             \
    X(CASSANDRA, CLIENT, cassandra_startup, never)                                                 \
    X(DCE_RPC, CLIENT, dce_rpc_bind, never)                                                        \
    X(FTP, SERVER, code_220, ftp_password)                                                         \
    X(GIT, CLIENT, git_request, never)                                                             \
    X(IMAP, SERVER, imap_greeting, imap_mailbox)                                                   \
    X(IRC, CLIENT, irc_registration, irc_join)                                                     \
    X(LDAP, CLIENT, ldap_message, ldap_bind)                                                       \
    X(LDAP_BIND, CLIENT, ldap_bind, never)                                                         \
    X(MODBUS, CLIENT, modbus_request, never)                                                       \
    X(MONGODB, CLIENT, mongodb_request, never)                                                     \
    X(MQTT, CLIENT, mqtt_connect, never)                                                           \
    X(MYSQL, SERVER, mysql_greeting, mysql_login)                                                  \
    X(NNTP, SERVER, nntp_greeting, nntp_group)                                                     \
    X(OPC_UA, CLIENT, opc_ua_hello, never)                                                         \
    X(POP3, SERVER, pop3_greeting, pop3_transaction)                                               \
    X(POSTGRESQL, CLIENT, postgresql_startup, never)                                               \
    X(POSTGRESQL_ASKED, CLIENT, postgresql_request, postgresql_startup)                            \
    X(RDP, CLIENT, rdp_request, rdp_connect)                                                       \
    X(REDIS, CLIENT, redis_command, never)                                                         \
    X(RSYNC, CLIENT, rsync_version, never)                                                         \
    X(SMB, CLIENT, smb_message, never)                                                             \
    X(SMTP, SERVER, code_220, smtp_mail)                                                           \
    X(SSH, CLIENT, ssh_version, never)                                                             \
    X(TDS, CLIENT, tds_prelogin, tds_login)                                                        \
    X(VNC, SERVER, vnc_version, vnc_choice)                                                        \
    X(VNC_3_3, CLIENT, vnc_version_3_3, never)                                                     \
    X(X11, CLIENT, x11_setup, never)                                                               \
    X(XMPP, CLIENT, xmpp_stream, xmpp_login)

/* Parts of a protocol recognised in a connection; zero at first. */
typedef struct zn_nameless {
    uint32_t opened; /* bits of the rows whose opening came */
    bool known;      /* no name comes */
} zn_nameless;

/* Returns the ID of row `row`; NULL after the last row. */
const char *zn_nameless_name(unsigned row);

/* Takes the first bytes of a side's stream. */
void zn_nameless_open(zn_nameless *n, zn_span bytes, bool from_client);
/* Takes a segment of the client, before its opening if it is that, too. */
void zn_nameless_hear(zn_nameless *n, zn_span bytes);

#endif
