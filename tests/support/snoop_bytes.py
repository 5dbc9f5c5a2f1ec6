# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""snoop captures byte by byte (RFC 1761), for tests of the reader."""

import struct


def snoop_header(*, version: int = 2, link: int = 4) -> bytes:
    return b"snoop\0\0\0" + struct.pack(">II", version, link)


def snoop_record(
    seconds: int,
    microseconds: int,
    data: bytes,
    *,
    wire: int | None = None,
    captured: int | None = None,
    length: int | None = None,
) -> bytes:
    """A record, padded to four bytes as Solaris does; the numbers default to the right ones."""
    wire = len(data) if wire is None else wire
    captured = len(data) if captured is None else captured
    padded = data + bytes(-len(data) % 4)
    length = 24 + len(padded) if length is None else length
    return struct.pack(">IIIIII", wire, captured, length, 7, seconds, microseconds) + padded
