# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files of sealed rows that a counter released: written by `count --sealed-out`, read by `unseal`.

u32 length, then a frame of that many bytes, and so on; little endian:
0 4 magic "ZNSR"    4 1 version    5 1 zero    6 2 shard    8 8 probe    16 8 sequence
24 4 number of vote 28 4 zero      32 32 the probe's public key          64 the sealed row
"""

import re
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from zanon_net.errors import FormatError

MAGIC, VERSION = b"ZNSR", 1
SUFFIX = ".zns"
KEY_BYTES = 32
SEALED_MAX = 4112
_LENGTH = struct.Struct("<I")
_HEADER = struct.Struct(f"<4sBxHQQI4x{KEY_BYTES}s")
_OBSERVATION = re.compile(
    rb'\{"t_ns":[0-9]{1,19},'
    rb'"client":(?:null|"[0-9a-f:.]{2,45}"),'
    rb'"name":"[a-z0-9_][a-z0-9_.-]{0,252}",'
    rb'"name_source":"[a-z0-9]{1,8}"\}'
)


class Place(NamedTuple):
    """Place of a row's vote: its message, and its number in the message, from 0 on."""

    probe: int
    shard: int
    sequence: int
    number: int


class SealedRow(NamedTuple):
    """A row, its place, and the public key that its probe sealed it with."""

    place: Place
    probe_key: bytes
    sealed: bytes


def frame_of(row: SealedRow) -> bytes:
    """Returns the frame of a row, with its length before it."""
    probe, shard, sequence, number = row.place
    header = _HEADER.pack(MAGIC, VERSION, shard, probe, sequence, number, row.probe_key)
    return _LENGTH.pack(len(header) + len(row.sealed)) + header + row.sealed


def rows_in(file: BinaryIO) -> Iterator[SealedRow]:
    """Yields the rows of a file. Raises FormatError for a file of another kind, or a cut file."""
    while prefix := file.read(_LENGTH.size):
        length = _LENGTH.unpack(prefix)[0] if len(prefix) == _LENGTH.size else 0
        if not _HEADER.size < length <= _HEADER.size + SEALED_MAX:
            raise FormatError("holds no sealed rows, or is damaged")
        frame = file.read(length)
        if len(frame) < length:
            raise FormatError("ends in the midst of a row")
        yield _row_of(frame)


def _row_of(frame: bytes) -> SealedRow:
    magic, version, shard, probe, sequence, number, key = _HEADER.unpack_from(frame)
    if magic != MAGIC:
        raise FormatError("holds no sealed rows, or is damaged")
    if version != VERSION:
        raise FormatError(f"has version {version} of sealed rows, and only {VERSION} is known")
    return SealedRow(Place(probe, shard, sequence, number), key, frame[_HEADER.size :])


def is_observation(row: bytes) -> bool:
    """Returns true if an opened row is a line of `run --format observations`, without its end.
    The sealer of a row can put anything in it."""
    return _OBSERVATION.fullmatch(row) is not None
