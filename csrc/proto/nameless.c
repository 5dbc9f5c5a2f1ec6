/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Each function below reads the bytes down as its specification prints them. */
#include "proto/nameless.h"

#include "proto/ascii.h"

typedef bool recognise(zn_span bytes);

#define STARTS_WITH(bytes, literal) starts_with(bytes, literal, sizeof(literal) - 1)

static bool starts_with(zn_span bytes, const char *literal, size_t n)
{
    return bytes.n >= n && memcmp(bytes.p, literal, n) == 0;
}

#define SAYS(bytes, word) says(bytes, word, sizeof(word) - 1)

/* Returns whether the bytes start with a word, in whichever case it is sent. */
static bool says(zn_span bytes, const char *word, size_t n)
{
    return zn_ascii_equal(zn_span_first(bytes, n), (zn_span){(const uint8_t *)word, n});
}

/* ---- text ------------------------------------------------------------------------------------ */

/* RFC 4253 4.2. */
static bool ssh_version(zn_span bytes)
{
    return STARTS_WITH(bytes, "SSH-2.0-") || STARTS_WITH(bytes, "SSH-1.");
}

/* RFC 5321 4.2, RFC 959 5.4: both greet with this code. */
static bool code_220(zn_span bytes)
{
    return STARTS_WITH(bytes, "220 ") || STARTS_WITH(bytes, "220-");
}

static bool smtp_mail(zn_span bytes)
{
    return SAYS(bytes, "MAIL FROM:");
}

static bool ftp_password(zn_span bytes)
{
    return SAYS(bytes, "PASS ");
}

static bool pop3_greeting(zn_span bytes)
{
    return STARTS_WITH(bytes, "+OK");
}

/* The commands of the transaction state (RFC 1939 5). */
static bool pop3_transaction(zn_span bytes)
{
    return SAYS(bytes, "STAT\r\n") || SAYS(bytes, "LIST") || SAYS(bytes, "UIDL") ||
           SAYS(bytes, "RETR ");
}

static bool imap_greeting(zn_span bytes)
{
    return STARTS_WITH(bytes, "* OK") || STARTS_WITH(bytes, "* PREAUTH");
}

/* A tag, and a command of the authenticated state (RFC 9051 6.3). */
static bool imap_mailbox(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    zn_span tag = zn_ascii_take_until(&c, ' '), command;
    zn_cursor_skip(&c, 1);
    command = zn_cursor_rest(&c);
    if (tag.n == 0 || tag.n > 16)
        return false;
    return SAYS(command, "SELECT ") || SAYS(command, "EXAMINE ") || SAYS(command, "LIST ") ||
           SAYS(command, "LSUB ") || SAYS(command, "STATUS ") || SAYS(command, "NAMESPACE");
}

/* RFC 3977 5.1. */
static bool nntp_greeting(zn_span bytes)
{
    return STARTS_WITH(bytes, "200 ") || STARTS_WITH(bytes, "201 ");
}

static bool nntp_group(zn_span bytes)
{
    return SAYS(bytes, "GROUP ") || SAYS(bytes, "AUTHINFO PASS ");
}

/* RFC 1459 4.1; capabilities of IRCv3. PASS is a word of FTP, too. */
static bool irc_registration(zn_span bytes)
{
    return SAYS(bytes, "NICK ") || SAYS(bytes, "CAP LS");
}

static bool irc_join(zn_span bytes)
{
    return SAYS(bytes, "JOIN #") || SAYS(bytes, "JOIN &");
}

/* RFC 6120 4.2. */
static bool xmpp_stream(zn_span bytes)
{
    return STARTS_WITH(bytes, "<?xml ") || STARTS_WITH(bytes, "<stream:stream");
}

static bool xmpp_login(zn_span bytes)
{
    return STARTS_WITH(bytes, "<auth ");
}

static bool rsync_version(zn_span bytes)
{
    return STARTS_WITH(bytes, "@RSYNCD: ");
}

