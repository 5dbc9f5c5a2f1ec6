# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Prefixes of PROXY, SOCKS and STARTTLS, one of each kind, by their names."""

PROXY_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
PREFIXES = {
    "PROXY TCP4": b"PROXY TCP4 192.0.2.1 198.51.100.1 40000 443\r\n",
    "PROXY TCP6": b"PROXY TCP6 2001:db8::1 2001:db8::2 40000 443\r\n",
    "PROXY UNKNOWN": b"PROXY UNKNOWN\r\n",
    "PROXY 2": PROXY_SIGNATURE + b"\x21\x11\0\x0c" + bytes(12),
    "PROXY 2 with more": PROXY_SIGNATURE + b"\x21\x11\0\x11" + bytes(12) + b"\2\0\2xy",
    "PROXY 2 LOCAL": PROXY_SIGNATURE + b"\x20\0\0\0",
    "SOCKS 4": b"\4\1\1\xbb\xc0\0\2\1user\0",
    "SOCKS 4a": b"\4\1\1\xbb\0\0\0\1user\0www.example.net\0",
    "SOCKS 5 greeting": b"\5\2\0\2",
    "SOCKS 5 IPv4": b"\5\1\0\1\xc0\0\2\1\1\xbb",
    "SOCKS 5 name": b"\5\1\0\3\x0fwww.example.net\1\xbb",
    "SOCKS 5 IPv6": b"\5\1\0\4" + bytes(15) + b"\1\1\xbb",
    "PostgreSQL": bytes.fromhex("0000000804d2162f"),
    "PostgreSQL GSS": bytes.fromhex("0000000804d21630"),
    "MySQL": bytes.fromhex("20000001 85aeff19 00000001 21") + bytes(23),
    "MariaDB": bytes.fromhex("20000001 85aeff19 00000001 21") + bytes(19) + b"\x1d\0\0\0",
    "MySQL 4": bytes.fromhex("05000001 8529 000000"),
    "RDP": bytes.fromhex("0300002a 25 e0 0000 0000 00")
    + b"Cookie: mstshash=u\r\n"
    + b"\1\0\x08\0\3\0\0\0"
    + bytes(3),
    "LDAP": bytes.fromhex("301d 020101 7718 8016") + b"1.3.6.1.4.1.1466.20037",
    "LDAP, long lengths": b"\x30"
    + bytes.fromhex("811d 020101 7718 8016")
    + b"1.3.6.1.4.1.1466.20037",
    "TLS 1.3, before the second hello": b"\x14\3\3\0\1\1",
    "TDS": bytes.fromhex("1201 0100 0000 0100"),
    "SMTP": b"STARTTLS\r\n",
    "SMTP, pipelined": b"EHLO client\r\nSTARTTLS\r\n",
    "IMAP": b"a001 starttls\r\n",
    "POP3": b"STLS\r\n",
    "FTP": b"AUTH TLS\r\n",
    "FTP SSL": b"auth ssl\r\n",
    "XMPP": b"<stream:stream to='x'><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
}
