# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads tables of networks with their autonomous systems (AS) and countries: `--networks`.

A row is a prefix or a range of addresses. An address has the AS of the smallest row around the
address that has an AS. The country is found in the same way.
"""

import os
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from zanon_net._record import dataclass
from zanon_net.config.name_lists import ListFile, lines_of, path_of, read_bytes
from zanon_net.config.parse import reject

_V4 = bytes(10) + b"\xff\xff"
_AS = r"(?:AS)?([0-9]{1,10})"
_COUNTRY = r"[A-Z]{2}"
_NO_COUNTRY = ("", "-", "None", "Unknown", "ZZ")
_ROW = struct.Struct("=16sI2s2x")
"""A row of the core's table: zn_network in csrc/include/zanon/zanon.h."""
AS_MAX = 2**32 - 1
ADDRESS_BITS = 128


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a file, from the address `first` to `last`, both as numbers of 128 bits (IPv4 as
    ::ffff:a.b.c.d).

    as_number: 0 without an AS. country: empty without a country. where: file and line.
    """

    first: int
    last: int
    as_number: int
    country: str
    where: str


@dataclass(frozen=True, slots=True)
class NetworkList:
    """A table of networks.

    table: rows for the core, in the order of addresses. A row ends where the next begins.
    """

    files: tuple[ListFile, ...]
    table: bytes
    has_as: bool
    has_country: bool


def read_networks(name: str, value: object) -> NetworkList | None:
    """Reads the files, whose rows are a prefix, an AS and a country; a prefix and an AS (pyasn); or
    a first and a last address, an AS and a country (iptoasn)."""
    if value is None or isinstance(value, NetworkList):
        return value
    items = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(items, Sequence):
        reject(name, "must be files of networks")
    files: list[ListFile] = []
    rows: list[Row] = []
    for path in (path_of(name, item) for item in items):
        before = len(rows)
        text, digest = read_bytes(name, path)
        rows += _rows(name, path, text)
        files.append(ListFile(path, path.name, len(rows) - before, digest))
    if not files:
        return None
    numbers = _flat(name, [(row, row.as_number) for row in rows if row.as_number])
    countries = _flat(name, [(row, row.country) for row in rows if row.country])
    if not numbers and not countries:
        reject(name, "holds no network")
    return NetworkList(
        tuple(files), _table(dict(numbers), dict(countries)), bool(numbers), bool(countries)
    )


def _rows(name: str, path: Path, text: str) -> Iterator[Row]:
    for line, content in lines_of(text, "#"):
        if content.startswith(";"):  # pyasn's comments
            continue
        where = f"{path} line {line}"
        row = _row(content, where)
        if row is None:
            reject(
                name,
                f"{where} is not a prefix, an AS and a country, nor a first and a last address, an"
                " AS and a country",
            )
        yield row


def _row(content: str, where: str) -> Row | None:
    """Returns the row of a line, or None for any other text."""
    parts = content.split("\t") if "\t" in content else re.split(r"[, ]+", content)
    parts = [part.strip() for part in parts]
    if "/" in parts[0]:
        bounds = _prefix(parts[0])
        rest = parts[1:]
    else:
        bounds = _range(parts)
        rest = parts[2:]
    if bounds is None or not rest:
        return None
    number = re.fullmatch(_AS, rest[0])
    country = rest[1] if len(rest) > 1 else ""
    if country in _NO_COUNTRY:
        country = ""
    if (rest[0] and number is None) or (country and re.fullmatch(_COUNTRY, country) is None):
        return None
    as_number = 0 if number is None else int(number[1])
    return Row(*bounds, as_number, country, where) if as_number <= AS_MAX else None


def _address(text: str) -> tuple[int, int] | None:
    """Returns an address as a number of 128 bits, and the number of bits before the address."""
    import socket  # late: the documents read the settings without networks

    try:
        if ":" in text:
            return int.from_bytes(socket.inet_pton(socket.AF_INET6, text)), 0
        return int.from_bytes(_V4 + socket.inet_pton(socket.AF_INET, text)), 96
    except OSError:
        return None


def _prefix(text: str) -> tuple[int, int] | None:
    base, _slash, length = text.partition("/")
    address = _address(base)
    if address is None or not re.fullmatch("[0-9]{1,3}", length):
        return None
    bits = ADDRESS_BITS - address[1] - int(length)
    if bits < 0 or address[0] & ((1 << bits) - 1):
        return None
    return address[0], address[0] | ((1 << bits) - 1)


def _range(parts: Sequence[str]) -> tuple[int, int] | None:
    first, last = (_address(part) for part in (*parts, "", "")[:2])
    if first is None or last is None or first[1] != last[1] or first[0] > last[0]:
        return None
    return first[0], last[0]


def _flat(name: str, rows: Sequence[tuple[Row, int | str]]) -> list[tuple[int, int | str]]:
    """Returns the addresses at which the value of the smallest row changes, each with the value
    from there on; 0: no row. Raises ConfigError if one range has two values, or if two overlap."""
    changes: list[tuple[int, int | str]] = []
    around: list[tuple[Row, int | str]] = []

    def leave(until: int) -> None:
        while around and around[-1][0].last < until:
            end = around.pop()[0].last + 1
            changes.append((end, around[-1][1] if around else 0))

    for row, value in sorted(rows, key=lambda item: (item[0].first, -item[0].last)):
        leave(row.first)
        if around:
            outer, other = around[-1]
            same = (outer.first, outer.last) == (row.first, row.last)
            if row.last > outer.last or (same and value != other):
                kind = "overlap" if row.last > outer.last else "give one network two values"
                reject(name, f"{outer.where} and {row.where} {kind}")
        around.append((row, value))
        changes.append((row.first, value))
    leave(1 << ADDRESS_BITS)
    return changes


def _table(numbers: dict[int, int | str], countries: dict[int, int | str]) -> bytes:
    """Returns the core's table of both values."""
    packed: list[bytes] = []
    number, country = 0, ""
    for first in sorted({*numbers, *countries}):
        if first >> ADDRESS_BITS:
            break  # after the last address
        number = int(numbers.get(first, number))
        country = str(countries.get(first, country) or "")
        packed.append(_ROW.pack(first.to_bytes(16), number, country.encode("ascii")))
    return b"".join(packed)