/* A packet line: its length in four digits, and the service. */
static bool git_request(zn_span bytes)
{
    static const char service[] = "git-";
    zn_cursor c = zn_cursor_over_span(bytes, true);
    for (unsigned i = 0; i < 4; i++) {
        uint8_t digit = zn_ascii_lower(zn_cursor_u8(&c));
        if ((digit < '0' || digit > '9') && (digit < 'a' || digit > 'f'))
            return false;
    }
    return zn_cursor_ok(&c) && starts_with(zn_cursor_rest(&c), service, sizeof service - 1);
}

/* Takes "*" or "$", a number and the end of the line. */
static bool takes_count(zn_cursor *c, uint8_t first)
{
    zn_cursor number;
    if (zn_cursor_u8(c) != first)
        return false;
    number = zn_cursor_over_span(zn_ascii_take_until(c, '\r'), true);
    if (zn_cursor_left(&number) == 0 || zn_cursor_left(&number) > 6)
        return false;
    while (zn_cursor_left(&number) > 0) {
        uint8_t digit = zn_cursor_u8(&number);
        if (digit < '0' || digit > '9')
            return false;
    }
    return zn_cursor_be16(c) == ('\r' << 8 | '\n');
}

/* An array of strings (RESP). */
static bool redis_command(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    return takes_count(&c, '*') && takes_count(&c, '$') && zn_cursor_ok(&c);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* AMQP 0-9-1 4.2.2; AMQP 1.0 2.2 without a layer of security. */
static bool amqp_header(zn_span bytes)
{
    return STARTS_WITH(bytes, "AMQP\0\0\x09\x01") || STARTS_WITH(bytes, "AMQP\0\x01\0\0");
}

/* A marker, and an OPEN message (RFC 4271 4.1). */
static bool bgp_open(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    for (unsigned i = 0; i < 4; i++)
        if (zn_cursor_be32(&c) != UINT32_MAX)
            return false;
    return zn_cursor_be16(&c) >= 29 && zn_cursor_u8(&c) == 1 && zn_cursor_u8(&c) == 4;
}

static bool bitcoin_version(zn_span bytes)
{
    return STARTS_WITH(bytes, "\xf9\xbe\xb4\xd9version\0\0\0\0\0");
}

static bool bittorrent_handshake(zn_span bytes)
{
    return STARTS_WITH(bytes, "\x13"
                              "BitTorrent protocol");
}

/* A frame STARTUP of versions 3 to 5 of the native protocol, and its first option. */
static bool cassandra_startup(zn_span bytes)
{
    static const char option[] = "\0\x0b"
                                 "CQL_VERSION";
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t version = zn_cursor_u8(&c);
    zn_cursor_skip(&c, 3); /* flags, stream */
    if (version < 3 || version > 5 || zn_cursor_u8(&c) != 1)
        return false;
    zn_cursor_skip(&c, 6); /* length, number of options */
    return zn_cursor_ok(&c) && starts_with(zn_cursor_rest(&c), option, sizeof option - 1);
}

/* A bind of version 5, little-endian (C706 12.6.4.3). */
static bool dce_rpc_bind(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint16_t version = zn_cursor_be16(&c);
    uint8_t kind = zn_cursor_u8(&c);
    zn_cursor_skip(&c, 1); /* flags */
    return (version == 0x0500 || version == 0x0501) && kind == 11 &&
           zn_cursor_be32(&c) == 0x10000000;
}

/* Reads a BER length of at most two bytes (X.690 8.1.3). */
static size_t ber_length(zn_cursor *c)
{
    uint8_t first = zn_cursor_u8(c);
    if (first == 0x81)
        return zn_cursor_u8(c);
    return first == 0x82 ? zn_cursor_be16(c) : first < 0x80 ? first : SIZE_MAX;
}

/* Returns the tag of the operation in an LDAPMessage (RFC 4511 4.1.1), or 0 for other bytes. */
static uint8_t ldap_operation(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    size_t number;
    if (zn_cursor_u8(&c) != 0x30 || ber_length(&c) > bytes.n || zn_cursor_u8(&c) != 2)
        return 0;
    number = zn_cursor_u8(&c);
    zn_cursor_skip(&c, number);
    return number >= 1 && number <= 4 ? zn_cursor_u8(&c) : 0;
}

/* A BindRequest, or the SearchRequest by which clients ask what the server can do. */
static bool ldap_message(zn_span bytes)
{
    return ldap_operation(bytes) == 0x63;
}

static bool ldap_bind(zn_span bytes)
{
    return ldap_operation(bytes) == 0x60;
}

/* One whole request (Modbus over TCP 3.1.3): its length, and the number of a function. */
static bool modbus_request(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint16_t protocol, length;
    uint8_t function;
    zn_cursor_skip(&c, 2); /* its number */
    protocol = zn_cursor_be16(&c);
    length = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 1); /* unit */
    function = zn_cursor_u8(&c);
    return zn_cursor_ok(&c) && protocol == 0 && length == bytes.n - 6 && length <= 254 &&
           function >= 1 && function < 0x80;
}

