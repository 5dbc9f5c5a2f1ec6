# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks `addresses` and `hidden` on the bytes of files: no address of a client, and no name that
was never released, in any of the forms that text can have."""

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np

from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.shown import rows_of, text_of

FOUR = re.compile(rb"(?<![0-9.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9]|\.[0-9])")
SIX = re.compile(
    rb"(?<![0-9A-Fa-f:.])[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*(?![0-9A-Fa-f:])"
)
HOST = re.compile(rb"(?<![A-Za-z0-9_.-])[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
PACKED = re.compile(rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{6,}={0,2}(?![A-Za-z0-9+/_=-])")
ESCAPED = re.compile(rb"[!-~]*%[0-9A-Fa-f]{2}[!-~]*")
RARE = 1e-6  # an event that chance does not explain


class Secrets:
    """Addresses of clients, and names that were never released. No file may contain these secrets.

    shown: pseudonyms and addresses that a log may show, some of them of a client by chance.
    """

    def __init__(self, addresses: set[bytes], names: set[str], released: set[str]) -> None:
        self.addresses = addresses
        self.names = names
        self.released = released
        self._labels = max((name.count(".") + 1 for name in names), default=0)
        self._four = np.unique(
            np.array([int.from_bytes(one) for one in addresses if len(one) == 4], np.uint32)
        )
        self._six = [one for one in addresses if len(one) == 16]

    def in_text(self, data: bytes) -> Iterator[tuple[str, str]]:
        """Yields (kind, what) for each secret in a text, also in base64 and in percent form."""
        yield from self.plain(data)
        for match in ESCAPED.finditer(data):
            yield from self.plain(unquote_to_bytes(match.group()))
        for match in PACKED.finditer(data):
            token = match.group()
            plain = decoded(token)
            if plain is None:
                continue
            whole = token.endswith(b"=") and len(plain) in (4, 16)
            if whole and (plain in self.addresses or plain[::-1] in self.addresses):
                yield "addresses", str(ip_address(plain))
            if plain.isascii():
                yield from self.plain(plain)

    def plain(self, data: bytes) -> Iterator[tuple[str, str]]:
        """Yields (kind, what) for each secret that is spelled out."""
        for pattern in (FOUR, SIX):
            for match in pattern.finditer(data):
                address = parsed(match.group())
                if address is not None and self.is_client(address):
                    yield "addresses", str(ip_address(address))
        if self.names:
            for match in HOST.finditer(data):
                name = self.hidden(match.group().decode("ascii").lower())
                if name is not None:
                    yield "hidden", name

    def is_client(self, address: bytes) -> bool:
        """Returns whether the address, or its bytes in the other order, are a client's."""
        return address in self.addresses

    def hidden(self, token: str) -> str | None:
        """Returns the hidden name in a token; a name that was released may end in one."""
        if token in self.released:
            return None
        labels = token.split(".")
        for start in range(len(labels)):
            for end in range(min(len(labels), start + self._labels), start + 1, -1):
                name = ".".join(labels[start:end])
                if name in self.names:
                    return name
        return None

    def in_bytes(self, data: bytes) -> Iterator[tuple[str, str]]:
        """Yields the addresses of clients in binary form. Chance explains a few of four bytes."""
        for six in self._six:
            if six in data or six[::-1] in data:
                yield "addresses", str(ip_address(six))
        if not len(self._four):
            return
        hits: Counter[int] = Counter()
        for kind in (">u4", "<u4"):
            for start in range(4):
                size = (len(data) - start) // 4
                words = np.frombuffer(data, kind, count=max(size, 0), offset=start)
                hits.update(words[np.isin(words, self._four)].tolist())
        expected = 2 * len(data) * len(self._four) / 2**32
        if hits and unlikely(sum(hits.values()), expected):
            yield "addresses", str(ip_address(hits.most_common(1)[0][0]))


def hosts_in(text: str) -> set[str]:
    """Returns what looks like a name of a host in a text."""
    return {found.decode("ascii").lower() for found in HOST.findall(text.encode("ascii"))}


def unlikely(hits: int, expected: float) -> bool:
    """Returns whether the hits are more than by chance (Poisson)."""
    below = sum(
        math.exp(-expected) * expected**k / math.factorial(k) for k in range(min(hits, 150))
    )
    return (
        1 - below < RARE
        if expected > 0.01
        else expected**hits / math.factorial(min(hits, 150)) < RARE
    )


def decoded(token: bytes) -> bytes | None:
    """Returns the bytes of base64, with either alphabet, padded or not."""
    text = token.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        return None


def parsed(text: bytes) -> bytes | None:
    """Returns the bytes of an address."""
    try:
        return ip_address(text.decode("ascii").rstrip(".:" if b":" not in text else ".")).packed
    except ValueError:
        return None


def search(path: Path, file: str, secrets: Secrets) -> Iterator[Finding]:
    """Yields the secrets in a file."""
    if path.suffix == ".parquet":
        for kind, what in secrets.in_bytes(path.read_bytes()):
            yield Finding(kind, file, None, "bytes", 1, 0, what)
        for number, column, text in parquet_texts(path, file):
            for kind, what in secrets.in_text(text.encode()):
                yield Finding(kind, file, number, column, 1, 0, what)
        return
    for number, line in enumerate(text_of(path).split(b"\n"), 1):
        for kind, what in secrets.in_text(line):
            yield Finding(kind, file, number, "line", 1, 0, what)


def parquet_texts(path: Path, file: str) -> Iterator[tuple[int | None, str, str]]:
    """Yields each text of a Parquet file once, also the texts of dictionaries."""
    seen: set[tuple[str, str]] = set()
    for row in rows_of(path, file):
        for column, value in row.cells.items():
            if isinstance(value, str) and (column, value) not in seen:
                seen.add((column, value))
                yield row.number, column, value
