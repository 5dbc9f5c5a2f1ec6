# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The name of the host that a certificate is for (RFC 5280, 4.1)."""

from collections.abc import Iterator
from functools import lru_cache

IDENTIFIER, VERSION = 0x06, 0xA0
COMMON_NAME = b"\x55\x04\x03"
SUBJECT = 4  # its place behind the version


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


@lru_cache(maxsize=1 << 12)
def common_name(certificate: bytes) -> str | None:
    """Returns the subject's first common name, or None if it has no readable one."""
    inner = next(values(certificate), (0, b""))[1]
    signed = list(values(next(values(inner), (0, b""))[1]))
    fields = signed[1:] if signed and signed[0][0] == VERSION else signed
    if len(fields) <= SUBJECT:
        return None
    for _set, attributes in values(fields[SUBJECT][1]):
        for _sequence, attribute in values(attributes):
            pair = list(values(attribute))
            if len(pair) == 2 and pair[0] == (IDENTIFIER, COMMON_NAME):
                return pair[1][1].decode("utf-8", "replace")
    return None
