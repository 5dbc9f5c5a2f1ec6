# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The name of the host that a certificate is for, its DNS name and its issuer (RFC 5280, 4.1)."""

from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote

SAFE = "".join(chr(one) for one in range(0x21, 0x7F) if chr(one) not in '%",\\+')
IDENTIFIER, VERSION = 0x06, 0xA0
COMMON_NAME = b"\x55\x04\x03"
ISSUER, SUBJECT, EXTENSIONS = 2, 4, 6  # places behind the version
SUBJECT_ALT_NAME, DNS_NAME, OCTETS, TAGGED = b"\x55\x1d\x11", 0x82, 0x04, 0xA3
WORDS = {
    **{b"\x55\x04\x03": "CN", b"\x55\x04\x06": "C", b"\x55\x04\x07": "L"},
    **{b"\x55\x04\x08": "ST", b"\x55\x04\x0a": "O", b"\x55\x04\x0b": "OU"},
}
BYTES = (0x0C, 0x12, 0x13, 0x14, 0x16, 0x1A)
"""Tags of strings that have a byte for each character, or UTF-8."""


def values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields tag and content of each value of BER. Stops at a length that is not in the data."""
    at = 0
    while at + 2 <= len(data):
        tag, size = data[at], data[at + 1]
        at += 2
        if size & 0x80:
            width = size & 0x7F
            size = int.from_bytes(data[at : at + width])
            at += width
        if at + size > len(data):
            return
        yield tag, data[at : at + size]
        at += size


def fields_of(certificate: bytes) -> list[tuple[int, bytes]]:
    """Returns tag and content of the fields behind the version of a certificate."""
    inner = next(values(certificate), (0, b""))[1]
    signed = list(values(next(values(inner), (0, b""))[1]))
    return signed[1:] if signed and signed[0][0] == VERSION else signed


@lru_cache(maxsize=1 << 12)
def dns_name(certificate: bytes) -> bytes | None:
    """Returns the first DNS name of the subjectAltName, or None."""
    for tag, part in fields_of(certificate)[EXTENSIONS:]:
        for _sequence, extension in (
            values(next(values(part), (0, b""))[1]) if tag == TAGGED else ()
        ):
            pair = list(values(extension))
            if (
                len(pair) > 1
                and pair[0] == (IDENTIFIER, SUBJECT_ALT_NAME)
                and pair[-1][0] == OCTETS
            ):
                names = values(next(values(pair[-1][1]), (0, b""))[1])
                return next((name for kind, name in names if kind == DNS_NAME), None)
    return None


@lru_cache(maxsize=1 << 12)
def issuer_of(certificate: bytes) -> str | None:
    """Returns the issuer as RFC 4514 writes it, in the form of a log; None if it has a type or a
    string that is not usual."""
    fields = fields_of(certificate)
    if len(fields) <= ISSUER:
        return None
    relative = []
    for _set, attributes in values(fields[ISSUER][1]):
        parts = []
        for _sequence, attribute in values(attributes):
            pair = list(values(attribute))
            if len(pair) != 2 or pair[0][1] not in WORDS or pair[1][0] not in BYTES:
                return None
            value = quote(pair[1][1], safe=SAFE)
            parts.append(f"{WORDS[pair[0][1]]}={value}")
        relative.append("+".join(parts))
    return ",".join(reversed(relative)) or None


@lru_cache(maxsize=1 << 12)
def common_name(certificate: bytes) -> str | None:
    """Returns the subject's first common name, or None if it has no readable one."""
    fields = fields_of(certificate)
    if len(fields) <= SUBJECT:
        return None
    for _set, attributes in values(fields[SUBJECT][1]):
        for _sequence, attribute in values(attributes):
            pair = list(values(attribute))
            if len(pair) == 2 and pair[0] == (IDENTIFIER, COMMON_NAME):
                return pair[1][1].decode("utf-8", "replace")
    return None
