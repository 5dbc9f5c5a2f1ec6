# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks `addresses` and `hidden` on the bytes of files: no address of a client, and no name that
was never released, in any of the forms that text can have."""

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, ip_address
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
ESCAPED = re.compile(rb"(?<![!-~])[!-~]*%[0-9A-Fa-f]{2}[!-~]*")
JSON_ESCAPED = re.compile(rb"\\u00([0-7][0-9A-Fa-f])")
HEXADECIMAL = re.compile(rb"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{2}){7,}(?![0-9A-Za-z])")
DASHED = re.compile(rb"(?<![0-9A-Za-z.-])(?:[0-9]{1,3}[-_]){3}[0-9]{1,3}(?![0-9A-Za-z.-])")
BACKWARDS = re.compile(rb"((?:[0-9]{1,3}\.){3}[0-9]{1,3})\.in-addr\.arpa", re.IGNORECASE)
WHOLE = re.compile(
    rb"(?<![0-9A-Za-z_.+-])(?:0[xX][0-9A-Fa-f]{8}|[0-9A-Fa-f]{8}|[0-9]{9,10})(?![0-9A-Za-z_.+-])"
)
IN_NAME = re.compile(rb"[.-]?[A-Za-z]")  # behind an address
SIX_BYTES = 16
EMBEDDING = {  # prefixes of addresses of IPv6 that contain an address of IPv4, and where it begins
    bytes(10) + b"\xff\xff": 12,
    bytes(12): 12,
    b"\0\x64\xff\x9b" + bytes(8): 12,
    b"\x20\x02": 2,
}
BLOCK, OVERLAP = 1 << 24, 512
DEPTH = 2  # of encodings in encodings
NUMBER = "number"
RARE = 1e-6  # an event that chance does not explain


class Secrets:
    """Addresses of clients, and names that were never released. No file may contain these secrets.

    released: names that a log may show. servers: addresses of servers that no text may show.
    """

    def __init__(
        self,
        addresses: set[bytes],
        names: set[str],
        released: set[str],
        servers: Collection[bytes] = (),
    ) -> None:
        self.addresses = addresses
        self.names = names
        self.released = released
        self._servers = frozenset(servers)
        self._labels = max((name.count(".") + 1 for name in names), default=0)
        self._four = np.unique(
            np.array([int.from_bytes(one) for one in addresses if len(one) == 4], np.uint32)
        )
        self._six = [one for one in addresses if len(one) == SIX_BYTES]

    def in_text(self, data: bytes, depth: int = DEPTH) -> Iterator[tuple[str, str]]:
        """Yields (kind, what) for each secret in a text, also in base64, in percent form and in
        hexadecimal digits, and NUMBER for each number that may be an address."""
        yield from self.plain(data)
        for match in PACKED.finditer(data):
            token = match.group()
            plain = decoded(token) if token.endswith(b"=") else None
            if plain in self.addresses or (plain and plain[::-1] in self.addresses):
                yield "addresses", str(ip_address(plain))
        for inner in unpacked(data) if depth else ():
            yield from self.in_text(inner, depth - 1)

    def secrets_in(self, data: bytes) -> set[tuple[str, str]]:
        """Returns (kind, what) for each secret in a text, without numbers."""
        return {found for found in self.in_text(data) if found[0] != NUMBER}

    def spelled(self, data: bytes) -> set[tuple[str, str]]:
        """Returns (kind, what) for each address that is spelled out in bytes."""
        found = (address for address, _in_name in addresses_in(data) if self.is_secret(address))
        return {("addresses", str(ip_address(address))) for address in found}

    def plain(self, data: bytes) -> Iterator[tuple[str, str]]:
        """Yields (kind, what) for each secret that is spelled out, and NUMBER as `in_text`."""
        for address, in_name in addresses_in(data):
            if self.is_secret(address, in_name=in_name):
                yield "addresses", str(ip_address(address))
        for match in BACKWARDS.finditer(data):
            address = (parsed(match[1]) or b"")[::-1]
            if address in self.addresses and not self._shows(match.group()):
                yield "addresses", str(ip_address(address))
        for match in WHOLE.finditer(data):
            yield from ((NUMBER, str(value)) for value in values_of(match.group()))
        if self.names:
            for match in HOST.finditer(data):
                name = self.hidden(match.group().decode("ascii").lower())
                if name is not None:
                    yield "hidden", name

    def _shows(self, end: bytes) -> bool:
        """Returns whether a released name has this end."""
        return any(one.endswith(end.decode("ascii").lower()) for one in self.released)

    def is_secret(self, address: bytes, *, in_name: bool = False) -> bool:
        """Returns whether the address, or an address of IPv4 in it, may not be shown. Names of
        hosts may have the address of a server."""
        known = (self.addresses,) if in_name else (self.addresses, self._servers)
        if any(address in one for one in known):
            return True
        return len(address) == SIX_BYTES and any(
            address.startswith(prefix) and any(address[at : at + 4] in one for one in known)
            for prefix, at in EMBEDDING.items()
        )

    def clients_among(self, numbers: Collection[int]) -> list[int]:
        """Returns the numbers that are an address of a client, in either order of its bytes, unless
        chance explains them."""
        four = set(self._four.tolist())
        hits = [one for one in numbers if one in four or swapped(one) in four]
        expected = 2 * len(numbers) * len(four) / 2**32
        return hits if hits and unlikely(len(hits), expected) else []

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


def unlikely(hits: int, expected: float, rare: float = RARE) -> bool:
    """Returns whether the hits are more than by chance (Poisson)."""
    below = sum(
        math.exp(-expected) * expected**k / math.factorial(k) for k in range(min(hits, 150))
    )
    return (
        1 - below < rare
        if expected > 0.01
        else expected**hits / math.factorial(min(hits, 150)) < rare
    )


def decoded(token: bytes) -> bytes | None:
    """Returns the bytes of base64, with either alphabet, padded or not."""
    text = token.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        return None


def unpacked(data: bytes) -> Iterator[bytes]:
    """Yields the texts that are encoded in a text."""
    for match in ESCAPED.finditer(data):
        yield unquote_to_bytes(match.group())
    if JSON_ESCAPED.search(data):
        yield JSON_ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), data)
    for match in HEXADECIMAL.finditer(data):
        plain = bytes.fromhex(match.group().decode())
        if plain.isascii():
            yield plain
    for match in PACKED.finditer(data):
        found = decoded(match.group())
        if found is not None and found.isascii():
            yield found


def addresses_in(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yields the addresses that are spelled out in a text, and whether each is a part of a name."""
    for pattern in (FOUR, SIX, DASHED):
        for match in pattern.finditer(data):
            found = parsed(re.sub(b"[-_]", b".", match.group()))
            if found is not None:
                yield found, IN_NAME.match(data, match.end()) is not None
    for match in HEXADECIMAL.finditer(data):
        if len(match.group()) == 2 * SIX_BYTES:
            yield bytes.fromhex(match.group().decode()), False


