# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Searches all that a run leaves behind for every notation of an address, and for names."""

import base64
import contextlib
import functools
import gzip
import io
import ipaddress
import re
import struct
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import zstandard

from support.cli import run_here

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@functools.cache
def notations(address: Address) -> set[bytes]:
    """The address as text: every usual way to write it, in lower case."""
    packed, number = address.packed, int(address)
    forms = {str(address), address.exploded, packed.hex(), str(number), f"{number:x}"}
    forms |= {address.reverse_pointer, packed.hex(":"), packed.hex(" "), packed.hex("-")}
    forms |= {str(int.from_bytes(packed, "little")), repr(packed)[2:-1]}
    forms.add(base64.b64encode(packed).decode().rstrip("=").lower())
    if address.version == 4:
        octets = [*packed]
        forms |= {".".join(f"{o:03}" for o in octets), ".".join(map(str, reversed(octets)))}
        forms |= {"-".join(map(str, octets)), "_".join(map(str, octets)), f"{number:o}"}
        forms |= {f"{number >> 16:x}:{number & 0xFFFF:x}"}
    else:
        words = struct.unpack(">8H", packed)
        forms |= {"-".join(f"{word:x}" for word in words), ":".join(f"{w:x}" for w in words)}
        forms.add(str(ipaddress.ip_network((address, 64), strict=False).network_address))
        forms.add(":".join(f"{word:04x}" for word in words[:4]))
        forms.add(":".join(f"{word:x}" for word in words[4:]))  # the interface identifier
    return {form.encode().lower() for form in forms}


@functools.cache
def spellings(name: str) -> set[bytes]:
    """A name as text, and in encodings that a program is likely to use."""
    text = name.encode("utf-8", "surrogateescape")
    coded = base64.b64encode(text).rstrip(b"=").lower()
    labels = b"".join(bytes([min(len(label), 255)]) + label for label in text.split(b"."))
    backwards = b".".join(reversed(text.split(b".")))
    return {text.lower(), text.hex().encode(), coded, labels.lower(), backwards.lower()}


@dataclass(frozen=True)
class Canaries:
    """Texts that must not occur, each with what it stands for."""

    texts: dict[bytes, str]

    @classmethod
    def of(cls, addresses: Iterable[Address], names: Iterable[str]) -> "Canaries":
        """The canaries of addresses, names, and labels that only these names have."""
        texts = {text: f"address {a}" for a in addresses for text in notations(a)}
        texts |= {text: f"name {name!r}" for name in names for text in spellings(name)}
        return cls(texts)

    def found_in(self, haystack: bytes) -> set[str]:
        """The canaries that occur, other than inside a longer word."""
        haystack = haystack.lower()
        words = b"\n".join(set(SEPARATOR.split(haystack)))
        runs = set(RUN.findall(haystack))
        return {
            meaning
            for text, meaning in self.texts.items()
            if whole_runs(text) <= runs
            and occurs(text, haystack if SEPARATOR.search(text) else words)
        }


SEPARATOR = re.compile(rb"[\s\",{}]+")  # each word is searched once, however often it comes
RUN = re.compile(rb"[0-9a-z_-]+")


@functools.cache
def whole_runs(text: bytes) -> frozenset[bytes]:
    """The words of a text that stay whole wherever the text occurs as a word of its own. Most
    texts lack one of them, and need no search."""
    return frozenset(
        run[0]
        for run in RUN.finditer(text)
        if (run.start() > 0 or text[:1].isalnum())
        and (run.end() < len(text) or text[-1:].isalnum())
    )


def occurs(text: bytes, haystack: bytes) -> bool:
    """Whether the text occurs as a word of its own."""
    at = haystack.find(text)
    while at >= 0:
        before, after = haystack[at - 1 : at], haystack[at + len(text) : at + len(text) + 1]
        if not (is_word(before, text[:1]) or is_word(after, text[-1:])):
            return True
        at = haystack.find(text, at + 1)
    return False


def is_word(neighbour: bytes, edge: bytes) -> bool:
    """Whether a byte beside a text continues it: 110.0.0.1 does not hold 10.0.0.1."""
    if not edge.isalnum():
        return False
    return neighbour.isalnum() or neighbour in (b"_", b"-")


def plain(path: Path) -> bytes:
    """A file's content as text: unpacked if compressed; of Parquet its rows as CSV, all words of
    its dictionaries, and its metadata."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(data))
    if path.suffix != ".parquet":
        return data
    table = pyarrow.parquet.read_table(path)
    text = io.BytesIO()
    pyarrow.csv.write_csv(table, text)
    words = [
        word.encode()
        for column in table.columns
        for chunk in column.chunks
        if pyarrow.types.is_dictionary(chunk.type)
        for word in chunk.dictionary.to_pylist()
    ]
    described = [value for field in table.schema for value in (field.metadata or {}).values()]
    about = (table.schema.metadata or {}).values()
    return b"\n".join([text.getvalue(), *words, *described, *about])


@dataclass(frozen=True)
class Leftovers:
    """Everything a run left behind."""

    code: int
    stdout: bytes
    stderr: bytes
    folder: Path

    def everything(self) -> bytes:
        """Paths, contents and messages, in one piece."""
        paths = sorted(self.folder.rglob("*")) if self.folder.exists() else []
        parts = [bytes(path.relative_to(self.folder)) for path in paths]
        parts += [plain(path) for path in paths if path.is_file()]
        return b"\n".join([*parts, self.stdout, self.stderr])


def zanon_net(folder: Path, *arguments: object, stdin: bytes | None = None) -> Leftovers:
    """Runs the command with `folder` as its working folder."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "zanon_net", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, check=False, timeout=120
    )
    return Leftovers(done.returncode, done.stdout, done.stderr, folder)


def zanon_net_here(folder: Path, *arguments: object) -> Leftovers:
    """Runs the command in this process, with `folder` as its working folder."""
    with contextlib.chdir(folder):
        done = run_here(*arguments)
    return Leftovers(done.returncode, done.stdout, done.stderr, folder)