/* A message header and OP_MSG or OP_QUERY. */
static bool mongodb_request(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint32_t length = zn_cursor_le32(&c), answered, operation;
    zn_cursor_skip(&c, 4); /* its number */
    answered = zn_cursor_le32(&c);
    operation = zn_cursor_le32(&c);
    return zn_cursor_ok(&c) && length >= 26 && length <= 1u << 16 && answered == 0 &&
           (operation == 2013 || operation == 2004);
}

/* MQTT 3.1.1 3.1, 5.0 3.1, and the name of version 3.1. */
static bool mqtt_connect(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    zn_span rest;
    uint8_t byte = zn_cursor_u8(&c);
    if (byte != 0x10)
        return false;
    for (unsigned i = 0; i < 4; i++) {
        byte = zn_cursor_u8(&c);
        if (byte < 0x80)
            break;
    }
    rest = zn_cursor_rest(&c);
    return byte < 0x80 && (STARTS_WITH(rest, "\0\x04"
                                             "MQTT") ||
                           STARTS_WITH(rest, "\0\x06"
                                             "MQIsdp"));
}

/* A handshake of version 10, packet 0. */
static bool mysql_greeting(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    size_t length = zn_cursor_le16(&c);
    uint16_t number = zn_cursor_be16(&c); /* length's high byte, sequence number */
    return number == 0 && length >= 40 && zn_cursor_u8(&c) == 10 && zn_cursor_ok(&c);
}

/* The client's handshake response, packet 1, of protocol 4.1, without the capability SSL. */
static bool mysql_login(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    size_t length = zn_cursor_le16(&c);
    uint16_t number = zn_cursor_be16(&c), capabilities = zn_cursor_le16(&c);
    return zn_cursor_ok(&c) && number == 1 && length > 32 && (capabilities & 0x0a00) == 0x0200;
}

/* OPC UA 10000-6 7.1.2.3. */
static bool opc_ua_hello(zn_span bytes)
{
    return STARTS_WITH(bytes, "HELF");
}

/* A StartupMessage of protocol 3 with its first parameter (PostgreSQL 55.7). */
static bool postgresql_startup(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint32_t length = zn_cursor_be32(&c), version = zn_cursor_be32(&c);
    uint8_t first = zn_cursor_u8(&c);
    return length > 8 && length < 10000 && version >> 16 == 3 && first >= 'a' && first <= 'z';
}

/* Returns true for SSLRequest or GSSENCRequest. If the server refuses, a StartupMessage follows. */
static bool postgresql_request(zn_span bytes)
{
    return STARTS_WITH(bytes, "\0\0\0\x08\x04\xd2\x16") && bytes.n == 8;
}

