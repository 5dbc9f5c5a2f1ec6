# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names in the bytes of clients: hellos of TLS, heads of HTTP requests, and questions of DNS."""

import base64
import binascii
import re
import struct
from collections.abc import Iterator

from zanon_net.audit.raw.certificates import common_name
from zanon_net.audit.raw.packets import Query, Said

HANDSHAKE, CLIENT_HELLO, SERVER_HELLO, CERTIFICATE = 22, 1, 2, 11
SERVER_NAME, ECH = 0, 0xFE0D
STREAM_MAX = 20 << 10  # bytes of a message and of later bytes that wait for the message
REQUEST = re.compile(rb"[A-Z_-]{3,20} [^ \r\n]+ HTTP/1\.[0-9]\r?\n")
METHOD = re.compile(rb"[A-Z][A-Z_-]{0,19}( |$)")
FIELD = re.compile(
    rb"(?:^|\n)(host|content-length|transfer-encoding):[ \t]*([^\r\n]*)", re.IGNORECASE
)

Heard = tuple[tuple[Said, ...], tuple[Query, ...]]


class Stream:
    """The bytes of one direction, as long as a message with a name may come.

    over: no more names are looked for.
    """

    __slots__ = ("_data", "_dns", "_next", "_skip", "_waiting", "over")

    def __init__(self, first: int, dns: bool) -> None:
        self._next, self._dns = first, dns
        self._data = b""
        self._waiting: dict[int, bytes] = {}
        self._skip = 0
        self.over = False

    def take(self, sequence: int, data: bytes) -> Heard:
        """Takes a segment; returns the messages that it completes."""
        self._waiting[sequence] = data
        said: list[Said] = []
        queries: list[Query] = []
        while not self.over:
            for start, part in list(self._waiting.items()):
                ahead = (self._next - start) % 2**32
                if ahead < 2**31:
                    del self._waiting[start]
                    if ahead < len(part):
                        self._data += part[ahead:]
                        self._next = (self._next + len(part) - ahead) % 2**32
                        break
            else:
                break
            self._read(said, queries)
        if sum(map(len, self._waiting.values())) + len(self._data) > STREAM_MAX:
            self.over = True
        return tuple(said), tuple(queries)

    def _read(self, said: list[Said], queries: list[Query]) -> None:
        """Reads the messages that are whole."""
        while self._data and not self.over:
            if self._skip:
                skipped = min(self._skip, len(self._data))
                self._data, self._skip = self._data[skipped:], self._skip - skipped
            elif self._dns:
                size = 2 + int.from_bytes(self._data[:2])
                if len(self._data) < size or size == 2:
                    return
                query = dns_message(self._data[2:size])
                queries += [query] if query is not None else []
                self._data = self._data[size:]
            elif self._data[0] == HANDSHAKE:
                if not self._hello(said):
                    return
            elif not self._request(said):
                return

    def _hello(self, said: list[Said]) -> bool:
        """Reads a hello, or a server's certificate; returns False if bytes are missing."""
        messages, at = b"", 0
        while at + 5 <= len(self._data) and self._data[at] == HANDSHAKE:
            end = at + 5 + int.from_bytes(self._data[at + 3 : at + 5])
            if end > len(self._data):
                break
            messages += self._data[at + 5 : end]
            at = end
        at = 0
        while at + 4 <= len(messages):
            end = at + 4 + int.from_bytes(messages[at + 1 : at + 4])
            if end > len(messages):
                return False
            kind = messages[at]
            if kind == CLIENT_HELLO:
                said.append(hello(messages[at:end]))
            elif kind == CERTIFICATE:
                size = int.from_bytes(messages[at + 7 : at + 10])
                said.append(Said("certificate", common_name(messages[at + 10 : at + 10 + size])))
            if kind != SERVER_HELLO:
                self.over = True
                return True
            at = end
        return False

    def _request(self, said: list[Said]) -> bool:
        """Reads the head of a request; returns False if bytes are missing."""
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            self.over = not METHOD.match(self._data[:21])
            return False
        head = self._data[: end + 2]
        if not REQUEST.match(head):
            self.over = True
            return False
        method, target, _version = head.split(b"\r\n", 1)[0].split(b" ", 2)
        fields = {name.lower(): value.strip() for name, value in FIELD.findall(head)}
        host = fields.get(b"host")
        scheme, found, rest = target.partition(b"://")
        if method == b"CONNECT":
            host = target
        elif found and scheme.lower() in (b"http", b"https"):
            host = re.split(b"[/?#]", rest, maxsplit=1)[0].rpartition(b"@")[2]
        said.append(Said("http", None if host is None else host.decode("latin-1")))
        said += [Said("dns", name) for name in asked_by(target.decode("latin-1"))]
        size = fields.get(b"content-length", b"0")
        self.over = method == b"CONNECT" or b"transfer-encoding" in fields or not size.isdigit()
        self._data, self._skip = self._data[end + 4 :], int(size) if size.isdigit() else 0
        return True


def asked_by(target: str) -> Iterator[str]:
    """Yields the names in questions of DNS over HTTPS in a request's target (RFC 8484, 4.1)."""
    for parameter in target.partition("?")[2].split("&"):
        name, _equals, value = parameter.partition("=")
        if name != "dns":
            continue
        padded = value.encode("latin-1", "replace") + b"=" * (-len(value) % 4)
        try:
            query = dns_message(base64.b64decode(padded, b"-_", validate=True))
        except binascii.Error:
            continue
        if query is not None and not query.response:
            yield query.name


def hello(message: bytes) -> Said:
    """Returns what a ClientHello says (RFC 8446, 4.1.2)."""
    at, name, hidden = 38, None, False
    for width in (1, 2, 1):  # session, ciphers, compression
        at += width + int.from_bytes(message[at : at + width])
    at += 2
    while at + 4 <= len(message):
        kind, size = struct.unpack_from(">HH", message, at)
        if kind == SERVER_NAME and size > 5:
            name = message[at + 9 : at + 4 + size].decode("latin-1")
        hidden |= kind == ECH
        at += 4 + size
    return Said("tls", name, hidden)


def dns_message(data: bytes) -> Query | None:
    """Returns the question of a DNS message (RFC 1035, 4.1), or None."""
    if len(data) < 17:
        return None
    number, flags, questions = struct.unpack_from(">HHH", data)
    labels, at = [], 12
    while at < len(data) and data[at]:
        if data[at] > 63:
            return None
        labels.append(data[at + 1 : at + 1 + data[at]])
        at += 1 + data[at]
    if questions != 1 or at + 5 > len(data):
        return None
    kind = int.from_bytes(data[at + 1 : at + 3])
    # A dot inside a label makes a name that is no hostname.
    text = ".".join(label.replace(b".", b"\\.").decode("latin-1") for label in labels)
    return Query(flags & 0x8000 > 0, number, kind, text)