def values_of(text: bytes) -> Iterator[int]:
    """Yields the numbers of four bytes that digits may mean: decimal or hexadecimal."""
    if text.isdigit() and 1 << 24 <= int(text) < 1 << 32:
        yield int(text)
    if len(text) == 8 or text[:2].lower() == b"0x":
        value = int(text, 16)
        if value & 0x0F0F0F0F != 0x0A0A0A0A:  # a version of QUIC that means nothing (RFC 9000, 15)
            yield value


def swapped(value: int) -> int:
    """Returns a number of four bytes with its bytes in the other order."""
    return int.from_bytes(value.to_bytes(4, "little"))


def parsed(text: bytes) -> bytes | None:
    """Returns the bytes of an address. Zeros before a number mean nothing."""
    plain = text.decode("ascii").rstrip("." if b":" in text else ".:")
    if b":" not in text:
        plain = ".".join(part.lstrip("0") or "0" for part in plain.split("."))
    try:
        return ip_address(plain).packed
    except ValueError:
        return None


def search(path: Path, file: str, secrets: Secrets) -> Iterator[Finding]:
    """Yields the secrets in a file."""
    if path.suffix == ".parquet":
        for kind, what in secrets.in_bytes(path.read_bytes()):
            yield Finding(kind, file, None, "bytes", 1, 0, what)
        texts = parquet_texts(path, file)
    else:
        lines = enumerate(text_of(path).split(b"\n"), 1)
        texts = ((number, "line", line) for number, line in lines)
    places: dict[int, tuple[int | None, str]] = {}
    for number, column, text in texts:
        for kind, what in dict.fromkeys(secrets.in_text(text)):
            if kind == NUMBER:
                places.setdefault(int(what), (number, column))
            else:
                yield Finding(kind, file, number, column, 1, 0, what)
    for value in secrets.clients_among(places):
        yield Finding("addresses", file, *places[value], 1, 0, str(IPv4Address(value)))


def search_bytes(path: Path, file: str, secrets: Secrets) -> Iterator[Finding]:
    """Yields the secrets in a file of any kind, each once."""
    found: set[tuple[str, str]] = set()
    with path.open("rb") as source:
        rest = b""
        while block := source.read(BLOCK):
            data = rest + block
            rest = data[-OVERLAP:]
            found |= secrets.secrets_in(data)
            if 0 in data:
                found.update(secrets.in_bytes(data))
    for kind, what in sorted(found):
        yield Finding(kind, file, None, "bytes", 1, 0, what)


def parquet_texts(path: Path, file: str) -> Iterator[tuple[int | None, str, bytes]]:
    """Yields each text and whole number of a Parquet file once, also the texts of dictionaries."""
    seen: set[tuple[str, str]] = set()
    for row in rows_of(path, file):
        for column, value in row.cells.items():
            text = str(value)
            if isinstance(value, str | int) and (column, text) not in seen:
                seen.add((column, text))
                yield row.number, column, text.encode()
