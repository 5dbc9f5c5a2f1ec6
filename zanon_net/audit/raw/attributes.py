# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Texts of attributes besides names, from the fields of tshark.

A text is None if the packet has the attribute, and the fields do not show the text for certain.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

Fields = Mapping[str, Sequence[str]]  # the values of each field of a packet

CLIENT_HELLO, ALPN = "1", "16"
PLAIN = re.compile(r"[ -\[\]-~]+")  # tshark escapes all other characters, and the backslash
ESCAPED = re.compile('[ %",]')


def alpn(fields: Fields) -> Iterator[str | None]:
    """Yields the protocols that a ClientHello offers (RFC 7301, 3.1), joined by commas."""
    hellos = fields["tls.handshake.type"].count(CLIENT_HELLO)
    lists = fields["tls.handshake.extension.type"].count(ALPN)
    if not hellos or not lists:
        return
    protocols = fields["tls.handshake.extensions_alpn_str"]
    if hellos > 1 or lists > 1 or not protocols or not all(map(PLAIN.fullmatch, protocols)):
        yield None
        return
    offered = [one for one in protocols if not is_invented(one)]
    if offered:
        yield ",".join(map(escaped, offered))


def is_invented(protocol: str) -> bool:
    """Returns whether a client invents the protocol: two equal bytes 0x?A (RFC 8701)."""
    return len(protocol) == 2 and protocol[0] == protocol[1] and ord(protocol[0]) & 15 == 10


def escaped(text: str) -> str:
    """Returns a text of printable ASCII in the form of a log."""
    return ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", text)


READERS: dict[str, tuple[tuple[str, ...], Callable[[Fields], Iterator[str | None]]]] = {
    "alpn": (("tls.handshake.extensions_alpn_str",), alpn),
}
"""Fields of each attribute that the packets do not have already, and the function that reads it."""
FIELDS_OF = {word: fields for word, (fields, _read) in READERS.items()}


def attributes_in(fields: Fields, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yields word and text of each attribute in the fields of a packet."""
    for word in words:
        if word in READERS:
            for text in READERS[word][1](fields):
                yield word, text