/* An X.224 connection request in a TPKT (RFC 1006; MS-RDPBCGR 2.2.1.1). */
static bool rdp_request(zn_span bytes)
{
    return STARTS_WITH(bytes, "\x03\0") && bytes.n > 5 && zn_header_u8(bytes, 5) == 0xe0;
}

/* X.224 data with MCS Connect-Initial: Standard RDP Security (MS-RDPBCGR 2.2.1.3). */
static bool rdp_connect(zn_span bytes)
{
    static const char data[] = "\x02\xf0\x80\x7f\x65";
    return STARTS_WITH(bytes, "\x03\0") && bytes.n > 4 &&
           starts_with(zn_span_after(bytes, 4), data, sizeof data - 1);
}

/* SMB 1, 2 and 3 over TCP (MS-SMB2 2.1). */
static bool smb_message(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint32_t length = zn_cursor_be32(&c);
    uint8_t id = zn_cursor_u8(&c);
    return length >= 32 && length < 1u << 24 && (id == 0xff || id == 0xfe) &&
           zn_cursor_be24(&c) == ('S' << 16 | 'M' << 8 | 'B');
}

/* MS-TDS 2.2.6.5. */
static bool tds_prelogin(zn_span bytes)
{
    return STARTS_WITH(bytes, "\x12\x01") && bytes.n > 8 &&
           zn_header_u8(bytes, 8) == 0; /* VERSION */
}

/* A whole LOGIN7 in clear (MS-TDS 2.2.6.4). */
static bool tds_login(zn_span bytes)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint16_t start = zn_cursor_be16(&c), length = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 4); /* channel, number, window */
    return start == 0x1001 && length > 8 && zn_cursor_le32(&c) == length - 8u && zn_cursor_ok(&c);
}

/* RFC 6143 7.1.1. */
static bool vnc_version(zn_span bytes)
{
    return STARTS_WITH(bytes, "RFB 00");
}

/* The server chooses, none or a password (RFC 6143 A). */
static bool vnc_version_3_3(zn_span bytes)
{
    return STARTS_WITH(bytes, "RFB 003.003\n");
}

/* The client's choice, behind its version: no security, or a password (RFC 6143 7.1.2). */
static bool vnc_choice(zn_span bytes)
{
    return bytes.n == 1 && (zn_ascii_first(bytes) == 1 || zn_ascii_first(bytes) == 2);
}

/* X Window System Protocol 8: byte order, version 11. */
static bool x11_setup(zn_span bytes)
{
    return STARTS_WITH(bytes, "l\0\x0b\0\0\0") || STARTS_WITH(bytes, "B\0\0\x0b\0\0");
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { CLIENT, SERVER };

static bool never(zn_span bytes)
{
    (void)bytes;
    return false;
}

static const struct {
    recognise *opening, *word;
    const char *name;
    uint8_t opener;
} protocols[] = {
#define X(ID, opener, opening, word) {opening, word, #ID, opener},
    ZN_NAMELESS_PROTOCOLS(X)
#undef X
};

enum { PROTOCOLS = sizeof protocols / sizeof protocols[0] };
_Static_assert(PROTOCOLS <= 32, "zn_nameless.opened has bits for them");

const char *zn_nameless_name(unsigned row)
{
    return row < PROTOCOLS ? protocols[row].name : NULL;
}

void zn_nameless_open(zn_nameless *n, zn_span bytes, bool from_client)
{
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        if ((protocols[i].opener == CLIENT) != from_client || !protocols[i].opening(bytes))
            continue;
        n->opened |= 1u << i;
        n->known |= protocols[i].word == never;
    }
}

void zn_nameless_hear(zn_nameless *n, zn_span bytes)
{
    for (uint32_t left = n->opened; left != 0 && !n->known; left &= left - 1)
        n->known = protocols[__builtin_ctz(left)].word(bytes);
}
